// SPDX-License-Identifier: MIT
// dim3 and HIP's vectors for whole programs: fields, the compiler's vector of them, constructors and operators.
#pragma once

#include <cstdint>
#include <type_traits>

#include <hip/attributes.h>

CKLANG_BEGIN_LIBRARY

struct dim3
{
    uint32_t x, y, z;
    __host__ __device__ constexpr dim3(uint32_t x_ = 1, uint32_t y_ = 1, uint32_t z_ = 1)
        : x(x_), y(y_), z(z_)
    {
    }
};

namespace cklang_hip {

template <typename T, int Count>
struct Fields;
template <typename T>
struct Fields<T, 1>
{
    union
    {
        struct { T x; };
        T __attribute__((ext_vector_type(1))) data;
    };
    Fields() = default;
    __host__ __device__ constexpr Fields(T x_) : x(x_) {}
};
template <typename T>
struct Fields<T, 2>
{
    union
    {
        struct { T x, y; };
        T __attribute__((ext_vector_type(2))) data;
    };
    Fields() = default;
    __host__ __device__ constexpr Fields(T x_, T y_) : x(x_), y(y_) {}
};
template <typename T>
struct Fields<T, 3>
{
    union
    {
        struct { T x, y, z; };
        T data[3];
    };
    Fields() = default;
    __host__ __device__ constexpr Fields(T x_, T y_, T z_) : x(x_), y(y_), z(z_) {}
};
template <typename T>
struct Fields<T, 4>
{
    union
    {
        struct { T x, y, z, w; };
        T __attribute__((ext_vector_type(4))) data;
    };
    Fields() = default;
    __host__ __device__ constexpr Fields(T x_, T y_, T z_, T w_) : x(x_), y(y_), z(z_), w(w_) {}
};

/// Element type and count of a vector struct; nothing of any other type.
template <typename T>
struct Elements
{
};

template <typename Type, int Count>
struct ElementsOf
{
    using type                 = Type;
    static constexpr int count = Count;
};

template <typename V>
using Element = typename Elements<V>::type;

/// One result element from each element of `a` and the one of `b` beside it.
template <typename V, typename Operation>
__host__ __device__ constexpr V elementwise(const V& a, const V& b, Operation operation)
{
    V result{};
    result.x = static_cast<Element<V>>(operation(a.x, b.x));
    if constexpr(Elements<V>::count > 1)
        result.y = static_cast<Element<V>>(operation(a.y, b.y));
    if constexpr(Elements<V>::count > 2)
        result.z = static_cast<Element<V>>(operation(a.z, b.z));
    if constexpr(Elements<V>::count > 3)
        result.w = static_cast<Element<V>>(operation(a.w, b.w));
    return result;
}

template <typename V>
__host__ __device__ constexpr V filled(Element<V> value)
{
    V result{};
    return elementwise(result, result, [value](auto, auto) { return value; });
}

} // namespace cklang_hip

/// A number for each field, or one for all of them.
template <typename T, unsigned int Count>
struct HIP_vector_type : cklang_hip::Fields<T, Count>
{
    using value_type = T;

    HIP_vector_type() = default;
    template <typename... Numbers, std::enable_if_t<sizeof...(Numbers) == Count, int> = 0>
    __host__ __device__ constexpr HIP_vector_type(Numbers... numbers)
        : cklang_hip::Fields<T, Count>(static_cast<T>(numbers)...)
    {
    }
    template <typename Number, std::enable_if_t<(Count > 1) && std::is_convertible<Number, T>::value, int> = 0>
    __host__ __device__ constexpr explicit HIP_vector_type(Number number)
        : HIP_vector_type(cklang_hip::filled<HIP_vector_type>(static_cast<T>(number)))
    {
    }
};
template <typename T, unsigned int Count>
struct cklang_hip::Elements<HIP_vector_type<T, Count>> : cklang_hip::ElementsOf<T, Count>
{
};

#define CKLANG_VECTORS(type, name)                                                              \
    using name##1 = HIP_vector_type<type, 1>;                                                   \
    using name##2 = HIP_vector_type<type, 2>;                                                   \
    using name##3 = HIP_vector_type<type, 3>;                                                   \
    using name##4 = HIP_vector_type<type, 4>;                                                   \
    __host__ __device__ constexpr name##1 make_##name##1(type x) { return {x}; }                \
    __host__ __device__ constexpr name##2 make_##name##2(type x, type y) { return {x, y}; }     \
    __host__ __device__ constexpr name##3 make_##name##3(type x, type y, type z)                \
    {                                                                                           \
        return {x, y, z};                                                                       \
    }                                                                                           \
    __host__ __device__ constexpr name##4 make_##name##4(type x, type y, type z, type w)        \
    {                                                                                           \
        return {x, y, z, w};                                                                    \
    }

