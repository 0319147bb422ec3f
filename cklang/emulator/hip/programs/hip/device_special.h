// SPDX-License-Identifier: MIT
// Functions of ROCm's math library beyond those of C99's usual set: inverse error functions, the normal
// distribution, Bessel functions, norms, and what is left of C99. Double precision is computed first; the
// forms for float round it once. Relative errors of at most 1e-13, Bessel functions absolute ones.
#pragma once

#include <hip/device_math.h>

#define CKLANG_FN static __device__ __forceinline__
#define CKLANG_SPECIAL(name)                                                                  \
    CKLANG_FN float name##f(float x) { return static_cast<float>(name(static_cast<double>(x))); }

// C99.
CKLANG_FN long long llrint(double x) { return static_cast<long long>(__builtin_elementwise_roundeven(x)); }
CKLANG_FN long long llrintf(float x) { return static_cast<long long>(__builtin_elementwise_roundeven(x)); }
CKLANG_FN long long llround(double x) { return static_cast<long long>(__builtin_elementwise_round(x)); }
CKLANG_FN long long llroundf(float x) { return static_cast<long long>(__builtin_elementwise_round(x)); }
CKLANG_FN double scalbln(double x, long power)
{
    return __builtin_ldexp(x, static_cast<int>(power > 5000 ? 5000 : power < -5000 ? -5000 : power));
}
CKLANG_FN float scalblnf(float x, long power) { return static_cast<float>(scalbln(x, power)); }
CKLANG_FN double nan(const char*) { return __builtin_nan(""); }
CKLANG_FN float nanf(const char*) { return __builtin_nanf(""); }

