# SPDX-License-Identifier: MIT
"""The order of a prepared B: warp tile by warp tile, and in each of them lane by lane."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from cklang.arch import ArchSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrangement:
    """How the elements of B [K, N] follow one another.

    B is cut into tiles of ``n`` columns and ``k`` steps, filled up with zeros. Tiles along K come
    first, then those along N. In a tile each of ``lanes`` lanes has ``k / lanes`` neighbours along
    K of each column: the first lanes of all columns, then the second ones, and so on.
    """

    n: int
    k: int
    lanes: int

    def __str__(self) -> str:
        return f"warp tiles of {self.n}x{self.k} over {self.lanes} lanes along K"

    def extents(self, n: int, k: int) -> tuple[int, int]:
        """Return the tiles along N, and the elements of all tiles along K behind one another."""
        return -(-n // self.n), -(-k // self.k) * self.n * self.k

    def arrange(self, b: NDArray[Any]) -> NDArray[Any]:
        """Return ``b`` [K, N] in this order: one row of elements for each tile along N."""
        k, n = b.shape
        tiles_n, tiles_k = -(-n // self.n), -(-k // self.k)
        filled = np.zeros((tiles_n * self.n, tiles_k * self.k), b.dtype)
        filled[:n, :k] = b.T
        shape = (tiles_n, self.n, tiles_k, self.lanes, self.k // self.lanes)
        ordered = filled.reshape(shape).transpose(0, 2, 3, 1, 4)
        return np.ascontiguousarray(ordered).reshape(self.extents(n, k))

    def restore(self, data: NDArray[Any], n: int, k: int) -> NDArray[Any]:
        """Return the [K, N] matrix that :meth:`arrange` put into ``data``."""
        tiles_n, tiles_k = -(-n // self.n), -(-k // self.k)
        shape = (tiles_n, tiles_k, self.lanes, self.n, self.k // self.lanes)
        ordered = data.reshape(shape).transpose(0, 3, 1, 2, 4)
        filled = ordered.reshape(tiles_n * self.n, tiles_k * self.k)
        return np.ascontiguousarray(filled[:n, :k].T)


def arrangement_of(warp_tile: tuple[int, int, int], spec: ArchSpec) -> Arrangement:
    """Return the order in which kernels of a warp tile (m, n, k) read a prepared B.

    The lanes of a wave stand side by side along N and, as often as they fit, along K: the layout of
    B in MFMA's registers, in which each lane has neighbours along K.
    """
    _, n, k = warp_tile
    return Arrangement(n=n, k=k, lanes=max(1, spec.wave_size // n))
