/* SPDX-License-Identifier: MIT
 * Functions that clang calls in host code and that zig's run-time library does not have. Weak, so
 * that a run-time library which has them is taken instead.
 */
/* The upper half of a float, rounded to nearest even; a NaN stays one. */
static unsigned short upper_half(float x)
{
    unsigned int bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    if((bits & 0x7fffffffu) > 0x7f800000u)
        return (unsigned short)(bits >> 16 | 0x40u);
    return (unsigned short)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

static __bf16 from_bits(unsigned short bits)
{
    __bf16 result;
    __builtin_memcpy(&result, &bits, sizeof result);
    return result;
}

__attribute__((weak)) __bf16 __truncsfbf2(float x) { return from_bits(upper_half(x)); }

/* Rounding twice would be wrong near ties: the first step rounds to odd. */
__attribute__((weak)) __bf16 __truncdfbf2(double x)
{
    float nearest = (float)x;
    unsigned int bits;
    __builtin_memcpy(&bits, &nearest, sizeof bits);
    if((double)nearest != x && x == x && !(bits & 1u))
        bits += (((double)nearest < x) == !(bits >> 31)) ? 1u : -1u;
    __builtin_memcpy(&nearest, &bits, sizeof nearest);
    return from_bits(upper_half(nearest));
}
