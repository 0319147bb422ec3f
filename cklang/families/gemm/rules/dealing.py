# SPDX-License-Identifier: MIT
"""How the threads of a workgroup share a tile: CK Tile's access patterns."""

from dataclasses import dataclass

from cklang.arch import ArchSpec
from cklang.families.gemm.key import Algorithm, Layout, Signature
from cklang.families.gemm.rules import resources
from cklang.families.rule import Violation


def access_pattern(
    threads: int, wave: int, outer: int, row: int, vector: int
) -> tuple[int, int] | None:
    """Return (elements per access, accesses) of a thread, or None if the tile cannot be dealt out.

    A tile of ``outer`` rows of ``row`` contiguous elements is dealt to whole waves, each taking
    whole rows: CK Tile's thread-raked pattern, with an access of at least ``vector`` elements and
    so wide that a row needs no more lanes than a wave has.
    """
    if threads < wave:
        return None
    width = max(vector, row // wave)
    width = min(width, outer * row // threads)
    if width < vector or row % width or row // width > wave:
        return None
    rows_at_once = wave // (row // width) * (threads // wave)
    if wave % (row // width) or outer % rows_at_once:
        return None
    return width, outer // rows_at_once


@dataclass(frozen=True, slots=True)
class DealtTile:
    """A tile of an operand whose rows, contiguous in memory, are dealt out to threads."""

    name: str
    outer: int
    row: int
    vector: int
    threads: int

    def pattern(self, spec: ArchSpec) -> tuple[int, int] | None:
        """Return its access pattern."""
        return access_pattern(self.threads, spec.wave_size, self.outer, self.row, self.vector)

    def refusal(self, spec: ArchSpec) -> Violation | None:
        """Object if it cannot be dealt out."""
        if self.pattern(spec) is not None:
            return None
        accesses = f"{self.outer} rows of {self.row} in accesses of {self.vector}"
        value = f"{accesses} by {self.threads} threads"
        return Violation(what=f"the tile of {self.name}", value=value, bound="dealt out evenly")


def threads_of(a: Algorithm, spec: ArchSpec) -> int:
    """Return the threads that share a tile: each group of waves has tiles of its own."""
    return resources.warps_of(a) * spec.wave_size // a.num_wave_groups


def tile_of_a(a: Algorithm, s: Signature, spec: ArchSpec) -> DealtTile:
    """Return the tile of A as it is loaded."""
    m, _, k = a.tile
    outer, row = (m, k) if s.layout_a is Layout.ROW else (k, m)
    return DealtTile("A", outer, row, a.vector_a, threads_of(a, spec))


def tile_of_b(a: Algorithm, s: Signature, spec: ArchSpec) -> DealtTile | None:
    """Return the tile of B as it is loaded; None if B is prepared, and so dealt out already."""
    _, n, k = a.tile
    threads = threads_of(a, spec)
    if s.layout_b is Layout.PREPARED:
        return None
    if s.layout_b is not Layout.ROW:
        return DealtTile("B", n, k, a.vector_b, threads)
    # Half of the waves loads either B of a pair.
    return DealtTile("B", k, n // s.sums, a.vector_b, threads // s.sums)
