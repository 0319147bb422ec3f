/* SPDX-License-Identifier: MIT
 *
 * The host shim of a kernel that writes rows behind those of a cache. Plain C; the layouts are
 * fixed by CK_ATTENTION_HOST_VERSION. */
#pragma once

#include "cklang/attention_host.h"

typedef struct ck_append_problem
{
    int64_t batch, heads;
    int64_t rows;  /* new ones of each sequence */
    int64_t width; /* elements of a row */
    int64_t rotary_width; /* how many of them its position turns */
    ck_attention_tensor from; /* [batch, head, row, width], rows contiguous; so for to */
    ck_attention_tensor to;
    const void* starts; /* int32 [batch] in device memory: rows that the cache holds; may be null */
    const void* pages;  /* as in ck_attention_problem */
    const void* page_starts;
    int64_t pages_stride, page_size;
    const void* cosine; /* [position, rotary_width / 2], of the type of the rows */
    const void* sine;
    int64_t advance; /* row i has position start + i; else all have position start */
    int64_t behind;  /* row i goes to row start + i; else to row i */
    int64_t capacity;  /* rows that a sequence has a place for; others are not written */
    int64_t positions; /* rows of the tables */
    const void* scales; /* float in device memory: what each head is divided by; may be null */
    int64_t stride_scale; /* from one head to the next, 0: all have the first */
    double scale; /* what all are divided by, where there are no scales */
} ck_append_problem;

/* Exported by the host shim:
 *     void ck_append_describe(const ck_append_problem* problem, ck_gemm_launch* launch);
 *     uint32_t ck_attention_host_version(void);   (CK_ATTENTION_HOST_VERSION) */
