// SPDX-License-Identifier: MIT
// The first half of a GEMM kernel: CK Tile's block pipeline over K, for one tile of C.
//
// It is a function of its own, from sources and extents to the accumulators of one thread, so that
// the two halves can be compiled at the same time; the link inlines it again.
#pragma once

#include "cklang/gemm_args.hpp"
#include "cklang/policy.hpp"
#include "cklang/source.hpp"

namespace cklang {

/// `step` is the number of K tiles that the pipeline's loop takes at once.
template <typename Pipeline_, typename Acc_, index_t step, typename ASource, typename BSource>
struct Mainloop
{
    using Pipeline  = Pipeline_;
    using Acc       = Acc_; // an AccTile
    using Shape     = typename Pipeline::BlockGemmShape;
    using ADataType = typename Pipeline::ADataType;
    using BDataType = typename Pipeline::BDataType;
    using RowMajor  = ck_tile::tensor_layout::gemm::RowMajor;

    static_assert(std::is_same_v<typename ASource::DataType, ADataType> &&
                  std::is_same_v<typename BSource::DataType, BDataType>);
    static_assert(Pipeline::GetSmemSize() <= ck_tile::max(mainloop_lds<Shape, ADataType, BDataType>,
                                                          acc_lds<Shape, typename Acc::DataType>));

    CK_TILE_DEVICE static void run(typename Acc::DataType* acc,
                                   const ASource& a,
                                   const BSource& b,
                                   index_t M,
                                   index_t N,
                                   index_t K,
                                   index_t m,
                                   index_t n,
                                   index_t k,
                                   CK_TILE_LDS_ADDR char* shared)
    {
        using namespace ck_tile;

        // Tiles beyond K load zeros, so one variant of the pipeline's loop, which may compute more
        // tiles than there are, is right for every K from 0 on.
        const index_t k_tiles = amd_wave_read_first_lane(
            integer_least_multiple(integer_divide_ceil(K - k, Shape::kK), step));

        const auto as   = make_tuple(a_window(a, M, K, m, k));
        const auto bs   = make_tuple(b_window(b, N, K, n, k));
        const auto loop = [&](auto... buffers) {
            return Pipeline{}(as,
                              typename Pipeline::AElementWise{},
                              bs,
                              typename Pipeline::BElementWise{},
                              k_tiles,
                              buffers...);
        };
        const auto tile = [&] {
            if constexpr(Pipeline::DoubleSmemBuffer)
                return loop((char*)shared, (char*)(shared + Pipeline::GetSmemSize()));
            else
                return loop((char*)shared);
        }();

        static_assert(std::is_same_v<remove_cvref_t<decltype(tile)>, typename Acc::Type>);
#pragma unroll
        for(index_t i = 0; i < Acc::size; ++i)
            acc[i] = tile.get_thread_buffer()[i];
    }

    protected:
    // Rows beyond M or N of an operand whose K axis is contiguous only reach rows or columns of
    // E that are not stored, and the buffer's range check keeps them inside the allocation. K
    // itself must read zeros beyond its end, whole tiles of them too: a NaN there would reach every
    // sum.
    CK_TILE_DEVICE static auto
    a_window(const ASource& a, index_t M, index_t K, index_t m, index_t k)
    {
        constexpr index_t vector = Pipeline::GetVectorSizeA();
        if constexpr(std::is_same_v<typename Pipeline::ALayout, RowMajor>)
            return a.template window<vector, Shape::kM, Shape::kK, false, true>(M, K, m, k);
        else
            return a.template window<vector, Shape::kK, Shape::kM, true, Pipeline::kPadM>(
                K, M, k, m);
    }

    CK_TILE_DEVICE static auto
    b_window(const BSource& b, index_t N, index_t K, index_t n, index_t k)
    {
        constexpr index_t vector = Pipeline::GetVectorSizeB();
        if constexpr(std::is_same_v<typename Pipeline::BLayout, RowMajor>)
            return b.template window<vector, Shape::kK, Shape::kN, true, Pipeline::kPadN>(
                K, N, k, n);
        else
            return b.template window<vector, Shape::kN, Shape::kK, false, true>(N, K, n, k);
    }
};

} // namespace cklang
