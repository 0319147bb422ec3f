/* SPDX-License-Identifier: MIT
 *
 * The host face of a GEMM kernel: a small shared library with one function, which answers for one
 * problem how to launch the kernel or why it will not run. Plain C, so that any language can call
 * it. The struct layouts are fixed by CK_GEMM_HOST_VERSION. */
#pragma once

#include <stdint.h>

#define CK_GEMM_HOST_VERSION 4
#define CK_GEMM_MAX_D 8
#define CK_GEMM_MAX_BATCH 3
#define CK_GEMM_MAX_KERNARG 1024

/* E[m, n] = f(sum over k of A[m, k] * B[k, n], D0[m, n], ...).
 * Strides count elements. stride_a, stride_b, stride_e belong to the axis that is not contiguous
 * in the layout the kernel was built for. Strides of axes of extent 1 are ignored. */
typedef struct ck_gemm_problem
{
    int64_t m, n, k;
    int64_t k_batch; /* workgroups that share a tile's K in a split-K kernel; 1 in others */
    int64_t blocks;  /* workgroups that the GPU runs at once; the grid of a persistent kernel */
    const void* a;
    const void* b;
    void* e;
    void* workspace; /* for kernels that ask for one */
    int64_t stride_a, stride_b, stride_e;
    const void* d[CK_GEMM_MAX_D];
    int64_t d_stride_m[CK_GEMM_MAX_D];
    int64_t d_stride_n[CK_GEMM_MAX_D];
    int64_t batch[CK_GEMM_MAX_BATCH]; /* extents, the last one innermost; 1 where there is none */
    int64_t a_batch[CK_GEMM_MAX_BATCH]; /* elements from one matrix to the next along each */
    int64_t b_batch[CK_GEMM_MAX_BATCH];
    int64_t e_batch[CK_GEMM_MAX_BATCH];
    int64_t d_batch[CK_GEMM_MAX_D][CK_GEMM_MAX_BATCH];
    int64_t first_tile;  /* of grouped kernels: where this group's tiles begin; with a table, their
                            number in all groups */
    int64_t group_count; /* rows of the table */
    const void* groups;  /* the table in device memory, or null to be given this group's row */
} ck_gemm_problem;

typedef struct ck_gemm_launch
{
    const char* refusal; /* null, or the sentence that says why the problem is refused; when it is
                            not null nothing below is set */
    uint32_t grid[3];    /* blocks */
    uint32_t block[3];   /* threads */
    uint32_t lds_bytes;  /* static LDS of one block; no dynamic LDS is needed */
    uint32_t kernarg_bytes;
    uint64_t workspace_bytes;
    uint64_t zeroed_bytes; /* how many of them, from the first on, must be 0 before a launch */
    unsigned char kernarg[CK_GEMM_MAX_KERNARG]; /* the kernel's one argument, by value */
} ck_gemm_launch;

/* Exported by every GEMM host face:
 *     void ck_gemm_describe(const ck_gemm_problem* problem, ck_gemm_launch* launch);
 *     uint32_t ck_gemm_host_version(void);   (CK_GEMM_HOST_VERSION) */
