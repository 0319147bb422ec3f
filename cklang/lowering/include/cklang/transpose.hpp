// SPDX-License-Identifier: MIT
// A copy of matrices whose rows and columns change places in memory. A workgroup has a tile, which it
// brings to LDS along the rows of the source and takes from there along those of the target, so that
// both are accessed in whole lines, whether vectors fit or not.
#pragma once

#include "cklang/transpose_args.hpp"

namespace cklang {

template <typename T, index_t source_vector, index_t target_vector>
struct TransposeKernel
{
    static constexpr index_t block_size = transpose_threads;

    CK_TILE_DEVICE static void run(const TransposeArgs& args)
    {
        const auto place = args.places.split(blockIdx.x);
        const index_t m  = place[CK_TRANSPOSE_MAX_BATCH] * args.tile.rows();
        const index_t n  = place[CK_TRANSPOSE_MAX_BATCH + 1] * args.tile.columns();
        const index_t rows = args.rows - m, columns = args.columns - n;
        const index_t pitch = args.tile.columns() + dword; // an odd number of banks

        __shared__ T shared[(1 << area_bits) / transpose_least * (transpose_least + dword)];
        const auto source = matrix(args.source, place, m, n);
        ck_tile::thread_buffer<T, source_vector> parts[slots<source_vector>];
        each<source_vector>(args.tile.column_bits, [&](auto i, index_t row, index_t column) {
            const uint32_t at = row * args.source.row + column * args.source.column;
            parts[i]          = ck_tile::amd_buffer_load_impl<T, source_vector>(
                source, row < rows && column < columns ? at * sizeof(T) : beyond, 0);
        });
        each<source_vector>(args.tile.column_bits, [&](auto i, index_t row, index_t column) {
            for_elements<source_vector>(
                [&](auto v) { shared[row * pitch + column + v] = parts[i][v]; });
        });
        __syncthreads();
        const auto target = matrix(args.target, place, m, n);
        each<target_vector>(args.tile.row_bits, [&](auto, index_t column, index_t row) {
            ck_tile::thread_buffer<T, target_vector> part;
            for_elements<target_vector>(
                [&](auto v) { part(v) = shared[(row + v) * pitch + column]; });
            const uint32_t at = row * args.target.row + column * args.target.column;
            ck_tile::amd_buffer_store_impl<T, target_vector>(
                part, target, row < rows && column < columns ? at * sizeof(T) : beyond, 0);
        });
    }

    private:
    static constexpr uint32_t beyond   = 1u << 31; // of a tile, and the bytes of its buffer
    static constexpr index_t dword     = 4 / sizeof(T);
    static constexpr index_t area_bits = transpose_area_bits(sizeof(T));

    /// How many vectors a thread moves.
    template <index_t vector>
    static constexpr index_t slots = (1 << area_bits) / vector / block_size;

    /// Call with the number, the outer and the inner place of each vector of this thread, in a tile
    /// of 2^bits elements along the inner axis.
    template <index_t vector, typename F>
    CK_TILE_DEVICE static void each(index_t bits, F&& f)
    {
        const index_t mask = (1 << bits) - 1;
        ck_tile::static_for<0, slots<vector>, 1>{}([&](auto i) {
            const index_t element = (i * block_size + threadIdx.x) * vector;
            f(i, element >> bits, element & mask);
        });
    }

    template <index_t vector, typename F>
    CK_TILE_DEVICE static void for_elements(F&& f)
    {
        ck_tile::static_for<0, vector, 1>{}(f);
    }

    /// One side's memory from the tile at (m, n) on, so that a matrix may span any number of bytes.
    template <typename Place>
    CK_TILE_DEVICE static auto
    matrix(const TransposeSide& side, const Place& place, index_t m, index_t n)
    {
        int64_t first = static_cast<int64_t>(m) * side.row + static_cast<int64_t>(n) * side.column;
#pragma unroll
        for(index_t axis = 0; axis < CK_TRANSPOSE_MAX_BATCH; ++axis)
            first += place[axis] * side.batch[axis];
        return ck_tile::make_wave_buffer_resource(static_cast<T*>(side.data) + first, beyond);
    }
};

} // namespace cklang
