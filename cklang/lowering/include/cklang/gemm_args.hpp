// SPDX-License-Identifier: MIT
// What the two halves of a GEMM kernel share: its arguments, its LDS, its accumulator tile, and
// the windows through which it sees matrices.
#pragma once

#include "cklang/ck_tile.hpp"

namespace cklang {

using ck_tile::index_t;
using ck_tile::number;

/// The arguments of one product. ASource and BSource say where A and B come from (source.hpp).
template <typename ASource_, typename BSource_, index_t operands_>
struct GemmArgs
{
    using ASource                     = ASource_;
    using BSource                     = BSource_;
    static constexpr index_t operands = operands_;

    ASource a;
    BSource b;
    std::array<const void*, operands> ds;
    void* e;
    index_t M, N, K;
    std::array<index_t, operands> stride_ds_m, stride_ds_n;
    index_t stride_e;
};

/// The main loop as a function, from the block tile's place (m, n) to the accumulators of one
/// thread: sums from `k` up to K. `shared` has room for the kernel's loop_lds bytes.
template <typename Acc, typename ASource, typename BSource>
using LoopFunction = void(Acc* acc,
                          const ASource& a,
                          const BSource& b,
                          index_t M,
                          index_t N,
                          index_t K,
                          index_t m,
                          index_t n,
                          index_t k,
                          CK_TILE_LDS_ADDR char* shared);

template <typename T>
constexpr index_t packed = ck_tile::numeric_traits<T>::PackedSize;

/// Bytes of LDS for a tile of `elements`.
template <index_t elements, typename T>
constexpr index_t tile_lds =
    ck_tile::integer_least_multiple(sizeof(T) * elements / packed<T>, 16);

/// Bytes of LDS for one tile of A and one of B.
template <typename Shape, typename A, typename B>
constexpr index_t mainloop_lds =
    tile_lds<Shape::kM * Shape::kK, A> + tile_lds<Shape::kN * Shape::kK, B>;

/// Bytes of LDS for the accumulators of a tile.
template <typename Shape, typename Acc>
constexpr index_t acc_lds = static_cast<index_t>(sizeof(Acc)) * Shape::kM * Shape::kN;

/// The accumulator as the main loop leaves it, spread over the registers of a workgroup.
/// Wave groups that share K hold one tile each, and so no axis of it is split between waves.
template <typename Shape, typename A, typename B, typename Acc, bool transpose_c, index_t wave_groups>
struct AccTile
{
    using Warps    = typename Shape::BlockWarps;
    using WarpTile = typename Shape::WarpTile;
    using WarpGemm = ck_tile::WarpGemmDispatcher<A,
                                                 B,
                                                 Acc,
                                                 WarpTile::at(number<0>{}),
                                                 WarpTile::at(number<1>{}),
                                                 WarpTile::at(number<2>{}),
                                                 transpose_c>;

    using DataType = Acc;

    static constexpr index_t warps_m  = Warps::at(number<0>{});
    static constexpr index_t warps_n  = Warps::at(number<1>{});
    static constexpr index_t repeat_m = Shape::kM / (warps_m * WarpTile::at(number<0>{}));
    static constexpr index_t repeat_n = Shape::kN / (warps_n * WarpTile::at(number<1>{}));

    CK_TILE_DEVICE static constexpr auto make()
    {
        using namespace ck_tile;
        using Split   = tile_distribution_encoding<
            sequence<>,
            tuple<sequence<repeat_m, warps_m>, sequence<repeat_n, warps_n>>,
            tuple<sequence<1, 2>>,
            tuple<sequence<1, 1>>,
            sequence<1, 2>,
            sequence<0, 0>>;
        using Grouped = tile_distribution_encoding<
            sequence<warps_m>,
            tuple<sequence<repeat_m>, sequence<repeat_n, warps_n>>,
            tuple<>,
            tuple<>,
            sequence<1, 2>,
            sequence<0, 0>>;
        using Outer   = std::conditional_t<wave_groups == 1, Split, Grouped>;
        return make_static_distributed_tensor<Acc>(
            make_static_tile_distribution(detail::make_embed_tile_distribution_encoding(
                Outer{}, typename WarpGemm::CWarpDstrEncoding{})));
    }

    using Type = decltype(make());

    static constexpr index_t size = Type::get_thread_buffer_size();
};

/// A tile of a matrix whose outer axis has stride `stride` and whose inner axis is contiguous,
/// both padded to whole tiles where `pads` says so.
template <typename T, index_t vector, index_t tile_outer, index_t tile_inner, bool... pads>
CK_TILE_DEVICE auto
window(T* data, index_t outer, index_t inner, index_t stride, index_t at_outer, index_t at_inner)
{
    using namespace ck_tile;
    const auto view = make_naive_tensor_view<address_space_enum::global>(
        data, make_tuple(outer, inner), make_tuple(stride, 1), number<vector>{}, number<1>{});
    constexpr auto tile = make_tuple(number<tile_outer>{}, number<tile_inner>{});
    return make_tile_window(
        pad_tensor_view(view, tile, sequence<pads...>{}), tile, {at_outer, at_inner});
}

} // namespace cklang
