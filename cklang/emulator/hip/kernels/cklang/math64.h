/* SPDX-License-Identifier: MIT
 *
 * Double-precision functions for device code, in C that is also HIP C++ and also runs on a CPU.
 * Written from the series and identities named beside each. Largest error in units in the last
 * place, found by tests/lowering/test_math64.py on a CPU with these very lines: 2 for exp, log,
 * atan and hypot, 3 for sin and cos at any argument, 4 for the others here; pow 16, erf 10,
 * erfc 20, the gamma functions 1000 (2e-13) where they are large.
 * Special values are those of C's functions. */
#pragma once

#include <cklang/math.h>

typedef unsigned long long ck_u64;

#define CK_INF __builtin_huge_val()
#define CK_NAN __builtin_nan("")
#define CK_PI 0x1.921fb54442d18p+1
#define CK_LN2_HI 0x1.62e42fee00000p-1 /* 32 bits: products with exponents are exact */
#define CK_LN2_LO 0x1.a39ef35793c76p-33

CK_MATH double ck64_fma(double x, double y, double z) { return __builtin_elementwise_fma(x, y, z); }
CK_MATH double ck64_abs(double x) { return __builtin_elementwise_abs(x); }
CK_MATH double ck64_rint(double x) { return __builtin_elementwise_roundeven(x); }
CK_MATH double ck64_sqrt(double x) { return __builtin_elementwise_sqrt(x); }
CK_MATH double ck64_sign(double x, double sign) { return __builtin_copysign(x, sign); }
CK_MATH bool ck64_isinf(double x) { return ck64_abs(x) == CK_INF; }

/* x = result * 2^exponent with 0.5 <= |result| < 1. */
CK_MATH double ck64_frexp(double x, int* exponent)
{
    *exponent = 0;
    if(x == 0 || x != x || ck64_isinf(x))
        return x;
    const int tiny    = ck64_abs(x) < 0x1p-1022 ? 54 : 0;
    const ck_u64 bits = __builtin_bit_cast(ck_u64, tiny ? x * 0x1p54 : x);
    *exponent         = (int)(bits >> 52 & 0x7ff) - 1022 - tiny;
    return __builtin_bit_cast(double, (bits & 0x800fffffffffffffull) | 0x3fe0000000000000ull);
}

/* x * 2^n, rounded once. */
CK_MATH double ck64_ldexp(double x, int n)
{
    n = n > 2200 ? 2200 : n < -2200 ? -2200 : n;
    for(; n > 1023; n -= 1023)
        x *= 0x1p1023;
    /* Down in steps that cannot round twice: 2^-969 keeps 53 bits of what ends as a normal. */
    for(; n < -1022; n += 969)
        x *= 0x1p-969;
    return x * __builtin_bit_cast(double, (ck_u64)(n + 1023) << 52);
}

/* The exponential series to the 13th power, for |x| <= ln(2)/2, without its first term. */
CK_MATH double ck64_expm1_near(double x)
{
    double sum = 1.0 / 6227020800.0;
    sum        = ck64_fma(sum, x, 1.0 / 479001600.0);
    sum        = ck64_fma(sum, x, 1.0 / 39916800.0);
    sum        = ck64_fma(sum, x, 1.0 / 3628800.0);
    sum        = ck64_fma(sum, x, 1.0 / 362880.0);
    sum        = ck64_fma(sum, x, 1.0 / 40320.0);
    sum        = ck64_fma(sum, x, 1.0 / 5040.0);
    sum        = ck64_fma(sum, x, 1.0 / 720.0);
    sum        = ck64_fma(sum, x, 1.0 / 120.0);
    sum        = ck64_fma(sum, x, 1.0 / 24.0);
    sum        = ck64_fma(sum, x, 1.0 / 6.0);
    sum        = ck64_fma(sum, x, 0.5);
    return ck64_fma(sum * x, x, x);
}

