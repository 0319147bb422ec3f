/* SPDX-License-Identifier: MIT
 *
 * Rows of logits and the numbers by which a token of each is drawn. */
#pragma once

#include "cklang/lines_host.h"

#define CK_SAMPLE_MORE_TENSORS 5

/* What a host shim is asked, and the argument of the kernel. Tensors: logits, seed, offset and
 * temperature; top_k, top_p, min_p, the tokens, and one without data whose strides number the rows. */
typedef struct ck_sample_problem
{
    ck_lines_problem lines;
    ck_lines_tensor more[CK_SAMPLE_MORE_TENSORS];
} ck_sample_problem;
