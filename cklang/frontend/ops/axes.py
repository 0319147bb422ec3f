# SPDX-License-Identifier: MIT
"""Axes and shapes as NumPy's functions name them, in programs and outside.

A ``ValueError`` has a problem and a piece of advice.
"""

from collections.abc import Sequence

from cklang.dims import is_extent, is_integer
from cklang.frontend.values import Item, describe
from cklang.types import Extent


def read_axis(axis: object, rank: int) -> int:
    """Return an axis counted from the first."""
    if not is_integer(axis):
        raise ValueError(f"the axis is {axis!r}", "legal: an integer")
    if not -rank <= axis < rank:
        raise ValueError(
            f"the axis is {axis}, but there are {rank} axes", f"legal: {-rank} to {rank - 1}"
        )
    return axis % rank


def read_shape(shape: Item) -> tuple[Extent, ...]:
    """Return a shape of extents: a tuple of integers and dims, or one of them."""
    items = shape if isinstance(shape, tuple | list) else (shape,)
    for item in items:
        if not is_extent(item):
            advice = "legal: integers from 0 and dims, as in (M, 4)"
            raise ValueError(f"the shape has {describe(item)}", advice)
    return tuple(items)


def read_flag(name: str, value: object) -> bool:
    """Return an option that is on or off."""
    if isinstance(value, bool):
        return value
    raise ValueError(f"{name} is {describe(value)}", "legal: True, False")


def read_permutation(axes: object, rank: int) -> tuple[int, ...]:
    """Return axes in another order, each named once."""
    items = axes if isinstance(axes, tuple | list) else (axes,)
    perm = tuple(read_axis(axis, rank) for axis in items)
    if sorted(perm) != list(range(rank)):
        raise ValueError(
            f"the axes {list(items)} do not name each of {rank} axes once",
            f"legal: {tuple(reversed(range(rank)))}, for example",
        )
    return perm


def swapped(one: object, other: object, rank: int) -> tuple[int, ...]:
    """Return the order of axes in which two are exchanged."""
    perm = list(range(rank))
    a, b = read_axis(one, rank), read_axis(other, rank)
    perm[a], perm[b] = perm[b], perm[a]
    return tuple(perm)


def permutation_of_method(axes: Sequence[object], rank: int) -> tuple[int, ...]:
    """Return the order that ``x.transpose(...)`` gives: torch's two axes, or all as in NumPy."""
    if len(axes) == 2 and rank != 2:
        return swapped(axes[0], axes[1], rank)
    return read_permutation(axes[0] if len(axes) == 1 else tuple(axes), rank)
