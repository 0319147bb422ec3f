// SPDX-License-Identifier: MIT
// Two products of one A in one kernel: E = f(A B0, A B1, D...). A tile of B is half a tile of B0's
// columns and half a tile of B1's, so the main loop is that of one product, and the accumulators of
// column n of both are in registers of one lane: the epilogue pairs them.
#pragma once

#include "cklang/gemm.hpp"
#include "cklang/results.hpp"
#include "cklang/source.hpp"

namespace cklang {

/// The part of a tile that has the columns of one of the two products.
template <typename Shape, typename Warps, typename WarpTile>
using HalfShape = ck_tile::TileGemmShape<
    ck_tile::sequence<Shape::kM, Shape::kN / 2, Shape::kK>,
    Warps,
    WarpTile>;

/// Two matrices of one layout as one: half a tile of columns of each in turn.
///
/// The first half of the waves loads the first half of a tile. Which matrix a wave reads is known
/// before the loop and needs no instruction in it.
template <typename T, index_t waves, bool n_is_inner>
struct Pair
{
    static_assert(waves % 2 == 0);

    using DataType                  = T;
    static constexpr index_t arrays = 2;

    Strided<T> first, second;

    template <index_t vector, index_t tile_outer, index_t tile_inner, bool pad_outer, bool pad_inner>
    CK_TILE_DEVICE auto
    window(index_t outer, index_t inner, index_t at_outer, index_t at_inner) const
    {
        const bool is_second = ck_tile::get_warp_id() >= waves / 2;
        const Strided<T> own = is_second ? second : first;
        // Counted from here, the second half begins where the first one does.
        const index_t back = is_second ? (n_is_inner ? tile_inner : tile_outer) / 2 : 0;
        return own.template window<vector, tile_outer, tile_inner, pad_outer, pad_inner>(
            outer,
            inner,
            n_is_inner ? at_outer : at_outer - back,
            n_is_inner ? at_inner - back : at_inner);
    }

    CK_TILE_DEVICE Pair moved(const std::array<int64_t, arrays>& elements) const
    {
        return {first.moved({elements[0]}), second.moved({elements[1]})};
    }

    CK_TILE_HOST static Pair make(const ck_gemm_operand* operands)
    {
        return {Strided<T>::make(operands), Strided<T>::make(operands + 1)};
    }
};

/// The policy of a pair. CK Tile deals a tile whose K is contiguous to waves in neighbouring columns.
/// A tile whose columns are contiguous it deals in rows, each wave the columns of both matrices: here
/// half of the waves takes half of the columns.
template <typename Base>
struct PairPolicy : VectorPolicy<Base>
{
    template <typename Problem>
    CK_TILE_HOST_DEVICE static constexpr auto MakeBDramTileDistribution()
    {
        if constexpr(n_is_inner<Problem>)
            return ck_tile::make_static_tile_distribution(typename Halves<Problem>::Loaded{});
        else
            return VectorPolicy<Base>::template MakeBDramTileDistribution<Problem>();
    }

    template <typename Problem>
    CK_TILE_HOST_DEVICE static constexpr auto MakeShuffledBRegTileDistribution()
    {
        if constexpr(n_is_inner<Problem>)
            return ck_tile::make_static_tile_distribution(typename Halves<Problem>::Shuffled{});
        else
            return VectorPolicy<Base>::template MakeShuffledBRegTileDistribution<Problem>();
    }

    private:
    template <typename Problem>
    static constexpr bool n_is_inner =
        std::is_same_v<typename Problem::BLayout, ck_tile::tensor_layout::gemm::RowMajor>;

    template <typename Problem>
    struct Halves
    {
        using Shape = typename Problem::BlockGemmShape;

