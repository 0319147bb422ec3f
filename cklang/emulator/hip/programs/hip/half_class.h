// SPDX-License-Identifier: MIT
// The classes __half and __hip_bfloat16: a 16-bit float that converts from and to every number.
#pragma once

#include <hip/attributes.h>

namespace cklang_hip {

template <bool>
struct Only
{
};
template <>
struct Only<true>
{
    using type = int;
};
/// Exists for the types of the language that are numbers.
template <typename T>
using IfNumber = typename Only<__is_arithmetic(T)>::type;

/// A number as a 16-bit float, rounded once: what is no wider than float passes through it.
template <typename Storage, typename T>
__host__ __device__ constexpr Storage narrowed(T x)
{
    if constexpr(__is_floating_point(T) && sizeof(T) <= sizeof(float))
        return static_cast<Storage>(static_cast<float>(x));
    else
        return static_cast<Storage>(x);
}

/// Number is the class itself, Raw its code as a struct, Storage the compiler's type. Arithmetic with
/// another type of number is that of Storage with it.
template <typename Number, typename Raw, typename Storage>
class Float16
{
  public:
    Float16() = default;
    __host__ __device__ constexpr Float16(const Raw& raw) : data(raw) {}
    __host__ __device__ constexpr Float16(Storage x) : data(x) {}
    template <typename T, IfNumber<T> = 0>
    __host__ __device__ constexpr Float16(T x) : data(narrowed<Storage>(x))
    {
    }

    __host__ __device__ constexpr operator Storage() const { return data; }
    __host__ __device__ operator Raw() const { return __builtin_bit_cast(Raw, data); }
    template <typename T, IfNumber<T> = 0>
    __host__ __device__ constexpr operator T() const
    {
        return static_cast<T>(static_cast<float>(data));
    }

    friend __host__ __device__ constexpr Number operator+(const Number& x) { return x; }
    friend __host__ __device__ constexpr Number operator-(const Number& x) { return Number(-x.data); }
    friend __host__ __device__ constexpr bool operator!(const Number& x) { return !x.data; }

#define CKLANG_ARITHMETIC(op)                                                                      \
    friend __host__ __device__ constexpr Number operator op(const Number& x, const Number& y)      \
    {                                                                                              \
        return Number(static_cast<Storage>(x.data op y.data));                                     \
    }                                                                                              \
    friend __host__ __device__ constexpr Number& operator op##=(Number& x, const Number& y)        \
    {                                                                                              \
        return x = x op y;                                                                         \
    }                                                                                              \
    CKLANG_MIXED(op)
#define CKLANG_COMPARISON(op)                                                                      \
    friend __host__ __device__ constexpr bool operator op(const Number& x, const Number& y)        \
    {                                                                                              \
        return x.data op y.data;                                                                   \
    }                                                                                              \
    CKLANG_MIXED(op)
#define CKLANG_MIXED(op)                                                                           \
    template <typename T, IfNumber<T> = 0>                                                         \
    friend __host__ __device__ constexpr auto operator op(const Number& x, T y)                    \
    {                                                                                              \
        return x.data op y;                                                                        \
    }                                                                                              \
    template <typename T, IfNumber<T> = 0>                                                         \
    friend __host__ __device__ constexpr auto operator op(T x, const Number& y)                    \
    {                                                                                              \
        return x op y.data;                                                                        \
    }
    CKLANG_ARITHMETIC(+)
    CKLANG_ARITHMETIC(-)
    CKLANG_ARITHMETIC(*)
    CKLANG_ARITHMETIC(/)
    CKLANG_COMPARISON(==)
    CKLANG_COMPARISON(!=)
    CKLANG_COMPARISON(<)
    CKLANG_COMPARISON(<=)
    CKLANG_COMPARISON(>)
    CKLANG_COMPARISON(>=)
#undef CKLANG_ARITHMETIC
#undef CKLANG_COMPARISON
#undef CKLANG_MIXED

    friend __host__ __device__ constexpr Number& operator++(Number& x) { return x += Number(1); }
    friend __host__ __device__ constexpr Number& operator--(Number& x) { return x -= Number(1); }
    friend __host__ __device__ constexpr Number operator++(Number& x, int)
    {
        const Number before = x;
        ++x;
        return before;
    }
    friend __host__ __device__ constexpr Number operator--(Number& x, int)
    {
        const Number before = x;
        --x;
        return before;
    }

  private:
    Storage data;
};

} // namespace cklang_hip

/// A class and its code, which is named Name##_raw. (Inherited constructors would have lines of their own.)
#define CKLANG_FLOAT16(Name, Storage)                                                              \
    struct Name : cklang_hip::Float16<Name, Name##_raw, Storage>                                   \
    {                                                                                              \
        Name() = default;                                                                          \
        __host__ __device__ constexpr Name(const Name##_raw& raw) : Float16(raw) {}                \
        __host__ __device__ constexpr Name(Storage x) : Float16(x) {}                              \
        template <typename T, cklang_hip::IfNumber<T> = 0>                                         \
        __host__ __device__ constexpr Name(T x) : Float16(x)                                       \
        {                                                                                          \
        }                                                                                          \
    };

/// The constructors of a pair, which converts from and to its code, Name##_raw.
#define CKLANG_FLOAT16_PAIR(Name, Element)                                                         \
    Name() = default;                                                                              \
    __host__ __device__ constexpr Name(const Element& low, const Element& high) : x(low), y(high) {} \
    __host__ __device__ constexpr Name(const Name##_raw& raw)                                      \
        : x(__builtin_bit_cast(Element##_raw, raw.x)), y(__builtin_bit_cast(Element##_raw, raw.y)) \
    {                                                                                              \
    }                                                                                              \
    __host__ __device__ operator Name##_raw() const                                                \
    {                                                                                              \
        return {__builtin_bit_cast(unsigned short, x), __builtin_bit_cast(unsigned short, y)};     \
    }
