// SPDX-License-Identifier: MIT
// Conversions between 16-bit floats and integers in the four directions of rounding, and functions of
// pairs, for _Float16 and __bf16 alike. Values pass through double precision, which holds both types and
// all integers up to 32 bits; 64-bit integers are cut to what decides the rounding first.
#pragma once

#include <hip/half_functions.h>

namespace cklang_hip {

enum class Toward
{
    Nearest,
    Zero,
    Up,
    Down,
};

/// The number of type T next to `nearest` on the side of `x` that the direction asks for.
template <Toward direction, typename T>
__host__ __device__ inline T stepped(T nearest, double x)
{
    const double value = static_cast<double>(nearest);
    if(direction == Toward::Nearest || value == x || x != x)
        return nearest;
    const bool above = value > x;
    const bool lower = direction == Toward::Down || (direction == Toward::Zero && x > 0);
    if(above != lower)
        return nearest;
    // Codes of one sign are in the order of magnitude; the neighbour of zero is the least denormal.
    unsigned short code  = __builtin_bit_cast(unsigned short, nearest);
    const bool magnitude = (code & 0x7fff) != 0;
    if(!magnitude)
        code = lower ? 0x8001 : 0x0001;
    else
        code += ((code >> 15) != 0) == lower ? 1 : -1;
    return __builtin_bit_cast(T, code);
}

/// A 64-bit integer with at most 53 significant bits that every narrower format rounds as it rounds `x`.
template <typename Integer>
__host__ __device__ inline double sticky(Integer x)
{
    const bool negative     = x < 0;
    unsigned long long size = negative ? 0ull - static_cast<unsigned long long>(x) : x;
    if(size >> 40)
        size = (size & ~0xffffull) | ((size & 0xffff) ? 0x8000 : 0);
    const double value = static_cast<double>(size);
    return negative ? -value : value;
}

template <Toward direction, typename T>
__host__ __device__ inline T rounded(double x)
{
    return stepped<direction>(static_cast<T>(x), x);
}

template <Toward direction>
__host__ __device__ inline double integral(double x)
{
    switch(direction)
    {
    case Toward::Nearest: return __builtin_elementwise_roundeven(x);
    case Toward::Zero: return __builtin_elementwise_trunc(x);
    case Toward::Up: return __builtin_elementwise_ceil(x);
    default: return __builtin_elementwise_floor(x);
    }
}

/// The integer nearest to `x` in a direction; what lies outside of the type's range becomes its limit, NaN 0.
template <Toward direction, typename Integer>
__host__ __device__ inline Integer to_integer(double x)
{
    constexpr bool is_signed = Integer(-1) < Integer(0);
    constexpr int bits       = 8 * sizeof(Integer) - (is_signed ? 1 : 0);
    constexpr double limit   = 2.0 * static_cast<double>(1ull << (bits - 1));
    constexpr Integer most   = static_cast<Integer>(~0ull >> (64 - bits));
    const double whole       = integral<direction>(x);
    if(whole != whole)
        return 0;
    if(whole >= limit)
        return most;
    if(whole <= (is_signed ? -limit : 0.0))
        return is_signed ? static_cast<Integer>(-most - 1) : Integer(0);
    return static_cast<Integer>(whole);
}

} // namespace cklang_hip

#define CKLANG_CONVERT_ONE(name, T, integer, type, suffix, direction)                           \
    CKLANG_HD T __##integer##2##name##_##suffix(type x)                                         \
    {                                                                                           \
        return cklang_hip::rounded<cklang_hip::Toward::direction, T>(cklang_hip::sticky(x));    \
    }                                                                                           \
    CKLANG_HD type __##name##2##integer##_##suffix(T x)                                         \
    {                                                                                           \
        return cklang_hip::to_integer<cklang_hip::Toward::direction, type>(                     \
            static_cast<double>(static_cast<float>(x)));                                        \
    }
#define CKLANG_CONVERT_ALL(name, T, integer, type)                    \
    CKLANG_CONVERT_ONE(name, T, integer, type, rd, Down)              \
    CKLANG_CONVERT_ONE(name, T, integer, type, ru, Up)                \
    CKLANG_CONVERT_ONE(name, T, integer, type, rz, Zero)              \
    CKLANG_CONVERT_ONE(name, T, integer, type, rn, Nearest)
