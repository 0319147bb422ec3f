// SPDX-License-Identifier: MIT
// Conversions between 16-bit floats and integers in the four directions of rounding, and functions of
// pairs, for _Float16 and __bf16 alike. Values pass through double precision, which holds both types and
// all integers up to 32 bits; 64-bit integers are cut to what decides the rounding first.
#pragma once

#include <hip/half_functions.h>
#include <hip/rounding.h>

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
