// SPDX-License-Identifier: MIT
// bfloat16 for whole programs: what kernels of cklang use, and the rest of HIP's names.
#pragma once

#include_next <hip/hip_bf16.h>

#include <hip/half_convert.h>

struct __hip_bfloat16_raw
{
    unsigned short x;
    __host__ __device__ operator __bf16() const { return __builtin_bit_cast(__bf16, x); }
};
struct __hip_bfloat162_raw
{
    unsigned short x, y;
};

CKLANG_HALF_MORE(__hip_bfloat16, __hip_bfloat162)
CKLANG_HALF_CONVERSIONS(bfloat16, __hip_bfloat16)

CKLANG_HD __hip_bfloat162 make_bfloat162(__hip_bfloat16 x, __hip_bfloat16 y) { return {x, y}; }
CKLANG_HD __hip_bfloat162 __float2bfloat162_rn(float x)
{
    return {__float2bfloat16(x), __float2bfloat16(x)};
}
CKLANG_HD __hip_bfloat162 __low2bfloat162(__hip_bfloat162 x) { return {x.x, x.x}; }
CKLANG_HD __hip_bfloat162 __high2bfloat162(__hip_bfloat162 x) { return {x.y, x.y}; }
CKLANG_HD __hip_bfloat162 __lows2bfloat162(__hip_bfloat162 x, __hip_bfloat162 y)
{
    return {x.x, y.x};
}
CKLANG_HD __hip_bfloat162 __highs2bfloat162(__hip_bfloat162 x, __hip_bfloat162 y)
{
    return {x.y, y.y};
}
CKLANG_HD __hip_bfloat162 __lowhigh2highlow(__hip_bfloat162 x) { return {x.y, x.x}; }
