// SPDX-License-Identifier: MIT
//
// A mask for v3, whose waves read a second tile of keys too early where there is no third.
#pragma once

#include "ck_tile/core.hpp"

namespace cklang {

/// v3 waits for the loads of the second tile and lets its waves meet only on the way to a third. Of two
/// tiles waves would read from LDS what others still load. All waves ask a mask about the first tile
/// behind those loads, and once: there they wait and meet.
template <typename Base>
struct SecondTile : Base
{
    using Base::Base;

    mutable ck_tile::index_t first_of_two = -1; // where the keys begin if there are two tiles of them

    template <ck_tile::index_t rows, ck_tile::index_t columns>
    CK_TILE_DEVICE auto GetTileRangeAlongX(ck_tile::index_t row,
                                           ck_tile::number<rows>,
                                           ck_tile::number<columns>) const
    {
        const auto range = Base::GetTileRangeAlongX(
            row, ck_tile::number<rows>{}, ck_tile::number<columns>{});
        const ck_tile::index_t start  = range.at(ck_tile::number<0>{});
        const ck_tile::index_t length = range.at(ck_tile::number<1>{}) - start;
        first_of_two                  = length > columns && length <= 2 * columns ? start : -1;
        return range;
    }

    template <ck_tile::index_t rows, ck_tile::index_t columns>
    CK_TILE_DEVICE bool IsEdgeTile(ck_tile::index_t row,
                                   ck_tile::index_t column,
                                   ck_tile::number<rows>,
                                   ck_tile::number<columns>) const
    {
        if(column == first_of_two)
        {
            asm volatile("s_waitcnt vmcnt(0)" ::: "memory");
            __builtin_amdgcn_s_barrier();
        }
        return Base::IsEdgeTile(
            row, column, ck_tile::number<rows>{}, ck_tile::number<columns>{});
    }
};

} // namespace cklang
