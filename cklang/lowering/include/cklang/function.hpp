// SPDX-License-Identifier: MIT
// The user's function on the elements of a thread: every operand widened, one rounding at the end.
#pragma once

#include "cklang/operand.hpp"

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

/// e = function(c, ds...) for all elements that a thread holds of tiles of one distribution.
template <typename Function, typename ETile, typename CTile, typename DTiles, std::size_t... I>
CK_TILE_DEVICE void
apply(ETile& e, const CTile& c, const DTiles& ds, std::index_sequence<I...>)
{
    using E = typename ETile::DataType;
    ck_tile::static_for<0, ETile::get_thread_buffer_size(), 1>{}([&](auto i) {
        e.get_thread_buffer()(i) = narrow<E>(
            Function{}(c.get_thread_buffer()[i],
                       widen(ds[number<static_cast<index_t>(I)>{}].get_thread_buffer()[i])...));
    });
}

} // namespace cklang
