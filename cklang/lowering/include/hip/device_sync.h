// SPDX-License-Identifier: MIT
// Barriers, fences and lane exchange.
#pragma once

#include <cstdint>
#include <hip/attributes.h>

__device__ __forceinline__ void __syncthreads()
{
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

__device__ __forceinline__ void __threadfence_block()
{
    __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup");
}
__device__ __forceinline__ void __threadfence()
{
    __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent");
}
__device__ __forceinline__ void __threadfence_system() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, ""); }

__device__ __forceinline__ unsigned int __lane_id()
{
    const unsigned int low = __builtin_amdgcn_mbcnt_lo(~0u, 0u);
    return __builtin_amdgcn_wavefrontsize() == 32 ? low : __builtin_amdgcn_mbcnt_hi(~0u, low);
}

namespace cklang_hip {

// A value of any size moves between lanes one 32-bit word at a time.
template <typename T>
__device__ __forceinline__ T from_lane(T value, int lane)
{
    constexpr int words = (sizeof(T) + 3) / 4;
    union Words
    {
        T value;
        int word[words];
    } moved{};
    moved.value = value;
    for(int i = 0; i < words; ++i)
        moved.word[i] = __builtin_amdgcn_ds_bpermute(lane * 4, moved.word[i]);
    return moved.value;
}

} // namespace cklang_hip

template <typename T>
__device__ __forceinline__ T __shfl(T value, int source, int width = __builtin_amdgcn_wavefrontsize())
{
    const int self = __lane_id();
    return cklang_hip::from_lane(value, (self & ~(width - 1)) + (source & (width - 1)));
}

template <typename T>
__device__ __forceinline__ T
__shfl_up(T value, unsigned int delta, int width = __builtin_amdgcn_wavefrontsize())
{
    const int self   = __lane_id();
    const int source = self - static_cast<int>(delta);
    return cklang_hip::from_lane(value, source < (self & ~(width - 1)) ? self : source);
}

template <typename T>
__device__ __forceinline__ T
__shfl_down(T value, unsigned int delta, int width = __builtin_amdgcn_wavefrontsize())
{
    const int self = __lane_id();
    const bool out = (self & (width - 1)) + static_cast<int>(delta) >= width;
    return cklang_hip::from_lane(value, out ? self : self + static_cast<int>(delta));
}

template <typename T>
__device__ __forceinline__ T
__shfl_xor(T value, int mask, int width = __builtin_amdgcn_wavefrontsize())
{
    const int self   = __lane_id();
    const int source = self ^ mask;
    return cklang_hip::from_lane(value, source >= ((self + width) & ~(width - 1)) ? self : source);
}

__device__ __forceinline__ uint64_t __ballot(int predicate)
{
#if defined(__GFX11__) || defined(__GFX12__)
    return __builtin_amdgcn_ballot_w32(predicate != 0);
#else
    return __builtin_amdgcn_ballot_w64(predicate != 0);
#endif
}
__device__ __forceinline__ int __any(int predicate) { return __ballot(predicate) != 0; }
__device__ __forceinline__ int __all(int predicate) { return __ballot(predicate == 0) == 0; }
