/* SPDX-License-Identifier: MIT
 *
 * Lines of more tensors than lines_host.h has; what the others are of is the problem's own matter. */
#pragma once

#include "cklang/lines_host.h"

#define CK_LINES_MORE_TENSORS 2

/* What a host shim is asked, and the argument of the kernel. */
typedef struct ck_wide_lines
{
    ck_lines_problem lines;
    const void* more[CK_LINES_MORE_TENSORS];
} ck_wide_lines;
