// SPDX-License-Identifier: MIT
// Products of segments of rows, each with a B of its own, or of segments of K
// (segmented_k.hpp): an array in device memory says where each segment ends. With segments of rows
// the grid is an upper bound of the tiles that there may be; a workgroup looks up its segment, and
// ends where it has no tile.
//
// Segment s has the numbers from begin / kM + s of rows of tiles: that is enough for it wherever it
// begins, and rises with s, so that no workgroup adds up the tiles of those before its own.
#pragma once

#include "cklang/gemm.hpp"

namespace cklang {

/// How far an array moves, in elements.
struct SegmentSteps
{
    int64_t along, segment; // from one place along the axis, and from one segment, to the next

    CK_TILE_HOST_DEVICE int64_t at(index_t places, index_t segments) const
    {
        return along * places + segment * segments;
    }
};

template <typename Gemm>
struct SegmentedArgs
{
    Gemm gemm; // all rows, or all K; with the first segment's B, or E and D
    const int32_t* ends; // the place behind the last one of each segment
    index_t segments;
    index_t tiles_n; // tiles in a row of tiles
    index_t tiles;   // of all segments; of rows, at most
    std::array<SegmentSteps, Gemm::ASource::arrays> a;
    std::array<SegmentSteps, Gemm::BSource::arrays> b;
    std::array<SegmentSteps, Gemm::operands> d;
    SegmentSteps e;
};

/// What all segments have in common. `along` is the axis in segments: its extent, in the arguments
/// of one product.
template <typename Gemm_, index_t Gemm_::Args::*along, typename... Ds>
struct Segments
{
    using Gemm = Gemm_;
    using Args = SegmentedArgs<typename Gemm::Args>;

    static constexpr index_t block_size = Gemm::block_size;

    static constexpr index_t epilogue_lds = Gemm::epilogue_lds;

    CK_TILE_DEVICE static index_t tiles(const Args& args) { return args.tiles; }

    protected:
    /// Where a segment begins, that after the last one too. Ends beyond the axis are limited to it:
    /// no array is read or written beyond its own end.
    CK_TILE_DEVICE static index_t begin(const Args& args, index_t segment)
    {
        const index_t most = args.gemm.*along;
        if(segment == 0)
            return 0;
        if(segment > args.segments)
            return most;
        const auto* ends  = ck_tile::cast_pointer_to_constant_address_space(args.ends);
        const index_t end = ends[segment - 1];
        return ck_tile::amd_wave_read_first_lane(end < 0 ? 0 : end < most ? end : most);
    }

    /// Tile `place` of the product of a segment, which begins at `first`; zeros unless `has_sums`.
    template <auto loop>
    [[gnu::always_inline]] CK_TILE_DEVICE static void product(typename Gemm::Args& gemm,
                                                              const Args& args,
                                                              index_t first,
                                                              index_t segment,
                                                              index_t place,
                                                              bool has_sums,
                                                              char* shared) // the fill has no calls
    {
        move(gemm, args, first, segment, std::make_index_sequence<sizeof...(Ds)>{});

        typename Gemm::Acc::DataType accumulators[Gemm::Acc::size]{};
        if(has_sums)
            Gemm::template sum<loop>(gemm, place, 0, gemm.K, accumulators, shared);
        // Where wave groups share K, the first one has the sums.
        if constexpr(block_size >
                     Gemm::Acc::warps_m * Gemm::Acc::warps_n * ck_tile::get_warp_size())
            if(ck_tile::get_warp_id() != 0)
                return;
        Gemm::store(gemm, place, accumulators, shared);
    }

    private:
    template <typename Source, std::size_t count>
    CK_TILE_DEVICE static Source moved(const Source& source,
                                       const std::array<SegmentSteps, count>& steps,
                                       index_t first,
                                       index_t segment)
    {
        std::array<int64_t, count> elements{};
#pragma unroll
        for(std::size_t i = 0; i < count; ++i)
            elements[i] = steps[i].at(first, segment);
        return source.moved(elements);
    }

    /// Give a product what it has from `first` on, and what a segment has of its own.
    template <std::size_t... I>
    CK_TILE_DEVICE static void move(typename Gemm::Args& gemm,
                                    const Args& args,
                                    index_t first,
                                    index_t segment,
                                    std::index_sequence<I...>)
    {
        gemm.a = moved(gemm.a, args.a, first, segment);
        gemm.b = moved(gemm.b, args.b, first, segment);
        gemm.e = static_cast<typename Gemm::EDataType*>(gemm.e) + args.e.at(first, segment);
        ((gemm.ds[I] = static_cast<const typename Ds::DataType*>(gemm.ds[I]) +
                       args.d[I].at(first, segment)),
         ...);
    }
};

template <typename Gemm_, bool persistent, typename... Ds>
struct SegmentedKernel : Segments<Gemm_, &Gemm_::Args::M, Ds...>
{
    using Base = Segments<Gemm_, &Gemm_::Args::M, Ds...>;
    using Gemm = Gemm_;
    using typename Base::Args;

    template <index_t loop_lds, auto loop>
    CK_TILE_DEVICE static void run(const Args& args)
    {
        WholeTiles<SegmentedKernel, persistent>::template run<loop_lds, loop>(args);
    }

    template <auto loop>
    [[gnu::always_inline]] CK_TILE_DEVICE static void
    tile(const Args& args, index_t block, char* shared) // the fill has no calls
    {
        constexpr index_t rows = Gemm::Shape::kM;
        const index_t row      = block / args.tiles_n;

        // The segment is in [low, high). Rows behind the last one are a segment, too.
        index_t low = 0, high = args.segments + 1;
        while(high - low > 1)
        {
            const index_t middle = (low + high) / 2;
            (Base::begin(args, middle) / rows + middle <= row ? low : high) = middle;
        }
        const index_t segment = ck_tile::amd_wave_read_first_lane(low);
        const index_t first   = Base::begin(args, segment);
        const index_t place   = block - (first / rows + segment) * args.tiles_n;
        const bool has_b      = segment < args.segments;

        auto gemm = args.gemm;
        gemm.M    = Base::begin(args, segment + 1) - first;
        if(gemm.M <= 0 || place >= Gemm::tiles(gemm))
            return;
        Base::template product<loop>(gemm, args, first, has_b ? segment : 0, place, has_b, shared);
    }
};

} // namespace cklang
