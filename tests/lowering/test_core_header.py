# SPDX-License-Identifier: MIT
"""What we put in place of CK Tile's slowest templates gives the types and values that they give."""

import math
import random
from pathlib import Path

import pytest

from cklang.build.steps import device_assembly
from cklang.toolchain.compilers import find_ck_tree, find_toolchain

pytestmark = pytest.mark.usefixtures("compiler")

# With comparisons of another name CK Tile's own templates are taken.
PROBE = """
#include "cklang/core.hpp"

struct Less
{
    constexpr bool operator()(int a, int b) const { return a < b; }
};
struct Equal
{
    constexpr bool operator()(int a, int b) const { return a == b; }
};

template <typename Ours, typename Theirs>
constexpr bool same = std::is_same_v<typename Ours::type, typename Theirs::type> &&
    std::is_same_v<typename Ours::sorted2unsorted_map, typename Theirs::sorted2unsorted_map>;

using ck_tile::equal, ck_tile::index_t, ck_tile::less;

template <typename Values>
constexpr bool sorts =
    same<ck_tile::sequence_sort<Values, less<index_t>>, ck_tile::sequence_sort<Values, Less>> &&
    same<ck_tile::sequence_unique_sort<Values, less<index_t>, equal<index_t>>,
         ck_tile::sequence_unique_sort<Values, Less, Equal>>;

"""


def test_sequences_are_sorted_as_ck_tile_sorts_them(tmp_path: Path) -> None:
    rng = random.Random(0)
    some = [[rng.randrange(-3, 12) for _ in range(count)] for count in (*range(1, 12), 23)]
    lists = [", ".join(map(str, values)) for values in (*some, [5] * 4, range(9))]
    types = [f"{const}ck_tile::sequence<{each}>" for each in lists for const in ("", "const ")]
    text = PROBE + "".join(f"static_assert(sorts<{each}>);\n" for each in types)
    device_assembly(text, "gfx942", tmp_path, find_toolchain(), find_ck_tree())


# CK Tile's own loop is what its own overload would call.
LOOPS = """
#include "cklang/core.hpp"

using ck_tile::index_t, ck_tile::sequence;

template <index_t rank, index_t count>
struct Walk
{
    index_t at[count][rank] = {};
    index_t steps           = 0;

    template <index_t... index>
    constexpr void operator()(sequence<index...>)
    {
        index_t axis = 0;
        ((at[steps][axis++] = index), ...);
        ++steps;
    }
};

template <typename Lengths, typename Order, index_t count>
constexpr bool walks = [] {
    using Ordered = decltype(Lengths::reorder_new_to_old(Order{}));
    Walk<Lengths::size(), count> ours, theirs;
    ck_tile::static_ford<Lengths, Order>{}([&](auto index) { ours(index); });
    ck_tile::detail::static_ford_impl<Ordered, Order>{}([&](auto i) { theirs(i); }, sequence<>{});
    for(index_t step = 0; step < count; ++step)
        for(index_t axis = 0; axis < Lengths::size(); ++axis)
            if(ours.at[step][axis] != theirs.at[step][axis])
                return false;
    return ours.steps == count && theirs.steps == count;
}();

"""


def test_loops_visit_the_places_in_ck_tiles_order(tmp_path: Path) -> None:
    rng = random.Random(1)
    text = LOOPS
    for rank in (1, 2, 2, 3, 3, 4):
        lengths = [rng.randrange(1, 5) for _ in range(rank)]
        order = rng.sample(range(rank), rank)
        shape, axes = (f"sequence<{', '.join(map(str, each))}>" for each in (lengths, order))
        text += f"static_assert(walks<{shape}, {axes}, {math.prod(lengths)}>);\n"
    device_assembly(text, "gfx942", tmp_path, find_toolchain(), find_ck_tree())


