// SPDX-License-Identifier: MIT
// CK Tile's loops over the elements of a tile, which it unrolls while it compiles: one axis in the
// other, with a closure for each place on the way. One flat list of the places does the same.
#pragma once

#include "ck_tile/core/container/tuple.hpp"
#include "ck_tile/core/tensor/tile_distribution.hpp"
#include "ck_tile/core/utility/functional.hpp"

// What only passes on is gone before anything is optimised.
#define CK_PASS_ON __attribute__((always_inline))

namespace cklang {

using ck_tile::index_t;
using ck_tile::sequence;

/// The places of a box, one after the other: along the last axis of `Order` first.
template <typename Lengths,
          typename Order,
          typename Axes = ck_tile::make_index_sequence<Lengths::size()>>
struct Box;

template <index_t... lengths, index_t... order, index_t... axes>
struct Box<sequence<lengths...>, sequence<order...>, sequence<axes...>>
{
    static constexpr index_t rank  = sizeof...(lengths);
    static constexpr index_t count = (lengths * ... * 1);

    static constexpr index_t at(index_t place, index_t axis)
    {
        constexpr index_t length[] = {lengths...};
        constexpr index_t nth[]    = {order...};
        index_t n                  = rank - 1;
        for(; nth[n] != axis; --n)
            place /= length[nth[n]];
        return place % length[axis];
    }

    template <index_t place>
    using Index = sequence<at(place, axes)...>;
};

} // namespace cklang

namespace ck_tile {

namespace detail {

/// What unrolls a loop from 0 to a number of steps.
template <index_t... steps>
struct applier<index_t, steps...>
{
    template <typename F>
    CK_PASS_ON CK_TILE_HOST_DEVICE constexpr void operator()(F f) const
    {
        (f(number<steps>{}), ...);
    }
};

} // namespace detail

/// A tuple of types without values needs none of its constructors.
template <typename... Xs>
    requires(std::is_empty_v<remove_cvref_t<Xs>> && ...)
CK_PASS_ON CK_TILE_HOST_DEVICE constexpr auto make_tuple(Xs&&...)
{
    return tuple<remove_cvref_t<Xs>...>{};
}

template <index_t... lengths, index_t... order>
struct static_ford<sequence<lengths...>, sequence<order...>>
{
    static_assert(sizeof...(lengths) > 0 && sizeof...(lengths) == sizeof...(order));

    using Box = cklang::Box<sequence<lengths...>, sequence<order...>>;

    template <class F>
    CK_PASS_ON CK_TILE_HOST_DEVICE constexpr void operator()(F f) const
    {
        visit(f, make_index_sequence<Box::count>{});
    }

    private:
    template <class F, index_t... places>
    CK_PASS_ON CK_TILE_HOST_DEVICE static constexpr void visit(F& f, sequence<places...>)
    {
        // An array rather than a fold, whose length compilers limit.
        [[maybe_unused]] const char done[] = {(f(typename Box::template Index<places>{}), '\0')...};
    }
};

/// Of the two overloads the one that knows what a span is made of.
template <index_t... lengths, typename F>
CK_PASS_ON CK_TILE_DEVICE void sweep_tile_span(tile_distributed_span<lengths...>, const F& f)
{
    static_ford<sequence<lengths...>>{}([&]<index_t... index>(sequence<index...>) CK_PASS_ON {
        f(tile_distributed_index<index...>{});
    });
}

} // namespace ck_tile
