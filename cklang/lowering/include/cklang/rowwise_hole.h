/* SPDX-License-Identifier: MIT
 *
 * The functions that a stencil of rows leaves open, in C that is also HIP C++. Each computes a
 * vector of neighbouring elements, from j on, of the row at (i0, ...):
 *
 *     void ck_row_common(float *out, CK_ROW_PARAMS);  what all rows have in common
 *     void ck_row_load(float *out, CK_ROW_PARAMS);    what is kept of each element
 *     void ck_row_part0(float *out, CK_ROW_PARAMS);   what the first stage's reductions take of it
 *     void ck_row_store(float *out, CK_ROW_PARAMS);   an element of each output
 *     void ck_row_finish(float *out, CK_ROW_PARAMS);  the outputs that rows have one of
 *
 * out and kept have the vector of the first value, then that of the second, and so on; what rows have
 * in common follows what is kept. reduced has
 * one number for each reduction so far. Integers are handed over as the bits of a float. The
 * functions read the user's tensors themselves, so that neither their number nor their element
 * types nor their strides are part of the stencil. */
#pragma once


#include "cklang/rowwise_args.h"

#define CK_GLOBAL __attribute__((address_space(1)))
#define CK_CONSTANT __attribute__((address_space(4)))

#define CK_ROW_PARAMS                                                                             \
    const float *kept, const float *reduced, unsigned i0, unsigned i1, unsigned i2, unsigned i3,  \
        unsigned i4, long j, const CK_CONSTANT ck_row_args *args

CK_MATH int
ck_row_int(float word)
{
    union
    {
        float number;
        int bits;
    } both = {.number = word};
    return both.bits;
}

CK_MATH float
ck_row_word(int bits)
{
    union
    {
        int bits;
        float number;
    } both = {.bits = bits};
    return both.number;
}

/* Where element j of a row is, in a tensor whose row runs along several axes. */
CK_MATH long
ck_row_divided(const CK_CONSTANT ck_row_args *args, int tensor, long j)
{
    unsigned rest = (unsigned)j;
    long place = 0;
#pragma unroll
    for (int axis = CK_ROWWISE_MAX_AXES - 1; axis > 0; --axis)
    {
        const unsigned extent = args->elements[axis];
        if (extent != 1)
        {
            place += (long)(rest % extent) * args->reads[tensor].stride[axis];
            rest /= extent;
        }
    }
    return place + (long)rest * args->reads[tensor].stride[0];
}

/* An 8-bit float: mantissa bits, exponent bias, and the codes that are no numbers. */
CK_MATH float
ck_row_small(unsigned char code, int mantissa, int bias)
{
    const unsigned exponent = (code & 0x7fu) >> mantissa;
    const unsigned fraction = code & ((1u << mantissa) - 1u);
    const unsigned normal = (exponent + 127u - (unsigned)bias) << 23 | fraction << (23 - mantissa);
    const float least = ck_row_word((128 - bias - mantissa) << 23);
    const float size = exponent ? ck_row_word((int)normal) : (float)fraction * least;
    return code & 0x80u ? -size : size;
}

CK_MATH float
ck_from_fp8(unsigned char code)
{
    return (code & 0x7fu) == 0x7fu ? __builtin_nanf("") : ck_row_small(code, 3, 7);
}

CK_MATH float
ck_from_bf8(unsigned char code)
{
    const unsigned size = code & 0x7fu;
    const float large = size == 0x7cu ? __builtin_inff() : __builtin_nanf("");
    return size < 0x7cu ? ck_row_small(code, 2, 15) : code & 0x80u ? -large : large;
}

CK_MATH float
ck_from_fp8_fnuz(unsigned char code)
{
    return code == 0x80u ? __builtin_nanf("") : ck_row_small(code, 3, 8);
}

CK_MATH float
ck_from_bf8_fnuz(unsigned char code)
{
    return code == 0x80u ? __builtin_nanf("") : ck_row_small(code, 2, 16);
}
