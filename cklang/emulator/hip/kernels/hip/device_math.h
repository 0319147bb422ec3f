// SPDX-License-Identifier: MIT
// Device math: single precision on cklang/math.h and the compiler's own expansions, double
// precision on cklang/math64.h and trig64.h. Single-precision functions that cklang/math.h does not
// have are computed in double precision and rounded once: right to the last bit but for ties.
#pragma once

#include <cmath>
#include <type_traits>

#include <cklang/math.h>
#include <cklang/trig64.h>
#include <hip/attributes.h>

#define CKLANG_FN static __device__ __forceinline__
#define CKLANG_UNARY(type, name, expression) \
    CKLANG_FN type name(type x) { return expression; }
#define CKLANG_BINARY(type, name, expression) \
    CKLANG_FN type name(type x, type y) { return expression; }

// name(double), namef(float) and name(float) from one expression in double precision.
#define CKLANG_BOTH(name, wide, narrow)  \
    CKLANG_UNARY(double, name, wide)     \
    CKLANG_UNARY(float, name##f, narrow) \
    CKLANG_UNARY(float, name, name##f(x))
#define CKLANG_WIDE(name) CKLANG_BOTH(name, ck64_##name(x), static_cast<float>(ck64_##name(x)))
#define CKLANG_BUILTIN(name) \
    CKLANG_BOTH(name, __builtin_elementwise_##name(x), __builtin_elementwise_##name(x))

CKLANG_BOTH(exp, ck64_exp(x), ck_exp(x))
CKLANG_BOTH(exp2, ck64_exp2(x), ck_exp2(x))
CKLANG_BOTH(expm1, ck64_expm1(x), ck_expm1(x))
CKLANG_BOTH(log, ck64_log(x), ck_log(x))
CKLANG_BOTH(log2, ck64_log2(x), __builtin_elementwise_log2(x))
CKLANG_BOTH(log10, ck64_log10(x), __builtin_elementwise_log10(x))
CKLANG_BOTH(log1p, ck64_log1p(x), ck_log1p(x))
CKLANG_BOTH(sqrt, __builtin_elementwise_sqrt(x), ck_sqrt(x))
CKLANG_BOTH(rsqrt, 1.0 / __builtin_elementwise_sqrt(x), ck_rsqrt(x))
CKLANG_BOTH(tanh, ck64_tanh(x), ck_tanh(x))
CKLANG_BOTH(erf, ck64_erf(x), ck_erf(x))
CKLANG_BOTH(fabs, __builtin_fabs(x), __builtin_fabsf(x))
CKLANG_BOTH(nearbyint, __builtin_elementwise_nearbyint(x), __builtin_elementwise_nearbyint(x))
CKLANG_BOTH(logb, __builtin_logb(x), __builtin_logbf(x))
CKLANG_BOTH(sinpi, ck64_sin(CK_PI * ck64_remainder(x, 2.0)), static_cast<float>(sinpi(double(x))))
CKLANG_BOTH(cospi, ck64_cos(CK_PI * ck64_remainder(x, 2.0)), static_cast<float>(cospi(double(x))))
CKLANG_BOTH(rcbrt, 1.0 / ck64_cbrt(x), static_cast<float>(1.0 / ck64_cbrt(x)))
CKLANG_BUILTIN(floor)
CKLANG_BUILTIN(ceil)
CKLANG_BUILTIN(trunc)
CKLANG_BUILTIN(rint)
CKLANG_BUILTIN(round)
CKLANG_WIDE(exp10)
CKLANG_WIDE(cbrt)
CKLANG_WIDE(sin)
CKLANG_WIDE(cos)
CKLANG_WIDE(tan)
CKLANG_WIDE(asin)
CKLANG_WIDE(acos)
CKLANG_WIDE(atan)
CKLANG_WIDE(sinh)
CKLANG_WIDE(cosh)
CKLANG_WIDE(asinh)
CKLANG_WIDE(acosh)
CKLANG_WIDE(atanh)
CKLANG_WIDE(erfc)
CKLANG_WIDE(tgamma)
CKLANG_WIDE(lgamma)

// The same with two arguments; mixed float and double are double, as in C++.
#define CKLANG_BOTH2(name, wide, narrow)  \
    CKLANG_BINARY(double, name, wide)     \
    CKLANG_BINARY(float, name##f, narrow) \
    CKLANG_BINARY(float, name, name##f(x, y))
#define CKLANG_WIDE2(name) \
    CKLANG_BOTH2(name, ck64_##name(x, y), static_cast<float>(ck64_##name(x, y)))

CKLANG_BOTH2(pow, ck64_pow(x, y), ck_pow(x, y))
CKLANG_BOTH2(fmin, __builtin_elementwise_minnum(x, y), __builtin_elementwise_minnum(x, y))
CKLANG_BOTH2(fmax, __builtin_elementwise_maxnum(x, y), __builtin_elementwise_maxnum(x, y))
CKLANG_BOTH2(copysign, __builtin_copysign(x, y), __builtin_copysignf(x, y))
CKLANG_BOTH2(fdim, x > y ? x - y : (x <= y ? 0.0 : x + y), x > y ? x - y : (x <= y ? 0.0f : x + y))
CKLANG_WIDE2(atan2)
CKLANG_WIDE2(hypot)
CKLANG_WIDE2(fmod)
CKLANG_WIDE2(remainder)

namespace cklang_hip {

template <typename X, typename Y>
using Promoted = std::enable_if_t<std::is_arithmetic<X>::value && std::is_arithmetic<Y>::value &&
                                      !std::is_same<X, Y>::value,
                                  double>;

} // namespace cklang_hip

#define CKLANG_MIXED(name)                                                                        \
    template <typename X, typename Y>                                                             \
    __device__ __forceinline__ cklang_hip::Promoted<X, Y> name(X x, Y y)                          \
    {                                                                                             \
        return name(static_cast<double>(x), static_cast<double>(y));                              \
    }
CKLANG_MIXED(pow)
CKLANG_MIXED(fmin)
CKLANG_MIXED(fmax)
CKLANG_MIXED(atan2)
CKLANG_MIXED(fmod)
#undef CKLANG_MIXED

// The compiler's approximations: one hardware instruction and a multiply.
CKLANG_UNARY(float, __expf, __builtin_amdgcn_exp2f(x * 1.44269504f))
CKLANG_UNARY(float, __exp10f, __builtin_amdgcn_exp2f(x * 3.32192809f))
CKLANG_UNARY(float, __logf, __builtin_amdgcn_logf(x) * 0.693147181f)
CKLANG_UNARY(float, __log2f, __builtin_amdgcn_logf(x))
CKLANG_UNARY(float, __log10f, __builtin_amdgcn_logf(x) * 0.301029996f)
CKLANG_UNARY(float, __sinf, __builtin_amdgcn_sinf(__builtin_amdgcn_fractf(x * 0.159154943f)))
CKLANG_UNARY(float, __cosf, __builtin_amdgcn_cosf(__builtin_amdgcn_fractf(x * 0.159154943f)))
CKLANG_UNARY(float, __tanf, __sinf(x) / __cosf(x))
CKLANG_UNARY(float, __frcp_rn, 1.0f / x)
CKLANG_UNARY(float, __fsqrt_rn, __builtin_elementwise_sqrt(x))
CKLANG_UNARY(float, __frsqrt_rn, __builtin_amdgcn_rsqf(x))
CKLANG_UNARY(double, __drcp_rn, 1.0 / x)
CKLANG_UNARY(double, __dsqrt_rn, __builtin_elementwise_sqrt(x))
CKLANG_UNARY(float, __saturatef, __builtin_elementwise_minnum(__builtin_elementwise_maxnum(x, 0.0f), 1.0f))
CKLANG_BINARY(float, __powf, __builtin_amdgcn_exp2f(y* __builtin_amdgcn_logf(x)))
CKLANG_BINARY(float, __fdividef, x / y)
CKLANG_BINARY(float, __fadd_rn, x + y)
CKLANG_BINARY(float, __fsub_rn, x - y)
CKLANG_BINARY(float, __fmul_rn, x* y)
CKLANG_BINARY(float, __fdiv_rn, x / y)
CKLANG_BINARY(double, __dadd_rn, x + y)
CKLANG_BINARY(double, __dmul_rn, x* y)
CKLANG_BINARY(double, __ddiv_rn, x / y)

CKLANG_FN void sincos(double x, double* s, double* c)
{
    *s = sin(x);
    *c = cos(x);
}
CKLANG_FN void sincosf(float x, float* s, float* c)
{
    *s = sinf(x);
    *c = cosf(x);
}
CKLANG_FN void __sincosf(float x, float* s, float* c)
{
    *s = __sinf(x);
    *c = __cosf(x);
}
CKLANG_FN float fmaf(float x, float y, float z) { return __builtin_elementwise_fma(x, y, z); }
CKLANG_FN float fma(float x, float y, float z) { return __builtin_elementwise_fma(x, y, z); }
CKLANG_FN double fma(double x, double y, double z) { return __builtin_elementwise_fma(x, y, z); }
CKLANG_FN float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
CKLANG_FN double __fma_rn(double x, double y, double z) { return fma(x, y, z); }
CKLANG_FN float ldexpf(float x, int power) { return __builtin_ldexpf(x, power); }
CKLANG_FN float ldexp(float x, int power) { return __builtin_ldexpf(x, power); }
CKLANG_FN double ldexp(double x, int power) { return __builtin_ldexp(x, power); }
CKLANG_FN float scalbnf(float x, int power) { return __builtin_ldexpf(x, power); }
CKLANG_FN double scalbn(double x, int power) { return __builtin_ldexp(x, power); }
CKLANG_FN double frexp(double x, int* exponent) { return ck64_frexp(x, exponent); }
CKLANG_FN float frexpf(float x, int* exponent) { return static_cast<float>(ck64_frexp(x, exponent)); }
CKLANG_FN double modf(double x, double* whole)
{
    *whole = __builtin_elementwise_trunc(x);
    return __builtin_copysign(x - *whole == x - *whole ? x - *whole : 0.0, x);
}
CKLANG_FN float modff(float x, float* whole)
{
    *whole = __builtin_elementwise_trunc(x);
    return __builtin_copysignf(x - *whole == x - *whole ? x - *whole : 0.0f, x);
}
CKLANG_FN long lrintf(float x) { return static_cast<long>(__builtin_elementwise_roundeven(x)); }
CKLANG_FN long lrint(double x) { return static_cast<long>(__builtin_elementwise_roundeven(x)); }
CKLANG_FN long lroundf(float x) { return static_cast<long>(__builtin_elementwise_round(x)); }
CKLANG_FN long lround(double x) { return static_cast<long>(__builtin_elementwise_round(x)); }
CKLANG_FN int ilogbf(float x) { return static_cast<int>(__builtin_logbf(x)); }
CKLANG_FN int ilogb(double x) { return static_cast<int>(__builtin_logb(x)); }
CKLANG_FN float norm3df(float x, float y, float z)
{
    return static_cast<float>(ck64_hypot(ck64_hypot(x, y), z));
}
CKLANG_FN double norm3d(double x, double y, double z) { return ck64_hypot(ck64_hypot(x, y), z); }

CKLANG_UNARY(double, abs, __builtin_fabs(x))
CKLANG_UNARY(float, abs, __builtin_fabsf(x))
CKLANG_UNARY(int, abs, x < 0 ? -x : x)
CKLANG_UNARY(long, abs, x < 0 ? -x : x)
CKLANG_UNARY(long long, abs, x < 0 ? -x : x)
CKLANG_UNARY(long, labs, x < 0 ? -x : x)
CKLANG_UNARY(long long, llabs, x < 0 ? -x : x)

#define CKLANG_TEST(name, expression)                               \
    CKLANG_FN bool name(float x) { return expression; }             \
    CKLANG_FN bool name(double x) { return expression; }
CKLANG_TEST(isnan, __builtin_isnan(x))
CKLANG_TEST(isinf, __builtin_isinf(x))
CKLANG_TEST(isfinite, __builtin_isfinite(x))
CKLANG_TEST(signbit, __builtin_signbit(x))
#undef CKLANG_TEST

// Half precision goes through single precision and is rounded once.
CKLANG_UNARY(_Float16, __ocml_exp_f16, static_cast<_Float16>(ck_exp(x)))
CKLANG_UNARY(_Float16, __ocml_log_f16, static_cast<_Float16>(ck_log(x)))
CKLANG_UNARY(_Float16, __ocml_sin_f16, static_cast<_Float16>(sinf(x)))
CKLANG_UNARY(_Float16, __ocml_floor_f16, __builtin_elementwise_floor(x))
CKLANG_UNARY(_Float16, __ocml_ceil_f16, __builtin_elementwise_ceil(x))
CKLANG_UNARY(float, __ocml_exp_f32, ck_exp(x))
CKLANG_UNARY(float, __ocml_native_recip_f32, __builtin_amdgcn_rcpf(x))

#undef CKLANG_WIDE2
#undef CKLANG_BOTH2
#undef CKLANG_WIDE
#undef CKLANG_BUILTIN
#undef CKLANG_BOTH
#undef CKLANG_BINARY
#undef CKLANG_UNARY
#undef CKLANG_FN

// min and max without std, for host and device; mixed signedness is the wider or unsigned type.
#define CKLANG_MINMAX(a, b, result)                                                            \
    static inline __host__ __device__ result min(a x, b y)                                     \
    {                                                                                          \
        return static_cast<result>(x) < static_cast<result>(y) ? static_cast<result>(x)        \
                                                               : static_cast<result>(y);       \
    }                                                                                          \
    static inline __host__ __device__ result max(a x, b y)                                     \
    {                                                                                          \
        return static_cast<result>(x) < static_cast<result>(y) ? static_cast<result>(y)        \
                                                               : static_cast<result>(x);       \
    }
CKLANG_MINMAX(int, int, int)
CKLANG_MINMAX(unsigned int, unsigned int, unsigned int)
CKLANG_MINMAX(int, unsigned int, unsigned int)
CKLANG_MINMAX(unsigned int, int, unsigned int)
CKLANG_MINMAX(long, long, long)
CKLANG_MINMAX(unsigned long, unsigned long, unsigned long)
CKLANG_MINMAX(long long, long long, long long)
CKLANG_MINMAX(unsigned long long, unsigned long long, unsigned long long)
CKLANG_MINMAX(float, double, double)
CKLANG_MINMAX(double, float, double)
#undef CKLANG_MINMAX
static inline __host__ __device__ float min(float x, float y) { return __builtin_fminf(x, y); }
static inline __host__ __device__ float max(float x, float y) { return __builtin_fmaxf(x, y); }
static inline __host__ __device__ double min(double x, double y) { return __builtin_fmin(x, y); }
static inline __host__ __device__ double max(double x, double y) { return __builtin_fmax(x, y); }

// std's names: the functions above beside the host's. The C library has the single-precision names
// only outside std; CK Tile's host code writes std::tanhf and its kin.
#define CKLANG_STD(name) using ::name; using ::name##f;
namespace std {
CKLANG_STD(acos) CKLANG_STD(acosh) CKLANG_STD(asin) CKLANG_STD(asinh) CKLANG_STD(atan)
CKLANG_STD(atan2) CKLANG_STD(atanh) CKLANG_STD(cbrt) CKLANG_STD(ceil) CKLANG_STD(copysign)
CKLANG_STD(cos) CKLANG_STD(cosh) CKLANG_STD(erf) CKLANG_STD(erfc) CKLANG_STD(exp)
CKLANG_STD(exp2) CKLANG_STD(expm1) CKLANG_STD(fabs) CKLANG_STD(fdim) CKLANG_STD(floor)
CKLANG_STD(fma) CKLANG_STD(fmax) CKLANG_STD(fmin) CKLANG_STD(fmod) CKLANG_STD(frexp)
CKLANG_STD(hypot) CKLANG_STD(ilogb) CKLANG_STD(ldexp) CKLANG_STD(lgamma) CKLANG_STD(log)
CKLANG_STD(log10) CKLANG_STD(log1p) CKLANG_STD(log2) CKLANG_STD(logb) CKLANG_STD(lrint)
CKLANG_STD(lround) CKLANG_STD(modf) CKLANG_STD(nearbyint) CKLANG_STD(pow)
CKLANG_STD(remainder) CKLANG_STD(rint) CKLANG_STD(round) CKLANG_STD(scalbn) CKLANG_STD(sin)
CKLANG_STD(sinh) CKLANG_STD(sqrt) CKLANG_STD(tan) CKLANG_STD(tanh) CKLANG_STD(tgamma)
CKLANG_STD(trunc)
using ::abs;
using ::isfinite;
using ::isinf;
using ::isnan;
using ::signbit;
} // namespace std
#undef CKLANG_STD
