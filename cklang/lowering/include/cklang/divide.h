/* SPDX-License-Identifier: MIT
 *
 * Quotients rounded down and their remainders, as Python and NumPy have them: the remainder has the
 * sign of the divisor. Tests: tests/lowering/test_integers.py, on a CPU with these very lines. */
#pragma once

#include <cklang/math.h>

/* The integer at or below x / y. 0 for a divisor of 0; the one quotient that is no int wraps. */
CK_MATH int ck_floor_divide_i32(int x, int y)
{
    if(y == 0)
        return 0;
    if(y == -1)
        return (int)(0u - (unsigned)x);
    return x / y - (x % y != 0 && (x < 0) != (y < 0));
}

/* x - (the integer at or below x / y) * y. 0 for a divisor of 0. */
CK_MATH int ck_mod_i32(int x, int y)
{
    if(y == 0 || y == -1)
        return 0;
    const int r = x % y;
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

/* The integer at or below x / y: exact below 2^22, then within four units of 2^-24. */
CK_MATH float ck_floor_divide(float x, float y)
{
    CK_AS_WRITTEN
    const float infinity = __builtin_inff();
    const float ratio    = x / y;
    if(y == 0.0f || ck_isnan(ratio))
        return ratio;
    if(ck_abs(x) == infinity)
        return __builtin_nanf("");
    if(ck_abs(y) == infinity)
        return x != 0.0f && (x < 0.0f) != (y < 0.0f) ? -1.0f : ratio;
    const float q = ck_floor(ratio);
    /* The rounded quotient may be an integer beside the exact one: signs of remainders tell. */
    const float r = ck_fma(-q, y, x);
    if(r != 0.0f && (r < 0.0f) != (y < 0.0f))
        return q - 1.0f;
    const float next = ck_fma(-(q + 1.0f), y, x);
    return next == 0.0f || (next < 0.0f) == (y < 0.0f) ? q + 1.0f : q;
}

/* x - (the integer at or below x / y) * y, rounded once. */
CK_MATH float ck_mod(float x, float y)
{
    CK_AS_WRITTEN
    const float b = ck_abs(y);
    float r       = ck_abs(x);
    if(!(r < __builtin_inff()) || !(b > 0.0f))
        return __builtin_nanf("");
    /* Long division by 22 bits a step: multiples of 2^22 keep every remainder exact. */
    float step = b;
    while(step * 0x1p22f <= r)
        step *= 0x1p22f;
    for(;;)
    {
        if(r >= step)
        {
            float q    = ck_floor(r / step);
            float left = ck_fma(-q, step, r);
            if(left < 0.0f)
                q -= 1.0f;
            else if(left >= step)
                q += 1.0f;
            r = ck_fma(-q, step, r);
        }
        if(step == b)
            break;
        step *= 0x1p-22f;
    }
    if(r == 0.0f)
        return ck_copysign(0.0f, y);
    r = x < 0.0f ? -r : r;
    return (r < 0.0f) != (y < 0.0f) ? r + y : r;
}
