/* SPDX-License-Identifier: MIT
 *
 * The host shim of a kernel of rows: a small shared library that answers for one problem how to
 * launch the kernel or why it will not run. Plain C; the layouts are fixed by
 * CK_ROWWISE_HOST_VERSION. */
#pragma once

#include "cklang/host.h" /* ck_gemm_launch: how to launch, whatever the kernel computes */
#include "cklang/rowwise_args.h" /* how many axes and tensors there may be */

#define CK_ROWWISE_HOST_VERSION 2
/* A tensor. Strides count elements; along axes that it repeats or does not have they are 0. */
typedef struct ck_rowwise_operand
{
    const void* data;
    int64_t row_stride[CK_ROWWISE_MAX_AXES];
    int64_t stride[CK_ROWWISE_MAX_AXES]; /* along a row */
} ck_rowwise_operand;

/* Axes that there are not come first, with extent 1. */
typedef struct ck_rowwise_problem
{
    int64_t rows[CK_ROWWISE_MAX_AXES];
    int64_t elements[CK_ROWWISE_MAX_AXES]; /* of a row; their product may be 0 */
    int64_t compute_units;
    ck_rowwise_operand reads[CK_ROWWISE_MAX_READS];
    ck_rowwise_operand outputs[CK_ROWWISE_MAX_OUTPUTS]; /* those of elements first */
} ck_rowwise_problem;

/* Exported by every such host shim:
 *     void ck_rowwise_describe(const ck_rowwise_problem* problem, ck_gemm_launch* launch);
 *     uint32_t ck_rowwise_host_version(void);   (CK_ROWWISE_HOST_VERSION) */