#define CKLANG_HALF_CONVERSIONS(name, T)                              \
    CKLANG_CONVERT_ALL(name, T, int, int)                             \
    CKLANG_CONVERT_ALL(name, T, uint, unsigned int)                   \
    CKLANG_CONVERT_ALL(name, T, short, short)                         \
    CKLANG_CONVERT_ALL(name, T, ushort, unsigned short)               \
    CKLANG_CONVERT_ALL(name, T, ll, long long)                        \
    CKLANG_CONVERT_ALL(name, T, ull, unsigned long long)              \
    CKLANG_HD T __float2##name##_rd(float x)                          \
    {                                                                 \
        return cklang_hip::rounded<cklang_hip::Toward::Down, T>(x);   \
    }                                                                 \
    CKLANG_HD T __float2##name##_ru(float x)                          \
    {                                                                 \
        return cklang_hip::rounded<cklang_hip::Toward::Up, T>(x);     \
    }                                                                 \
    CKLANG_HD T __float2##name##_rz(float x)                          \
    {                                                                 \
        return cklang_hip::rounded<cklang_hip::Toward::Zero, T>(x);   \
    }                                                                 \
    CKLANG_HD signed char __##name##2char_rz(T x)                     \
    {                                                                 \
        return cklang_hip::to_integer<cklang_hip::Toward::Zero, signed char>(static_cast<float>(x)); \
    }                                                                 \
    CKLANG_HD unsigned char __##name##2uchar_rz(T x)                  \
    {                                                                 \
        return cklang_hip::to_integer<cklang_hip::Toward::Zero, unsigned char>(static_cast<float>(x)); \
    }

// Comparisons: of numbers, true for NaN (u); of pairs, one number for each (2) or both together (b2).
#define CKLANG_HALF_COMPARE(T, P, name, op, unordered)                                             \
    CKLANG_HD bool __h##name##u(T x, T y) { return unordered; }                                    \
    CKLANG_HD P __h##name##2(P x, P y) { return {T(x.x op y.x), T(x.y op y.y)}; }                  \
    CKLANG_HD P __h##name##u2(P x, P y)                                                            \
    {                                                                                              \
        return {T(__h##name##u(x.x, y.x)), T(__h##name##u(x.y, y.y))};                             \
    }                                                                                              \
    CKLANG_HD bool __hb##name##2(P x, P y) { return x.x op y.x && x.y op y.y; }                    \
    CKLANG_HD bool __hb##name##u2(P x, P y) { return __h##name##u(x.x, y.x) && __h##name##u(x.y, y.y); }

#define CKLANG_HALF_SATURATED(T, P, name)                                                          \
    CKLANG_HD T __h##name##_sat(T x, T y) { return cklang_hip::saturated<T>(__h##name(x, y)); }    \
    CKLANG_HD P __h##name##2_sat(P x, P y)                                                         \
    {                                                                                              \
        return {__h##name##_sat(x.x, y.x), __h##name##_sat(x.y, y.y)};                             \
    }

namespace cklang_hip {

/// Between 0 and 1; NaN becomes 0.
template <typename T>
__host__ __device__ inline T saturated(T x)
{
    return x > T(0) ? (x < T(1) ? x : T(1)) : T(0);
}

} // namespace cklang_hip

#define CKLANG_HALF_MORE(T, P)                                                                     \
    CKLANG_HALF_COMPARE(T, P, eq, ==, !(x < y || x > y))                                           \
    CKLANG_HALF_COMPARE(T, P, ne, !=, x != y)                                                      \
    CKLANG_HALF_COMPARE(T, P, lt, <, !(x >= y))                                                    \
    CKLANG_HALF_COMPARE(T, P, le, <=, !(x > y))                                                    \
    CKLANG_HALF_COMPARE(T, P, gt, >, !(x <= y))                                                    \
    CKLANG_HALF_COMPARE(T, P, ge, >=, !(x < y))                                                    \
    CKLANG_HALF_SATURATED(T, P, add)                                                               \
    CKLANG_HALF_SATURATED(T, P, sub)                                                               \
    CKLANG_HALF_SATURATED(T, P, mul)                                                               \
    CKLANG_HD T __hfma_sat(T x, T y, T z) { return cklang_hip::saturated<T>(__hfma(x, y, z)); }    \
    CKLANG_HD P __hfma2_sat(P x, P y, P z)                                                         \
    {                                                                                              \
        return {__hfma_sat(x.x, y.x, z.x), __hfma_sat(x.y, y.y, z.y)};                             \
    }                                                                                              \
    CKLANG_HD P __hisnan2(P x) { return {T(x.x != x.x), T(x.y != x.y)}; }                          \
    CKLANG_HD T __hmax_nan(T x, T y) { return x != x ? x : (y != y ? y : __hmax(x, y)); }          \
    CKLANG_HD T __hmin_nan(T x, T y) { return x != x ? x : (y != y ? y : __hmin(x, y)); }          \
    CKLANG_HD T __hadd_rn(T x, T y) { return x + y; }                                              \
    CKLANG_HD T __hsub_rn(T x, T y) { return x - y; }                                              \
    CKLANG_HD T __hmul_rn(T x, T y) { return x * y; }                                              \
    CKLANG_HD P __hadd2_rn(P x, P y) { return __hadd2(x, y); }                                     \
    CKLANG_HD P __hsub2_rn(P x, P y) { return __hsub2(x, y); }                                     \
    CKLANG_HD P __hmul2_rn(P x, P y) { return __hmul2(x, y); }
