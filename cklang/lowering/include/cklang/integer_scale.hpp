// SPDX-License-Identifier: MIT
// Block scales of integers. CK Tile has no product of int8 with sums of f32. The main loop, the
// epilogue and what shares K see one here: its registers of f32 have the bits of i32 sums, which
// the instructions add up exactly, until a block of K ends and its sums are converted and scaled.
#pragma once

#include "cklang/block_scale.hpp"
#include "cklang/gemm_args.hpp"

namespace cklang {

/// The products of a warp, with registers of f32 for the sums of `WarpGemm`, which are i32.
template <typename WarpGemm>
struct IntegerSums : WarpGemm
{
    using Integers    = typename WarpGemm::CWarpTensor;
    using CDataType   = float;
    using CWarpTensor = ck_tile::static_distributed_tensor<float, typename WarpGemm::CWarpDstr>;

    static_assert(std::is_same_v<typename WarpGemm::CDataType, ck_tile::int32_t>);

    /// `c` += A B.
    template <typename C, typename A, typename B>
    CK_TILE_DEVICE void operator()(C& c, const A& a, const B& b) const
    {
        auto sums = ck_tile::bit_cast<Integers>(c);
        WarpGemm::operator()(sums, a, b);
        c = ck_tile::bit_cast<C>(sums);
    }
};

/// How the sum of a block, i32 in a register of f32, is multiplied by a scale.
template <typename Number>
struct OfIntegers : Number
{
    template <typename Scale>
    CK_TILE_DEVICE static float scaled(float bits, Scale scale)
    {
        return Number::scaled(static_cast<float>(ck_tile::bit_cast<ck_tile::int32_t>(bits)), scale);
    }
};

} // namespace cklang

template <ck_tile::index_t M, ck_tile::index_t N, ck_tile::index_t K, bool transpose_c>
struct ck_tile::impl::WarpGemmDispatcher<ck_tile::int8_t, ck_tile::int8_t, float, M, N, K, transpose_c>
{
    using Type = cklang::IntegerSums<
        ck_tile::WarpGemmDispatcher<ck_tile::int8_t, ck_tile::int8_t, ck_tile::int32_t, M, N, K, transpose_c>>;
};
