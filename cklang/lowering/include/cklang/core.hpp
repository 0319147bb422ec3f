// SPDX-License-Identifier: MIT
// CK Tile's core, included here only, after what takes the place of its slowest parts. It sorts
// sequences of indices while it compiles, with a class for each step of each merge, which was an
// eighth of a kernel's compile time. One loop does the same, and has to be known before anything is
// sorted; distribution.hpp has the parts that may come later.
#pragma once

#include "ck_tile/core/container/sequence.hpp"

namespace cklang {

using ck_tile::index_t;

/// Values in rising order, each with its place in the unsorted ones. Of equal values the last one
/// comes first, as in CK Tile's merge.
template <index_t... values>
struct Sorted
{
    static constexpr index_t count = sizeof...(values);

    struct Order
    {
        index_t value[count + 1]; // one more: there are no arrays without elements
        index_t place[count + 1];
    };

    static constexpr Order order = [] {
        constexpr index_t given[] = {values..., 0};
        Order made{};
        for(index_t place = 0; place < count; ++place)
        {
            index_t at = place;
            for(; at > 0 && made.value[at - 1] >= given[place]; --at)
            {
                made.value[at] = made.value[at - 1];
                made.place[at] = made.place[at - 1];
            }
            made.value[at] = given[place];
            made.place[at] = place;
        }
        return made;
    }();

    /// The same without values that stand before.
    static constexpr Order distinct_order = [] {
        Order made{};
        index_t last = 0;
        for(index_t at = 0; at < count; ++at)
            if(at == 0 || order.value[at] != order.value[at - 1])
            {
                made.value[last] = order.value[at];
                made.place[last] = order.place[at];
                ++last;
            }
        return made;
    }();

    static constexpr index_t distinct = [] {
        index_t many = 0;
        for(index_t at = 0; at < count; ++at)
            many += at == 0 || order.value[at] != order.value[at - 1];
        return many;
    }();
};

/// What CK Tile calls the results of a sort.
template <const auto& order, typename>
struct SortResult;

template <const auto& order, std::size_t... at>
struct SortResult<order, std::index_sequence<at...>>
{
    using type                = ck_tile::sequence<order.value[at]...>;
    using sorted2unsorted_map = ck_tile::sequence<order.place[at]...>;
};

} // namespace cklang

namespace ck_tile {

template <index_t... values>
struct sequence_sort<sequence<values...>, less<index_t>>
    : cklang::SortResult<cklang::Sorted<values...>::order,
                         std::make_index_sequence<sizeof...(values)>>
{
};

template <index_t... values>
struct sequence_sort<const sequence<values...>, less<index_t>>
    : sequence_sort<sequence<values...>, less<index_t>>
{
};

template <index_t... values>
struct sequence_unique_sort<sequence<values...>, less<index_t>, equal<index_t>>
    : cklang::SortResult<cklang::Sorted<values...>::distinct_order,
                         std::make_index_sequence<cklang::Sorted<values...>::distinct>>
{
};

template <index_t... values>
struct sequence_unique_sort<const sequence<values...>, less<index_t>, equal<index_t>>
    : sequence_unique_sort<sequence<values...>, less<index_t>, equal<index_t>>
{
};

} // namespace ck_tile

#include "cklang/distribution.hpp"

#include "ck_tile/core.hpp"
