/* SPDX-License-Identifier: MIT
 *
 * Single-precision functions for epilogues, in C that is also HIP C++ and also runs on a CPU.
 * exp, exp2, log and sqrt are the compiler's own expansions; the rest is here. Polynomials:
 * benchmarks/fit_math.py. Largest error in units in the last place, found by
 * tests/lowering/test_math.py on a CPU with these very lines (the compiler's exp and log, good to
 * 1 ulp on the GPU, add to it): tanh 1.3, erf 1.1, expm1 1.4, log1p 0.8, pow 1.1.
 * Special values are those of C's functions. */
#pragma once

#if defined(__HIP__)
#define CK_FUNCTION extern "C" __attribute__((device))
#define CK_MATH static inline __attribute__((device, always_inline, unused))
#else
#define CK_FUNCTION
#define CK_MATH static inline __attribute__((always_inline, unused))
#endif

/* Error terms below are exact only if the compiler fuses nothing that is written apart. */
#define CK_AS_WRITTEN _Pragma("clang fp contract(off)")

CK_MATH float ck_fma(float x, float y, float z) { return __builtin_elementwise_fma(x, y, z); }
CK_MATH float ck_abs(float x) { return __builtin_elementwise_abs(x); }
CK_MATH float ck_floor(float x) { return __builtin_elementwise_floor(x); }
CK_MATH float ck_rint(float x) { return __builtin_elementwise_roundeven(x); }
CK_MATH float ck_copysign(float x, float sign) { return __builtin_copysignf(x, sign); }
CK_MATH bool ck_isnan(float x) { return x != x; }
CK_MATH bool ck_isfinite(float x) { return ck_abs(x) < __builtin_inff(); }
CK_MATH bool ck_isinf(float x) { return ck_abs(x) == __builtin_inff(); }
CK_MATH bool ck_signbit(float x) { return __builtin_bit_cast(int, x) < 0; }

/* NaN if either is NaN, as NumPy has it. */
CK_MATH float ck_min(float x, float y) { return __builtin_elementwise_minimum(x, y); }
CK_MATH float ck_max(float x, float y) { return __builtin_elementwise_maximum(x, y); }

CK_MATH float ck_rcp(float x) { return 1.0f / x; }
CK_MATH float ck_sqrt(float x) { return __builtin_elementwise_sqrt(x); }
CK_MATH float ck_rsqrt(float x) { return 1.0f / __builtin_elementwise_sqrt(x); }
CK_MATH float ck_exp(float x) { return __builtin_elementwise_exp(x); }
CK_MATH float ck_exp2(float x) { return __builtin_elementwise_exp2(x); }
CK_MATH float ck_log(float x) { return __builtin_elementwise_log(x); }

/* One instruction of the GPU each, to a unit in the last place: 1 / x, and 2^x for results that are
 * not denormal. */
#if defined(__AMDGCN__)
CK_MATH float ck_near_rcp(float x) { return __builtin_amdgcn_rcpf(x); }
CK_MATH float ck_near_exp2(float x) { return __builtin_amdgcn_exp2f(x); }
#else
CK_MATH float ck_near_rcp(float x) { return ck_rcp(x); }
CK_MATH float ck_near_exp2(float x) { return ck_exp2(x); }
#endif

/* Round to a narrower type and come back. */
CK_MATH float ck_round_f16(float x) { return (float)(_Float16)x; }
CK_MATH float ck_round_bf16(float x) { return (float)(__bf16)x; }

/* Round to nearest even to `bits` bits behind the point, with `least` the exponent of the least
 * normal number, and saturate at `largest`. Infinity and NaN pass. */
CK_MATH float ck_round_small(float x, int bits, int least, float largest)
{
    CK_AS_WRITTEN
    const float a = ck_abs(x);
    if(!(a < __builtin_inff()))
        return x;
    const float c = a > largest ? largest : a;
    const int e   = (__builtin_bit_cast(int, c) >> 23) - 127;
    /* A number of 2^(23 - bits) times the magnitude: adding it rounds the sum to the quantum. */
    const float large = __builtin_bit_cast(float, ((e < least ? least : e) + 150 - bits) << 23);
    return ck_copysign((c + large) - large, x);
}
/* NaN for an infinity, for types that have none. */
CK_MATH float ck_no_inf(float x) { return ck_abs(x) < __builtin_inff() ? x : __builtin_nanf(""); }
CK_MATH float ck_round_fp8(float x) { return ck_no_inf(ck_round_small(x, 3, -6, 448.0f)); }
CK_MATH float ck_round_bf8(float x) { return ck_round_small(x, 2, -14, 57344.0f); }
/* Adding 0 leaves one zero. */
CK_MATH float ck_round_fp8_fnuz(float x)
{
    return ck_no_inf(ck_round_small(x, 3, -7, 240.0f)) + 0.0f;
}
CK_MATH float ck_round_bf8_fnuz(float x)
{
    return ck_no_inf(ck_round_small(x, 2, -15, 57344.0f)) + 0.0f;
}

