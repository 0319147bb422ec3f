/* SPDX-License-Identifier: MIT
 *
 * The host shim of a kernel that reduces rows: a small shared library that answers for one problem
 * how to launch the kernel or why it will not run. Plain C; the layouts are fixed by
 * CK_ROWWISE_HOST_VERSION. */
#pragma once

#include "cklang/host.h" /* ck_gemm_launch: how to launch, whatever the kernel computes */

#define CK_ROWWISE_HOST_VERSION 1
#define CK_ROWWISE_MAX_AXES 4     /* of the result, and of a tensor that the function reads */
#define CK_ROWWISE_MAX_OPERANDS 8 /* tensors that the function reads */

/* A tensor that the user's function reads; axes that it does not have have extent 1 and stride 0. */
typedef struct ck_rowwise_operand
{
    const void* data;
    int64_t extent[CK_ROWWISE_MAX_AXES];
    int64_t stride[CK_ROWWISE_MAX_AXES];
} ck_rowwise_operand;

/* y[i...] = f(reduction over j of x[i..., j], i...). Strides count elements; axes that the result
 * does not have come first, with extent 1 and stride 0. */
typedef struct ck_rowwise_problem
{
    int64_t rows[CK_ROWWISE_MAX_AXES];
    int64_t length; /* elements of a row; may be 0 */
    const void* x;
    int64_t x_stride[CK_ROWWISE_MAX_AXES]; /* from row to row */
    int64_t x_step;                        /* from element to element of a row */
    void* y;
    int64_t y_stride[CK_ROWWISE_MAX_AXES];
    ck_rowwise_operand operands[CK_ROWWISE_MAX_OPERANDS];
} ck_rowwise_problem;

/* Exported by every such host shim:
 *     void ck_rowwise_describe(const ck_rowwise_problem* problem, ck_gemm_launch* launch);
 *     uint32_t ck_rowwise_host_version(void);   (CK_ROWWISE_HOST_VERSION) */