namespace cklang_hip {

/// The next number after x towards y; Bits are those of T.
template <typename Bits, typename T>
__device__ __forceinline__ T next_after(T x, T y)
{
    constexpr Bits sign = Bits{1} << (8 * sizeof(T) - 1);
    if(x != x || y != y)
        return x + y;
    if(x == y)
        return y;
    if(x == 0)
        return __builtin_bit_cast(T, static_cast<Bits>((y < 0 ? sign : 0) | 1));
    const Bits code = __builtin_bit_cast(Bits, x);
    return __builtin_bit_cast(T, static_cast<Bits>((x < y) == (x > 0) ? code + 1 : code - 1));
}

/// The root of `value(t) = wanted` by Newton's method from a good guess; slope is the derivative.
template <typename Value, typename Slope>
__device__ __forceinline__ double newton(double t, double wanted, Value value, Slope slope)
{
    for(int step = 0; step < 4; ++step)
    {
        const double change = (value(t) - wanted) / slope(t);
        if(!(change == change))
            break;
        t -= change;
    }
    return t;
}

constexpr double two_over_root_pi = 1.1283791670955126, root_2 = 1.4142135623730951;

/// x with erfc(x) = y for small y: the leading terms of the asymptotic series, then Newton's method in the
/// logarithm, whose slope hardly changes.
__device__ inline double erfcinv_tail(double y)
{
    const double size = -ck64_log(y);
    double x          = __builtin_elementwise_sqrt(size);
    x = __builtin_elementwise_sqrt(size - ck64_log(x * 1.7724538509055159));
    for(int step = 0; step < 5; ++step)
    {
        const double tail = ck64_erfc(x);
        const double log_slope = -two_over_root_pi * ck64_exp(-x * x) / tail;
        x -= (ck64_log(tail) - ck64_log(y)) / log_slope;
    }
    return x;
}

/// Calls visit(k, J_k(x)) for all k from `most` and more down to 0: the backward recurrence is stable. A first
/// pass finds the scale, from the sum J_0 + 2 J_2 + 2 J_4 + ... = 1.
template <typename Visit>
__device__ inline void bessel_down(double x, int most, Visit visit)
{
    const int largest = static_cast<int>(x) > most ? static_cast<int>(x) : most;
    const int above   = (largest + (x < 1 ? 12 : 40)) / 2 * 2;
    double scale      = 1;
    for(int pass = 0; pass < 2; ++pass)
    {
        double next = 0, current = 1e-280 * scale, sum = 0;
        for(int n = above; n >= 0; --n)
        {
            if(pass == 1)
                visit(n, current);
            if(n % 2 == 0)
                sum += n == 0 ? current : 2 * current;
            const double before = 2.0 * n / x * current - next;
            next                = current;
            current             = before;
        }
        scale = 1 / sum;
    }
}

/// Hankel's asymptotic series for large x: the amplitudes P and Q of order n.
struct Hankel
{
    double p, q;
};
__device__ inline Hankel hankel(int order, double x)
{
    const double square = 4.0 * order * order;
    double term = 1, p = 1, q = 0;
    for(int k = 1; k < 40; ++k)
    {
        const double odd = 2.0 * k - 1, factor = (square - odd * odd) / (k * 8.0 * x);
        if(__builtin_fabs(factor) >= 1)
            break;
        term *= factor;
        const double signed_term = (k / 2) % 2 ? -term : term;
        (k % 2 ? q : p) += signed_term;
        if(__builtin_fabs(term) < 1e-17)
            break;
    }
    return {p, q};
}

constexpr double hankel_from = 30;

/// J (or Y) of order 0 or 1 for x >= hankel_from.
__device__ inline double bessel_far(int order, double x, bool second)
{
    const Hankel h = hankel(order, x);
    const double scale = __builtin_elementwise_sqrt(0.63661977236758134 / x) * 0.70710678118654752;
    // cos and sin of x - pi/4, or of x - 3 pi/4, without losing the difference.
    const double s = ck64_sin(x), c = ck64_cos(x);
    const double cosine = order == 0 ? c + s : s - c, sine = order == 0 ? s - c : -(s + c);
    return scale * (second ? h.p * sine + h.q * cosine : h.p * cosine - h.q * sine);
}

/// J_n for x > 0: by its power series where that loses few digits, else by the recurrence.
__device__ inline double bessel_j(int order, double x)
{
    const double quarter = x * x / 4;
    double result        = 0;
    if(quarter < order + 1)
    {
        double term = 1, sum = 1;
        for(int k = 1; k < 40; ++k)
            sum += term *= -quarter / (k * static_cast<double>(order + k));
        return sum * ck64_exp(order * ck64_log(x / 2) - ck64_lgamma(order + 1.0));
    }
    bessel_down(x, order, [&](int n, double value) { result = n == order ? value : result; });
    return result == result ? result : 0; // too small for double precision
}

/// Y_0 (or Y_1 from the derivative) for x < hankel_from, by Neumann's series over J_2k.
__device__ inline double bessel_y_near(int order, double x)
{
    double j0 = 0, j1 = 0, sum = 0, slope = 0;
    bessel_down(x, 1, [&](int n, double value) {
        if(n == 0)
            j0 = value;
        if(n == 1)
            j1 = value;
        const int k      = (n + 1) / 2;
        const double by  = k % 2 ? 1.0 : -1.0;
        if(n > 0 && n % 2 == 0)
            sum += by * value / k;
        // J_2k' = (J_2k-1 - J_2k+1) / 2.
        if(n % 2 == 1)
            slope += value / 2 * (by / k + (k > 1 ? by / (k - 1) : 0.0));
    });
    const double log = ck64_log(x / 2) + 0.57721566490153286;
    return order == 0 ? 0.63661977236758134 * (log * j0 + 2 * sum)
                      : 0.63661977236758134 * (log * j1 - j0 / x - 2 * slope);
}

} // namespace cklang_hip

CKLANG_FN double nextafter(double x, double y)
{
    return cklang_hip::next_after<unsigned long long>(x, y);
}
CKLANG_FN float nextafterf(float x, float y) { return cklang_hip::next_after<unsigned int>(x, y); }
CKLANG_FN float nextafter(float x, float y) { return nextafterf(x, y); }

