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

// A barrier that also counts, or combines, what the threads of the block say.
__device__ __forceinline__ int __syncthreads_count(int predicate)
{
    __shared__ int count;
    if(__builtin_amdgcn_workitem_id_x() + __builtin_amdgcn_workitem_id_y() +
           __builtin_amdgcn_workitem_id_z() ==
       0)
        count = 0;
    __syncthreads();
    if(predicate)
        __hip_atomic_fetch_add(&count, 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
    __syncthreads();
    const int result = count;
    __syncthreads();
    return result;
}
__device__ __forceinline__ int __syncthreads_or(int predicate)
{
    return __syncthreads_count(predicate) != 0;
}
__device__ __forceinline__ int __syncthreads_and(int predicate)
{
    return __syncthreads_count(!predicate) == 0;
}

// Waves run in lockstep: what is left of a barrier over one is the order of memory accesses.
__device__ __forceinline__ void __syncwarp(uint64_t = ~0ull)
{
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
    __builtin_amdgcn_wave_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}
__device__ __forceinline__ uint64_t __activemask() { return __ballot(1); }

// The forms with a mask of lanes. Lanes that are not running give and take nothing, so the mask
// changes no result of a program that keeps its promise.
template <typename T>
__device__ __forceinline__ T
__shfl_sync(uint64_t, T value, int source, int width = __builtin_amdgcn_wavefrontsize())
{
    return __shfl(value, source, width);
}
template <typename T>
__device__ __forceinline__ T
__shfl_up_sync(uint64_t, T value, unsigned int delta, int width = __builtin_amdgcn_wavefrontsize())
{
    return __shfl_up(value, delta, width);
}
template <typename T>
__device__ __forceinline__ T __shfl_down_sync(
    uint64_t, T value, unsigned int delta, int width = __builtin_amdgcn_wavefrontsize())
{
    return __shfl_down(value, delta, width);
}
template <typename T>
__device__ __forceinline__ T
__shfl_xor_sync(uint64_t, T value, int mask, int width = __builtin_amdgcn_wavefrontsize())
{
    return __shfl_xor(value, mask, width);
}
__device__ __forceinline__ uint64_t __ballot_sync(uint64_t lanes, int predicate)
{
    return __ballot(predicate) & lanes;
}
__device__ __forceinline__ int __any_sync(uint64_t lanes, int predicate)
{
    return __ballot_sync(lanes, predicate) != 0;
}
__device__ __forceinline__ int __all_sync(uint64_t lanes, int predicate)
{
    return (__ballot(predicate == 0) & lanes) == 0;
}
