// SPDX-License-Identifier: MIT
// Half precision: the classes __half and __half2, and HIP's functions of them.
#pragma once

#include <hip/attributes.h>

CKLANG_BEGIN_LIBRARY

#include <hip/half_class.h>
#include <hip/half_convert.h>

struct __half_raw
{
    union
    {
        _Float16 data;
        unsigned short x;
    };
    __host__ __device__ constexpr operator _Float16() const { return data; }
};
CKLANG_FLOAT16(__half, _Float16)
using half = __half;

struct alignas(4) __half2_raw
{
    unsigned short x, y;
};
struct alignas(4) __half2
{
    __half x, y;
    CKLANG_FLOAT16_PAIR(__half2, __half)
};
using half2 = __half2;
template <>
struct cklang_hip::Elements<__half2> : cklang_hip::ElementsOf<__half, 2>
{
};

CKLANG_HD __half __hfma(__half x, __half y, __half z) { return __builtin_fmaf16(x, y, z); }
CKLANG_HALF_FUNCTIONS(__half, __half2)
CKLANG_HALF_MORE(__half, __half2)
CKLANG_HALF_CONVERSIONS(half, __half)

CKLANG_HD float __half2float(__half x) { return static_cast<float>(x); }
CKLANG_HD __half __float2half(float x) { return static_cast<__half>(x); }
CKLANG_HD __half __float2half_rn(float x) { return static_cast<__half>(x); }
CKLANG_HD __half __double2half(double x) { return static_cast<__half>(x); }
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

CKLANG_END_LIBRARY
