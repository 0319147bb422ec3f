// SPDX-License-Identifier: MIT
// What host and device agree on for a kernel that transposes.
#pragma once

#include "cklang/lattice.hpp"
#include "cklang/transpose_host.h"

namespace cklang {

constexpr index_t transpose_rows = 64;

/// Of a tile, which is one wave's: as CK Tile's policy takes them, a wave has whole rows.
CK_TILE_HOST_DEVICE constexpr index_t transpose_columns(index_t wave) { return wave; }

struct TransposeSide
{
    void* data;
    index_t row, column;
    std::array<int64_t, CK_TRANSPOSE_MAX_BATCH> batch;
};

struct TransposeArgs
{
    index_t rows, columns;
    Digits<CK_TRANSPOSE_MAX_BATCH + 2> places; // of a tile: in the batch, along rows, along columns
    TransposeSide source, target;
};

} // namespace cklang
