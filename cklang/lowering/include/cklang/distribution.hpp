// SPDX-License-Identifier: MIT
// How a tile is spread over threads and registers, from CK Tile's encoding of it. CK Tile encodes
// the transforms in bytes and turns those into types with closures; the types follow directly.
//
// Hidden numbers of the adaptor: the dimensions x, then the parts of r (what is replicated), the
// parts h of each x in turn, then the partitions p (warp and lane). Together r and h are "rh":
// major 0 is r, major n the parts of x[n - 1].
#pragma once

#include "cklang/adaptor.hpp"

#include "ck_tile/core/tensor/tensor_descriptor.hpp"
#include "ck_tile/core/tensor/tile_distribution.hpp"

namespace cklang {

using ck_tile::tile_distributed_index;
using ck_tile::tile_distribution_encoding;

template <typename Ids, index_t first>
struct Shifted;

template <index_t... ids, index_t first>
struct Shifted<sequence<ids...>, first>
{
    using type = sequence<(ids + first)...>;
};

/// `count` hidden numbers from `first`.
template <index_t first, index_t count>
using Numbers = typename Shifted<ck_tile::make_index_sequence<count>, first>::type;

/// CK Tile's: the hidden numbers of the parts. The name tells our distributions from its own.
template <typename Hidden>
struct SpreadDetail : ck_tile::detail::tile_distribution_detail<Hidden>
{
};

template <typename Encoding>
struct Spread;

template <index_t... r,
          typename... Hs,
          typename... Majors,
          typename... Minors,
          index_t... y_majors,
          index_t... y_minors>
struct Spread<tile_distribution_encoding<sequence<r...>,
                                         tuple<Hs...>,
                                         tuple<Majors...>,
                                         tuple<Minors...>,
                                         sequence<y_majors...>,
                                         sequence<y_minors...>>>
{
    static constexpr index_t xs = sizeof...(Hs);
    static constexpr index_t ps = sizeof...(Majors);
    static constexpr index_t ys = sizeof...(y_majors);

    static constexpr index_t parts[1 + xs] = {sizeof...(r), Hs::size()...};

    /// The hidden number of the first part of a major; past the last one that of the partitions.
    static constexpr index_t first(index_t major)
    {
        index_t number = xs;
        for(index_t m = 0; m < major; ++m)
            number += parts[m];
        return number;
    }

    static constexpr index_t total = first(xs + 1) - xs;

    struct Lengths
    {
        index_t at[total + 1]; // one more: there are no arrays without elements
    };

    template <index_t... lengths>
    static constexpr void put(sequence<lengths...>, Lengths& made, index_t& next)
    {
        ((made.at[next++] = lengths), ...);
    }

    /// Of all parts.
    static constexpr Lengths part_lengths = [] {
        Lengths made{};
        index_t next = 0;
        put(sequence<r...>{}, made, next);
        (put(Hs{}, made, next), ...);
        return made;
    }();

    static constexpr index_t hidden(index_t major, index_t minor) { return first(major) + minor; }

    static constexpr index_t length(index_t major, index_t minor)
    {
        return part_lengths.at[hidden(major, minor) - xs];
    }

    template <typename Lengths>
    struct AsNumbers;

    template <index_t... lengths>
    struct AsNumbers<sequence<lengths...>>
    {
        using type = tuple<number<lengths>...>;
    };

    template <typename Major, typename Minor>
    struct Partition;

    template <index_t... major, index_t... minor>
    struct Partition<sequence<major...>, sequence<minor...>>
    {
        using Lengths = tuple<number<length(major, minor)>...>;
        using Hidden  = sequence<hidden(major, minor)...>;
    };

    using YLengths = tuple<number<length(y_majors, y_minors)>...>;

    template <typename Places>
    struct Types;

    template <index_t... x, index_t... p>
    struct Types<tuple<sequence<x...>, sequence<p...>>>
    {
        static constexpr index_t first_p = first(xs + 1);

        using Transforms =
            tuple<decltype(ck_tile::make_replicate_transform(tuple<number<r>...>{})),
                  decltype(ck_tile::make_unmerge_transform(typename AsNumbers<Hs>::type{}))...,
                  decltype(ck_tile::make_merge_transform(
                      typename Partition<Majors, Minors>::Lengths{}))...>;

        using Adaptor = ck_tile::tensor_adaptor<
            Transforms,
            tuple<sequence<>, sequence<x>..., typename Partition<Majors, Minors>::Hidden...>,
            tuple<Numbers<xs, sizeof...(r)>,
                  Numbers<first(x + 1), parts[x + 1]>...,
                  sequence<first_p + p>...>,
            sequence<x...>,
            sequence<(first_p + p)..., hidden(y_majors, y_minors)...>>;

        using Hidden = tuple<Numbers<xs, sizeof...(r)>, Numbers<first(x + 1), parts[x + 1]>...>;
    };

    using All     = Types<tuple<ck_tile::make_index_sequence<xs>, ck_tile::make_index_sequence<ps>>>;
    using Adaptor = typename All::Adaptor;

    /// Elements of a thread, in the order of y.
    using ElementsAdaptor =
        ck_tile::tensor_adaptor<tuple<decltype(ck_tile::make_unmerge_transform(YLengths{}))>,
                                tuple<sequence<0>>,
                                tuple<Numbers<1, ys>>,
                                sequence<0>,
                                Numbers<1, ys>>;

    static constexpr index_t elements = (length(y_majors, y_minors) * ... * 1);

    using Elements = decltype(ck_tile::make_tensor_descriptor_from_adaptor(ElementsAdaptor{},
                                                                           number<elements>{}));
    using Detail   = SpreadDetail<typename All::Hidden>;
};

template <index_t... index>
constexpr index_t part_of(tile_distributed_index<index...>, index_t minor)
{
    constexpr index_t parts[] = {index..., 0};
    return parts[minor];
}

/// Part `minor` of index `major`.
template <typename... Indices>
constexpr index_t part_of(tuple<Indices...>, index_t major, index_t minor)
{
    index_t n = 0, found = 0;
    ((n++ == major ? found = part_of(Indices{}, minor) : 0), ...);
    return found;
}

} // namespace cklang

