// SPDX-License-Identifier: MIT
// Bit casts, bit counts, wide multiplies, and the plain C functions device code may call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <hip/attributes.h>

#define CKLANG_DEVICE static __device__ __forceinline__

CKLANG_DEVICE int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
CKLANG_DEVICE unsigned int __float_as_uint(float x) { return __builtin_bit_cast(unsigned int, x); }
CKLANG_DEVICE float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
CKLANG_DEVICE float __uint_as_float(unsigned int x) { return __builtin_bit_cast(float, x); }
CKLANG_DEVICE long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }
CKLANG_DEVICE double __longlong_as_double(long long x) { return __builtin_bit_cast(double, x); }

CKLANG_DEVICE int __clz(int x) { return x ? __builtin_clz(static_cast<unsigned int>(x)) : 32; }
CKLANG_DEVICE int __clzll(long long x)
{
    return x ? __builtin_clzll(static_cast<unsigned long long>(x)) : 64;
}
CKLANG_DEVICE int __ffs(int x) { return __builtin_ffs(x); }
CKLANG_DEVICE int __ffsll(long long x) { return __builtin_ffsll(x); }
CKLANG_DEVICE int __popc(unsigned int x) { return __builtin_popcount(x); }
CKLANG_DEVICE int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
CKLANG_DEVICE unsigned int __brev(unsigned int x) { return __builtin_bitreverse32(x); }

CKLANG_DEVICE unsigned int __umulhi(unsigned int x, unsigned int y)
{
    return static_cast<unsigned int>((static_cast<uint64_t>(x) * y) >> 32);
}
CKLANG_DEVICE int __mulhi(int x, int y)
{
    return static_cast<int>((static_cast<int64_t>(x) * y) >> 32);
}
CKLANG_DEVICE unsigned long long __umul64hi(unsigned long long x, unsigned long long y)
{
    return static_cast<unsigned long long>((static_cast<unsigned __int128>(x) * y) >> 64);
}

CKLANG_DEVICE void* memcpy(void* to, const void* from, size_t bytes)
{
    return __builtin_memcpy(to, from, bytes);
}
CKLANG_DEVICE void* memset(void* to, int value, size_t bytes)
{
    return __builtin_memset(to, value, bytes);
}

// Declared for the debugging code in CK Tile's headers. A kernel that prints fails to link.
extern "C" __device__ int printf(const char* format, ...);