/* 2^n * x for -252 <= n <= 254, in two steps so that neither factor overflows. */
CK_MATH float ck_scale(float x, int n)
{
    const int half = n >> 1;
    const float a  = __builtin_bit_cast(float, (half + 127) << 23);
    const float b  = __builtin_bit_cast(float, (n - half + 127) << 23);
    return x * a * b;
}

CK_MATH float ck_tanh(float x)
{
    const float a = ck_abs(x);
    const float t = x * x;
    float p       = -0.0057170326f;
    p             = ck_fma(p, t, 0.020650575f);
    p             = ck_fma(p, t, -0.053743493f);
    p             = ck_fma(p, t, 0.13331491f);
    p             = ck_fma(p, t, -0.33333284f);
    const float small = ck_fma(p * t, a, a);
    /* exp(2a) = 2^(2a / ln 2). What is subtracted from 1 is below 0.45, so errors of a unit in its
     * last place are halves of one in the result's. Beyond 44 the power overflows to infinity, whose
     * reciprocal is the right 0. */
    const float large = ck_fma(-2.0f, ck_near_rcp(ck_near_exp2(a * 2.88539004f) + 1.0f), 1.0f);
    return ck_copysign(a < 0.625f ? small : large, x);
}

CK_MATH float ck_erf(float x)
{
    const float a = ck_abs(x);
    const float t = x * x;
    float p       = 8.397798e-05f;
    p             = ck_fma(p, t, -0.00081498065f);
    p             = ck_fma(p, t, 0.005201716f);
    p             = ck_fma(p, t, -0.026859703f);
    p             = ck_fma(p, t, 0.11283702f);
    p             = ck_fma(p, t, -0.37612635f);
    p             = ck_fma(p, t, 0.12837917f);
    /* erf(4) rounds to 1; a NaN passes the comparison unchanged. */
    const float c = a > 4.0f ? 4.0f : a;
    float q       = -5.0286263e-07f;
    q             = ck_fma(q, c, -1.4577766e-05f);
    q             = ck_fma(q, c, 0.00039830373f);
    q             = ck_fma(q, c, -0.0040588477f);
    q             = ck_fma(q, c, 0.024906265f);
    q             = ck_fma(q, c, -0.10802614f);
    q             = ck_fma(q, c, -0.63353235f);
    q             = ck_fma(q, c, -1.129439f);
    q             = ck_fma(q, c, 0.0001613286f);
    return a < 0.921875f ? ck_fma(p, x, x) : ck_copysign(1.0f - ck_exp(q), x);
}

CK_MATH float ck_expm1(float x)
{
    CK_AS_WRITTEN
    /* x = n ln 2 + r, |r| <= ln 2 / 2; ln 2 in two parts. */
    const float n = ck_rint(x * 1.44269504f);
    const float r = ck_fma(n, 1.90465430e-9f, ck_fma(n, -0.693147182f, x));
    float p       = 0.0001984588f;
    p             = ck_fma(p, r, 0.0013940656f);
    p             = ck_fma(p, r, 0.00833339f);
    p             = ck_fma(p, r, 0.041666362f);
    p             = ck_fma(p, r, 0.16666666f);
    p             = ck_fma(p, r, 0.5f);
    p             = ck_fma(p * r, r, r);
    const float s = __builtin_bit_cast(float, ((int)(x > -18.0f && x < 80.0f ? n : 0.0f) + 127) << 23);
    const float y = x == 0.0f ? x : ck_fma(s, p, s - 1.0f);
    return x >= 80.0f ? ck_exp(x) : x <= -18.0f ? -1.0f : y;
}

CK_MATH float ck_log1p(float x)
{
    CK_AS_WRITTEN
    /* u = 1 + x rounded, c what the rounding lost; u = 2^k m with m in [0.707, 1.414). */
    const float u  = 1.0f + x;
    const float c  = x < 1.0f ? x - (u - 1.0f) : 1.0f - (u - x);
    const int bits = __builtin_bit_cast(int, u);
    const int k    = (bits - 0x3f3504f3) >> 23;
    const float m  = __builtin_bit_cast(float, bits - (k << 23));
    const float f  = k == 0 ? x : m - 1.0f;
    const float e  = k == 0 ? 0.0f : c / u;
    const float kf = (float)k;
    float p        = 0.06746608f;
    p              = ck_fma(p, f, -0.11675653f);
    p              = ck_fma(p, f, 0.118881784f);
    p              = ck_fma(p, f, -0.1240559f);
    p              = ck_fma(p, f, 0.14219551f);
    p              = ck_fma(p, f, -0.16667996f);
    p              = ck_fma(p, f, 0.20002119f);
    p              = ck_fma(p, f, -0.2500001f);
    p              = ck_fma(p, f, 0.33333313f);
    const float h  = 0.5f * f * f;
    const float t  = ck_fma(kf, 9.05800061e-6f, ck_fma(p * f, f * f, e));
    const float y  = ck_fma(kf, 0.693138123f, f - (h - t));
    if(x > -1.0f)
        return x == 0.0f || x == __builtin_inff() ? x : y;
    return x == -1.0f ? -__builtin_inff() : __builtin_nanf("");
}

