// SPDX-License-Identifier: MIT
// Complex numbers as pairs: x is the real part.
#pragma once

#include <hip/hip_runtime.h>

CKLANG_BEGIN_LIBRARY

typedef float2 hipFloatComplex;
typedef double2 hipDoubleComplex;
typedef hipFloatComplex hipComplex;

/// The functions of one precision: its pair C, its real type R, and the letter behind the names.
#define CKLANG_COMPLEX(C, R, f, Name)                                                             \
    static inline __host__ __device__ R hipCreal##f(C z) { return z.x; }                          \
    static inline __host__ __device__ R hipCimag##f(C z) { return z.y; }                          \
    static inline __host__ __device__ C make_##Name(R real, R imaginary) { return {real, imaginary}; } \
    static inline __host__ __device__ C hipConj##f(C z) { return {z.x, -z.y}; }                   \
    static inline __host__ __device__ R hipCsqabs##f(C z) { return z.x * z.x + z.y * z.y; }       \
    static inline __host__ __device__ C hipCadd##f(C p, C q) { return {p.x + q.x, p.y + q.y}; }   \
    static inline __host__ __device__ C hipCsub##f(C p, C q) { return {p.x - q.x, p.y - q.y}; }   \
    static inline __host__ __device__ C hipCmul##f(C p, C q)                                      \
    {                                                                                             \
        return {p.x * q.x - p.y * q.y, p.y * q.x + p.x * q.y};                                    \
    }                                                                                             \
    static inline __host__ __device__ C hipCdiv##f(C p, C q)                                      \
    {                                                                                             \
        const R size = hipCsqabs##f(q);                                                           \
        return {(p.x * q.x + p.y * q.y) / size, (p.y * q.x - p.x * q.y) / size};                  \
    }                                                                                             \
    static inline __host__ __device__ R hipCabs##f(C z) { return hypot(z.x, z.y); }
CKLANG_COMPLEX(hipFloatComplex, float, f, hipFloatComplex)
CKLANG_COMPLEX(hipDoubleComplex, double, , hipDoubleComplex)
#undef CKLANG_COMPLEX

static inline __host__ __device__ hipComplex make_hipComplex(float real, float imaginary)
{
    return {real, imaginary};
}
static inline __host__ __device__ hipFloatComplex hipComplexDoubleToFloat(hipDoubleComplex z)
{
    return {static_cast<float>(z.x), static_cast<float>(z.y)};
}
static inline __host__ __device__ hipDoubleComplex hipComplexFloatToDouble(hipFloatComplex z)
{
    return {z.x, z.y};
}
static inline __host__ __device__ hipComplex hipCfmaf(hipComplex p, hipComplex q, hipComplex r)
{
    return hipCaddf(hipCmulf(p, q), r);
}
static inline __host__ __device__ hipDoubleComplex
hipCfma(hipDoubleComplex p, hipDoubleComplex q, hipDoubleComplex r)
{
    return hipCadd(hipCmul(p, q), r);
}

CKLANG_END_LIBRARY
