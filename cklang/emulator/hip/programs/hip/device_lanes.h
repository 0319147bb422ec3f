// SPDX-License-Identifier: MIT
// What the lanes of a wave find out together: who has the same value, and sums over some of them.
#pragma once

#include <cstdint>
#include <type_traits>

#include <hip/device_sync.h>

// Masks of the lanes before and behind the caller's.
__device__ __forceinline__ uint64_t __lanemask_eq() { return 1ull << __lane_id(); }
__device__ __forceinline__ uint64_t __lanemask_lt() { return __lanemask_eq() - 1; }
__device__ __forceinline__ uint64_t __lanemask_le() { return __lanemask_lt() | __lanemask_eq(); }
__device__ __forceinline__ uint64_t __lanemask_gt()
{
    return ~__lanemask_le() & (~0ull >> (64 - __builtin_amdgcn_wavefrontsize()));
}
__device__ __forceinline__ uint64_t __lanemask_ge() { return __lanemask_gt() | __lanemask_eq(); }

namespace cklang_hip {

template <typename T>
__device__ __forceinline__ bool same_bits(T x, T y)
{
    bool same = true;
    for(unsigned n = 0; n < sizeof(T); ++n)
        same = same && reinterpret_cast<const char*>(&x)[n] == reinterpret_cast<const char*>(&y)[n];
    return same;
}

/// Calls `visit(lane, value of it)` for each lane of `lanes`; all of them must be running.
template <typename T, typename Visit>
__device__ __forceinline__ void each_lane(uint64_t lanes, T value, Visit visit)
{
    for(; lanes != 0; lanes &= lanes - 1)
    {
        const int lane = __builtin_ctzll(lanes);
        visit(lane, from_lane(value, lane));
    }
}

template <typename T, typename Join>
__device__ __forceinline__ T reduced(uint64_t lanes, T value, Join join)
{
    const int first = __builtin_ctzll(lanes);
    T result        = from_lane(value, first);
    each_lane(lanes & (lanes - 1), value, [&](int, T other) { result = join(result, other); });
    return result;
}

} // namespace cklang_hip

// The lanes of the mask whose value is the caller's.
template <typename T>
__device__ __forceinline__ uint64_t __match_any_sync(uint64_t lanes, T value)
{
    uint64_t same = 0;
    cklang_hip::each_lane(lanes, value, [&](int lane, T other) {
        same |= static_cast<uint64_t>(cklang_hip::same_bits(value, other)) << lane;
    });
    return same;
}
// All lanes of the mask if their values are the same, else none.
template <typename T>
__device__ __forceinline__ uint64_t __match_all_sync(uint64_t lanes, T value, int* all)
{
    const T first = cklang_hip::from_lane(value, __builtin_ctzll(lanes));
    *all          = (__ballot(!cklang_hip::same_bits(value, first)) & lanes) == 0;
    return *all ? lanes : 0;
}
template <typename T>
__device__ __forceinline__ uint64_t __match_any(T value)
{
    return __match_any_sync(__activemask(), value);
}
template <typename T>
__device__ __forceinline__ uint64_t __match_all(T value, int* all)
{
    return __match_all_sync(__activemask(), value, all);
}

#define CKLANG_REDUCE(name, expression)                                                    \
    template <typename T>                                                                  \
    __device__ __forceinline__ T __reduce_##name##_sync(uint64_t lanes, T value)           \
    {                                                                                      \
        return cklang_hip::reduced(lanes, value, [](T x, T y) -> T { return expression; }); \
    }
CKLANG_REDUCE(add, x + y)
CKLANG_REDUCE(min, x < y ? x : y)
CKLANG_REDUCE(max, x < y ? y : x)
CKLANG_REDUCE(and, x& y)
CKLANG_REDUCE(or, x | y)
CKLANG_REDUCE(xor, x ^ y)
#undef CKLANG_REDUCE

// The instructions behind lane exchange. The pattern of a swizzle is part of its instruction.
__device__ __forceinline__ int __hip_ds_bpermute(int index, int value)
{
    return __builtin_amdgcn_ds_bpermute(index, value);
}
__device__ __forceinline__ float __hip_ds_bpermutef(int index, float value)
{
    return __builtin_bit_cast(
        float, __builtin_amdgcn_ds_bpermute(index, __builtin_bit_cast(int, value)));
}
__device__ __forceinline__ int __hip_ds_permute(int index, int value)
{
    return __builtin_amdgcn_ds_permute(index, value);
}
template <int pattern>
__device__ __forceinline__ int __hip_ds_swizzle_N(int value)
{
    return __builtin_amdgcn_ds_swizzle(value, pattern);
}
template <int control, int rows, int banks, bool bound>
__device__ __forceinline__ int __hip_move_dpp_N(int value)
{
    return __builtin_amdgcn_mov_dpp(value, control, rows, banks, bound);
}
