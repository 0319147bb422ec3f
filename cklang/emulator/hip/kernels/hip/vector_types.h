// SPDX-License-Identifier: MIT
// dim3 and the small vector structs of HIP, with arithmetic on their elements.
#pragma once

#include <cstdint>
#include <type_traits>

#include <hip/attributes.h>

struct dim3
{
    uint32_t x, y, z;
    __host__ __device__ constexpr dim3(uint32_t x_ = 1, uint32_t y_ = 1, uint32_t z_ = 1)
        : x(x_), y(y_), z(z_)
    {
    }
};

namespace cklang_hip {

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

#define CKLANG_VECTORS(type, name)                                                              \
    struct name##1 { type x; };                                                                 \
    struct alignas(2 * sizeof(type)) name##2 { type x, y; };                                    \
    struct name##3 { type x, y, z; };                                                           \
    struct alignas(4 * sizeof(type) > 16 ? 16 : 4 * sizeof(type)) name##4 { type x, y, z, w; }; \
    template <>                                                                                 \
    struct cklang_hip::Elements<name##1> : cklang_hip::ElementsOf<type, 1> {};                  \
    template <>                                                                                 \
    struct cklang_hip::Elements<name##2> : cklang_hip::ElementsOf<type, 2> {};                  \
    template <>                                                                                 \
    struct cklang_hip::Elements<name##3> : cklang_hip::ElementsOf<type, 3> {};                  \
    template <>                                                                                 \
    struct cklang_hip::Elements<name##4> : cklang_hip::ElementsOf<type, 4> {};                  \
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

template <typename V, typename = cklang_hip::Element<V>>
__host__ __device__ constexpr V operator-(const V& a)
{
    return cklang_hip::filled<V>(0) - a;
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
