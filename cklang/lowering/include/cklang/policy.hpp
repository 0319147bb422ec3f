// SPDX-License-Identifier: MIT
// CK Tile's policies take the widest loads a tile allows. Here the width is the
// algorithm's choice, so that odd extents, strides and addresses run too.
#pragma once

#include "cklang/gemm_args.hpp"

namespace cklang {

/// Elements per thread and access along a tile row of `row` elements: at least `vector`, and at
/// least so many that a row needs no more than one wave's lanes, which CK Tile's access pattern
/// takes for granted. The view still limits each load to `vector` elements.
constexpr index_t access_width(index_t row, index_t vector)
{
    return ck_tile::max(vector, row / ck_tile::get_warp_size());
}

/// `Base` is the policy that CK Tile gives the pipeline.
template <typename Base>
struct VectorPolicy : Base
{
    // Packed rows are filled up: they have no ends that CK Tile would have to ask about.
    template <typename Problem, bool = false>
    CK_TILE_HOST_DEVICE static constexpr index_t GetVectorSizeA()
    {
        return packed<typename Problem::ADataType> > 1 ? 1 : Problem::VectorSizeA;
    }

    template <typename Problem, bool = false>
    CK_TILE_HOST_DEVICE static constexpr index_t GetVectorSizeB()
    {
        return packed<typename Problem::BDataType> > 1 ? 1 : Problem::VectorSizeB;
    }

    template <typename Problem>
    CK_TILE_HOST_DEVICE static constexpr auto MakeADramTileDistribution()
    {
        return PatternA<Problem>::make_2d_static_tile_distribution();
    }

    template <typename Problem>
    CK_TILE_HOST_DEVICE static constexpr auto MakeBDramTileDistribution()
    {
        return PatternB<Problem>::make_2d_static_tile_distribution();
    }

    template <typename Problem>
    CK_TILE_HOST_DEVICE static constexpr auto MakeShuffledARegTileDistribution()
    {
        return PatternA<Problem>::make_shuffled_2d_static_tile_distribution();
    }

    template <typename Problem>
    CK_TILE_HOST_DEVICE static constexpr auto MakeShuffledBRegTileDistribution()
    {
        return PatternB<Problem>::make_shuffled_2d_static_tile_distribution();
    }

    // The same size as the base class computes, callable from the host too.
    template <typename Problem>
    CK_TILE_HOST_DEVICE static constexpr index_t GetSmemSize()
    {
        constexpr index_t tiles = mainloop_lds<typename Problem::BlockGemmShape,
                                               typename Problem::ADataType,
                                               typename Problem::BDataType>;
        if constexpr(requires { Base::template GetSmemSizeC<Problem>(); })
            return ck_tile::max(
                tiles, acc_lds<typename Problem::BlockGemmShape, typename Problem::CDataType>);
        else
            return tiles;
    }

    private:
    template <typename Problem, index_t Rows, index_t Row, index_t Vector, auto pattern>
    using Pattern = ck_tile::tile_distribution_encoding_pattern_2d<Problem::kBlockSize,
                                                                   Rows,
                                                                   Row,
                                                                   access_width(Row, Vector),
                                                                   pattern,
                                                                   Problem::NumWaveGroups>;

    template <typename Problem>
    using Shape = typename Problem::BlockGemmShape;

    template <typename Problem>
    static constexpr bool a_is_row_major =
        std::is_same_v<typename Problem::ALayout, ck_tile::tensor_layout::gemm::RowMajor>;

    template <typename Problem>
    static constexpr bool b_is_row_major =
        std::is_same_v<typename Problem::BLayout, ck_tile::tensor_layout::gemm::RowMajor>;

    template <typename Problem>
    using PatternA = Pattern<Problem,
                             a_is_row_major<Problem> ? Shape<Problem>::kM : Shape<Problem>::kK,
                             a_is_row_major<Problem> ? Shape<Problem>::kK : Shape<Problem>::kM,
                             Problem::VectorSizeA,
                             Base::getATileAccessPattern()>;

    template <typename Problem>
    using PatternB = Pattern<Problem,
                             b_is_row_major<Problem> ? Shape<Problem>::kK : Shape<Problem>::kN,
                             b_is_row_major<Problem> ? Shape<Problem>::kN : Shape<Problem>::kK,
                             Problem::VectorSizeB,
                             Base::getBTileAccessPattern()>;
};

} // namespace cklang
