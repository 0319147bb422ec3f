/* SPDX-License-Identifier: MIT
 *
 * Double-precision trigonometric, hyperbolic, error and gamma functions; see math64.h. */
#pragma once

#include <cklang/math64.h>

/* x mod pi/2, |x| >= 2^18, from the bits of 2/pi that matter; returns the quadrant. */
CK_MATH int ck64_reduce_far(double x, double* rest)
{
    /* 64 zeros, then 2/pi. */
    static const ck_u64 bits[21] = {
        0x0000000000000000ull, 0xa2f9836e4e441529ull, 0xfc2757d1f534ddc0ull, 0xdb6295993c439041ull,
        0xfe5163abdebbc561ull, 0xb7246e3a424dd2e0ull, 0x06492eea09d1921cull, 0xfe1deb1cb129a73eull,
        0xe88235f52ebb4484ull, 0xe99c7026b45f7e41ull, 0x3991d639835339f4ull, 0x9c845f8bbdf9283bull,
        0x1ff897ffde05980full, 0xef2f118b5a0a6d1full, 0x6d367ecf27cb09b7ull, 0x4f463f669e5fea2dull,
        0x7527bac7ebe5f17bull, 0x3d0739f78a5292eaull, 0x6bfb5fb11f8d5d08ull, 0x56033046fc7b6babull,
        0xf0cfbc209af4361dull};
    const ck_u64 raw  = __builtin_bit_cast(ck_u64, x);
    const ck_u64 m    = (raw & 0xfffffffffffffull) | 0x10000000000000ull;
    const int e       = (int)(raw >> 52 & 0x7ff) - 1075;
    /* Bits of 2/pi whose product with m 2^e is a multiple of 4 are left out. */
    const int first   = e - 2 + 64;
    const int word    = first >> 6, shift = first & 63;
    ck_u64 w[3];
    for(int i = 0; i < 3; ++i)
    {
        const ck_u64 next = word + i + 1 < 21 ? bits[word + i + 1] : 0;
        w[i]              = shift ? bits[word + i] << shift | next >> (64 - shift) : bits[word + i];
    }
    /* The low 192 bits of m * w; its upper two are the quadrant. */
    const unsigned __int128 p2 = (unsigned __int128)m * w[2];
    const unsigned __int128 p1 = (unsigned __int128)m * w[1] + (ck_u64)(p2 >> 64);
    const ck_u64 top           = m * w[0] + (ck_u64)(p1 >> 64);
    unsigned __int128 f        = (unsigned __int128)top << 64 | (ck_u64)p1;
    int quadrant               = (int)(top >> 62);
    f <<= 2;
    const bool back = f >> 127;
    if(back)
    {
        f = -f;
        ++quadrant;
    }
    const ck_u64 high = (ck_u64)(f >> 64);
    const int zeros   = high ? __builtin_clzll(high) : 64;
    const ck_u64 lead = (ck_u64)(f << zeros >> 64);
    const double part = ck64_ldexp((double)lead, -64 - zeros) * (CK_PI / 2);
    *rest             = back ? -part : part;
    return quadrant;
}

/* x = quadrant * pi/2 + rest, |rest| <= pi/4. */
CK_MATH int ck64_reduce(double x, double* rest)
{
    CK_AS_WRITTEN
    const double a = ck64_abs(x);
    if(a < 0x1p18)
    {
        /* pi/2 in parts of 33 bits: the first two products are exact. */
        const double k = ck64_rint(x * (2 / CK_PI));
        const double t = ck64_fma(-k, 0x1.921fb54400000p+0, x), u = k * 0x1.0b4611a600000p-34;
        const double r = t - u;
        *rest          = r + ck64_fma(-k, 0x1.3198a2e037073p-69, (t - r) - u);
        return (int)k & 3;
    }
    const int quadrant = ck64_reduce_far(a, rest);
    if(x < 0)
        *rest = -*rest;
    return (x < 0 ? -quadrant : quadrant) & 3;
}

