// SPDX-License-Identifier: MIT
// Bit casts, bit counts, wide multiplies, clocks, and the plain C functions device code may call.
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
CKLANG_DEVICE int __double2hiint(double x)
{
    return static_cast<int>(__builtin_bit_cast(uint64_t, x) >> 32);
}
CKLANG_DEVICE int __double2loint(double x)
{
    return static_cast<int>(__builtin_bit_cast(uint64_t, x));
}
CKLANG_DEVICE double __hiloint2double(int high, int low)
{
    const uint64_t bits = static_cast<uint64_t>(static_cast<uint32_t>(high)) << 32;
    return __builtin_bit_cast(double, bits | static_cast<uint32_t>(low));
}

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
CKLANG_DEVICE unsigned long long __brevll(unsigned long long x)
{
    return __builtin_bitreverse64(x);
}

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
CKLANG_DEVICE long long __mul64hi(long long x, long long y)
{
    return static_cast<long long>((static_cast<__int128>(x) * y) >> 64);
}
CKLANG_DEVICE int __mul24(int x, int y) { return (x << 8 >> 8) * (y << 8 >> 8); }
CKLANG_DEVICE unsigned int __umul24(unsigned int x, unsigned int y)
{
    return (x & 0xffffff) * (y & 0xffffff);
}
CKLANG_DEVICE unsigned int __funnelshift_l(unsigned int low, unsigned int high, unsigned int shift)
{
    return static_cast<unsigned int>(
        (static_cast<uint64_t>(high) << 32 | low) << (shift & 31) >> 32);
}
CKLANG_DEVICE unsigned int __funnelshift_r(unsigned int low, unsigned int high, unsigned int shift)
{
    return static_cast<unsigned int>((static_cast<uint64_t>(high) << 32 | low) >> (shift & 31));
}
// Bytes of y:x, least significant first; each digit of the selector names one of the eight.
CKLANG_DEVICE unsigned int __byte_perm(unsigned int x, unsigned int y, unsigned int selector)
{
    unsigned int result = 0;
    for(int i = 0; i < 4; ++i)
    {
        const unsigned int digit = selector >> (4 * i) & 7;
        const unsigned int word  = digit < 4 ? x : y;
        result |= (word >> (8 * (digit & 3)) & 0xff) << (8 * i);
    }
    return result;
}

// Counters of the GPU: cycles of its clock, and ticks of one that runs at a constant rate.
CKLANG_DEVICE long long clock64() { return static_cast<long long>(__builtin_readcyclecounter()); }
CKLANG_DEVICE long long __clock64() { return clock64(); }
CKLANG_DEVICE long long wall_clock64()
{
    return static_cast<long long>(__builtin_readsteadycounter());
}
CKLANG_DEVICE void __trap() { __builtin_trap(); }
CKLANG_DEVICE void abort() { __builtin_trap(); }

CKLANG_DEVICE void* memcpy(void* to, const void* from, size_t bytes)
{
    return __builtin_memcpy(to, from, bytes);
}
CKLANG_DEVICE void* memmove(void* to, const void* from, size_t bytes)
{
    return __builtin_memmove(to, from, bytes);
}
CKLANG_DEVICE void* memset(void* to, int value, size_t bytes)
{
    return __builtin_memset(to, value, bytes);
}
// Objects at a given place: the one form of new that device code has.
inline __device__ void* operator new(size_t, void* place) noexcept { return place; }
inline __device__ void* operator new[](size_t, void* place) noexcept { return place; }
