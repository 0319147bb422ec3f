/* SPDX-License-Identifier: MIT
 *
 * The functions that a stencil of attention leaves open, in C that is also HIP C++:
 *
 *     float ck_score(float s, CK_ATTENTION_PARAMS);   the score that takes the place of s
 *     int ck_mask(CK_ATTENTION_PARAMS);               whether query i sees key j
 *     float ck_output(float o, CK_ATTENTION_PARAMS);  what is stored of o
 *
 * s is the product of query and key times the scale. Both functions are asked at (i, j) inside S
 * and T only. o is an element of the result; there j counts along the head, and i along all rows of
 * packed sequences. They read the user's tensors themselves, so that neither their number nor their
 * element types nor the way they are indexed is part of the stencil. */
#pragma once

#define CK_GLOBAL __attribute__((address_space(1)))
#define CK_CONSTANT __attribute__((address_space(4)))

/* One tensor of the user: up to four axes, extents and strides in elements; an axis that it does
 * not have has extent 1 and stride 0. */
typedef struct
{
    const CK_GLOBAL void *data;
    int extent[4];
    int stride[4];
} ck_attention_tensor;

/* Batch, query head, query and key position, the lengths of the two sequences, the tensors: these
 * in the kernel's argument, so that a call does not carry what its function never reads. */
#define CK_ATTENTION_PARAMS                                                                       \
    int b, int h, int i, int j, int S, int T, const CK_CONSTANT ck_attention_tensor *t
