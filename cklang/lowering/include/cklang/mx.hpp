// SPDX-License-Identifier: MIT
// Products of MX operands on gfx950, whose matrix instructions multiply each 32 elements of a row by
// 2^exponent: CK Tile's block GEMM with the exponents as two more operands of each instruction.
#pragma once

#include "cklang/policy.hpp"
#include "cklang/scale_runs.hpp"

namespace cklang {

constexpr index_t mx_block = 32; // elements along K that share an exponent

/// How f8f6f4 instructions call an element type.
template <typename T>
constexpr int mx_format = -1;
template <>
inline constexpr int mx_format<ck_tile::fp8_t> = 0;
template <>
inline constexpr int mx_format<ck_tile::bf8_t> = 1;
template <>
inline constexpr int mx_format<ck_tile::pk_fp4_t> = 4;

constexpr int mx_one = 127; // the exponent of 1

/// `acc` += A B: the operands of one lane, and the exponent of its row or column and its 32 of K.
template <typename A, typename B, index_t tile, typename Acc>
CK_TILE_DEVICE void
mx_multiply(Acc& acc, ck_tile::int32x8_t a, ck_tile::int32x8_t b, int scale_a, int scale_b)
{
#if defined(__gfx950__)
    if constexpr(tile == 16)
        acc = __builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(
            a, b, acc, mx_format<A>, mx_format<B>, 0, scale_a, 0, scale_b);
    else
        acc = __builtin_amdgcn_mfma_scale_f32_32x32x64_f8f6f4(
            a, b, acc, mx_format<A>, mx_format<B>, 0, scale_a, 0, scale_b);
#else
    ck_tile::ignore = acc + a[0] + b[0] + scale_a + scale_b;
#endif
}

/// Where the exponents of a lane's rows of A, or columns of B, begin: some rows `apart`.
template <index_t count_, index_t apart>
struct MxRows
{
    static constexpr index_t count = count_;

    index_t row, last_row, stride; // of a tile; of all

    // Without a sign it takes one register beside the address of them all.
    CK_TILE_DEVICE unsigned operator()(index_t i) const
    {
        return ck_tile::min(row + i * apart, last_row) * stride;
    }
};

/// The exponents of one tile of K; `lanes` blocks of K are in an instruction.
template <typename Runs, index_t lanes>
struct MxTaken
{
    Runs runs;
    index_t lane; // which block of an instruction

    /// That of warp tile `i` and instruction `k`, in the lowest byte.
    CK_TILE_DEVICE int at(index_t i, index_t k) const
    {
        const auto word = static_cast<unsigned>(runs[i][k * lanes / 4]);
        return word >> 8 * (k * lanes % 4 + lane);
    }
};

/// The exponents of a lane's rows or columns from one tile of K, with `tile` blocks, to the next.
template <typename Rows, index_t tile, index_t lanes>
struct MxExponents
{
    ScaleRuns<unsigned char, Rows> runs;
    index_t lane;

    CK_TILE_DEVICE auto take()
    {
        const auto taken = runs.template take<tile>();
        return MxTaken<std::remove_const_t<decltype(taken)>, lanes>{taken, lane};
    }
};

/// Of each 8-bit operand a lane holds two runs of 16 along K, half of the instruction's K apart; of
/// a 4-bit one a run of 32.
template <typename Impl>
using MxWarpGemm = ck_tile::WarpGemmImpl<ck_tile::WarpGemmAttributeMfma<
    Impl,
    packed<typename Impl::ADataType> == 1 ? ck_tile::WGAttrNumAccessEnum::Double
                                          : ck_tile::WGAttrNumAccessEnum::Single>>;

template <typename Problem, typename Policy>
struct MxBlockGemm : ck_tile::BlockUniversalGemmAsBsCr<Problem, Policy>
{
    using Base     = ck_tile::BlockUniversalGemmAsBsCr<Problem, Policy>;
    using WarpGemm = typename Base::WarpGemm;
    using A        = typename Base::ADataType;
    using B        = typename Base::BDataType;

    static constexpr index_t repeat_m = Base::MIterPerWarp;
    static constexpr index_t repeat_n = Base::NIterPerWarp;
    static constexpr index_t repeat_k = Base::KIterPerWarp;

    /// The fragments of the next product.
    template <typename AWindow, typename BWindow, typename... Turned>
    CK_TILE_DEVICE void LocalPrefetch(const AWindow& a, const BWindow& b, Turned...)
    {
        ck_tile::load_tile(a_, a);
        ck_tile::load_tile(b_, b);
    }

    /// `sums` += A B.
    template <typename Sums, typename... Windows>
    CK_TILE_DEVICE void operator()(Sums& sums, const Windows&...) const
    {
        multiply(sums, mx_one, mx_one);
    }

