// SPDX-License-Identifier: MIT
// Workgroups that compute whole tiles of a product.
#pragma once

#include "cklang/gemm_args.hpp"

namespace cklang {

/// `Gemm` says what a tile is: how many `tiles` its arguments have, and how to compute one.
template <typename Gemm, bool persistent>
struct WholeTiles
{
    using Args = typename Gemm::Args;

    static constexpr index_t block_size = Gemm::block_size;

    /// All tiles of this workgroup: one, or every gridDim.x-th of a persistent kernel. `loop` is
    /// the main loop, which takes `loop_lds` bytes of LDS.
    template <index_t loop_lds, auto loop>
    CK_TILE_DEVICE static void run(const Args& args)
    {
        using namespace ck_tile;

        __shared__ char shared[ck_tile::max(loop_lds, Gemm::epilogue_lds)];

        index_t tile = amd_wave_read_first_lane(blockIdx.x);
        if constexpr(persistent)
        {
            const index_t tiles = amd_wave_read_first_lane(Gemm::tiles(args));
            for(; tile < tiles; tile += gridDim.x)
            {
                Gemm::template tile<loop>(args, tile, shared);
                // The next tile's main loop writes the LDS that this epilogue still reads.
                block_sync_lds();
            }
        }
        else
            Gemm::template tile<loop>(args, tile, shared);
    }
};

} // namespace cklang
