/* SPDX-License-Identifier: MIT
 *
 * The host shim of a GEMM kernel: a small shared library with one function, which answers for one
 * problem how to launch the kernel or why it will not run. Plain C, so that any language can call
 * it. The struct layouts are fixed by CK_GEMM_HOST_VERSION. */
#pragma once

#include <stdint.h>

#define CK_GEMM_HOST_VERSION 5
#define CK_GEMM_MAX_OPERANDS 8 /* of A, of B and of the epilogue, each */
#define CK_GEMM_MAX_BATCH 3
#define CK_GEMM_MAX_KERNARG 4096

/* One array that a kernel reads or writes. Strides count elements; those of axes of extent 1 are
 * ignored, those of axes that the operand does not have are 0. */
typedef struct ck_gemm_operand
{
    const void* data;
    int64_t outer; /* from one to the next along the axis that is not contiguous in the layout the
                      kernel was built for; of D and E: along m */
    int64_t inner; /* along the other axis; only strided operands have other values than 0 and 1 */
    int64_t batch[CK_GEMM_MAX_BATCH]; /* from one matrix to the next along each batch axis */
} ck_gemm_operand;

/* E[m, n] = f(sum over k of A[m, k] * B[k, n], D0[m, n], ...). A and B are one operand each, or
 * as many as the function has that computes them. */
typedef struct ck_gemm_problem
{
    int64_t m, n, k;
    int64_t k_batch; /* workgroups that share a tile's K in a split-K kernel; 1 in others */
    int64_t blocks;  /* workgroups that the GPU runs at once; the grid of a persistent kernel */
    ck_gemm_operand a[CK_GEMM_MAX_OPERANDS];
    ck_gemm_operand b[CK_GEMM_MAX_OPERANDS];
    ck_gemm_operand d[CK_GEMM_MAX_OPERANDS];
    ck_gemm_operand e;
    void* workspace;                  /* for kernels that ask for one */
    int64_t batch[CK_GEMM_MAX_BATCH]; /* extents, the last one innermost; 1 where there is none */
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

/* Exported by every GEMM host shim:
 *     void ck_gemm_describe(const ck_gemm_problem* problem, ck_gemm_launch* launch);
 *     uint32_t ck_gemm_host_version(void);   (CK_GEMM_HOST_VERSION) */