/* Taylor's series on |x| <= pi/4. */
CK_MATH double ck64_sin_near(double x)
{
    const double t = x * x;
    double s       = 1.0 / 355687428096000.0;
    s              = ck64_fma(s, t, -1.0 / 1307674368000.0);
    s              = ck64_fma(s, t, 1.0 / 6227020800.0);
    s              = ck64_fma(s, t, -1.0 / 39916800.0);
    s              = ck64_fma(s, t, 1.0 / 362880.0);
    s              = ck64_fma(s, t, -1.0 / 5040.0);
    s              = ck64_fma(s, t, 1.0 / 120.0);
    s              = ck64_fma(s, t, -1.0 / 6.0);
    return ck64_fma(s * t, x, x);
}
CK_MATH double ck64_cos_near(double x)
{
    const double t = x * x;
    double s       = 1.0 / 6402373705728000.0;
    s              = ck64_fma(-s, t, 1.0 / 20922789888000.0);
    s              = ck64_fma(s, t, -1.0 / 87178291200.0);
    s              = ck64_fma(s, t, 1.0 / 479001600.0);
    s              = ck64_fma(s, t, -1.0 / 3628800.0);
    s              = ck64_fma(s, t, 1.0 / 40320.0);
    s              = ck64_fma(s, t, -1.0 / 720.0);
    s              = ck64_fma(s, t, 1.0 / 24.0);
    const double half = 0.5 * t, one = 1.0 - half;
    return one + ((1.0 - one - half) + s * t * t);
}
CK_MATH double ck64_turned(double x, int turn)
{
    if(!(ck64_abs(x) < CK_INF))
        return CK_NAN;
    double rest;
    const int quadrant = ck64_reduce(x, &rest) + turn;
    const double value = quadrant & 1 ? ck64_cos_near(rest) : ck64_sin_near(rest);
    return quadrant & 2 ? -value : value;
}
CK_MATH double ck64_sin(double x) { return x == 0 ? x : ck64_turned(x, 0); }
CK_MATH double ck64_cos(double x) { return ck64_turned(x, 1); }
CK_MATH double ck64_tan(double x) { return x == 0 ? x : ck64_sin(x) / ck64_cos(x); }

/* The angle of (x, y): the quotient at most 1, then at most tan(pi/8), then its series. */
CK_MATH double ck64_atan2(double y, double x)
{
    if(x != x || y != y)
        return CK_NAN;
    double a = ck64_abs(x), b = ck64_abs(y), angle, low = 0;
    if(a == CK_INF && b == CK_INF)
        a = b = 1;
    const bool steep = b > a;
    const double n = steep ? a : b, d = steep ? b : a;
    double t = d == 0 ? 0.0 : n / d;
    bool eighth = t > 0x1.a827999fcef32p-2;
    if(eighth)
        t = d == CK_INF ? -1.0 : (n - d) / (n + d);
    const double q = t * t;
    double s       = 0;
    for(int i = 45; i >= 3; i -= 2)
        s = ck64_fma(-q, s, 1.0 / i);
    angle = ck64_fma(-(q * t), s, t);
    if(eighth)
    {
        low   = 0x1.1a62633145c07p-55;
        angle = 0x1.921fb54442d18p-1 + (angle + low);
    }
    if(steep)
        angle = 0x1.921fb54442d18p+0 - (angle - 0x1.1a62633145c07p-54);
    if(ck64_sign(1.0, x) < 0)
        angle = CK_PI - (angle - 0x1.1a62633145c07p-53);
    return ck64_sign(angle, y);
}
CK_MATH double ck64_atan(double x) { return ck64_atan2(x, 1.0); }
CK_MATH double ck64_asin(double x)
{
    return ck64_abs(x) > 1 ? CK_NAN : ck64_atan2(x, ck64_sqrt((1 - x) * (1 + x)));
}
CK_MATH double ck64_acos(double x)
{
    return ck64_abs(x) > 1 ? CK_NAN : 2 * ck64_atan2(ck64_sqrt(1 - x), ck64_sqrt(1 + x));
}

/* Hyperbolic functions and their inverses, from expm1 and log1p so that small x keep their bits. */
CK_MATH double ck64_sinh(double x)
{
    const double a = ck64_abs(x);
    if(a > 709.0)
    {
        const double e = ck64_exp(0.5 * a);
        return ck64_sign(0.5 * e * e, x);
    }
    const double t = ck64_expm1(a);
    return ck64_sign(0.5 * (t + t / (t + 1)), x);
}
CK_MATH double ck64_cosh(double x)
{
    const double a = ck64_abs(x), e = ck64_exp(a > 709.0 ? 0.5 * a : a);
    return a > 709.0 ? 0.5 * e * e : 0.5 * (e + 1 / e);
}
CK_MATH double ck64_tanh(double x)
{
    const double a = ck64_abs(x), t = ck64_expm1(2 * a);
    return ck64_sign(a > 22.0 ? 1.0 : x != x ? x : t / (t + 2), x);
}
CK_MATH double ck64_asinh(double x)
{
    const double a = ck64_abs(x);
    if(!(a < 0x1p28))
        return ck64_sign(ck64_log(a) + 0x1.62e42fefa39efp-1, x);
    return ck64_sign(ck64_log1p(a + a * a / (1 + ck64_sqrt(a * a + 1))), x);
}
CK_MATH double ck64_acosh(double x)
{
    if(x < 1)
        return CK_NAN;
    if(!(x < 0x1p28))
        return ck64_log(x) + 0x1.62e42fefa39efp-1;
    const double t = x - 1;
    return ck64_log1p(t + ck64_sqrt(t * (x + 1)));
}
CK_MATH double ck64_atanh(double x)
{
    const double a = ck64_abs(x);
    return ck64_sign(0.5 * ck64_log1p(2 * a / (1 - a)), x);
}

