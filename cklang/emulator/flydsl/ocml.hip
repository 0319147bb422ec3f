// SPDX-License-Identifier: MIT
// The mathematical functions that LLVM's conversion to ROCDL calls, under their names in ROCm's device
// library, computed as in HIP programs of this project (hip/device_math.h). Half precision is computed
// in single precision and rounded.

// The header has some of them as C++ functions, which are not the symbols.
#define __ocml_ceil_f16 header_ceil_f16
#define __ocml_exp_f16 header_exp_f16
#define __ocml_exp_f32 header_exp_f32
#define __ocml_floor_f16 header_floor_f16
#define __ocml_log_f16 header_log_f16
#define __ocml_sin_f16 header_sin_f16
#include <hip/hip_runtime.h>
#undef __ocml_ceil_f16
#undef __ocml_exp_f16
#undef __ocml_exp_f32
#undef __ocml_floor_f16
#undef __ocml_log_f16
#undef __ocml_sin_f16

#define OCML(type, name, suffix, parameters, expression)      \
    extern "C" __device__ type __ocml_##name##_##suffix parameters \
    {                                                         \
        return expression;                                    \
    }

#define OCML_UNARY(name, single, wide)                                               \
    OCML(_Float16, name, f16, (_Float16 x), static_cast<_Float16>(single(float(x)))) \
    OCML(float, name, f32, (float x), single(x))                                     \
    OCML(double, name, f64, (double x), wide(x))

#define OCML_BINARY(name, single, wide)                                     \
    OCML(_Float16, name, f16, (_Float16 x, _Float16 y),                     \
         static_cast<_Float16>(single(float(x), float(y))))                 \
    OCML(float, name, f32, (float x, float y), single(x, y))                \
    OCML(double, name, f64, (double x, double y), wide(x, y))

OCML_UNARY(acos, acosf, acos)
OCML_UNARY(acosh, acoshf, acosh)
OCML_UNARY(asin, asinf, asin)
OCML_UNARY(asinh, asinhf, asinh)
OCML_UNARY(atan, atanf, atan)
OCML_UNARY(atanh, atanhf, atanh)
OCML_UNARY(cbrt, cbrtf, cbrt)
OCML_UNARY(ceil, ceilf, ceil)
OCML_UNARY(cos, cosf, cos)
OCML_UNARY(cosh, coshf, cosh)
OCML_UNARY(erf, erff, erf)
OCML_UNARY(erfc, erfcf, erfc)
OCML_UNARY(exp, expf, exp)
OCML_UNARY(exp2, exp2f, exp2)
OCML_UNARY(expm1, expm1f, expm1)
OCML_UNARY(floor, floorf, floor)
OCML_UNARY(log, logf, log)
OCML_UNARY(log10, log10f, log10)
OCML_UNARY(log1p, log1pf, log1p)
OCML_UNARY(log2, log2f, log2)
OCML_UNARY(rint, rintf, rint)
OCML_UNARY(round, roundf, round)
OCML_UNARY(rsqrt, rsqrtf, rsqrt)
OCML_UNARY(sin, sinf, sin)
OCML_UNARY(sinh, sinhf, sinh)
OCML_UNARY(sqrt, sqrtf, sqrt)
OCML_UNARY(tan, tanf, tan)
OCML_UNARY(tanh, tanhf, tanh)
OCML_UNARY(trunc, truncf, trunc)
OCML_BINARY(atan2, atan2f, atan2)
OCML_BINARY(fmod, fmodf, fmod)
OCML_BINARY(pow, powf, pow)

OCML(_Float16, pown, f16, (_Float16 x, int n), static_cast<_Float16>(pow(double(x), double(n))))
OCML(float, pown, f32, (float x, int n), static_cast<float>(pow(double(x), double(n))))
OCML(double, pown, f64, (double x, int n), pow(x, double(n)))
