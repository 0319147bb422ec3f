// SPDX-License-Identifier: MIT
// 8-bit floats. FNUZ (gfx942 and before): the code 0x80 is the one NaN, there is neither infinity
// nor negative zero, and exponents lie one lower. OCP (gfx950 and after): e4m3 has NaNs and no
// infinity, e5m2 has both. Conversions round to nearest even, from every type once.
//
// What is too large: __HIP_SATFINITE gives the largest finite number, but infinity stays infinity, or NaN
// where there is none. With __HIP_NOSAT numbers beyond the largest become infinity or NaN. A GPU that converts
// in hardware rounds first, so that what rounds to the largest number is it; elsewhere, and on the host,
// every number above the largest is beyond, as in ROCm's headers.
#pragma once

#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>

CKLANG_BEGIN_LIBRARY

typedef unsigned char __hip_fp8_storage_t;
typedef unsigned short __hip_fp8x2_storage_t;
typedef unsigned int __hip_fp8x4_storage_t;

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

#if defined(__gfx942__)
constexpr bool converts_fnuz = true, converts_ocp = false;
#elif defined(__gfx950__) || defined(__gfx1200__) || defined(__gfx1201__)
constexpr bool converts_fnuz = false, converts_ocp = true;
#else
constexpr bool converts_fnuz = false, converts_ocp = false;
#endif

/// A format: its mantissa bits, exponent bias, largest finite code, and its codes beyond that.
struct Fp8Format
{
    int mantissa, bias;
    unsigned char largest, infinity, nan;
    bool fnuz;

    /// Whether the GPU that is compiled for has an instruction for it.
    constexpr __host__ __device__ bool in_hardware() const
    {
        return fnuz ? converts_fnuz : converts_ocp;
    }
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

/// The bits of float and double, and where their fields are.
template <typename T>
struct Ieee;
template <>
struct Ieee<float>
{
    using Bits                    = unsigned int;
    static constexpr int mantissa = 23, bias = 127;
};
template <>
struct Ieee<double>
{
    using Bits                    = unsigned long long;
    static constexpr int mantissa = 52, bias = 1023;
};

/// The code nearest to a finite magnitude, given as bits of T; it may be beyond the largest.
template <typename T>
CKLANG_HD unsigned int fp8_nearest(typename Ieee<T>::Bits magnitude, Fp8Format f)
{
    using Bits             = typename Ieee<T>::Bits;
    constexpr int mantissa = Ieee<T>::mantissa;
    constexpr Bits one     = Bits{1} << mantissa;
    // Bits below the last one kept: more of them for what will be denormal.
    const int exponent = static_cast<int>(magnitude >> mantissa) - Ieee<T>::bias;
    const int lost     = mantissa - f.mantissa + (exponent < 1 - f.bias ? 1 - f.bias - exponent : 0);
    if(lost > mantissa + 2)
        return 0;
    const Bits significand  = (magnitude & (one - 1)) | (magnitude >> mantissa ? one : 0);
    const Bits rest         = significand & ((Bits{1} << lost) - 1);
    const Bits half         = Bits{1} << (lost - 1);
    const unsigned int kept = static_cast<unsigned int>(significand >> lost);
    unsigned int code       = kept + (rest > half || (rest == half && (kept & 1)));
    if(exponent >= 1 - f.bias)
        code += static_cast<unsigned int>(exponent + f.bias - 1) << f.mantissa;
    return code;
}

/// The value of a code, exact in every wider type.
template <typename T = float>
CKLANG_HD T fp8_to(unsigned char code, Fp8Format f)
{
    const unsigned char magnitude = code & 0x7f;
    if(f.fnuz ? code == 0x80 : magnitude > (f.infinity == f.nan ? f.largest : f.infinity))
        return static_cast<T>(__builtin_nanf(""));
    if(!f.fnuz && f.infinity != f.nan && magnitude == f.infinity)
        return static_cast<T>(code & 0x80 ? -__builtin_inff() : __builtin_inff());
    const int exponent    = magnitude >> f.mantissa;
    const int fraction    = magnitude & ((1 << f.mantissa) - 1);
    const int significand = exponent ? fraction | 1 << f.mantissa : fraction;
    const int power       = (exponent ? exponent : 1) - f.bias - f.mantissa;
    const float scale     = __builtin_bit_cast(float, (power + 127) << 23);
    return static_cast<T>((code & 0x80 ? -1.0f : 1.0f) * static_cast<float>(significand) * scale);
}

template <typename T>
CKLANG_HD unsigned char fp8_from(T x, __hip_saturation_t limit, Fp8Format f)
{
    using Bits              = typename Ieee<T>::Bits;
    constexpr Bits infinity = ((Bits{1} << (8 * sizeof(Bits) - 1 - Ieee<T>::mantissa)) - 1)
                              << Ieee<T>::mantissa;
    const Bits bits          = __builtin_bit_cast(Bits, x);
    const Bits magnitude     = bits & (static_cast<Bits>(-1) >> 1);
    const unsigned char sign = bits >> (8 * sizeof(Bits) - 1) << 7;
    if(magnitude > infinity)
        return f.fnuz ? f.nan : sign | f.nan;
    const unsigned char beyond = f.fnuz ? f.infinity : sign | f.infinity;
    if(magnitude == infinity)
        return beyond;
    const unsigned int code = fp8_nearest<T>(magnitude, f);
    const T largest         = fp8_to<T>(f.largest, f);
    const bool too_large    = f.in_hardware() && sizeof(T) == 4
                                  ? code > f.largest
                                  : __builtin_bit_cast(T, magnitude) > largest;
    if(too_large)
        return limit == __HIP_SATFINITE ? sign | f.largest : beyond;
    return f.fnuz && code == 0 ? 0 : sign | static_cast<unsigned char>(code);
}

} // namespace cklang_hip

