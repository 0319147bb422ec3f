// SPDX-License-Identifier: MIT
// Functions over 16-bit floats that _Float16 and __bf16 share, one number or a pair at a time. The
// compiler has the types' arithmetic; these are HIP's names for it.
#pragma once

#include <hip/hip_runtime.h>

#define CKLANG_HD static __host__ __device__ __forceinline__

/// The names for one type: T, its pair P, and how a float becomes a T.
#define CKLANG_HALF_FUNCTIONS(T, P)                                                              \
    CKLANG_HD T __hadd(T x, T y) { return x + y; }                                               \
    CKLANG_HD T __hsub(T x, T y) { return x - y; }                                               \
    CKLANG_HD T __hmul(T x, T y) { return x * y; }                                               \
    CKLANG_HD T __hdiv(T x, T y) { return x / y; }                                               \
    CKLANG_HD T __hneg(T x) { return -x; }                                                       \
    CKLANG_HD T __habs(T x) { return static_cast<T>(__builtin_fabsf(static_cast<float>(x))); }   \
    CKLANG_HD bool __heq(T x, T y) { return x == y; }                                            \
    CKLANG_HD bool __hne(T x, T y) { return x != y; }                                            \
    CKLANG_HD bool __hlt(T x, T y) { return x < y; }                                             \
    CKLANG_HD bool __hle(T x, T y) { return x <= y; }                                            \
    CKLANG_HD bool __hgt(T x, T y) { return x > y; }                                             \
    CKLANG_HD bool __hge(T x, T y) { return x >= y; }                                            \
    CKLANG_HD bool __hisnan(T x) { return x != x; }                                              \
    CKLANG_HD int __hisinf(T x) { return __builtin_isinf(static_cast<float>(x)) ? (x > 0 ? 1 : -1) : 0; } \
    CKLANG_HD T __hmax(T x, T y)                                                                 \
    {                                                                                            \
        return static_cast<T>(__builtin_fmaxf(static_cast<float>(x), static_cast<float>(y)));    \
    }                                                                                            \
    CKLANG_HD T __hmin(T x, T y)                                                                 \
    {                                                                                            \
        return static_cast<T>(__builtin_fminf(static_cast<float>(x), static_cast<float>(y)));    \
    }                                                                                            \
    CKLANG_HD P __hadd2(P x, P y) { return {x.x + y.x, x.y + y.y}; }                             \
    CKLANG_HD P __hsub2(P x, P y) { return {x.x - y.x, x.y - y.y}; }                             \
    CKLANG_HD P __hmul2(P x, P y) { return {x.x * y.x, x.y * y.y}; }                             \
    CKLANG_HD P __h2div(P x, P y) { return {x.x / y.x, x.y / y.y}; }                             \
    CKLANG_HD P __hneg2(P x) { return {-x.x, -x.y}; }                                            \
    CKLANG_HD P __habs2(P x) { return {__habs(x.x), __habs(x.y)}; }                              \
    CKLANG_HD P __hmax2(P x, P y) { return {__hmax(x.x, y.x), __hmax(x.y, y.y)}; }               \
    CKLANG_HD P __hmin2(P x, P y) { return {__hmin(x.x, y.x), __hmin(x.y, y.y)}; }               \
    CKLANG_HD P __hfma2(P x, P y, P z) { return {__hfma(x.x, y.x, z.x), __hfma(x.y, y.y, z.y)}; } \
    CKLANG_HD float __low2float(P x) { return static_cast<float>(x.x); }                         \
    CKLANG_HD float __high2float(P x) { return static_cast<float>(x.y); }                        \
    CKLANG_HALF_MATH(T, P)

// Through single precision, rounded once.
#define CKLANG_HALF_MATH_ROW(T, P, name, function)                                               \
    static __device__ __forceinline__ T h##name(T x)                                             \
    {                                                                                            \
        return static_cast<T>(function(static_cast<float>(x)));                                  \
    }                                                                                            \
    static __device__ __forceinline__ P h2##name(P x) { return {h##name(x.x), h##name(x.y)}; }
#define CKLANG_HALF_MATH(T, P)                 \
    CKLANG_HALF_MATH_ROW(T, P, exp, expf)      \
    CKLANG_HALF_MATH_ROW(T, P, exp2, exp2f)    \
    CKLANG_HALF_MATH_ROW(T, P, exp10, exp10f)  \
    CKLANG_HALF_MATH_ROW(T, P, log, logf)      \
    CKLANG_HALF_MATH_ROW(T, P, log2, log2f)    \
    CKLANG_HALF_MATH_ROW(T, P, log10, log10f)  \
    CKLANG_HALF_MATH_ROW(T, P, sqrt, sqrtf)    \
    CKLANG_HALF_MATH_ROW(T, P, rsqrt, rsqrtf)  \
    CKLANG_HALF_MATH_ROW(T, P, rcp, 1.0f /)    \
    CKLANG_HALF_MATH_ROW(T, P, sin, sinf)      \
    CKLANG_HALF_MATH_ROW(T, P, cos, cosf)      \
    CKLANG_HALF_MATH_ROW(T, P, tanh, tanhf)    \
    CKLANG_HALF_MATH_ROW(T, P, floor, floorf)  \
    CKLANG_HALF_MATH_ROW(T, P, ceil, ceilf)    \
    CKLANG_HALF_MATH_ROW(T, P, trunc, truncf)  \
    CKLANG_HALF_MATH_ROW(T, P, rint, rintf)
