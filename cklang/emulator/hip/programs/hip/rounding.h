// SPDX-License-Identifier: MIT
// The four directions of rounding, for conversions between integers and floats of 16 to 64 bits.
#pragma once

#include <hip/attributes.h>

namespace cklang_hip {

enum class Toward
{
    Nearest,
    Zero,
    Up,
    Down,
};

template <int bytes>
struct BitsOf;
template <>
struct BitsOf<2>
{
    using type = unsigned short;
};
template <>
struct BitsOf<4>
{
    using type = unsigned int;
};
template <>
struct BitsOf<8>
{
    using type = unsigned long long;
};

/// The neighbour of a float: the next one down, or up.
template <typename T>
__host__ __device__ inline T neighbour(T x, bool down)
{
    using Bits          = typename BitsOf<sizeof(T)>::type;
    constexpr Bits sign = Bits{1} << (8 * sizeof(T) - 1);
    Bits code           = __builtin_bit_cast(Bits, x);
    // Codes of one sign are in the order of magnitude; the neighbour of zero is the least denormal.
    if((code & static_cast<Bits>(~sign)) == 0)
        code = down ? sign | 1 : 1;
    else
        code += ((code & sign) != 0) == down ? 1 : -1;
    return __builtin_bit_cast(T, code);
}

/// `nearest`, or its neighbour: `above` says whether it is greater than the exact value, which is not it.
template <Toward direction, typename T>
__host__ __device__ inline T directed(T nearest, bool above, bool positive)
{
    if(direction == Toward::Nearest)
        return nearest;
    const bool lower = direction == Toward::Down || (direction == Toward::Zero && positive);
    return above == lower ? neighbour(nearest, lower) : nearest;
}

/// The number of type T next to `nearest` on the side of `x` that the direction asks for.
template <Toward direction, typename T>
__host__ __device__ inline T stepped(T nearest, double x)
{
    const double value = static_cast<double>(nearest);
    if(value == x || x != x)
        return nearest;
    return directed<direction>(nearest, value > x, x > 0);
}

template <Toward direction, typename T>
__host__ __device__ inline T rounded(double x)
{
    return stepped<direction>(static_cast<T>(x), x);
}

/// A 64-bit integer with at most 53 significant bits that every format of at most 32 bits rounds as it
/// rounds `x`.
template <typename Integer>
__host__ __device__ inline double sticky(Integer x)
{
    const bool negative     = x < 0;
    unsigned long long size = negative ? 0ull - static_cast<unsigned long long>(x) : x;
    if(size >> 40)
        size = (size & ~0xffffull) | ((size & 0xffff) ? 0x8000 : 0);
    const double value = static_cast<double>(size);
    return negative ? -value : value;
}

/// A 64-bit integer as a double.
template <Toward direction, typename Integer>
__host__ __device__ inline double double_of(Integer x)
{
    const double nearest = static_cast<double>(x);
    // 2^63 and 2^64, which no integer reaches, are above.
    constexpr double limit = Integer(-1) < Integer(0) ? 0x1p63 : 0x1p64;
    if(nearest < limit && static_cast<Integer>(nearest) == x)
        return nearest;
    return directed<direction>(nearest, nearest >= limit || static_cast<Integer>(nearest) > x, x > 0);
}

template <Toward direction>
__host__ __device__ inline double integral(double x)
{
    switch(direction)
    {
    case Toward::Nearest: return __builtin_elementwise_roundeven(x);
    case Toward::Zero: return __builtin_elementwise_trunc(x);
    case Toward::Up: return __builtin_elementwise_ceil(x);
    default: return __builtin_elementwise_floor(x);
    }
}

/// The integer next to `x` in a direction; what lies outside of the type's range becomes its limit, NaN 0.
template <Toward direction, typename Integer>
__host__ __device__ inline Integer to_integer(double x)
{
    constexpr bool is_signed = Integer(-1) < Integer(0);
    constexpr int bits       = 8 * sizeof(Integer) - (is_signed ? 1 : 0);
    constexpr double limit   = 2.0 * static_cast<double>(1ull << (bits - 1));
    constexpr Integer most   = static_cast<Integer>(~0ull >> (64 - bits));
    const double whole       = integral<direction>(x);
    if(whole != whole)
        return 0;
    if(whole >= limit)
        return most;
    if(whole <= (is_signed ? -limit : 0.0))
        return is_signed ? static_cast<Integer>(-most - 1) : Integer(0);
    return static_cast<Integer>(whole);
}

} // namespace cklang_hip
