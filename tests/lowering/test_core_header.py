# SPDX-License-Identifier: MIT
"""Our loop that sorts sequences of indices gives the types that CK Tile's templates give."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from cklang.runtime.compile import device_assembly
from cklang.runtime.toolchain import find_ck_tree, find_toolchain

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


@pytest.mark.slow
def test_sequences_are_sorted_as_ck_tile_sorts_them(tmp_path: Path) -> None:
    rng = random.Random(0)
    some = [[rng.randrange(-3, 12) for _ in range(count)] for count in (*range(1, 12), 23)]
    lists = [", ".join(map(str, values)) for values in (*some, [5] * 4, range(9))]
    given = [f"{const}ck_tile::sequence<{each}>" for each in lists for const in ("", "const ")]
    text = PROBE + "".join(f"static_assert(sorts<{each}>);\n" for each in given)
    device_assembly(text, "gfx942", tmp_path, find_toolchain(), find_ck_tree())