namespace ck_tile {

template <typename Adaptor, typename Elements, typename Encoding, typename Hidden>
struct tile_distribution<Adaptor, Elements, Encoding, cklang::SpreadDetail<Hidden>>
    : tile_distribution<Adaptor, Elements, Encoding, detail::tile_distribution_detail<Hidden>>
{
    /// Where an element of a thread is along y.
    template <typename... Indices>
    CK_TILE_HOST_DEVICE static constexpr auto
    get_y_indices_from_distributed_indices(tuple<Indices...>)
    {
        return []<index_t... y>(sequence<y...>) {
            using Facts = typename Encoding::detail;
            return sequence<cklang::part_of(tuple<Indices...>{},
                                            Facts::ys_to_span_major_[y],
                                            Facts::ys_to_span_minor_[y])...>{};
        }(make_index_sequence<Encoding::NDimY>{});
    }
};

/// Of the two overloads the one that knows what an encoding is made of.
template <index_t... r,
          typename... Hs,
          typename... Majors,
          typename... Minors,
          index_t... y_majors,
          index_t... y_minors>
CK_TILE_HOST_DEVICE constexpr auto
make_static_tile_distribution(tile_distribution_encoding<sequence<r...>,
                                                         tuple<Hs...>,
                                                         tuple<Majors...>,
                                                         tuple<Minors...>,
                                                         sequence<y_majors...>,
                                                         sequence<y_minors...>> encoding)
{
    using Encoding = remove_cvref_t<decltype(encoding)>;
    using Spread   = cklang::Spread<Encoding>;
    return tile_distribution<typename Spread::Adaptor,
                             typename Spread::Elements,
                             Encoding,
                             typename Spread::Detail>{};
}

} // namespace ck_tile
