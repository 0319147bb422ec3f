// SPDX-License-Identifier: MIT
// Integer functions, bit fields, clocks and read-only loads.
#pragma once

#include <hip/attributes.h>

#define CKLANG_DEVICE_FN static __device__ __forceinline__

// The absolute difference added to z; averages, rounded down and up.
CKLANG_DEVICE_FN unsigned int __sad(int x, int y, unsigned int z)
{
    const unsigned int a = static_cast<unsigned int>(x), b = static_cast<unsigned int>(y);
    return (x > y ? a - b : b - a) + z;
}
CKLANG_DEVICE_FN unsigned int __usad(unsigned int x, unsigned int y, unsigned int z)
{
    return (x > y ? x - y : y - x) + z;
}
CKLANG_DEVICE_FN int __hadd(int x, int y) { return (x & y) + ((x ^ y) >> 1); }
CKLANG_DEVICE_FN int __rhadd(int x, int y) { return (x | y) - ((x ^ y) >> 1); }
CKLANG_DEVICE_FN unsigned int __uhadd(unsigned int x, unsigned int y) { return (x & y) + ((x ^ y) >> 1); }
CKLANG_DEVICE_FN unsigned int __urhadd(unsigned int x, unsigned int y)
{
    return (x | y) - ((x ^ y) >> 1);
}

// `width` bits of x from `offset` on; a field that reaches beyond the word ends with it.
CKLANG_DEVICE_FN unsigned int
__bitextract_u32(unsigned int x, unsigned int offset, unsigned int width)
{
    offset &= 31;
    width &= 31;
    return width == 0 ? 0 : x << (offset + width > 32 ? 0 : 32 - offset - width) >>
                                (offset + width > 32 ? offset : 32 - width);
}
CKLANG_DEVICE_FN unsigned long long
__bitextract_u64(unsigned long long x, unsigned int offset, unsigned int width)
{
    offset &= 63;
    width &= 63;
    return width == 0 ? 0 : x << (offset + width > 64 ? 0 : 64 - offset - width) >>
                                (offset + width > 64 ? offset : 64 - width);
}
CKLANG_DEVICE_FN unsigned int
__bitinsert_u32(unsigned int x, unsigned int field, unsigned int offset, unsigned int width)
{
    const unsigned int mask = ((1u << (width & 31)) - 1) << (offset & 31);
    return (x & ~mask) | (field << (offset & 31) & mask);
}
CKLANG_DEVICE_FN unsigned long long __bitinsert_u64(unsigned long long x,
                                                    unsigned long long field,
                                                    unsigned int offset,
                                                    unsigned int width)
{
    const unsigned long long mask = ((1ull << (width & 63)) - 1) << (offset & 63);
    return (x & ~mask) | (field << (offset & 63) & mask);
}
CKLANG_DEVICE_FN unsigned int __lastbit_u32_u32(unsigned int x) { return x ? __builtin_ctz(x) : ~0u; }
CKLANG_DEVICE_FN unsigned int __lastbit_u32_u64(unsigned long long x)
{
    return x ? __builtin_ctzll(x) : ~0u;
}
// Shifts of the 64-bit word high:low by at most 32.
CKLANG_DEVICE_FN unsigned int
__funnelshift_lc(unsigned int low, unsigned int high, unsigned int shift)
{
    const unsigned long long word = static_cast<unsigned long long>(high) << 32 | low;
    return static_cast<unsigned int>(word << (shift < 32 ? shift : 32) >> 32);
}
CKLANG_DEVICE_FN unsigned int
__funnelshift_rc(unsigned int low, unsigned int high, unsigned int shift)
{
    const unsigned long long word = static_cast<unsigned long long>(high) << 32 | low;
    return static_cast<unsigned int>(word >> (shift < 32 ? shift : 32));
}

CKLANG_DEVICE_FN long long clock() { return clock64(); }
CKLANG_DEVICE_FN long long __clock() { return clock64(); }

template <typename T>
__device__ __forceinline__ T __ldg(const T* from)
{
    return *from;
}