/* e^(x + low), low a small correction: x = k ln 2 + r. */
CK_MATH double ck64_exp_of_sum(double x, double low)
{
    if(x != x)
        return x;
    if(x > 710.0)
        return CK_INF;
    if(x < -746.0)
        return 0.0;
    const double k = ck64_rint(x * 0x1.71547652b82fep+0);
    double r       = ck64_fma(-k, CK_LN2_HI, x);
    r              = ck64_fma(-k, CK_LN2_LO, r) + low;
    return ck64_ldexp(1.0 + ck64_expm1_near(r), (int)k);
}
CK_MATH double ck64_exp(double x) { return ck64_exp_of_sum(x, 0.0); }
CK_MATH double ck64_expm1(double x)
{
    if(ck64_abs(x) < 0.34)
        return x == 0 ? x : ck64_expm1_near(x);
    return x < -40.0 ? -1.0 : ck64_exp(x) - 1.0;
}

/* log x as a sum of two numbers, x finite and positive: 2 atanh((m-1)/(m+1)) + k ln 2. */
CK_MATH double ck64_log_parts(double x, double* low)
{
    CK_AS_WRITTEN
    int k;
    double m = ck64_frexp(x, &k);
    if(m < 0x1.6a09e667f3bcdp-1)
    {
        m *= 2;
        --k;
    }
    const double u = m - 1.0, v = m + 1.0, v_low = m - (v - 1.0);
    const double s = u / v, s_low = (ck64_fma(-s, v, u) - s * v_low) / v;
    const double q = s * s;
    double p       = 1.0 / 25;
    p              = ck64_fma(p, q, 1.0 / 23);
    p              = ck64_fma(p, q, 1.0 / 21);
    p              = ck64_fma(p, q, 1.0 / 19);
    p              = ck64_fma(p, q, 1.0 / 17);
    p              = ck64_fma(p, q, 1.0 / 15);
    p              = ck64_fma(p, q, 1.0 / 13);
    p              = ck64_fma(p, q, 1.0 / 11);
    p              = ck64_fma(p, q, 1.0 / 9);
    p              = ck64_fma(p, q, 1.0 / 7);
    p              = ck64_fma(p, q, 1.0 / 5);
    p              = ck64_fma(p, q, 1.0 / 3);
    const double tail = 2 * (s_low + s * (q * p)), head = 2 * s;
    const double whole = k * CK_LN2_HI, sum = whole + head;
    const double lost  = k ? head - (sum - whole) : 0.0;
    *low               = lost + (tail + k * CK_LN2_LO);
    return sum;
}
CK_MATH double ck64_log(double x)
{
    if(x != x || x < 0)
        return CK_NAN;
    if(x == 0)
        return -CK_INF;
    if(x == CK_INF)
        return x;
    double low;
    const double high = ck64_log_parts(x, &low);
    return high + low;
}
/* log(1 + x): what the sum loses is put back to first order. */
CK_MATH double ck64_log1p(double x)
{
    CK_AS_WRITTEN
    const double u = 1.0 + x;
    if(!(u > 0) || u == CK_INF)
        return ck64_log(u);
    if(u == 1.0)
        return x;
    double low;
    const double high = ck64_log_parts(u, &low);
    const double lost = u < 2.0 ? x - (u - 1.0) : 1.0 - (u - x);
    return high + (low + lost / u);
}
CK_MATH double ck64_log2(double x)
{
    int k;
    const double m = ck64_frexp(x, &k);
    if(m == 0.5)
        return k - 1;
    return ck64_log(x) * 0x1.71547652b82fep+0;
}
CK_MATH double ck64_log10(double x) { return ck64_log(x) * 0x1.bcb7b1526e50ep-2; }
CK_MATH double ck64_exp2(double x)
{
    if(!(ck64_abs(x) < 1100.0))
        return x > 0 ? CK_INF : x < 0 ? 0.0 : x;
    const double k = ck64_rint(x);
    return ck64_ldexp(1.0 + ck64_expm1_near((x - k) * 0x1.62e42fefa39efp-1), (int)k);
}

