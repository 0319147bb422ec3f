// SPDX-License-Identifier: MIT
// Conversions between float, double and integers, in the four directions of rounding.
#pragma once

#include <hip/rounding.h>

#define CKLANG_TO_INTEGER(from, type, integer, result, suffix, direction)                \
    static __device__ __forceinline__ result __##from##2##integer##_##suffix(type x)     \
    {                                                                                    \
        return cklang_hip::to_integer<cklang_hip::Toward::direction, result>(x);         \
    }
#define CKLANG_TO_FLOAT(integer, type, suffix, direction)                                \
    static __device__ __forceinline__ float __##integer##2float_##suffix(type x)         \
    {                                                                                    \
        return cklang_hip::rounded<cklang_hip::Toward::direction, float>(                \
            cklang_hip::sticky(x));                                                      \
    }
#define CKLANG_TO_DOUBLE(integer, type, suffix, direction)                               \
    static __device__ __forceinline__ double __##integer##2double_##suffix(type x)       \
    {                                                                                    \
        return cklang_hip::double_of<cklang_hip::Toward::direction>(x);                  \
    }
#define CKLANG_DIRECTION(suffix, direction)                                              \
    CKLANG_TO_INTEGER(float, float, int, int, suffix, direction)                         \
    CKLANG_TO_INTEGER(float, float, uint, unsigned int, suffix, direction)               \
    CKLANG_TO_INTEGER(float, float, ll, long long, suffix, direction)                    \
    CKLANG_TO_INTEGER(float, float, ull, unsigned long long, suffix, direction)          \
    CKLANG_TO_INTEGER(double, double, int, int, suffix, direction)                       \
    CKLANG_TO_INTEGER(double, double, uint, unsigned int, suffix, direction)             \
    CKLANG_TO_INTEGER(double, double, ll, long long, suffix, direction)                  \
    CKLANG_TO_INTEGER(double, double, ull, unsigned long long, suffix, direction)        \
    CKLANG_TO_FLOAT(int, int, suffix, direction)                                         \
    CKLANG_TO_FLOAT(uint, unsigned int, suffix, direction)                               \
    CKLANG_TO_FLOAT(ll, long long, suffix, direction)                                    \
    CKLANG_TO_FLOAT(ull, unsigned long long, suffix, direction)                          \
    CKLANG_TO_DOUBLE(ll, long long, suffix, direction)                                   \
    CKLANG_TO_DOUBLE(ull, unsigned long long, suffix, direction)                         \
    static __device__ __forceinline__ float __double2float_##suffix(double x)            \
    {                                                                                    \
        return cklang_hip::rounded<cklang_hip::Toward::direction, float>(x);             \
    }
CKLANG_DIRECTION(rn, Nearest)
CKLANG_DIRECTION(rz, Zero)
CKLANG_DIRECTION(ru, Up)
CKLANG_DIRECTION(rd, Down)
#undef CKLANG_DIRECTION
#undef CKLANG_TO_DOUBLE
#undef CKLANG_TO_FLOAT
#undef CKLANG_TO_INTEGER

static __device__ __forceinline__ double __int2double_rn(int x) { return x; }
static __device__ __forceinline__ double __uint2double_rn(unsigned int x) { return x; }
