// SPDX-License-Identifier: MIT
// 8-bit floats. FNUZ (gfx942 and before): the code 0x80 is the one NaN, there is neither infinity
// nor negative zero, and exponents lie one lower. OCP (gfx950 and after): e4m3 has NaNs and no
// infinity, e5m2 has both. Conversions round to nearest even, on host and device alike.
#pragma once

#include <hip/hip_fp16.h>

typedef unsigned char __hip_fp8_storage_t;
typedef unsigned short __hip_fp8x2_storage_t;

enum __hip_fp8_interpretation_t
{
    __HIP_E4M3      = 0,
    __HIP_E5M2      = 1,
    __HIP_E4M3_FNUZ = 2,
    __HIP_E5M2_FNUZ = 3,
};
enum __hip_saturation_t
{
    __HIP_NOSAT     = 0,
    __HIP_SATFINITE = 1,
};

namespace cklang_hip {

/// A format: its mantissa bits, exponent bias, largest finite code, and its codes beyond that.
struct Fp8Format
{
    int mantissa, bias;
    unsigned char largest, infinity, nan;
    bool fnuz;
};
constexpr __host__ __device__ Fp8Format fp8_format(__hip_fp8_interpretation_t kind)
{
    switch(kind)
    {
    case __HIP_E4M3: return {3, 7, 0x7e, 0x7f, 0x7f, false};
    case __HIP_E5M2: return {2, 15, 0x7b, 0x7c, 0x7f, false};
    case __HIP_E4M3_FNUZ: return {3, 8, 0x7f, 0x80, 0x80, true};
    default: return {2, 16, 0x7f, 0x80, 0x80, true};
    }
}

CKLANG_HD unsigned char fp8_from_float(float x, __hip_saturation_t limit, Fp8Format f)
{
    const unsigned int bits = __builtin_bit_cast(unsigned int, x), magnitude = bits & 0x7fffffff;
    const unsigned char sign = bits >> 24 & 0x80;
    if(magnitude > 0x7f800000)
        return f.fnuz ? f.nan : sign | f.nan;
    const unsigned char beyond = limit == __HIP_SATFINITE ? f.largest : f.infinity;
    const unsigned char over   = f.fnuz && beyond == f.infinity ? beyond : sign | beyond;
    if(magnitude == 0x7f800000)
        return over;
    // Bits below the last one kept: more of them for what will be denormal.
    const int exponent = static_cast<int>(magnitude >> 23) - 127;
    const int lost     = 23 - f.mantissa + (exponent < 1 - f.bias ? 1 - f.bias - exponent : 0);
    if(lost > 25)
        return f.fnuz ? 0 : sign;
    const unsigned int whole = (magnitude & 0x7fffff) | (magnitude >> 23 ? 0x800000 : 0);
    unsigned int code        = whole >> lost;
    const unsigned int rest = whole & ((1u << lost) - 1), half = 1u << (lost - 1);
    code += rest > half || (rest == half && (code & 1));
    if(exponent >= 1 - f.bias)
        code += static_cast<unsigned int>(exponent + f.bias - 1) << f.mantissa;
    if(code > f.largest)
        return over;
    return f.fnuz && code == 0 ? 0 : sign | code;
}

CKLANG_HD float fp8_to_float(unsigned char code, Fp8Format f)
{
    const unsigned char magnitude = code & 0x7f;
    if(f.fnuz ? code == 0x80 : magnitude > (f.infinity == f.nan ? f.largest : f.infinity))
        return __builtin_nanf("");
    if(!f.fnuz && f.infinity != f.nan && magnitude == f.infinity)
        return code & 0x80 ? -__builtin_inff() : __builtin_inff();
    const int exponent = magnitude >> f.mantissa;
    const int fraction = magnitude & ((1 << f.mantissa) - 1);
    const int whole    = exponent ? fraction | 1 << f.mantissa : fraction;
    const int power    = (exponent ? exponent : 1) - f.bias - f.mantissa;
    const float scale  = __builtin_bit_cast(float, (power + 127) << 23);
    return (code & 0x80 ? -1.0f : 1.0f) * static_cast<float>(whole) * scale;
}

/// A number of one format, stored as its code.
template <__hip_fp8_interpretation_t Kind>
struct Fp8
{
    __hip_fp8_storage_t __x;

    Fp8() = default;
    __host__ __device__ explicit Fp8(float x)
        : __x(fp8_from_float(x, __HIP_SATFINITE, fp8_format(Kind)))
    {
    }
    __host__ __device__ explicit Fp8(__half x) : Fp8(static_cast<float>(x)) {}
    __host__ __device__ explicit Fp8(double x) : Fp8(static_cast<float>(x)) {}
    __host__ __device__ operator float() const { return fp8_to_float(__x, fp8_format(Kind)); }
};

} // namespace cklang_hip

using __hip_fp8_e4m3      = cklang_hip::Fp8<__HIP_E4M3>;
using __hip_fp8_e5m2      = cklang_hip::Fp8<__HIP_E5M2>;
using __hip_fp8_e4m3_fnuz = cklang_hip::Fp8<__HIP_E4M3_FNUZ>;
using __hip_fp8_e5m2_fnuz = cklang_hip::Fp8<__HIP_E5M2_FNUZ>;

CKLANG_HD __hip_fp8_storage_t __hip_cvt_float_to_fp8(float x,
                                                     __hip_saturation_t limit,
                                                     __hip_fp8_interpretation_t kind)
{
    return cklang_hip::fp8_from_float(x, limit, cklang_hip::fp8_format(kind));
}
CKLANG_HD __half __hip_cvt_fp8_to_halfraw(__hip_fp8_storage_t code, __hip_fp8_interpretation_t kind)
{
    return static_cast<__half>(cklang_hip::fp8_to_float(code, cklang_hip::fp8_format(kind)));
}
