/* SPDX-License-Identifier: MIT
 *
 * The host shim of kernels whose workgroups each have one line of elements, or a part of one: rows
 * that are written at indices, sums along a row, sorted rows. Plain C; the layouts are fixed by
 * CK_LINES_HOST_VERSION. */
#pragma once

#include "cklang/host.h" /* ck_gemm_launch: how to launch, whatever the kernel computes */

#define CK_LINES_HOST_VERSION 1
#define CK_LINES_AXES 4
#define CK_LINES_TENSORS 4

/* Strides count elements; along axes that a tensor repeats or does not have they are 0. */
typedef struct ck_lines_tensor
{
    const void* data;
    int64_t outer[CK_LINES_AXES]; /* along the axes that count lines */
    int64_t inner[CK_LINES_AXES]; /* along those of a line */
} ck_lines_tensor;

/* Also the argument of the kernels. Axes that there are not come first, with extent 1. */
typedef struct ck_lines_problem
{
    int64_t outer[CK_LINES_AXES];
    int64_t inner[CK_LINES_AXES];
    int64_t extent; /* numbers of the kernel's own */
    int64_t step;
    ck_lines_tensor tensors[CK_LINES_TENSORS];
} ck_lines_problem;

/* Exported by every such host shim:
 *     void ck_lines_describe(const ck_lines_problem* problem, ck_gemm_launch* launch);
 *     uint32_t ck_lines_host_version(void);   (CK_LINES_HOST_VERSION) */
