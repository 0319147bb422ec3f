/* SPDX-License-Identifier: MIT
 *
 * The host shim of a kernel that copies a tensor so that another axis of it is contiguous: what
 * host.h is for products. A launch is described by the same ck_gemm_launch. */
#pragma once

#include "cklang/host.h"

#define CK_TRANSPOSE_HOST_VERSION 1
#define CK_TRANSPOSE_MAX_BATCH 4

/* One side of the copy; strides count elements, those of axes of extent 1 are ignored. */
typedef struct ck_transpose_tensor
{
    const void* data;
    int64_t row, column; /* from one to the next along rows, along columns */
    int64_t batch[CK_TRANSPOSE_MAX_BATCH];
} ck_transpose_tensor;

/* Matrices of rows by columns. Columns are the axis that vectors of the source run along, rows that
 * of the target. */
typedef struct ck_transpose_problem
{
    int64_t rows, columns;
    int64_t batch[CK_TRANSPOSE_MAX_BATCH]; /* extents, the last one innermost; 1 where there is none */
    ck_transpose_tensor source, target;
} ck_transpose_problem;

/* Exported by every such host shim:
 *     void ck_transpose_describe(const ck_transpose_problem* problem, ck_gemm_launch* launch);
 *     uint32_t ck_transpose_host_version(void);   (CK_TRANSPOSE_HOST_VERSION) */