        static constexpr index_t lanes = ck_tile::get_warp_size();
        static constexpr index_t rows  = Shape::kK;
        static constexpr index_t row   = Shape::kN / 2;
        static constexpr index_t waves = Problem::kBlockSize / lanes / 2;
        static constexpr index_t width = ck_tile::min(access_width(row, Problem::VectorSizeB),
                                                      rows * row / (waves * lanes));
        static constexpr index_t along = row / width;
        static constexpr index_t down  = lanes / along;
        static constexpr index_t steps = rows / (waves * down);
        static_assert(along * down == lanes && waves * down * steps == rows);

        // CK Tile transposes in registers by the places of steps and width, which must differ.
        using Rows    = ck_tile::sequence<waves, down, 1, steps>;
        using Columns = ck_tile::sequence<2, along, width>;

        using Loaded = ck_tile::tile_distribution_encoding<
            ck_tile::sequence<1>,
            ck_tile::tuple<Rows, Columns>,
            ck_tile::tuple<ck_tile::sequence<2, 1>, ck_tile::sequence<1, 1, 2>>, // wave; lane
            ck_tile::tuple<ck_tile::sequence<0, 0>, ck_tile::sequence<1, 2, 1>>,
            ck_tile::sequence<1, 2>, // steps, width
            ck_tile::sequence<3, 2>>;
        using Shuffled = ck_tile::tile_distribution_encoding<
            ck_tile::sequence<1>,
            ck_tile::tuple<Columns, Rows>,
            ck_tile::tuple<ck_tile::sequence<1, 2>, ck_tile::sequence<2, 2, 1>>,
            ck_tile::tuple<ck_tile::sequence<0, 0>, ck_tile::sequence<1, 2, 1>>,
            ck_tile::sequence<1, 2>, // width, steps
            ck_tile::sequence<2, 3>>;
    };
};

/// Whether the first half of the waves loads the first half of a tile's columns: the outermost part
/// of a wave's number is the outermost part of a column's.
template <typename Distribution, index_t waves, bool n_is_inner>
constexpr bool is_dealt_by_waves = [] {
    using Encoding         = typename ck_tile::remove_cvref_t<Distribution>::DstrEncode;
    constexpr index_t axis = n_is_inner ? 1 : 0;
    return Encoding::hs_lengthss_.at(number<axis>{}).at(number<0>{}) == (n_is_inner ? 2 : waves) &&
           Encoding::ps_to_rhss_major_.at(number<0>{}).at(number<0>{}) == 1 + axis &&
           Encoding::ps_to_rhss_minor_.at(number<0>{}).at(number<0>{}) == 0;
}();

/// One half of the accumulators of a tile; warp tiles along N are the inner of its two loops.
template <typename HalfAcc, index_t half, typename AccTile>
CK_TILE_DEVICE auto half_of(const AccTile& acc)
{
    auto own               = HalfAcc::make();
    constexpr index_t size = HalfAcc::size / HalfAcc::repeat_m;
    static_assert(AccTile::get_thread_buffer_size() == 2 * HalfAcc::size);
    ck_tile::static_for<0, HalfAcc::size, 1>{}([&](auto i) {
        constexpr index_t row = i.value / size, rest = i.value % size;
        own.get_thread_buffer()(i) =
            acc.get_thread_buffer()[number<(2 * row + half) * size + rest>{}];
    });
    return own;
}

/// The epilogues of results.hpp with a function of both accumulators. The problem of `Base` is a
/// half tile.
template <typename Base, typename HalfAcc>
struct PairEpilogue : Base
{
    template <typename OutWindow, typename AccTile, typename DWindows>
    CK_TILE_DEVICE void
    operator()(OutWindow& out, const AccTile& acc, const DWindows& ds, void* shared)
    {
        const auto accs =
            ck_tile::make_tuple(half_of<HalfAcc, 0>(acc), half_of<HalfAcc, 1>(acc));
        if constexpr(requires { Base::SFC::get_num_of_access(); })
            Base::store(out, accs, ds, shared);
        else
            Base::store(out, accs, ds, std::make_index_sequence<Base::results - 1>{});
    }
};

} // namespace cklang
