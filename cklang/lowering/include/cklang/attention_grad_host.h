/* SPDX-License-Identifier: MIT
 *
 * The host shims of the kernels that the gradient of attention is made of. Plain C; the layouts are
 * fixed by CK_ATTENTION_HOST_VERSION. */
#pragma once

#include "cklang/attention_host.h"

typedef struct ck_attention_grad_problem
{
    ck_attention_problem forward; /* with lse, without o */
    ck_attention_tensor grad_o;   /* [batch, head, query, hdim_v] */
    ck_attention_tensor d;        /* f32 [batch, head, query] */
    ck_attention_tensor grad_q;   /* f32 [batch, head, query, hdim_q] */
    ck_attention_tensor grad_k;   /* [batch, head, key, hdim_q], a head for each of q */
    ck_attention_tensor grad_v;   /* [batch, head, key, hdim_v], the same */
    ck_attention_tensor grad_bias; /* [batch, head, query, key] */
    int64_t stride_split_q; /* deterministic kernels: elements from what one tile of keys adds to
                               grad_q to the next; there are ceil(seqlen_k / tile) of them */
} ck_attention_grad_problem;

typedef struct ck_reduce_problem
{
    ck_attention_tensor a, b, result; /* [batch, head, row, width]; the result of dot without width */
    int64_t stride_part; /* elements of a from one part to the next */
    int64_t batch, heads, rows, width;
    int64_t count; /* parts */
    double factor;
} ck_reduce_problem;

/* Exported by the host shims:
 *     void ck_attention_grad_describe(const ck_attention_grad_problem*, ck_gemm_launch*);
 * or  void ck_reduce_describe(const ck_reduce_problem*, ck_gemm_launch*);
 * and uint32_t ck_attention_host_version(void);   (CK_ATTENTION_HOST_VERSION) */