/* x^y = e^(y log x), the logarithm in two parts; special values as in C's Annex F. */
CK_MATH double ck64_pow(double x, double y)
{
    CK_AS_WRITTEN
    if(y == 0 || x == 1)
        return 1.0;
    if(x != x || y != y)
        return CK_NAN;
    const double a  = ck64_abs(x);
    const bool whole = ck64_isinf(y) || y == __builtin_elementwise_trunc(y);
    const bool odd   = !ck64_isinf(y) && whole && ck64_abs(y) < 0x1p53 && ((long long)y & 1);
    const double sign = odd && ck64_sign(1.0, x) < 0 ? -1.0 : 1.0;
    if(ck64_isinf(y))
        return a == 1 ? 1.0 : (a > 1) == (y > 0) ? CK_INF : 0.0;
    if(a == 0 || a == CK_INF)
        return sign * ((a == 0) == (y < 0) ? CK_INF : 0.0);
    if(x < 0 && !whole)
        return CK_NAN;
    double low;
    const double high = ck64_log_parts(a, &low);
    const double product = y * high, error = ck64_fma(y, high, -product) + y * low;
    if(ck64_abs(product) > 760.0)
        return sign * (product > 0 ? CK_INF : 0.0);
    return sign * ck64_exp_of_sum(product, error);
}
CK_MATH double ck64_exp10(double x) { return ck64_pow(10.0, x); }

/* Cube root: a guess from the exponent, then Newton's and Halley's steps. */
CK_MATH double ck64_cbrt(double x)
{
    if(x == 0 || x != x || ck64_isinf(x))
        return x;
    int k;
    double m       = ck64_frexp(ck64_abs(x), &k);
    const int rest = ((k % 3) + 3) % 3;
    m              = ck64_ldexp(m, rest);
    double r       = 0.6 + 0.4 * m - 0.04 * m * m;
    for(int i = 0; i < 4; ++i)
        r = r * (r * r * r + 2 * m) / (2 * r * r * r + m);
    const double error = ck64_fma(r * r, r, -m);
    r -= error / (3 * r * r);
    return ck64_sign(ck64_ldexp(r, (k - rest) / 3), x);
}

/* sqrt(x*x + y*y) without overflow on the way. */
CK_MATH double ck64_hypot(double x, double y)
{
    double a = ck64_abs(x), b = ck64_abs(y);
    if(a == CK_INF || b == CK_INF)
        return CK_INF;
    if(a < b)
    {
        const double t = a;
        a              = b;
        b              = t;
    }
    if(b == 0 || a != a || b != b)
        return a + b;
    int k;
    ck64_frexp(a, &k);
    a = ck64_ldexp(a, -k);
    b = ck64_ldexp(b, -k);
    return ck64_ldexp(ck64_sqrt(ck64_fma(a, a, b * b)), k);
}

/* The exact remainder of x / y with the sign of x: long division in binary. */
CK_MATH double ck64_fmod(double x, double y)
{
    double a       = ck64_abs(x);
    const double b = ck64_abs(y);
    if(!(a < CK_INF) || b != b || b == 0)
        return CK_NAN;
    if(b == CK_INF || a < b)
        return x;
    int ka, kb;
    ck64_frexp(a, &ka);
    const double m = ck64_frexp(b, &kb);
    for(int k = ka; k >= kb; --k)
    {
        const double t = ck64_ldexp(m, k);
        a              = a >= t ? a - t : a;
    }
    return ck64_sign(a, x);
}
CK_MATH double ck64_remainder(double x, double y)
{
    const double b = ck64_abs(y);
    if(b < 0x1p1022)
        x = ck64_fmod(x, 2 * b);
    if(x != x || b == 0 || y != y || b == CK_INF)
        return b == CK_INF && !(ck64_abs(x) == CK_INF) ? x : CK_NAN;
    double a = ck64_abs(x);
    if(a > b - a)
    {
        a -= b;
        if(a >= b - a || a >= 0.5 * b)
            a -= b;
    }
    return ck64_sign(1.0, x) < 0 ? -a : a;
}
