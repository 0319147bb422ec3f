/* SPDX-License-Identifier: MIT
 *
 * The host shim of a convolution kernel: what host.h is for products. A launch is described by
 * the same ck_gemm_launch. */
#pragma once

#include "cklang/host.h"

#define CK_CONV_HOST_VERSION 2

/* Axes in space are z, y, x; a convolution of lower rank uses the last ones, and the first have
 * extent 1, stride 1, dilation 1 and no padding. Strides of tensors count elements; those of axes
 * of extent 1 are ignored. The last axis of each tensor is contiguous. */
typedef struct ck_conv_problem
{
    int64_t n, g, k, c; /* images, groups, features of a group, channels of a group */
    int64_t in[3], out[3], window[3];
    int64_t stride[3], dilation[3], pad_before[3], pad_after[3];
    const void* a; /* forward: x; gradients: that of y */
    const void* b; /* forward and gradient of x: w; gradient of w: x */
    void* e;       /* y, or the gradient */
    void* workspace;           /* for kernels that ask for one */
    int64_t input_strides[6];  /* of x or its gradient: n, z, y, x, g, c */
    int64_t weight_strides[6]; /* of w or its gradient: g, k, z, y, x, c */
    int64_t output_strides[6]; /* of y or its gradient: n, z, y, x, g, k */
    const void* d[CK_GEMM_MAX_OPERANDS];
    int64_t d_strides[CK_GEMM_MAX_OPERANDS][6]; /* along the axes of E; 0 where it broadcasts */
    int64_t split_k; /* workgroups that share a tile's K in a split-K kernel; 1 in others */
    int64_t blocks;  /* workgroups that the GPU runs at once */
    int64_t most_bytes; /* that a tensor of one product may span, up to 2^31; larger ones are cut */
} ck_conv_problem;

/* Exported by every convolution's host shim:
 *     void ck_conv_describe(const ck_conv_problem* problem, ck_gemm_launch* launch);
 *     uint32_t ck_conv_host_version(void);   (CK_CONV_HOST_VERSION) */
