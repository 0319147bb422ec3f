// SPDX-License-Identifier: MIT
// From the type that a kernel computes in to the type that it stores.
#pragma once

#include "cklang/core.hpp"

namespace cklang {

/// Round once, to nearest even. CK Tile's own conversion to bfloat16 truncates by default.
template <typename E, typename T>
CK_TILE_DEVICE E narrow(T value)
{
    if constexpr(ck_tile::is_any_of<E, ck_tile::fp8_t, ck_tile::bf8_t>::value)
        return ck_tile::type_convert<E>(value);
    else
        return static_cast<E>(value);
}

} // namespace cklang