# An adaptor whose transforms have a name of their own is CK Tile's.
ADAPTORS = """
#include "cklang/core.hpp"

using ck_tile::index_t, ck_tile::number, ck_tile::sequence, ck_tile::tuple;

template <typename Transforms>
struct Theirs : Transforms
{
    constexpr Theirs() = default;
    constexpr Theirs(const Transforms& transforms) : Transforms(transforms) {}
};

template <typename Lows,
          typename Ups,
          typename Bottom,
          typename Top,
          typename Transforms,
          index_t... length>
constexpr bool adapts(Transforms transforms, sequence<length...>)
{
    using Ours    = ck_tile::tensor_adaptor<Transforms, Lows, Ups, Bottom, Top>;
    using CkTile  = ck_tile::tensor_adaptor<Theirs<Transforms>, Lows, Ups, Bottom, Top>;
    const Ours ours{transforms};
    const CkTile theirs{Theirs<Transforms>{transforms}};

    static_assert(std::is_same_v<typename Ours::HiddenIndex, typename CkTile::HiddenIndex>);
    static_assert(std::is_same_v<typename Ours::ElementSize, typename CkTile::ElementSize>);
    static_assert(std::is_same_v<decltype(ours.get_top_dimension_lengths()),
                                 decltype(theirs.get_top_dimension_lengths())>);
    static_assert(Ours::is_static() == CkTile::is_static());

    typename Ours::HiddenIndex lengths{-1}, strides{-1};
    lengths(0) = 8, strides(0) = 1;
    const auto wide  = Ours::get_top_dimension_safe_vector_length_strides(lengths, strides);
    const auto first = CkTile::get_top_dimension_safe_vector_length_strides(lengths, strides);
    bool same        = ours.get_element_size() == theirs.get_element_size();
    for(index_t axis = 0; axis < Top::size(); ++axis)
        same = same && wide[number<0>{}][axis] == first[number<0>{}][axis] &&
               wide[number<1>{}][axis] == first[number<1>{}][axis];

    const auto compare = [&](auto index) {
        const auto got  = ours.calculate_bottom_index(index);
        const auto want = theirs.calculate_bottom_index(index);
        for(index_t axis = 0; axis < Bottom::size(); ++axis)
            same = same && got[axis] == want[axis];
    };
    ck_tile::static_ford<sequence<length...>>{}([&](auto index) {
        compare(index); // known while it compiles
        compare(ck_tile::to_array<index_t, sizeof...(length)>(index));
    });
    return same;
}

using ck_tile::make_tuple;

// A padded matrix cut into tiles, as in global memory: lengths are values.
static_assert(adapts<tuple<sequence<0>, sequence<1>, sequence<2>, sequence<3>, sequence<4>>,
                     tuple<sequence<1, 2>, sequence<3>, sequence<4>, sequence<5, 6>,
                           sequence<7, 8>>,
                     sequence<0>,
                     sequence<5, 7, 6, 8>>(
    make_tuple(ck_tile::make_embed_transform(make_tuple(6, 8), make_tuple(index_t{9}, number<1>{})),
               ck_tile::make_right_pad_transform(6, 2),
               ck_tile::make_pass_through_transform(8),
               ck_tile::make_unmerge_transform(make_tuple(number<2>{}, number<4>{})),
               ck_tile::make_unmerge_transform(make_tuple(number<4>{}, number<2>{}))),
    sequence<2, 4, 4, 2>{}));

// Swizzled rows, as in LDS: all lengths are types.
static_assert(adapts<tuple<sequence<0>, sequence<1, 2>, sequence<3, 4>>,
                     tuple<sequence<1, 2>, sequence<3, 4>, sequence<5>>,
                     sequence<0>,
                     sequence<5>>(
    make_tuple(ck_tile::make_unmerge_transform(make_tuple(number<4>{}, number<8>{})),
               ck_tile::make_xor_transform(make_tuple(number<4>{}, number<8>{})),
               ck_tile::make_merge_transform(make_tuple(number<4>{}, number<8>{}))),
    sequence<32>{}));
"""


def test_adaptors_give_ck_tiles_indices(tmp_path: Path) -> None:
    device_assembly(ADAPTORS, "gfx942", tmp_path, find_toolchain(), find_ck_tree())


# With its template argument given, CK Tile's own function is called.
DISTRIBUTIONS = """
#include "cklang/core.hpp"

using ck_tile::index_t, ck_tile::sequence, ck_tile::tile_distributed_index, ck_tile::tuple;

template <typename Encoding, typename... Indices>
constexpr bool spreads = [] {
    using Ours   = decltype(ck_tile::make_static_tile_distribution(Encoding{}));
    using Theirs = decltype(ck_tile::make_static_tile_distribution<Encoding>(Encoding{}));
    static_assert(!std::is_same_v<Ours, Theirs>);
    static_assert(std::is_same_v<typename Ours::PsYs2XsAdaptor, typename Theirs::PsYs2XsAdaptor>);
    static_assert(std::is_same_v<typename Ours::Ys2DDescriptor, typename Theirs::Ys2DDescriptor>);
    static_assert((std::is_same_v<decltype(Ours::get_y_indices_from_distributed_indices(Indices{})),
                                  decltype(Theirs::get_y_indices_from_distributed_indices(
                                      Indices{}))> && ...));
    constexpr auto ours   = Ours::DstrDetail::rh_major_minor_to_adaptor_hidden_idss_;
    constexpr auto theirs = Theirs::DstrDetail::rh_major_minor_to_adaptor_hidden_idss_;
    for(index_t major = 0; major < ours.size(); ++major)
        for(index_t minor = 0; minor < Encoding::detail::ndims_rhs_minor_[major]; ++minor)
            if(ours[major][minor] != theirs[major][minor])
                return false;
    return true;
}();

// Rows over warps and lanes, columns in vectors.
static_assert(spreads<ck_tile::tile_distribution_encoding<
    sequence<>, tuple<sequence<2, 4, 16>, sequence<4, 8>>,
    tuple<sequence<1>, sequence<1, 2>>, tuple<sequence<1>, sequence<2, 0>>,
    sequence<1, 2>, sequence<0, 1>>,
    tuple<tile_distributed_index<1>, tile_distributed_index<7>>,
    tuple<tile_distributed_index<0>, tile_distributed_index<3>>>);

// What warps replicate, and results of matrix instructions.
static_assert(spreads<ck_tile::tile_distribution_encoding<
    sequence<2>, tuple<sequence<2, 4, 32>, sequence<1, 4, 2, 4>>,
    tuple<sequence<1, 0>, sequence<2, 1>>, tuple<sequence<1, 0>, sequence<2, 2>>,
    sequence<1, 2, 2, 2>, sequence<0, 0, 1, 3>>,
    tuple<tile_distributed_index<1>, tile_distributed_index<0, 3, 2>>>);

// One dimension, threads of one warp.
static_assert(spreads<ck_tile::tile_distribution_encoding<
    sequence<>, tuple<sequence<4, 64>>,
    tuple<sequence<1>>, tuple<sequence<1>>, sequence<1>, sequence<0>>,
    tuple<tile_distributed_index<3>>>);
"""


def test_distributions_have_ck_tiles_types(tmp_path: Path) -> None:
    device_assembly(DISTRIBUTIONS, "gfx942", tmp_path, find_toolchain(), find_ck_tree())
