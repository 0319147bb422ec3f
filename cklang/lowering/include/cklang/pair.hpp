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

/// Two matrices of one layout, K contiguous, as one: half a tile of columns of each in turn.
///
/// The first half of the waves loads the first half of a tile, since every wave loads neighbouring
/// columns. Which matrix a wave reads is known before the loop and needs no instruction in it.
template <typename T, index_t waves>
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
        const index_t at = at_outer - (is_second ? tile_outer / 2 : 0);
        return own.template window<vector, tile_outer, tile_inner, pad_outer, pad_inner>(
            outer, inner, at, at_inner);
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

/// Whether every wave loads neighbouring columns, those of the first half before the others.
template <typename Distribution, index_t waves>
constexpr bool is_dealt_by_waves = [] {
    using Encoding = typename ck_tile::remove_cvref_t<Distribution>::DstrEncode;
    return Encoding::hs_lengthss_.at(number<0>{}).at(number<0>{}) == waves &&
           Encoding::ps_to_rhss_major_.at(number<0>{}).at(number<0>{}) == 1 &&
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
