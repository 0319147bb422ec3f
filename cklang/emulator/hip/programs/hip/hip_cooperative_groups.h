// SPDX-License-Identifier: MIT
// Groups of threads that wait for each other: a block, a tile of a wave, the lanes that run, a whole grid.
#pragma once

#include <hip/hip_runtime.h>

CKLANG_BEGIN_LIBRARY

namespace cooperative_groups {

namespace detail {

__device__ inline unsigned rank_in_block()
{
    return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
}
__device__ inline unsigned block_size() { return blockDim.x * blockDim.y * blockDim.z; }
__device__ inline unsigned grid_blocks() { return gridDim.x * gridDim.y * gridDim.z; }
__device__ inline unsigned block_rank()
{
    return (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
}

// The barrier of a grid. Only a cooperative launch has all blocks on the GPU at a time. Each wave waits for its own
// stores, which the barrier of a block need not do, and reads what other blocks have written afterwards.
static __device__ unsigned arrived, phase;
__device__ inline void sync_grid()
{
    __threadfence();
    __syncthreads();
    if(rank_in_block() == 0)
    {
        const unsigned before = __hip_atomic_load(&phase, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT);
        const unsigned others =
            __hip_atomic_fetch_add(&arrived, 1u, __ATOMIC_ACQ_REL, __HIP_MEMORY_SCOPE_AGENT);
        if(others == grid_blocks() - 1)
        {
            __hip_atomic_store(&arrived, 0u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
            __hip_atomic_fetch_add(&phase, 1u, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
        }
        else
            while(__hip_atomic_load(&phase, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT) == before)
                __builtin_amdgcn_s_sleep(1);
    }
    __syncthreads();
    __threadfence();
}

} // namespace detail

/// Any group: a block, or `size` neighbouring lanes that hold the threads of a tile.
class thread_group
{
public:
    __device__ unsigned size() const { return size_; }
    __device__ unsigned num_threads() const { return size_; }
    __device__ unsigned thread_rank() const
    {
        return tile_ ? detail::rank_in_block() % size_ : detail::rank_in_block();
    }
    __device__ bool is_valid() const { return true; }
    __device__ void sync() const
    {
        if(tile_)
            __syncwarp();
        else
            __syncthreads();
    }

protected:
    __device__ thread_group(unsigned size, bool tile) : size_(size), tile_(tile) {}

private:
    friend __device__ inline thread_group tiled_partition(const thread_group& parent, unsigned size);
    unsigned size_;
    bool tile_;
};

/// A tile of `size` threads, which is a power of two and at most a wave.
__device__ inline thread_group tiled_partition(const thread_group&, unsigned size)
{
    return thread_group(size, true);
}

class thread_block : public thread_group
{
public:
    __device__ thread_block() : thread_group(detail::block_size(), false) {}
    __device__ static dim3 group_index() { return {blockIdx.x, blockIdx.y, blockIdx.z}; }
    __device__ static dim3 thread_index() { return {threadIdx.x, threadIdx.y, threadIdx.z}; }
    __device__ static dim3 group_dim() { return {blockDim.x, blockDim.y, blockDim.z}; }
    __device__ static dim3 dim_threads() { return group_dim(); }
    __device__ static unsigned thread_rank() { return detail::rank_in_block(); }
    __device__ static unsigned size() { return detail::block_size(); }
    __device__ static unsigned num_threads() { return size(); }
    __device__ static void sync() { __syncthreads(); }
};
__device__ inline thread_block this_thread_block() { return {}; }

class grid_group
{
public:
    __device__ static unsigned long long size()
    {
        return static_cast<unsigned long long>(detail::grid_blocks()) * detail::block_size();
    }
    __device__ static unsigned long long num_threads() { return size(); }
    __device__ static unsigned long long thread_rank()
    {
        return static_cast<unsigned long long>(detail::block_rank()) * detail::block_size() +
               detail::rank_in_block();
    }
    __device__ static unsigned num_blocks() { return detail::grid_blocks(); }
    __device__ static unsigned block_rank() { return detail::block_rank(); }
    __device__ static dim3 group_dim() { return {gridDim.x, gridDim.y, gridDim.z}; }
    __device__ static bool is_valid() { return true; }
    __device__ static void sync() { detail::sync_grid(); }
};
__device__ inline grid_group this_grid() { return {}; }

namespace detail {

/// The group that a tile is a part of: another tile, or the block.
template <typename Parent>
struct Whole : Parent
{
};
template <>
struct Whole<void> : thread_block
{
};

} // namespace detail

/// A tile whose size is known to the compiler.
template <unsigned Size, typename Parent = void>
class thread_block_tile : public thread_group
{
    static_assert(Size != 0 && (Size & (Size - 1)) == 0 && Size <= 64, "tiles are parts of a wave");

public:
    __device__ thread_block_tile()
        : thread_group(Size, true),
          meta_rank_(detail::Whole<Parent>::thread_rank() / Size),
          meta_size_((detail::Whole<Parent>::size() + Size - 1) / Size)
    {
    }
    template <typename Other>
    __device__ thread_block_tile(const thread_block_tile<Size, Other>& other)
        : thread_group(Size, true),
          meta_rank_(other.meta_group_rank()),
          meta_size_(other.meta_group_size())
    {
    }
    __device__ static constexpr unsigned size() { return Size; }
    __device__ static constexpr unsigned num_threads() { return Size; }
    __device__ static unsigned thread_rank() { return detail::rank_in_block() % Size; }
    __device__ unsigned meta_group_rank() const { return meta_rank_; }
    __device__ unsigned meta_group_size() const { return meta_size_; }
    __device__ static void sync() { __syncwarp(); }

    template <typename T>
    __device__ T shfl(T value, int source) const
    {
        return __shfl(value, source, Size);
    }
    template <typename T>
    __device__ T shfl_up(T value, unsigned delta) const
    {
        return __shfl_up(value, delta, Size);
    }
    template <typename T>
    __device__ T shfl_down(T value, unsigned delta) const
    {
        return __shfl_down(value, delta, Size);
    }
    template <typename T>
    __device__ T shfl_xor(T value, unsigned mask) const
    {
        return __shfl_xor(value, static_cast<int>(mask), Size);
    }
    __device__ unsigned long long ballot(int predicate) const
    {
        return (__ballot(predicate) & lanes()) >> shift();
    }
    __device__ int any(int predicate) const { return ballot(predicate) != 0; }
    __device__ int all(int predicate) const { return ballot(predicate == 0) == 0; }
    template <typename T>
    __device__ unsigned long long match_any(T value) const
    {
        return __match_any_sync(lanes(), value) >> shift();
    }
    template <typename T>
    __device__ unsigned long long match_all(T value, int& all) const
    {
        return __match_all_sync(lanes(), value, &all) >> shift();
    }

private:
    __device__ static unsigned shift() { return __lane_id() / Size * Size; }
    /// The lanes of the tile that are running.
    __device__ static unsigned long long lanes()
    {
        return (~0ull >> (64 - Size)) << shift() & __activemask();
    }
    unsigned meta_rank_, meta_size_;
};
template <unsigned Size, typename Parent>
__device__ inline thread_block_tile<Size, Parent> tiled_partition(const Parent&)
{
    return {};
}

/// The lanes of a wave that run at the moment, numbered from 0.
class coalesced_group : public thread_group
{
public:
    __device__ explicit coalesced_group(unsigned long long lanes)
        : thread_group(static_cast<unsigned>(__popcll(lanes)), true), lanes_(lanes)
    {
    }
    __device__ unsigned thread_rank() const
    {
        return static_cast<unsigned>(__popcll(lanes_ & __lanemask_lt()));
    }
    __device__ static unsigned meta_group_rank() { return 0; }
    __device__ static unsigned meta_group_size() { return 1; }
    __device__ void sync() const { __syncwarp(); }
    template <typename T>
    __device__ T shfl(T value, int source) const
    {
        return cklang_hip::from_lane(value, lane_of(static_cast<unsigned>(source) % size()));
    }
    template <typename T>
    __device__ T shfl_up(T value, unsigned delta) const
    {
        const unsigned rank = thread_rank();
        return cklang_hip::from_lane(value, lane_of(rank < delta ? rank : rank - delta));
    }
    template <typename T>
    __device__ T shfl_down(T value, unsigned delta) const
    {
        const unsigned rank = thread_rank();
        return cklang_hip::from_lane(value, lane_of(rank + delta < size() ? rank + delta : rank));
    }
    /// Bit n is for the thread of rank n.
    __device__ unsigned long long ballot(int predicate) const
    {
        const unsigned long long votes = __ballot(predicate) & lanes_;
        unsigned long long result      = 0;
        unsigned rank                  = 0;
        for(unsigned long long left = lanes_; left != 0; left &= left - 1, ++rank)
            result |= (votes >> __builtin_ctzll(left) & 1) << rank;
        return result;
    }
    __device__ int any(int predicate) const { return (__ballot(predicate) & lanes_) != 0; }
    __device__ int all(int predicate) const { return (__ballot(predicate == 0) & lanes_) == 0; }

private:
    /// The lane of the thread of a rank.
    __device__ int lane_of(unsigned rank) const
    {
        unsigned long long left = lanes_;
        for(; rank != 0; --rank)
            left &= left - 1;
        return __builtin_ctzll(left);
    }
    unsigned long long lanes_;
};
__device__ inline coalesced_group coalesced_threads() { return coalesced_group(__activemask()); }

template <typename Group>
__device__ inline void sync(const Group& group)
{
    group.sync();
}
template <typename Group>
__device__ inline auto thread_rank(const Group& group)
{
    return group.thread_rank();
}
template <typename Group>
__device__ inline auto group_size(const Group& group)
{
    return group.size();
}

} // namespace cooperative_groups

CKLANG_END_LIBRARY
