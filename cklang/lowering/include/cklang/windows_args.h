/* SPDX-License-Identifier: MIT
 *
 * The argument of kernels that move a window over images. Places within an image are counted in 32
 * bits; strides count elements. */
#pragma once

#include "cklang/conv_host.h"

typedef struct ck_window_args
{
    const void* a;
    const void* b;
    void* e;
    const void* d[CK_GEMM_MAX_OPERANDS];
    int64_t a_image, e_image, d_image[CK_GEMM_MAX_OPERANDS]; /* from one image to the next */
    int32_t in[3], out[3], before[3];
    int32_t channels;  /* of the result */
    int32_t block;     /* vectors of channels that a workgroup has */
    int32_t parts;     /* workgroups for the pixels of a plane and these channels */
    int32_t blocks;    /* of channels */
    int32_t across;    /* tiles along x */
    int32_t down;      /* tiles along y */
    int32_t a_step[5]; /* z, y, x, g, c */
    int32_t b_begin;   /* elements from the address of the weights to the first tap */
    int32_t b_step[6]; /* g, k, z, y, x, c */
    int32_t e_step[5]; /* z, y, x, g, k */
    int32_t d_step[CK_GEMM_MAX_OPERANDS][5];
    uint32_t a_bytes, e_bytes, d_bytes[CK_GEMM_MAX_OPERANDS]; /* of one image */
} ck_window_args;

#define CK_WINDOW_REACH (1 << 30) /* more bytes than an image has: buffers end before */
