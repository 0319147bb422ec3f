// SPDX-License-Identifier: MIT
// Workgroups that share the K of a tile: who sums what, and how the last one gets the whole sum.
//
// Every workgroup leaves its sums in a workspace and counts itself; the one that finds all others
// counted adds up and goes on to the epilogue, which so sees the full sum in the registers where a
// workgroup that shares with nobody has it. Nobody waits for anybody.
#pragma once

#include "cklang/gemm_args.hpp"

namespace cklang {

enum class Work
{
    tiles,    // one workgroup a tile
    split_k,  // gridDim.z workgroups a tile
    stream_k, // gridDim.x workgroups share all steps along K of all tiles
};

enum class Reduction
{
    none,
    atomic,    // one slot a tile, to which sums are added
    workspace, // one slot a workgroup and tile, added up in order
    tree,      // the same slots, added up in pairs, pairs of pairs, and so on
};

/// What is left where a workgroup began in the middle of a tile, and where it ended in one.
constexpr index_t slots_per_block = 2;

/// The even division of `steps` among `blocks`, the first of which take one more.
struct Shares
{
    index_t steps, blocks;

    CK_TILE_HOST_DEVICE constexpr index_t begin(index_t block) const
    {
        return block * (steps / blocks) + ck_tile::min(block, steps % blocks);
    }

    /// The block whose share holds `step`.
    CK_TILE_HOST_DEVICE constexpr index_t holder(index_t step) const
    {
        const index_t less  = steps / blocks;
        const index_t more  = steps % blocks;
        const index_t large = more * (less + 1);
        return step < large ? step / (less + 1) : more + (step - large) / less;
    }
};

/// The workspace: counters, then the slots, each a tile of accumulators. There is a counter for each
/// tile, or for each slot if sums are added in pairs.
template <typename Shape, typename Acc>
struct Workspace
{
    static constexpr index_t slot = Shape::kM * Shape::kN;

    CK_TILE_HOST_DEVICE static constexpr int64_t counter_bytes(int64_t counters)
    {
        return (counters * static_cast<int64_t>(sizeof(uint32_t)) + 255) / 256 * 256;
    }

    CK_TILE_HOST_DEVICE static constexpr int64_t bytes(int64_t counters, int64_t slots)
    {
        return counter_bytes(counters) + slots * slot * static_cast<int64_t>(sizeof(Acc));
    }

    void* base;
    index_t counters;

    CK_TILE_DEVICE uint32_t* counter(index_t number) const
    {
        return static_cast<uint32_t*>(base) + number;
    }

    /// Where this thread's first accumulator of a slot is; the next is a workgroup further.
    CK_TILE_DEVICE Acc* thread(index_t number) const
    {
        auto* first = reinterpret_cast<Acc*>(static_cast<char*>(base) + counter_bytes(counters));
        return first + static_cast<int64_t>(number) * slot + threadIdx.x;
    }
};

/// Count this workgroup's arrival. Whether it is the last of `parts`, all of whose sums it then
/// sees. `flag` is a word of LDS that nobody else uses meanwhile.
CK_TILE_DEVICE bool last_to_arrive(uint32_t* counter, index_t parts, uint32_t* flag)
{
    // This thread's sums are visible to all workgroups before the counter says so.
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent");
    ck_tile::block_sync_lds();
    if(threadIdx.x == 0)
    {
        const uint32_t before =
            __hip_atomic_fetch_add(counter, 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
        *flag = before + 1 == static_cast<uint32_t>(parts);
    }
    ck_tile::block_sync_lds();
    const bool last = ck_tile::amd_wave_read_first_lane(*flag) != 0;
    if(last)
        __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "agent");
    return last;
}

/// Leave the sums of one thread in its part of a slot.
template <Reduction reduction, index_t size, index_t threads, typename Acc>
CK_TILE_DEVICE void leave(Acc* to, const Acc* sums)
{
#pragma unroll
    for(index_t i = 0; i < size; ++i)
        if constexpr(reduction == Reduction::atomic)
            __hip_atomic_fetch_add(
                to + i * threads, sums[i], __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
        else
            to[i * threads] = sums[i];
}

/// sums (+)= what was left in a slot.
template <bool add, index_t size, index_t threads, typename Acc>
CK_TILE_DEVICE void collect(Acc* sums, const Acc* from)
{
#pragma unroll
    for(index_t i = 0; i < size; ++i)
        sums[i] = add ? sums[i] + from[i * threads] : from[i * threads];
}

} // namespace cklang
