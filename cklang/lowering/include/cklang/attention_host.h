/* SPDX-License-Identifier: MIT
 *
 * The host shim of an attention kernel: a small shared library that answers for one problem how to
 * launch the kernel or why it will not run. Plain C; the layouts are fixed by
 * CK_ATTENTION_HOST_VERSION. */
#pragma once

#include "cklang/host.h" /* ck_gemm_launch: how to launch, whatever the kernel computes */

#define CK_ATTENTION_HOST_VERSION 3
#define CK_ATTENTION_MAX_OPERANDS 8
#define CK_ATTENTION_MAX_RANK 4

/* Strides in elements along batch, head and sequence; the head axis of q, k, v and o and the keys
 * of bias and random values are contiguous. Strides of axes of extent 1 are ignored. */
typedef struct ck_attention_tensor
{
    const void* data;
    int64_t stride_batch, stride_head, stride_seq;
} ck_attention_tensor;

typedef struct ck_attention_operand
{
    const void* data;
    int64_t extent[CK_ATTENTION_MAX_RANK];
    int64_t stride[CK_ATTENTION_MAX_RANK];
} ck_attention_operand;

typedef struct ck_attention_problem
{
    int64_t batch, heads, kv_heads;
    int64_t seqlen_q, seqlen_k; /* packed sequences: the longest ones */
    int64_t hdim_q, hdim_v;
    ck_attention_tensor q, k, v, o; /* [batch, head, sequence, hdim] */
    ck_attention_tensor lse;        /* [batch, head, query], f32 */
    ck_attention_tensor bias;       /* [batch, head, query, key] */
    ck_attention_tensor random;     /* the same, bytes; may be null */
    ck_attention_tensor slopes;     /* [batch, head], f32 */
    const void* starts_q; /* int32 [batch + 1] in device memory: where packed sequences begin */
    const void* starts_k;
    const void* lengths_k; /* int32 [batch]: keys of each sequence; may be null */
    const void* pages;     /* int32: the page of each `page_size` keys, one sequence after another */
    const void* page_starts; /* int32 [batch]: where the pages of a sequence begin in that table; */
    int64_t pages_stride;    /* if null, every so many */
    int64_t page_size;       /* keys of a page; stride_batch of k and v is that of a page */
    ck_attention_tensor partial_o; /* of kernels that share keys: f32 [batch, head, query, hdim_v] */
    ck_attention_tensor partial_lse;
    int64_t stride_split_o, stride_split_lse; /* elements from one split to the next */
    int64_t splits;
    const void* seed; /* of dropout: int32 in device memory */
    const void* offset;
    const void* min_seqlen_q; /* int32: packed sequences of up to so many queries are skipped */
    double scale;    /* of the product of query and key */
    double soft_cap; /* scores are capped to +- this */
    double scale_p;  /* 8-bit types: of the weights before they are rounded, */
    double scale_o;  /* and of the result */
    double dropout;  /* probability that a weight is dropped */
    int64_t left, right; /* query i sees keys i + shift - left to i + shift + right; -1: no limit */
    int64_t from_bottom_right; /* shift is seqlen_k - seqlen_q rather than 0 */
    int64_t sink;              /* as many first keys are seen in spite of left */
    ck_attention_operand operands[CK_ATTENTION_MAX_OPERANDS]; /* of the user's functions */
} ck_attention_problem;

/* Exported by every attention host shim:
 *     void ck_attention_describe(const ck_attention_problem* problem, ck_gemm_launch* launch);
 *     uint32_t ck_attention_host_version(void);   (CK_ATTENTION_HOST_VERSION) */
