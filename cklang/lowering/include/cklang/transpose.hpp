// SPDX-License-Identifier: MIT
// A copy of matrices whose rows and columns change places in memory: CK Tile's transpose in
// registers, under a kernel that takes any strides and more than 2^31 bytes.
#pragma once

#include "cklang/transpose_args.hpp"

#include "ck_tile/ops/batched_transpose/pipeline/batched_transpose_pipeline.hpp"

namespace cklang {

/// What CK Tile's pipeline asks of a problem. CK Tile's own has vectors only where tiles are whole.
template <typename T, index_t vector>
struct TransposeProblem
{
    using DataType                            = T;
    static constexpr index_t kBlockSize       = ck_tile::get_warp_size();
    static constexpr index_t kMPerBlock       = transpose_rows;
    static constexpr index_t kNPerBlock       = transpose_columns(kBlockSize);
    static constexpr index_t VectorSizeInput  = vector;
    static constexpr index_t VectorSizeOutput = vector; // how threads stand, as when they load
};

template <typename T, index_t source_vector, index_t target_vector>
struct TransposeKernel
{
    using Problem  = TransposeProblem<T, source_vector>;
    using Pipeline = ck_tile::BatchedTransposePipeline<Problem>;

    static constexpr index_t block_size = Problem::kBlockSize;
    static constexpr index_t kM = Problem::kMPerBlock, kN = Problem::kNPerBlock;

    CK_TILE_DEVICE static void run(const TransposeArgs& args)
    {
        using namespace ck_tile;

        const auto place = args.places.split(blockIdx.x);
        const index_t m  = place[CK_TRANSPOSE_MAX_BATCH] * kM;
        const index_t n  = place[CK_TRANSPOSE_MAX_BATCH + 1] * kN;
        // A view of one tile, so that a matrix may span any number of bytes.
        const index_t rows = min(args.rows - m, kM), columns = min(args.columns - n, kN);
        const auto x       = pad_tensor_view(
            view<source_vector>(args.source, place, m, n, rows, columns, args.source.row, args.source.column),
            make_tuple(number<kM>{}, number<kN>{}),
            sequence<true, true>{});
        const auto y = pad_tensor_view(
            view<target_vector>(args.target, place, m, n, columns, rows, args.target.column, args.target.row),
            make_tuple(number<kN>{}, number<kM>{}),
            sequence<true, true>{});
        auto from = make_tile_window(x, make_tuple(number<kM>{}, number<kN>{}), {0, 0});
        auto to   = make_tile_window(y, make_tuple(number<kN>{}, number<kM>{}), {0, 0});
        Pipeline{}(from, to);
    }

    private:
    /// The tile at (m, n) of one side as `outer` by `inner` elements.
    template <index_t vector, typename Place>
    CK_TILE_DEVICE static auto view(const TransposeSide& side,
                                    const Place& place,
                                    index_t m,
                                    index_t n,
                                    index_t outer,
                                    index_t inner,
                                    index_t outer_stride,
                                    index_t inner_stride)
    {
        using namespace ck_tile;

        int64_t first = static_cast<int64_t>(m) * side.row + static_cast<int64_t>(n) * side.column;
#pragma unroll
        for(index_t axis = 0; axis < CK_TRANSPOSE_MAX_BATCH; ++axis)
            first += place[axis] * side.batch[axis];
        T* const data     = static_cast<T*>(side.data) + first;
        const auto extents = make_tuple(outer, inner);
        if constexpr(vector > 1)
            return make_naive_tensor_view<address_space_enum::global>(
                data, extents, make_tuple(outer_stride, number<1>{}), number<vector>{}, number<1>{});
        else
            return make_naive_tensor_view<address_space_enum::global>(
                data, extents, make_tuple(outer_stride, inner_stride), number<1>{}, number<1>{});
    }
};

} // namespace cklang
