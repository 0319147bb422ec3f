// SPDX-License-Identifier: MIT
// Products whose K is in segments: each segment of the columns of A and the rows of B has a product
// of its own. An array in device memory says where each segment ends.
#pragma once

#include "cklang/gemm.hpp"

namespace cklang {

template <typename Gemm>
struct SegmentedKArgs
{
    Gemm gemm; // K is that of all segments
    const int32_t* ends; // the place along K behind the last one of each segment
    index_t tiles;       // of all products
    std::array<int64_t, Gemm::ASource::arrays> a; // elements from one place along K to the next
    std::array<int64_t, Gemm::BSource::arrays> b;
    std::array<int64_t, Gemm::operands> d; // elements from one product to the next
    int64_t e;
};

template <typename Gemm_, bool persistent, typename... Ds>
struct SegmentedKKernel
{
    using Gemm = Gemm_;
    using Args = SegmentedKArgs<typename Gemm::Args>;

    static constexpr index_t block_size = Gemm::block_size;

    static constexpr index_t epilogue_lds = Gemm::epilogue_lds;

    template <index_t loop_lds, auto loop>
    CK_TILE_DEVICE static void run(const Args& args)
    {
        WholeTiles<SegmentedKKernel, persistent>::template run<loop_lds, loop>(args);
    }

    CK_TILE_DEVICE static index_t tiles(const Args& args) { return args.tiles; }

    template <auto loop>
    [[gnu::always_inline]] CK_TILE_DEVICE static void
    tile(const Args& args, index_t block, char* shared) // the fill has no calls
    {
        const index_t tiles   = Gemm::tiles(args.gemm);
        const index_t segment = ck_tile::amd_wave_read_first_lane(block / tiles);
        const index_t place   = block - segment * tiles;
        const index_t first   = begin(args, segment);

        auto gemm = args.gemm;
        gemm.K    = begin(args, segment + 1) - first;
        move(gemm, args, first, segment, std::make_index_sequence<sizeof...(Ds)>{});

        typename Gemm::Acc::DataType accumulators[Gemm::Acc::size]{};
        if(gemm.K > 0)
            Gemm::template sum<loop>(gemm, place, 0, gemm.K, accumulators, shared);
        // Where wave groups share K, the first one has the sums.
        if constexpr(block_size >
                     Gemm::Acc::warps_m * Gemm::Acc::warps_n * ck_tile::get_warp_size())
            if(ck_tile::get_warp_id() != 0)
                return;
        Gemm::store(gemm, place, accumulators, shared);
    }

    private:
    /// Where a segment begins. Ends beyond K are limited to it: nothing is read beyond an array.
    CK_TILE_DEVICE static index_t begin(const Args& args, index_t segment)
    {
        if(segment == 0)
            return 0;
        const auto* ends  = ck_tile::cast_pointer_to_constant_address_space(args.ends);
        const index_t end = ends[segment - 1];
        return ck_tile::amd_wave_read_first_lane(end < 0              ? 0
                                                 : end < args.gemm.K ? end
                                                                     : args.gemm.K);
    }

    template <typename Source, std::size_t count>
    CK_TILE_DEVICE static Source
    moved(const Source& source, const std::array<int64_t, count>& steps, index_t places)
    {
        std::array<int64_t, count> elements{};
#pragma unroll
        for(std::size_t i = 0; i < count; ++i)
            elements[i] = steps[i] * places;
        return source.moved(elements);
    }

    /// Give a product its segment of A and B, and its own E and D.
    template <std::size_t... I>
    CK_TILE_DEVICE static void move(typename Gemm::Args& gemm,
                                    const Args& args,
                                    index_t first,
                                    index_t segment,
                                    std::index_sequence<I...>)
    {
        gemm.a = moved(gemm.a, args.a, first);
        gemm.b = moved(gemm.b, args.b, first);
        gemm.e = static_cast<typename Gemm::EDataType*>(gemm.e) + args.e * segment;
        ((gemm.ds[I] = static_cast<const typename Ds::DataType*>(gemm.ds[I]) + args.d[I] * segment),
         ...);
    }
};

} // namespace cklang