CKLANG_FN double erfcinv(double y)
{
    if(y < 0 || y > 2 || y != y)
        return __builtin_nan("");
    if(y == 0 || y == 2)
        return y == 0 ? __builtin_inf() : -__builtin_inf();
    if(y < 0.3)
        return cklang_hip::erfcinv_tail(y);
    if(y > 1.7)
        return -cklang_hip::erfcinv_tail(2 - y);
    const double guess = (1 - y) / cklang_hip::two_over_root_pi;
    return cklang_hip::newton(
        guess * (1 + 0.3 * guess * guess), y, [](double t) { return ck64_erfc(t); },
        [](double t) { return -cklang_hip::two_over_root_pi * ck64_exp(-t * t); });
}
CKLANG_FN double erfinv(double y)
{
    if(y > 0.7 || y < -0.7 || y != y)
        return y < 0 ? -erfcinv(1 + y) : erfcinv(1 - y);
    const double guess = y / cklang_hip::two_over_root_pi;
    return y == 0 ? y
                  : cklang_hip::newton(
                        guess * (1 + 0.3 * guess * guess), y, [](double t) { return ck64_erf(t); },
                        [](double t) { return cklang_hip::two_over_root_pi * ck64_exp(-t * t); });
}
CKLANG_FN double erfcx(double x)
{
    if(x < 20)
        return ck64_exp(x * x) * ck64_erfc(x);
    double term = 1, sum = 1;
    for(int k = 1; k < 12; ++k)
        sum += term *= -(2.0 * k - 1) / (2 * x * x);
    return sum * 0.56418958354775629 / x;
}
CKLANG_FN double normcdf(double x) { return 0.5 * ck64_erfc(-x / cklang_hip::root_2); }
CKLANG_FN double normcdfinv(double p) { return -cklang_hip::root_2 * erfcinv(2 * p); }

CKLANG_FN double j0(double x)
{
    x = __builtin_fabs(x);
    if(x == __builtin_inf())
        return 0;
    if(x < 1e-8)
        return 1;
    return x < cklang_hip::hankel_from ? cklang_hip::bessel_j(0, x)
                                       : cklang_hip::bessel_far(0, x, false);
}
CKLANG_FN double j1(double x)
{
    const double size = __builtin_fabs(x);
    if(size == __builtin_inf())
        return 0;
    if(size < 1e-8)
        return x / 2;
    const double value = size < cklang_hip::hankel_from ? cklang_hip::bessel_j(1, size)
                                                        : cklang_hip::bessel_far(1, size, false);
    return x < 0 ? -value : value;
}
CKLANG_FN double y0(double x)
{
    if(x <= 0 || x != x)
        return x == 0 ? -__builtin_inf() : __builtin_nan("");
    if(x == __builtin_inf())
        return 0;
    return x < cklang_hip::hankel_from ? cklang_hip::bessel_y_near(0, x)
                                       : cklang_hip::bessel_far(0, x, true);
}
CKLANG_FN double y1(double x)
{
    if(x <= 0 || x != x)
        return x == 0 ? -__builtin_inf() : __builtin_nan("");
    if(x == __builtin_inf())
        return 0;
    return x < cklang_hip::hankel_from ? cklang_hip::bessel_y_near(1, x)
                                       : cklang_hip::bessel_far(1, x, true);
}
// Higher orders by the recurrence in the direction in which it is stable.
CKLANG_FN double jn(int order, double x)
{
    const int n           = order < 0 ? -order : order;
    const double size     = __builtin_fabs(x);
    const bool negative   = n % 2 == 1 && (order < 0) != (x < 0);
    if(n == 0)
        return j0(x);
    if(size == 0 || size == __builtin_inf())
        return 0;
    double before = j0(size), current = j1(size);
    if(size > n)
        for(int k = 1; k < n; ++k)
        {
            const double next = 2.0 * k / size * current - before;
            before            = current;
            current           = next;
        }
    else
        current = cklang_hip::bessel_j(n, size);
    return negative ? -current : current;
}
CKLANG_FN double yn(int order, double x)
{
    const int n = order < 0 ? -order : order;
    if(n == 0)
        return y0(x);
    double before = y0(x), current = y1(x);
    for(int k = 1; k < n && current != -__builtin_inf(); ++k)
    {
        const double next = 2.0 * k / x * current - before;
        before            = current;
        current           = next;
    }
    return order < 0 && n % 2 == 1 ? -current : current;
}
// Modified Bessel functions: all terms of their series are positive.
CKLANG_FN double cyl_bessel_i0(double x)
{
    const double quarter = x * x / 4;
    double term = 1, sum = 1;
    for(int k = 1; k < 1000 && term > sum * 1e-18; ++k)
        sum += term *= quarter / (static_cast<double>(k) * k);
    return sum;
}
CKLANG_FN double cyl_bessel_i1(double x)
{
    const double quarter = x * x / 4;
    double term = x / 2, sum = x / 2;
    for(int k = 1; k < 1000 && __builtin_fabs(term) > __builtin_fabs(sum) * 1e-18; ++k)
        sum += term *= quarter / (static_cast<double>(k) * (k + 1));
    return sum;
}

