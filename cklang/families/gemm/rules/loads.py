# SPDX-License-Identifier: MIT
"""Rules about the way of A and B into LDS: what is loaded there must be what is read from there."""

from collections.abc import Iterator

from cklang.arch import ArchSpec
from cklang.families.bounds import among
from cklang.families.gemm.key import Algorithm, Layout, Signature
from cklang.families.gemm.pipelines import PIPELINES, transposable
from cklang.families.gemm.rules import RULES
from cklang.families.gemm.rules.dealing import DealtTile, tile_of_a, tile_of_b
from cklang.families.rule import Violation
from cklang.types import i8


def _transposes(s: Signature, spec: ArchSpec) -> bool:
    """Whether tiles whose outer axis is K lie in LDS as in memory, and are read transposed."""
    return spec.lds_transposed_bytes > 0 and transposable(s)


def _turned(a: Algorithm, s: Signature, spec: ArchSpec) -> Iterator[DealtTile]:
    """Yield the tiles whose outer axis is K, where matrix instructions want it to be the inner."""
    if s.layout_a is Layout.COL:
        yield tile_of_a(a, s, spec)
    b = tile_of_b(a, s, spec)
    if b and s.layout_b is Layout.ROW:
        yield b


@RULES.algorithm(
    "lds-store",
    "where LDS transposes, tiles are stored there as wide as they are loaded: clang makes four "
    "elements of three, and CK Tile stores int8 in powers of two",
    reads=("tile", "warps", "vector_a", "vector_b"),
)
def _lds_store(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    # A vector of three elements takes the memory of four, and clang stores all of it. What is
    # beyond the last lane of a row is the beginning of the next row, which is another wave's.
    if not _transposes(s, spec):
        return None
    for tile in _turned(a, s, spec):
        width, _ = tile.pattern(spec) or (1, 0)
        if width == 3 or (s.dtype_a == i8 and width & (width - 1)):
            what = f"the elements of {tile.name} that a thread stores at once"
            return Violation(what=what, value=str(width), bound="a power of two")
    return None


@RULES.algorithm(
    "lds-swizzle",
    "tiles whose inner axis is K are swizzled in LDS by exclusive or, which needs a power of two",
    reads=("pipeline", "tile"),
)
def _lds_swizzle(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    # CK Tile's xor_t takes a group along K to group ^ (row % groups), beyond the last one if the
    # number of groups is none: two rows share places.
    row, k = PIPELINES.get(a.pipeline), a.tile[2]
    if not k & (k - 1) or (row and row.into_lds):
        return None
    if _transposes(s, spec) and s.layouts[:2] == "cr":
        return None
    return Violation(what="the tile along K", value=str(k), bound="a power of two")


@RULES.algorithm(
    "async-order",
    "memory is loaded straight into LDS in its own order, and LDS transposes 8 and 16 bits only",
    reads=("pipeline",),
)
def _async_order(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    row = PIPELINES.get(a.pipeline)
    if row is None or not row.into_lds or transposable(s) or s.layouts[:2] == "rc":
        return None
    legal = [name.value for name, row in PIPELINES.items() if row.any_layout and not row.into_lds]
    what = f"the pipeline of {s.dtype_a} in layouts {s.layouts}"
    return among(what, a.pipeline.value, legal)


@RULES.algorithm(
    "async-width",
    "a load straight into LDS leaves what neighbouring lanes load side by side, so a lane has no "
    "more of a row than one load moves",
    reads=("pipeline", "tile", "warps", "vector_a", "vector_b"),
)
def _async_width(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    row = PIPELINES.get(a.pipeline)
    if row is None or not row.into_lds:
        return None
    for tile in (tile_of_a(a, s, spec), tile_of_b(a, s, spec)):
        pattern = tile and tile.pattern(spec)
        if tile and pattern and pattern[0] != tile.vector:
            what = f"the vector of {tile.name}, whose rows of {tile.row} one wave loads,"
            return Violation(what=what, value=str(tile.vector), bound=f"{pattern[0]} or more")
    return None
