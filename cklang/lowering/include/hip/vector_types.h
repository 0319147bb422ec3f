// SPDX-License-Identifier: MIT
// dim3 and the small vector structs of HIP.
#pragma once

#include <cstdint>
#include <hip/attributes.h>

struct dim3
{
    uint32_t x, y, z;
    __host__ __device__ constexpr dim3(uint32_t x_ = 1, uint32_t y_ = 1, uint32_t z_ = 1)
        : x(x_), y(y_), z(z_)
    {
    }
};

#define CKLANG_VECTORS(type, name)                                                          \
    struct name##1 { type x; };                                                             \
    struct alignas(2 * sizeof(type)) name##2 { type x, y; };                                \
    struct name##3 { type x, y, z; };                                                       \
    struct alignas(4 * sizeof(type) > 16 ? 16 : 4 * sizeof(type)) name##4 { type x, y, z, w; }; \
    __host__ __device__ constexpr name##1 make_##name##1(type x) { return {x}; }            \
    __host__ __device__ constexpr name##2 make_##name##2(type x, type y) { return {x, y}; } \
    __host__ __device__ constexpr name##3 make_##name##3(type x, type y, type z)            \
    {                                                                                       \
        return {x, y, z};                                                                   \
    }                                                                                       \
    __host__ __device__ constexpr name##4 make_##name##4(type x, type y, type z, type w)    \
    {                                                                                       \
        return {x, y, z, w};                                                                \
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
CKLANG_VECTORS(float, float)
CKLANG_VECTORS(double, double)

#undef CKLANG_VECTORS
