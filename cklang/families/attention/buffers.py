# SPDX-License-Identifier: MIT
"""Which buffer in LDS takes which step of K and V in ``qr_async``, and whether waves then race.

The pipeline walks along the head in steps of K, then along the keys in steps of V; its three
buffers take the steps in an order that the policy gives. A wave may be one barrier ahead of the
others, so what it writes must not lie where they still read.
"""

from collections.abc import Mapping
from itertools import pairwise
from types import MappingProxyType

from cklang.families.attention.key import AttentionAlgorithm

_BUFFERS = 3
_TABULATED: Mapping[tuple[int, int], tuple[int, ...]] = MappingProxyType(
    {
        (4, 4): (1, 2, 0, 1, 0, 1, 2, 0),
        (4, 2): (1, 2, 0, 1, 2, 0),
        (2, 4): (1, 2, 0, 1, 2, 0),
        (3, 3): (1, 2, 0, 1, 2, 0),
        (3, 4): (1, 2, 0, 0, 1, 2, 0),
        (2, 2): (1, 2, 1, 0),
    }
)
"""The orders that CK Tile's policy has specialisations for."""


def steps_of(algorithm: AttentionAlgorithm) -> tuple[int, int]:
    """Return the steps of a tile along the head of K, and along the keys of V."""
    _, keys, step_d, _, step_k, head = algorithm.tile
    return head // step_d, keys // step_k


def ck_tile_order(steps_d: int, steps_k: int) -> tuple[int, ...]:
    """Return the buffer of each step, those of K first, as CK Tile's policy has it.

    >>> ck_tile_order(3, 4)
    (1, 2, 0, 0, 1, 2, 0)
    """
    tabulated = _TABULATED.get((steps_d, steps_k))
    if tabulated is not None:
        return tabulated
    last = _BUFFERS - 1
    of_v = ((last + n - (steps_k - 1)) % _BUFFERS for n in range(steps_k))
    return (*(n % _BUFFERS for n in range(steps_d)), *of_v)


def is_raced(order: tuple[int, ...], steps_d: int) -> bool:
    """Say whether a wave may write a step where others still read another.

    A step is written while others read the one before it, or the last but one of K. The first of
    the next tile is written while the last is on its way, the second while others read it.

    >>> is_raced((1, 2, 0, 0, 1, 2, 0), 3)
    True
    >>> is_raced((0, 1, 2, 1, 2, 1, 2), 3)
    False
    """
    of_k, last = order[:steps_d], order[-1]
    neighbours = pairwise(order)
    next_but_one = zip(of_k, of_k[2:], strict=False)
    alike = any(a == b for a, b in (*neighbours, *next_but_one))
    # With one step of V there is no barrier between the last step of K and the next tile's first.
    unordered = len(order) == steps_d + 1 and of_k[0] == of_k[-1]
    return alike or last in of_k[:2] or unordered


def buffer_order(steps_d: int, steps_k: int) -> tuple[int, ...]:
    """Return the order for so many steps: CK Tile's, or ours where waves race in it.

    >>> buffer_order(4, 4)
    (1, 2, 0, 1, 0, 1, 2, 0)
    >>> buffer_order(3, 4)
    (0, 1, 2, 1, 2, 1, 2)
    """
    order = ck_tile_order(steps_d, steps_k)
    return _alternating(steps_d, steps_k) if is_raced(order, steps_d) else order


def own_buffer_order(algorithm: AttentionAlgorithm) -> tuple[int, ...]:
    """Return the order that replaces CK Tile's in a kernel; empty where its own is right."""
    steps = steps_of(algorithm)
    order = buffer_order(*steps)
    return () if order == ck_tile_order(*steps) else order


def _alternating(steps_d: int, steps_k: int) -> tuple[int, ...]:
    """Return an order that ends in 1, 2: K's first two steps, 0 and 1, meet neither."""
    of_k = [n % _BUFFERS for n in range(steps_d)]
    of_v = [2 - (steps_k - 1 - n) % 2 for n in range(steps_k)]
    if steps_k > 1 and of_v[0] == of_k[-1]:
        of_v[0] = 0
    return (*of_k, *of_v)