CKLANG_SPECIAL(erfinv)
CKLANG_SPECIAL(erfcinv)
CKLANG_SPECIAL(erfcx)
CKLANG_SPECIAL(normcdf)
CKLANG_SPECIAL(normcdfinv)
CKLANG_SPECIAL(j0)
CKLANG_SPECIAL(j1)
CKLANG_SPECIAL(y0)
CKLANG_SPECIAL(y1)
CKLANG_SPECIAL(cyl_bessel_i0)
CKLANG_SPECIAL(cyl_bessel_i1)
CKLANG_FN float jnf(int order, float x) { return static_cast<float>(jn(order, x)); }
CKLANG_FN float ynf(int order, float x) { return static_cast<float>(yn(order, x)); }

// Norms, which do not overflow before the result does.
CKLANG_FN double norm4d(double x, double y, double z, double w)
{
    return ck64_hypot(ck64_hypot(x, y), ck64_hypot(z, w));
}
CKLANG_FN double norm(int count, const double* x)
{
    double sum = 0;
    for(int n = 0; n < count; ++n)
        sum = ck64_hypot(sum, x[n]);
    return sum;
}
CKLANG_FN double rnorm(int count, const double* x) { return 1 / norm(count, x); }
CKLANG_FN double rhypot(double x, double y) { return 1 / ck64_hypot(x, y); }
CKLANG_FN double rnorm3d(double x, double y, double z) { return 1 / norm3d(x, y, z); }
CKLANG_FN double rnorm4d(double x, double y, double z, double w) { return 1 / norm4d(x, y, z, w); }
CKLANG_FN float normf(int count, const float* x)
{
    double sum = 0; // squares of floats do not overflow in double precision
    for(int n = 0; n < count; ++n)
        sum += static_cast<double>(x[n]) * x[n];
    return static_cast<float>(__builtin_elementwise_sqrt(sum));
}
CKLANG_FN float rnormf(int count, const float* x) { return 1 / normf(count, x); }
CKLANG_FN float rhypotf(float x, float y) { return static_cast<float>(rhypot(x, y)); }
CKLANG_FN float norm4df(float x, float y, float z, float w)
{
    return static_cast<float>(norm4d(x, y, z, w));
}
CKLANG_FN float rnorm3df(float x, float y, float z) { return static_cast<float>(rnorm3d(x, y, z)); }
CKLANG_FN float rnorm4df(float x, float y, float z, float w)
{
    return static_cast<float>(rnorm4d(x, y, z, w));
}

CKLANG_FN void sincospi(double x, double* s, double* c) { *s = sinpi(x), *c = cospi(x); }
CKLANG_FN void sincospif(float x, float* s, float* c) { *s = sinpif(x), *c = cospif(x); }
CKLANG_FN double remquo(double x, double y, int* quotient)
{
    const double rest = ck64_remainder(x, y);
    *quotient = static_cast<int>(fmod(__builtin_elementwise_roundeven((x - rest) / y), 128.0));
    return rest;
}
CKLANG_FN float remquof(float x, float y, int* quotient)
{
    return static_cast<float>(remquo(static_cast<double>(x), static_cast<double>(y), quotient));
}
CKLANG_FN float fdividef(float x, float y) { return x / y; }
CKLANG_FN double powi(double x, int power) { return ck64_pow(x, power); }
CKLANG_FN float powif(float x, int power) { return static_cast<float>(ck64_pow(x, power)); }
CKLANG_FN double __dsub_rn(double x, double y) { return x - y; }

#undef CKLANG_SPECIAL
#undef CKLANG_FN
