// SPDX-License-Identifier: MIT
// What the compiler calls for products and quotients of complex numbers in device code, by the rules of C's
// Annex G: where the plain formula gives NaN in both parts, infinite and zero operands decide.
#pragma once

#include <hip/attributes.h>
#include <hip/device_math.h>

#if defined(__HIP__)
namespace cklang_hip {

template <typename T>
struct ComplexParts
{
    T re, im;
};

/// 1 for infinity, 0 for a number, with the sign.
template <typename T>
__device__ inline T boxed(T x)
{
    return __builtin_copysign(static_cast<T>(__builtin_isinf(x) ? 1 : 0), x);
}
template <typename T>
__device__ inline T no_nan(T x)
{
    return __builtin_isnan(x) ? static_cast<T>(__builtin_copysign(T(0), x)) : x;
}

template <typename T>
__device__ inline ComplexParts<T> complex_product(T a, T b, T c, T d)
{
    const T ac = a * c, bd = b * d, ad = a * d, bc = b * c;
    const ComplexParts<T> plain = {ac - bd, ad + bc};
    if(!__builtin_isnan(plain.re) || !__builtin_isnan(plain.im))
        return plain;
    const bool left  = __builtin_isinf(a) || __builtin_isinf(b);
    const bool right = __builtin_isinf(c) || __builtin_isinf(d);
    const bool parts =
        __builtin_isinf(ac) || __builtin_isinf(bd) || __builtin_isinf(ad) || __builtin_isinf(bc);
    if(!left && !right && !parts)
        return plain;
    if(left)
        a = boxed(a), b = boxed(b);
    if(right)
        c = boxed(c), d = boxed(d);
    a = no_nan(a), b = no_nan(b), c = no_nan(c), d = no_nan(d);
    const T infinity = static_cast<T>(__builtin_inf());
    return {infinity * (a * c - b * d), infinity * (a * d + b * c)};
}

template <typename T>
__device__ inline ComplexParts<T> complex_quotient(T a, T b, T c, T d)
{
    const T largest  = __builtin_fmax(__builtin_fabs(c), __builtin_fabs(d));
    const bool scale = largest > 0 && !__builtin_isinf(largest);
    int exponent     = 0;
    __builtin_frexp(largest, &exponent);
    const int power = scale ? 1 - exponent : 0;
    const T x = __builtin_scalbn(c, power), y = __builtin_scalbn(d, power), norm = x * x + y * y;
    const ComplexParts<T> plain = {static_cast<T>(__builtin_scalbn((a * x + b * y) / norm, power)),
                                   static_cast<T>(__builtin_scalbn((b * x - a * y) / norm, power))};
    if(!__builtin_isnan(plain.re) || !__builtin_isnan(plain.im))
        return plain;
    const T infinity = static_cast<T>(__builtin_inf());
    if(norm == 0 && (!__builtin_isnan(a) || !__builtin_isnan(b)))
    {
        const T signed_infinity = __builtin_copysign(infinity, c);
        return {signed_infinity * a, signed_infinity * b};
    }
    if((__builtin_isinf(a) || __builtin_isinf(b)) && !__builtin_isinf(c) && !__builtin_isinf(d))
    {
        a = boxed(a), b = boxed(b);
        return {infinity * (a * x + b * y), infinity * (b * x - a * y)};
    }
    if(__builtin_isinf(largest) && !__builtin_isinf(a) && !__builtin_isinf(b))
    {
        c = boxed(c), d = boxed(d);
        return {T(0) * (a * c + b * d), T(0) * (b * c - a * d)};
    }
    return plain;
}

} // namespace cklang_hip

#define CKLANG_COMPLEX(name, T, operation)                                                \
    extern "C" __device__ inline T _Complex name(T a, T b, T c, T d)                      \
    {                                                                                     \
        const cklang_hip::ComplexParts<T> parts = cklang_hip::operation<T>(a, b, c, d);   \
        T _Complex value;                                                                 \
        __real__ value = parts.re;                                                        \
        __imag__ value = parts.im;                                                        \
        return value;                                                                     \
    }
CKLANG_COMPLEX(__mulsc3, float, complex_product)
CKLANG_COMPLEX(__muldc3, double, complex_product)
CKLANG_COMPLEX(__divsc3, float, complex_quotient)
CKLANG_COMPLEX(__divdc3, double, complex_quotient)
#undef CKLANG_COMPLEX
#endif
