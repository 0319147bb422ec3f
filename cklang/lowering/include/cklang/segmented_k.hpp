// SPDX-License-Identifier: MIT
// Products whose K is in segments: each segment of the columns of A and the rows of B has a product
// of its own.
#pragma once

#include "cklang/segmented.hpp"

namespace cklang {

template <typename Gemm_, bool persistent, typename... Ds>
struct SegmentedKKernel : Segments<Gemm_, &Gemm_::Args::K, Ds...>
{
    using Base = Segments<Gemm_, &Gemm_::Args::K, Ds...>;
    using Gemm = Gemm_;
    using typename Base::Args;

    template <index_t loop_lds, auto loop>
    CK_TILE_DEVICE static void run(const Args& args)
    {
        WholeTiles<SegmentedKKernel, persistent>::template run<loop_lds, loop>(args);
    }

    template <auto loop>
    [[gnu::always_inline]] CK_TILE_DEVICE static void
    tile(const Args& args, index_t block, char* shared) // the fill has no calls
    {
        const index_t tiles   = Gemm::tiles(args.gemm);
        const index_t segment = ck_tile::amd_wave_read_first_lane(block / tiles);
        const index_t place   = block - segment * tiles;
        const index_t first   = Base::begin(args, segment);

        auto gemm = args.gemm;
        gemm.K    = Base::begin(args, segment + 1) - first;
        Base::template product<loop>(gemm, args, first, segment, place, gemm.K > 0, shared);
    }
};

} // namespace cklang