// One number.
CKLANG_HD __hip_fp8_storage_t __hip_cvt_float_to_fp8(float x,
                                                     __hip_saturation_t limit,
                                                     __hip_fp8_interpretation_t kind)
{
    return cklang_hip::fp8_from(x, limit, cklang_hip::fp8_format(kind));
}
CKLANG_HD __hip_fp8_storage_t __hip_cvt_double_to_fp8(double x,
                                                      __hip_saturation_t limit,
                                                      __hip_fp8_interpretation_t kind)
{
    return cklang_hip::fp8_from(x, limit, cklang_hip::fp8_format(kind));
}
CKLANG_HD __hip_fp8_storage_t __hip_cvt_halfraw_to_fp8(__half_raw x,
                                                       __hip_saturation_t limit,
                                                       __hip_fp8_interpretation_t kind)
{
    return __hip_cvt_float_to_fp8(static_cast<float>(x.data), limit, kind);
}
CKLANG_HD __hip_fp8_storage_t __hip_cvt_bfloat16raw_to_fp8(__hip_bfloat16_raw x,
                                                           __hip_saturation_t limit,
                                                           __hip_fp8_interpretation_t kind)
{
    const unsigned int bits = static_cast<unsigned int>(x.x) << 16;
    return __hip_cvt_float_to_fp8(__builtin_bit_cast(float, bits), limit, kind);
}
CKLANG_HD __half_raw __hip_cvt_fp8_to_halfraw(__hip_fp8_storage_t code,
                                              __hip_fp8_interpretation_t kind)
{
    return {{cklang_hip::fp8_to<_Float16>(code, cklang_hip::fp8_format(kind))}};
}

// Two numbers; the first is in the low byte.
#define CKLANG_FP8_PAIR(name, type, one, make)                                                     \
    CKLANG_HD __hip_fp8x2_storage_t name(                                                          \
        type x, __hip_saturation_t limit, __hip_fp8_interpretation_t kind)                         \
    {                                                                                              \
        return static_cast<__hip_fp8x2_storage_t>(one(make(x.x), limit, kind) |                    \
                                                  one(make(x.y), limit, kind) << 8);               \
    }