CKLANG_VECTORS(signed char, char)
CKLANG_VECTORS(unsigned char, uchar)
CKLANG_VECTORS(short, short)
CKLANG_VECTORS(unsigned short, ushort)
CKLANG_VECTORS(int, int)
CKLANG_VECTORS(unsigned int, uint)
CKLANG_VECTORS(long, long)
CKLANG_VECTORS(unsigned long, ulong)
CKLANG_VECTORS(long long, longlong)
CKLANG_VECTORS(unsigned long long, ulonglong)
CKLANG_VECTORS(float, float)
CKLANG_VECTORS(double, double)

#undef CKLANG_VECTORS

// Vector with vector, vector with number, number with vector, and the assignments.
#define CKLANG_OPERATOR(op)                                                                     \
    template <typename V, typename = cklang_hip::Element<V>>                                    \
    __host__ __device__ constexpr V operator op(const V& a, const V& b)                         \
    {                                                                                           \
        return cklang_hip::elementwise(a, b, [](auto x, auto y) { return x op y; });            \
    }                                                                                           \
    template <typename V>                                                                       \
    __host__ __device__ constexpr V operator op(const V& a, cklang_hip::Element<V> b)           \
    {                                                                                           \
        return a op cklang_hip::filled<V>(b);                                                   \
    }                                                                                           \
    template <typename V>                                                                       \
    __host__ __device__ constexpr V operator op(cklang_hip::Element<V> a, const V& b)           \
    {                                                                                           \
        return cklang_hip::filled<V>(a) op b;                                                   \
    }                                                                                           \
    template <typename V, typename = cklang_hip::Element<V>>                                    \
    __host__ __device__ constexpr V& operator op##=(V& a, const V& b)                           \
    {                                                                                           \
        return a = a op b;                                                                      \
    }                                                                                           \
    template <typename V>                                                                       \
    __host__ __device__ constexpr V& operator op##=(V& a, cklang_hip::Element<V> b)             \
    {                                                                                           \
        return a = a op b;                                                                      \
    }

CKLANG_OPERATOR(+)
CKLANG_OPERATOR(-)
CKLANG_OPERATOR(*)
CKLANG_OPERATOR(/)
CKLANG_OPERATOR(%)
CKLANG_OPERATOR(&)
CKLANG_OPERATOR(|)
CKLANG_OPERATOR(^)
CKLANG_OPERATOR(<<)
CKLANG_OPERATOR(>>)

#undef CKLANG_OPERATOR

#define CKLANG_STEP(op, by)                                                                     \
    template <typename V, typename = cklang_hip::Element<V>>                                    \
    __host__ __device__ constexpr V& operator op(V& a)                                          \
    {                                                                                           \
        return a = a by cklang_hip::filled<V>(1);                                               \
    }                                                                                           \
    template <typename V, typename = cklang_hip::Element<V>>                                    \
    __host__ __device__ constexpr V operator op(V& a, int)                                      \
    {                                                                                           \
        const V before = a;                                                                     \
        op a;                                                                                   \
        return before;                                                                          \
    }
CKLANG_STEP(++, +)
CKLANG_STEP(--, -)
#undef CKLANG_STEP

template <typename V, typename = cklang_hip::Element<V>>
__host__ __device__ constexpr V operator-(const V& a)
{
    return cklang_hip::elementwise(a, a, [](auto x, auto) { return -x; });
}
template <typename V, typename = cklang_hip::Element<V>>
__host__ __device__ constexpr V operator~(const V& a)
{
    return cklang_hip::elementwise(a, a, [](auto x, auto) { return ~x; });
}
template <typename V, typename = cklang_hip::Element<V>>
__host__ __device__ constexpr bool operator==(const V& a, const V& b)
{
    bool same = true;
    cklang_hip::elementwise(a, b, [&same](auto x, auto y) {
        same = same && x == y;
        return x;
    });
    return same;
}
template <typename V, typename = cklang_hip::Element<V>>
__host__ __device__ constexpr bool operator!=(const V& a, const V& b)
{
    return !(a == b);
}

CKLANG_END_LIBRARY
