# SPDX-License-Identifier: MIT
"""Calls of an attention on which its kernels are compared with the reference.

Lists of lengths and places are legal there. Where all would take too long, a part is compared: some
sequences, queries and keys of the same arrays, so that strides, addresses and head sizes are the
same.
"""

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from cklang.families.attention.host import AttentionProblem
from cklang.families.attention.plan import FusedAttention
from cklang.types import Dim

_SEQUENCES = 2
_ROWS = 300
"""Sequences, queries and keys that are compared; more than any tile has."""


def part_of(kernel: FusedAttention, dims: Mapping[str, int]) -> Mapping[str, int]:
    """Return the extents of some sequences, queries and keys; all if packed or in pages."""
    if kernel.starts or kernel.pages is not None:
        return dims
    part = dict(dims)
    axes = [(kernel.q, 0, _SEQUENCES), (kernel.q, 2, _ROWS), (kernel.k, 2, _ROWS)]
    for view, place, most in axes:
        axis = view.perm[place]
        extent = None if axis is None else view.value.type.shape[axis]
        if isinstance(extent, Dim):
            part[extent.name] = min(part[extent.name], most)
    return part


def legal_lists(
    kernel: FusedAttention, problem: AttentionProblem, sizes: Mapping[str, tuple[int, ...]]
) -> dict[str, npt.NDArray[np.int32]]:
    """Return lists of lengths and places that are legal, by name."""
    lists: dict[str, npt.NDArray[np.int32]] = {}
    for rows, starts in zip((problem.seqlen_q, problem.seqlen_k), kernel.starts, strict=False):
        lists[starts.name] = np.linspace(0, rows, math.prod(sizes[starts.name])).astype(np.int32)
    if kernel.lengths is not None:
        lists[kernel.lengths.name] = np.full(sizes[kernel.lengths.name], problem.seqlen_k, np.int32)
    if kernel.page_starts is not None:
        lists[kernel.page_starts.name] = np.zeros(sizes[kernel.page_starts.name], np.int32)
    if kernel.pages is not None:
        shape = sizes[kernel.pages.name]
        count = max(sizes[kernel.k.value.name][0], 1)
        lists[kernel.pages.name] = (np.arange(math.prod(shape), dtype=np.int32) % count).reshape(
            shape
        )
    return lists