    /// `sums` += A B, with an exponent for each row of A and column of B and each 32 of K.
    template <typename Sums, typename ScalesA, typename ScalesB>
    CK_TILE_DEVICE void multiply(Sums& sums, const ScalesA& scales_a, const ScalesB& scales_b) const
    {
        using namespace ck_tile;
        static_for<0, repeat_k, 1>{}([&](auto k) {
            static_for<0, repeat_m, 1>{}([&](auto m) {
                const auto a       = registers<m * repeat_k + k>(a_);
                const auto scale_a = exponent(scales_a, m, k);
                static_for<0, repeat_n, 1>{}([&](auto n) {
                    const auto b  = registers<n * repeat_k + k>(b_);
                    const auto at = merge_sequences(sequence<m, n>{}, Base::c_warp_y_index_zeros);
                    const auto lengths = merge_sequences(sequence<1, 1>{}, Base::c_warp_y_lengths);
                    auto part          = sums.get_y_sliced_thread_data(at, lengths);
                    using Vector       = ext_vector_t<float, decltype(part)::size()>;
                    auto acc           = bit_cast<Vector>(part);
                    mx_multiply<A, B, WarpGemm::kM>(acc, a, b, scale_a, exponent(scales_b, n, k));
                    sums.set_y_sliced_thread_data(at, lengths, bit_cast<decltype(part)>(acc));
                });
            });
        });
    }

    /// The exponents of A (axis 0) or B of a tile that begins at row or column `at` of `extent`, and
    /// at `k`.
    template <index_t axis, typename Scale>
    CK_TILE_DEVICE static auto
    exponents(const Scale& scale, index_t extent, index_t K, index_t at, index_t k)
    {
        using namespace ck_tile;
        constexpr index_t repeat = axis == 0 ? repeat_m : repeat_n;
        constexpr index_t warps  = axis == 0 ? Base::MWarp : Base::NWarp;
        constexpr index_t lanes  = WarpGemm::kK / mx_block;
        const index_t warp       = get_warp_id();
        const index_t own        = axis == 0 ? warp / Base::NWarp : warp % Base::NWarp;
        const index_t lane       = get_lane_id();
        const index_t row        = at + own * WarpGemm::kM + lane % WarpGemm::kM;
        using Rows               = MxRows<repeat, warps * WarpGemm::kM>;
        auto exponents           = MxExponents<Rows, repeat_k * lanes, lanes>{
            {static_cast<const unsigned char*>(scale.data),
                       scale.stride_k,
                       {row, extent - 1, scale.stride},
                       k / mx_block,
                       integer_divide_ceil(K, mx_block)},
            lane / WarpGemm::kM};
        exponents.runs.load();
        return exponents;
    }

    private:
    /// Warp tile number `at` of a lane's part of a block tile. 4-bit elements fill four of the eight
    /// registers; CK Tile cuts tiles by whole elements, and would take them for 8-bit ones.
    template <index_t at, typename Tile>
    CK_TILE_DEVICE static ck_tile::int32x8_t registers(const Tile& tile)
    {
        using namespace ck_tile;
        using Run            = std::conditional_t<packed<A> == 1, int32x8_t, int32x4_t>;
        const auto& held     = tile.get_thread_buffer();
        constexpr auto count = sizeof(held) / sizeof(Run);
        const auto run       = bit_cast<std::array<Run, count>>(held)[at];
        if constexpr(packed<A> == 1)
            return run;
        else
            return {run[0], run[1], run[2], run[3], 0, 0, 0, 0};
    }

    template <typename Scales>
    CK_TILE_DEVICE static int exponent(const Scales& scales, index_t i, index_t k)
    {
        if constexpr(std::is_arithmetic_v<Scales>)
            return scales;
        else
            return scales.at(i, k);
    }

    decltype(ck_tile::make_static_distributed_tensor<A>(
        ck_tile::make_static_tile_distribution(Base::MakeABlockDistributionEncode()))) a_;
    decltype(ck_tile::make_static_distributed_tensor<B>(
        ck_tile::make_static_tile_distribution(Base::MakeBBlockDistributionEncode()))) b_;
};

/// `Base` is the policy that CK Tile gives the pipeline.
template <typename Base>
struct MxPolicy : VectorPolicy<Base>
{
    template <typename Problem>
    CK_TILE_HOST_DEVICE static constexpr auto GetBlockGemm()
    {
        using namespace ck_tile;
        using Shape    = typename Problem::BlockGemmShape;
        using A        = typename Problem::ADataType;
        using B        = typename Problem::BDataType;
        using C        = typename Problem::CDataType;
        using WarpTile = typename Shape::WarpTile;
        using Impl =
            typename WarpGemmDispatcher<A,
                                        B,
                                        C,
                                        WarpTile::at(number<0>{}),
                                        WarpTile::at(number<1>{}),
                                        WarpTile::at(number<2>{}),
                                        false>::WarpGemmAttribute::Impl;
        return MxBlockGemm<Problem,
                           BlockGemmASmemBSmemCRegV1CustomPolicy<A,
                                                                 B,
                                                                 C,
                                                                 typename Shape::BlockWarps,
                                                                 MxWarpGemm<Impl>>>{};
    }
};

} // namespace cklang
