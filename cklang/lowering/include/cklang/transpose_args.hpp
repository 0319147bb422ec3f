// SPDX-License-Identifier: MIT
// What host and device agree on for a kernel that transposes.
#pragma once

#include "cklang/lattice.hpp"
#include "cklang/transpose_host.h"

namespace cklang {

constexpr index_t transpose_threads = 256;

/// The least rows or columns of a tile.
constexpr index_t transpose_least = 4;

/// The elements of a tile, as a power of 2: a row of a square one is a whole cache line or two.
CK_TILE_HOST_DEVICE constexpr index_t transpose_area_bits(index_t bytes) { return bytes == 1 ? 14 : 12; }

/// Rows and columns of a tile, as powers of 2: a square, or as few of either as the matrix has.
struct TransposeTile
{
    index_t row_bits, column_bits;

    CK_TILE_HOST_DEVICE constexpr index_t rows() const { return 1 << row_bits; }
    CK_TILE_HOST_DEVICE constexpr index_t columns() const { return 1 << column_bits; }

    static constexpr TransposeTile of(int64_t rows, int64_t columns, index_t bytes)
    {
        const index_t area = transpose_area_bits(bytes);
        const index_t few  = bits_of(rows < columns ? rows : columns, area / 2);
        return rows < columns ? TransposeTile{few, area - few} : TransposeTile{area - few, few};
    }

    private:
    static constexpr index_t bits_of(int64_t extent, index_t most)
    {
        index_t bits = 0;
        while(bits < most && (1 << bits) < (extent > transpose_least ? extent : transpose_least))
            ++bits;
        return bits;
    }
};

struct TransposeSide
{
    void* data;
    index_t row, column;
    std::array<int64_t, CK_TRANSPOSE_MAX_BATCH> batch;
};

struct TransposeArgs
{
    index_t rows, columns;
    TransposeTile tile;
    Digits<CK_TRANSPOSE_MAX_BATCH + 2> places; // of a tile: in the batch, along rows, along columns
    TransposeSide source, target;
};

} // namespace cklang