/* |x|^y for finite positive |x| by 2^(y log2 |x|), the logarithm in two floats. */
CK_MATH float ck_pow_positive(float x, float y)
{
    CK_AS_WRITTEN
    const bool tiny = x < 1.17549435e-38f;
    const int bits  = __builtin_bit_cast(int, tiny ? x * 8388608.0f : x);
    const int k     = (bits - 0x3f3504f3) >> 23;
    const float m   = __builtin_bit_cast(float, bits - (k << 23));
    const float kf  = (float)(tiny ? k - 23 : k);
    /* s = (m - 1) / (m + 1) = s + t to twice the precision; log m = 2 atanh s. */
    const float n  = m - 1.0f;
    const float d  = m + 1.0f;
    const float dl = m - (d - 1.0f);
    const float s  = n / d;
    const float t  = ck_fma(-s, dl, ck_fma(-s, d, n)) / d;
    /* u = s^2 and v = s u in two floats each; log m / 2 = s + v (1/3 + u P(u)). */
    const float u  = s * s;
    const float ul = ck_fma(s, s, -u) + 2.0f * s * t;
    const float v  = s * u;
    const float vl = ck_fma(s, u, -v) + s * ul + t * u;
    float p        = 0.11792129f;
    p              = ck_fma(p, u, 0.14268602f);
    p              = ck_fma(p, u, 0.20000169f);
    p              = p * u;
    const float w  = v * 0.333333343f;
    const float wl = ck_fma(v, 0.333333343f, -w) + (vl * 0.333333343f + v * (p - 9.93410776e-9f));
    const float a  = s + w;
    const float al = (s - a) + w + (wl + t);
    /* times 2 / ln 2, plus k */
    const float b  = a * 2.88539004f;
    const float bl = ck_fma(a, 2.88539004f, -b) + (al * 2.88539004f + a * 3.85196257e-8f);
    const float g  = kf + b;
    const float gl = (ck_abs(kf) >= ck_abs(b) ? (kf - g) + b : (b - g) + kf) + bl;
    /* times y; beyond 2^300 every result is an overflow or an underflow anyway */
    const float yc = y > 1.0e30f ? 1.0e30f : y < -1.0e30f ? -1.0e30f : y;
    const float h  = yc * g;
    const float hl = ck_fma(yc, g, -h) + yc * gl;
    const float hc = h > 200.0f ? 200.0f : h < -200.0f ? -200.0f : h;
    const float e  = ck_rint(hc);
    const float r  = h == hc ? (hc - e) + hl : 0.0f;
    float q        = 0.00015476045f;
    q              = ck_fma(q, r, 0.0013400418f);
    q              = ck_fma(q, r, 0.009618005f);
    q              = ck_fma(q, r, 0.055503275f);
    q              = ck_fma(q, r, 0.2402265f);
    q              = ck_fma(q, r, 0.6931472f);
    return ck_scale(ck_fma(q, r, 1.0f), (int)e);
}

CK_MATH float ck_pow(float x, float y)
{
    const float infinity = __builtin_inff();
    const float a        = ck_abs(x);
    const float ya       = ck_abs(y);
    /* Floats from 2^24 on are even integers. */
    const bool integer = ya >= 16777216.0f || ck_floor(y) == y;
    const bool odd     = integer && ya < 16777216.0f && ((int)(ya < 16777216.0f ? ya : 0.0f) & 1);
    const float sign   = odd ? x : 1.0f;
    const bool to_zero = (a < 1.0f) == (y > 0.0f); /* the limit as |y| grows */

    float result = ck_pow_positive(a, y);
    if(a == 0.0f || a == infinity)
        result = (a == 0.0f) == (y > 0.0f) ? 0.0f : infinity;
    else if(ya == infinity)
        result = a == 1.0f ? 1.0f : to_zero ? 0.0f : infinity;
    result = ck_copysign(result, sign);
    if(x < 0.0f && !integer && a != infinity)
        result = __builtin_nanf("");
    if(x != x || y != y)
        result = x + y;
    return x == 1.0f || y == 0.0f ? 1.0f : result;
}
