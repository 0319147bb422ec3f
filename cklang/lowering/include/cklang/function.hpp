// SPDX-License-Identifier: MIT
// The user's function on the elements of a thread: every operand widened, one rounding at the end.
#pragma once

#include "cklang/narrow.hpp"
#include "cklang/operand.hpp"

namespace cklang {

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
