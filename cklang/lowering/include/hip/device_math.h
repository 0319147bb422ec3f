// SPDX-License-Identifier: MIT
// Device math on cklang/math.h and the compiler's own expansions. Functions that no kernel of
// cklang needs (trigonometry, hyperbolic inverses, double precision beyond rounding and roots) are
// declared and not defined: a kernel which calls one fails to link, and the linker names it.
#pragma once

#include <cklang/math.h>
#include <hip/attributes.h>

#define CKLANG_UNARY(type, name, expression) \
    static __device__ __forceinline__ type name(type x) { return expression; }

CKLANG_UNARY(float, expf, ck_exp(x))
CKLANG_UNARY(float, exp2f, ck_exp2(x))
CKLANG_UNARY(float, expm1f, ck_expm1(x))
CKLANG_UNARY(float, logf, ck_log(x))
CKLANG_UNARY(float, log2f, __builtin_elementwise_log2(x))
CKLANG_UNARY(float, log10f, __builtin_elementwise_log10(x))
CKLANG_UNARY(float, log1pf, ck_log1p(x))
CKLANG_UNARY(float, sqrtf, ck_sqrt(x))
CKLANG_UNARY(float, rsqrtf, ck_rsqrt(x))
CKLANG_UNARY(float, tanhf, ck_tanh(x))
CKLANG_UNARY(float, erff, ck_erf(x))
CKLANG_UNARY(float, fabsf, __builtin_fabsf(x))
CKLANG_UNARY(float, floorf, __builtin_elementwise_floor(x))
CKLANG_UNARY(float, ceilf, __builtin_elementwise_ceil(x))
CKLANG_UNARY(float, truncf, __builtin_elementwise_trunc(x))
CKLANG_UNARY(float, rintf, __builtin_elementwise_rint(x))
CKLANG_UNARY(float, roundf, __builtin_elementwise_round(x))
CKLANG_UNARY(float, nearbyintf, __builtin_elementwise_nearbyint(x))

// The compiler's approximations: one hardware instruction and a multiply.
CKLANG_UNARY(float, __expf, __builtin_amdgcn_exp2f(x * 1.44269504f))
CKLANG_UNARY(float, __logf, __builtin_amdgcn_logf(x) * 0.693147181f)
CKLANG_UNARY(float, __log2f, __builtin_amdgcn_logf(x))
CKLANG_UNARY(float, __frcp_rn, 1.0f / x)
CKLANG_UNARY(float, __fsqrt_rn, __builtin_elementwise_sqrt(x))

CKLANG_UNARY(double, fabs, __builtin_fabs(x))
CKLANG_UNARY(double, floor, __builtin_elementwise_floor(x))
CKLANG_UNARY(double, ceil, __builtin_elementwise_ceil(x))
CKLANG_UNARY(double, trunc, __builtin_elementwise_trunc(x))
CKLANG_UNARY(double, rint, __builtin_elementwise_rint(x))
CKLANG_UNARY(double, sqrt, __builtin_elementwise_sqrt(x))
CKLANG_UNARY(double, abs, __builtin_fabs(x))
CKLANG_UNARY(float, abs, __builtin_fabsf(x))

// Half precision goes through single precision and is rounded once.
CKLANG_UNARY(_Float16, __ocml_exp_f16, static_cast<_Float16>(ck_exp(x)))
CKLANG_UNARY(_Float16, __ocml_log_f16, static_cast<_Float16>(ck_log(x)))
CKLANG_UNARY(_Float16, __ocml_floor_f16, __builtin_elementwise_floor(x))
CKLANG_UNARY(_Float16, __ocml_ceil_f16, __builtin_elementwise_ceil(x))
CKLANG_UNARY(float, __ocml_exp_f32, ck_exp(x))

#undef CKLANG_UNARY

#define CKLANG_BINARY(name, expression) \
    static __device__ __forceinline__ float name(float x, float y) { return expression; }

CKLANG_BINARY(powf, ck_pow(x, y))
CKLANG_BINARY(fminf, __builtin_elementwise_minnum(x, y))
CKLANG_BINARY(fmaxf, __builtin_elementwise_maxnum(x, y))
CKLANG_BINARY(copysignf, __builtin_copysignf(x, y))
CKLANG_BINARY(__powf, __builtin_amdgcn_exp2f(y* __builtin_amdgcn_logf(x)))

#undef CKLANG_BINARY

static __device__ __forceinline__ float fmaf(float x, float y, float z)
{
    return __builtin_elementwise_fma(x, y, z);
}
static __device__ __forceinline__ double fma(double x, double y, double z)
{
    return __builtin_elementwise_fma(x, y, z);
}
static __device__ __forceinline__ float ldexpf(float x, int power)
{
    return __builtin_ldexpf(x, power);
}

static __device__ __forceinline__ bool isnan(float x) { return __builtin_isnan(x); }
static __device__ __forceinline__ bool isnan(double x) { return __builtin_isnan(x); }
static __device__ __forceinline__ bool isinf(float x) { return __builtin_isinf(x); }
static __device__ __forceinline__ bool isinf(double x) { return __builtin_isinf(x); }

#define CKLANG_DECLARE(name)          \
    __device__ float name##f(float x); \
    __device__ double name(double x);
CKLANG_DECLARE(sinh)
CKLANG_DECLARE(cosh)
CKLANG_DECLARE(asinh)
CKLANG_DECLARE(acosh)
CKLANG_DECLARE(atanh)
CKLANG_DECLARE(sin)
CKLANG_DECLARE(cos)
CKLANG_DECLARE(tan)
CKLANG_DECLARE(asin)
CKLANG_DECLARE(acos)
CKLANG_DECLARE(atan)
#undef CKLANG_DECLARE
__device__ double tanh(double x);
__device__ _Float16 __ocml_sin_f16(_Float16 x);

// The C library has the single-precision names only outside std; CK Tile's host code writes
// std::tanhf and its kin.
namespace std {
using ::acosf;
using ::acoshf;
using ::asinf;
using ::asinhf;
using ::atanf;
using ::atanhf;
using ::ceilf;
using ::cosf;
using ::coshf;
using ::expf;
using ::expm1f;
using ::fabsf;
using ::floorf;
using ::log1pf;
using ::logf;
using ::powf;
using ::sinf;
using ::sinhf;
using ::sqrtf;
using ::tanf;
using ::tanhf;
} // namespace std
