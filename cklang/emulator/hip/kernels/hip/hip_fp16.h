// SPDX-License-Identifier: MIT
// Half precision: __half is the compiler's _Float16; these are HIP's names around it.
#pragma once

#include <hip/half_functions.h>

using __half = _Float16;
using half   = _Float16;

struct alignas(4) __half2
{
    __half x, y;
};
using half2 = __half2;
template <>
struct cklang_hip::Elements<__half2> : cklang_hip::ElementsOf<__half, 2>
{
};

CKLANG_HD __half __hfma(__half x, __half y, __half z) { return __builtin_fmaf16(x, y, z); }
CKLANG_HALF_FUNCTIONS(__half, __half2)

CKLANG_HD float __half2float(__half x) { return static_cast<float>(x); }
CKLANG_HD __half __float2half(float x) { return static_cast<__half>(x); }
CKLANG_HD __half __float2half_rn(float x) { return static_cast<__half>(x); }
CKLANG_HD __half __double2half(double x) { return static_cast<__half>(x); }
CKLANG_HD __half __int2half_rn(int x) { return static_cast<__half>(x); }
CKLANG_HD __half __uint2half_rn(unsigned int x) { return static_cast<__half>(x); }
CKLANG_HD __half __short2half_rn(short x) { return static_cast<__half>(x); }
CKLANG_HD __half __ushort2half_rn(unsigned short x) { return static_cast<__half>(x); }
CKLANG_HD int __half2int_rz(__half x) { return static_cast<int>(x); }
CKLANG_HD unsigned int __half2uint_rz(__half x) { return static_cast<unsigned int>(x); }
CKLANG_HD int __half2int_rn(__half x) { return static_cast<int>(__builtin_rintf(x)); }
CKLANG_HD short __half_as_short(__half x) { return __builtin_bit_cast(short, x); }
CKLANG_HD unsigned short __half_as_ushort(__half x) { return __builtin_bit_cast(unsigned short, x); }
CKLANG_HD __half __short_as_half(short x) { return __builtin_bit_cast(__half, x); }
CKLANG_HD __half __ushort_as_half(unsigned short x) { return __builtin_bit_cast(__half, x); }

CKLANG_HD __half2 make_half2(__half x, __half y) { return {x, y}; }
CKLANG_HD __half2 __halves2half2(__half x, __half y) { return {x, y}; }
CKLANG_HD __half2 __half2half2(__half x) { return {x, x}; }
CKLANG_HD __half2 __float2half2_rn(float x) { return {__float2half(x), __float2half(x)}; }
CKLANG_HD __half2 __floats2half2_rn(float x, float y) { return {__float2half(x), __float2half(y)}; }
CKLANG_HD __half2 __float22half2_rn(float2 x) { return __floats2half2_rn(x.x, x.y); }
CKLANG_HD float2 __half22float2(__half2 x) { return {__low2float(x), __high2float(x)}; }
CKLANG_HD __half __low2half(__half2 x) { return x.x; }
CKLANG_HD __half __high2half(__half2 x) { return x.y; }
CKLANG_HD __half2 __low2half2(__half2 x) { return {x.x, x.x}; }
CKLANG_HD __half2 __high2half2(__half2 x) { return {x.y, x.y}; }
CKLANG_HD __half2 __lows2half2(__half2 x, __half2 y) { return {x.x, y.x}; }
CKLANG_HD __half2 __highs2half2(__half2 x, __half2 y) { return {x.y, y.y}; }
CKLANG_HD __half2 __lowhigh2highlow(__half2 x) { return {x.y, x.x}; }
