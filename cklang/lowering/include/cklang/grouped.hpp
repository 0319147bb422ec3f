// SPDX-License-Identifier: MIT
// A grouped GEMM: products of different sizes in one launch. A table in device memory holds the
// arguments of each; tiles are numbered through all of them, and a workgroup looks up whose tile it
// has. A persistent kernel takes every gridDim.x-th tile of all groups.
#pragma once

#include "cklang/gemm.hpp"

namespace cklang {

/// One row of the table.
template <typename Gemm>
struct Group
{
    Gemm gemm;
    index_t first; // number of its first tile
};

template <typename Gemm>
struct GroupedArgs
{
    const Group<Gemm>* groups;
    index_t count;
    index_t tiles; // of all groups
};

template <typename Gemm_, bool persistent>
struct GroupedKernel
{
    using Gemm = Gemm_;
    using Args = GroupedArgs<typename Gemm::Args>;

    static constexpr index_t block_size = Gemm::block_size;

    template <index_t loop_lds, auto loop>
    CK_TILE_DEVICE static void run(const Args& args)
    {
        using namespace ck_tile;

        __shared__ char shared[ck_tile::max(loop_lds, Gemm::epilogue_lds)];

        index_t block = amd_wave_read_first_lane(blockIdx.x);
        if constexpr(persistent)
            for(; block < args.tiles; block += gridDim.x)
            {
                tile<loop>(args, block, shared);
                // The next tile's main loop writes the LDS that this epilogue still reads.
                block_sync_lds();
            }
        else
            tile<loop>(args, block, shared);
    }

    private:
    template <auto loop>
    [[gnu::always_inline]] CK_TILE_DEVICE static void
    tile(const Args& args, index_t block, char* shared) // the fill has no calls
    {
        index_t low = 0, high = args.count; // the group is in [low, high)
        while(high - low > 1)
        {
            const index_t middle = (low + high) / 2;
            (args.groups[middle].first <= block ? low : high) = middle;
        }
        low               = ck_tile::amd_wave_read_first_lane(low);
        const auto& group = args.groups[low];
        Gemm::template tile<loop>(
            group.gemm, ck_tile::amd_wave_read_first_lane(block - group.first), shared);
    }
};

} // namespace cklang