#define CKLANG_AS_IS(x) x
#define CKLANG_AS_HALF(bits) (__half_raw{{__builtin_bit_cast(_Float16, bits)}})
#define CKLANG_AS_BFLOAT(bits) (__hip_bfloat16_raw{bits})
CKLANG_FP8_PAIR(__hip_cvt_float2_to_fp8x2, float2, __hip_cvt_float_to_fp8, CKLANG_AS_IS)
CKLANG_FP8_PAIR(__hip_cvt_double2_to_fp8x2, double2, __hip_cvt_double_to_fp8, CKLANG_AS_IS)
CKLANG_FP8_PAIR(__hip_cvt_halfraw2_to_fp8x2, __half2_raw, __hip_cvt_halfraw_to_fp8, CKLANG_AS_HALF)
CKLANG_FP8_PAIR(__hip_cvt_bfloat16raw2_to_fp8x2,
                __hip_bfloat162_raw,
                __hip_cvt_bfloat16raw_to_fp8,
                CKLANG_AS_BFLOAT)
#undef CKLANG_AS_BFLOAT
#undef CKLANG_AS_HALF
#undef CKLANG_AS_IS
#undef CKLANG_FP8_PAIR

CKLANG_HD __half2_raw __hip_cvt_fp8x2_to_halfraw2(__hip_fp8x2_storage_t codes,
                                                  __hip_fp8_interpretation_t kind)
{
    const auto low  = static_cast<__hip_fp8_storage_t>(codes & 0xff);
    const auto high = static_cast<__hip_fp8_storage_t>(codes >> 8);
    return {__hip_cvt_fp8_to_halfraw(low, kind).x, __hip_cvt_fp8_to_halfraw(high, kind).x};
}

namespace cklang_hip {

/// A number of one format, stored as its code. Numbers that are too large saturate; integers outside of
/// another type's range become its limits.
template <__hip_fp8_interpretation_t Kind>
struct Fp8
{
    __hip_fp8_storage_t __x;
    static constexpr __hip_saturation_t __default_saturation       = __HIP_SATFINITE;
    static constexpr __hip_fp8_interpretation_t __default_interpret = Kind;

    Fp8() = default;
    __host__ __device__ Fp8(float x) : __x(fp8_from(x, __HIP_SATFINITE, fp8_format(Kind))) {}
    __host__ __device__ Fp8(double x) : __x(fp8_from(x, __HIP_SATFINITE, fp8_format(Kind))) {}
    __host__ __device__ Fp8(_Float16 x) : Fp8(static_cast<float>(x)) {}
    __host__ __device__ Fp8(__bf16 x) : Fp8(static_cast<float>(x)) {}
    __host__ __device__ Fp8(const __half& x) : Fp8(static_cast<float>(x)) {}
    __host__ __device__ Fp8(const __hip_bfloat16& x) : Fp8(static_cast<float>(x)) {}
    template <typename I, typename = std::enable_if_t<std::is_integral<I>::value>>
    __host__ __device__ Fp8(I x) : Fp8(static_cast<double>(x))
    {
    }

    __host__ __device__ operator float() const { return fp8_to<float>(__x, fp8_format(Kind)); }
    __host__ __device__ explicit operator _Float16() const
    {
        return fp8_to<_Float16>(__x, fp8_format(Kind));
    }
    __host__ __device__ explicit operator __bf16() const
    {
        return static_cast<__bf16>(static_cast<float>(*this));
    }
    __host__ __device__ explicit operator __half() const { return static_cast<_Float16>(*this); }
    __host__ __device__ explicit operator __hip_bfloat16() const { return static_cast<__bf16>(*this); }
    __host__ __device__ explicit operator double() const
    {
        return fp8_to<double>(__x, fp8_format(Kind));
    }
    __host__ __device__ explicit operator bool() const { return static_cast<float>(*this) != 0; }
    template <typename I,
              typename = std::enable_if_t<std::is_integral<I>::value && !std::is_same<I, bool>::value>>
    __host__ __device__ explicit operator I() const
    {
        return to_integer<Toward::Zero, I>(static_cast<float>(*this));
    }
};

/// Two and four numbers of one format.
template <__hip_fp8_interpretation_t Kind>
struct Fp8x2
{
    __hip_fp8x2_storage_t __x;