/* e^(-x*x) with the square in two parts. */
CK_MATH double ck64_gauss(double x)
{
    CK_AS_WRITTEN
    const double q = x * x;
    return ck64_exp_of_sum(-q, -ck64_fma(x, x, -q));
}
/* x > 0.9: the continued fraction of erfc, which needs more terms the smaller x is. */
CK_MATH double ck64_erfc_far(double x)
{
    double t = x;
    for(int i = x > 2 ? 60 : 320; i >= 1; --i)
        t = x + 0.5 * i / t;
    return ck64_gauss(x) * 0x1.20dd750429b6dp-1 / t;
}
/* 0 <= x <= 2: the series of erf whose terms are all positive. */
CK_MATH double ck64_erf_near(double x)
{
    double term = x, sum = x;
    for(int i = 3; i < 110; i += 2)
    {
        term *= 2 * x * x / i;
        sum += term;
    }
    return 0x1.20dd750429b6dp+0 * ck64_gauss(x) * sum;
}
CK_MATH double ck64_erf(double x)
{
    const double a = ck64_abs(x);
    if(x != x)
        return x;
    return ck64_sign(a > 6 ? 1.0 : a > 2 ? 1 - ck64_erfc_far(a) : ck64_erf_near(a), x);
}
CK_MATH double ck64_erfc(double x)
{
    if(x != x || x > 28)
        return x != x ? x : 0.0;
    return x > 0.9 ? ck64_erfc_far(x) : x < -2 ? 2 - ck64_erfc_far(-x) : 1 - ck64_erf(x);
}

/* erfc to single precision, at any x: e^(-x*x) P(t) / (1 + 2x), where t = (x - 2.5) / (x + 2.5).
 * The polynomial is good to 5e-9: benchmarks/fit_math.py. */
CK_MATH double ck64_erfc_single(double x)
{
    const double a = ck64_abs(x) > 28 ? 28.0 : ck64_abs(x);
    const double t = (a - 2.5) / (a + 2.5);
    double p       = 7.815917263475e-05;
    p              = ck64_fma(p, t, 0.0006110973657889);
    p              = ck64_fma(p, t, 0.0003416742637445);
    p              = ck64_fma(p, t, -0.004418046041321);
    p              = ck64_fma(p, t, 0.000981182838795);
    p              = ck64_fma(p, t, 0.03277677477787);
    p              = ck64_fma(p, t, -0.1029740227207);
    p              = ck64_fma(p, t, 0.1576278891547);
    p              = ck64_fma(p, t, -0.09902416238902);
    p              = ck64_fma(p, t, -0.1223566988128);
    p              = ck64_fma(p, t, 1.264838180674);
    const double y = ck64_gauss(a) * p / (1 + 2 * a);
    return x < 0 ? 2 - y : y;
}

/* Lanczos' sum (g = 7, nine terms) for x >= 0.5: gamma(x) = p^(x-0.5) e^-p sum, p = x + 6.5. */
CK_MATH double ck64_lanczos(double x)
{
    const double c[8] = {676.5203681218851,
                         -1259.1392167224028,
                         771.32342877765313,
                         -176.61502916214059,
                         12.507343278686905,
                         -0.13857109526572012,
                         9.9843695780195716e-6,
                         1.5056327351493116e-7};
    double sum = 0.99999999999980993;
    for(int i = 0; i < 8; ++i)
        sum += c[i] / (x + i);
    return 0x1.40d931ff62706p+1 * sum;
}
CK_MATH double ck64_tgamma_right(double x)
{
    if(x > 172)
        return CK_INF;
    const double p = x + 6.5, half = ck64_pow(p, 0.5 * (x - 0.5));
    return half * ck64_exp(-p) * half * ck64_lanczos(x);
}
CK_MATH double ck64_lgamma_right(double x)
{
    const double p = x + 6.5;
    return (x - 0.5) * ck64_log(p) - p + ck64_log(ck64_lanczos(x));
}
/* sin(pi x), which takes gamma(1 - x) to gamma(x). */
CK_MATH double ck64_reflection(double x) { return ck64_sin(CK_PI * ck64_remainder(x, 2.0)); }

CK_MATH double ck64_tgamma(double x)
{
    if(x != x || x == -CK_INF || (x < 0 && x == __builtin_elementwise_floor(x)))
        return CK_NAN;
    if(x == 0)
        return ck64_sign(CK_INF, x);
    return x < 0.5 ? CK_PI / (ck64_reflection(x) * ck64_tgamma_right(1 - x)) : ck64_tgamma_right(x);
}
CK_MATH double ck64_lgamma(double x)
{
    if(x != x || ck64_isinf(x))
        return x * x;
    if(x <= 0 && x == __builtin_elementwise_floor(x))
        return CK_INF;
    if(x < 0.5)
        return ck64_log(CK_PI / ck64_abs(ck64_reflection(x))) - ck64_lgamma_right(1 - x);
    return ck64_lgamma_right(x);
}
