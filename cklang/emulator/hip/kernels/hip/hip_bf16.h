// SPDX-License-Identifier: MIT
// bfloat16: __hip_bfloat16 is the compiler's __bf16; these are HIP's names around it.
#pragma once

#include <hip/half_functions.h>

using __hip_bfloat16 = __bf16;

struct alignas(4) __hip_bfloat162
{
    __hip_bfloat16 x, y;
};
template <>
struct cklang_hip::Elements<__hip_bfloat162> : cklang_hip::ElementsOf<__hip_bfloat16, 2>
{
};

// A product of two bfloat16 is exact in single precision.
CKLANG_HD __hip_bfloat16 __hfma(__hip_bfloat16 x, __hip_bfloat16 y, __hip_bfloat16 z)
{
    return static_cast<__hip_bfloat16>(static_cast<float>(x) * static_cast<float>(y) +
                                       static_cast<float>(z));
}
CKLANG_HALF_FUNCTIONS(__hip_bfloat16, __hip_bfloat162)

CKLANG_HD float __bfloat162float(__hip_bfloat16 x) { return static_cast<float>(x); }
CKLANG_HD __hip_bfloat16 __float2bfloat16(float x) { return static_cast<__hip_bfloat16>(x); }
CKLANG_HD __hip_bfloat16 __float2bfloat16_rn(float x) { return static_cast<__hip_bfloat16>(x); }
CKLANG_HD __hip_bfloat16 __double2bfloat16(double x) { return static_cast<__hip_bfloat16>(x); }
CKLANG_HD short __bfloat16_as_short(__hip_bfloat16 x) { return __builtin_bit_cast(short, x); }
CKLANG_HD unsigned short __bfloat16_as_ushort(__hip_bfloat16 x)
{
    return __builtin_bit_cast(unsigned short, x);
}
CKLANG_HD __hip_bfloat16 __short_as_bfloat16(short x)
{
    return __builtin_bit_cast(__hip_bfloat16, x);
}
CKLANG_HD __hip_bfloat16 __ushort_as_bfloat16(unsigned short x)
{
    return __builtin_bit_cast(__hip_bfloat16, x);
}
CKLANG_HD __hip_bfloat162 __halves2bfloat162(__hip_bfloat16 x, __hip_bfloat16 y) { return {x, y}; }
CKLANG_HD __hip_bfloat162 __bfloat162bfloat162(__hip_bfloat16 x) { return {x, x}; }
CKLANG_HD __hip_bfloat162 __floats2bfloat162_rn(float x, float y)
{
    return {__float2bfloat16(x), __float2bfloat16(y)};
}
CKLANG_HD __hip_bfloat162 __float22bfloat162_rn(float2 x) { return __floats2bfloat162_rn(x.x, x.y); }
CKLANG_HD float2 __bfloat1622float2(__hip_bfloat162 x) { return {__low2float(x), __high2float(x)}; }
CKLANG_HD __hip_bfloat16 __low2bfloat16(__hip_bfloat162 x) { return x.x; }
CKLANG_HD __hip_bfloat16 __high2bfloat16(__hip_bfloat162 x) { return x.y; }