    Fp8x2() = default;
    __host__ __device__ Fp8x2(float2 x) : __x(__hip_cvt_float2_to_fp8x2(x, __HIP_SATFINITE, Kind)) {}
    __host__ __device__ Fp8x2(double2 x) : __x(__hip_cvt_double2_to_fp8x2(x, __HIP_SATFINITE, Kind))
    {
    }
    __host__ __device__ Fp8x2(__half2 x)
        : Fp8x2(float2{static_cast<float>(x.x), static_cast<float>(x.y)})
    {
    }
    __host__ __device__ Fp8x2(__hip_bfloat162 x)
        : Fp8x2(float2{static_cast<float>(x.x), static_cast<float>(x.y)})
    {
    }
    __host__ __device__ operator float2() const
    {
        return {fp8_to<float>(__x & 0xff, fp8_format(Kind)), fp8_to<float>(__x >> 8, fp8_format(Kind))};
    }
    __host__ __device__ explicit operator __half2() const
    {
        const float2 both = *this;
        return {static_cast<__half>(both.x), static_cast<__half>(both.y)};
    }
};
template <__hip_fp8_interpretation_t Kind>
struct Fp8x4
{
    __hip_fp8x4_storage_t __x;

    Fp8x4() = default;
    __host__ __device__ Fp8x4(float4 x) : Fp8x4(Pair(float2{x.x, x.y}), Pair(float2{x.z, x.w})) {}
    __host__ __device__ Fp8x4(double4 x) : Fp8x4(Pair(double2{x.x, x.y}), Pair(double2{x.z, x.w})) {}
    __host__ __device__ Fp8x4(__half2 low, __half2 high) : Fp8x4(Pair(low), Pair(high)) {}
    __host__ __device__ Fp8x4(__hip_bfloat162 low, __hip_bfloat162 high) : Fp8x4(Pair(low), Pair(high))
    {
    }
    __host__ __device__ operator float4() const
    {
        constexpr Fp8Format f = fp8_format(Kind);
        return {fp8_to<float>(__x & 0xff, f),
                fp8_to<float>(__x >> 8 & 0xff, f),
                fp8_to<float>(__x >> 16 & 0xff, f),
                fp8_to<float>(__x >> 24, f)};
    }

private:
    using Pair = Fp8x2<Kind>;
    __host__ __device__ Fp8x4(Pair low, Pair high)
        : __x(low.__x | static_cast<__hip_fp8x4_storage_t>(high.__x) << 16)
    {
    }
};

} // namespace cklang_hip

#define CKLANG_FP8_NAMES(suffix, kind)                             \
    using __hip_fp8_##suffix   = cklang_hip::Fp8<kind>;            \
    using __hip_fp8x2_##suffix = cklang_hip::Fp8x2<kind>;          \
    using __hip_fp8x4_##suffix = cklang_hip::Fp8x4<kind>;
CKLANG_FP8_NAMES(e4m3, __HIP_E4M3)
CKLANG_FP8_NAMES(e5m2, __HIP_E5M2)
CKLANG_FP8_NAMES(e4m3_fnuz, __HIP_E4M3_FNUZ)
CKLANG_FP8_NAMES(e5m2_fnuz, __HIP_E5M2_FNUZ)
#undef CKLANG_FP8_NAMES

CKLANG_END_LIBRARY
