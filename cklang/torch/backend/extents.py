# SPDX-License-Identifier: MIT
"""Sizes of torch as extents of the IR, and which axes of two shapes of one tensor correspond.

torch writes a symbolic size as an expression of sympy; a symbol becomes a dim of its name.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import sympy  # type: ignore[import-untyped]
from torch.utils._sympy.functions import FloorDiv

from cklang.types import Dim, Extent


class Unsupported(Exception):  # noqa: N818 - it never leaves the backend: it is a reason
    """A node that runs in eager torch; the text is the reason, without the node's name."""


Shape = tuple[Extent, ...]


def extent_of(size: Any) -> Extent:
    """Return a size of a tensor as an extent.

    Example:
        >>> extent_of(8)
        8
    """
    if isinstance(size, int):
        return size
    return extent_of_expression(size.node.expr)


def extent_of_expression(expression: sympy.Expr) -> Extent:
    """Return a size that torch wrote as an expression of sympy as an extent.

    Example:
        >>> import sympy
        >>> extent_of_expression(2 * sympy.Symbol("s0"))
        2*s0
    """
    match expression:
        case sympy.Integer():
            return int(expression)
        case sympy.Symbol():
            return Dim(expression.name)
        case sympy.Add():
            first, *rest = map(extent_of_expression, expression.args)
            return sum(rest, first)
        case sympy.Mul():
            return product(map(extent_of_expression, expression.args))
        case sympy.Pow(args=(base, sympy.Integer() as count)) if count > 0:
            return product([extent_of_expression(base)] * int(count))
        case FloorDiv(args=(numerator, sympy.Integer() as size)) if size > 0:
            extent: Extent = extent_of_expression(numerator) // int(size)
            return extent
    raise Unsupported(f"its extent {expression} is no sum or product of sizes")


def shape_of(tensor: Any) -> Shape:
    """Return the shape of a tensor as torch traces it.

    Example:
        >>> import torch
        >>> shape_of(torch.empty(2, 3))
        (2, 3)
    """
    return tuple(map(extent_of, tensor.shape))


def hint_of(size: Any) -> int:
    """Return the number that a size had in the call that was traced.

    Example:
        >>> hint_of(7)
        7
    """
    return size if isinstance(size, int) else int(size.node.hint)


def product(extents: Any) -> Extent:
    """Return the product of extents; 1 of none.

    Example:
        >>> product([2, Dim("B"), 3])
        6*B
    """
    result: Extent = math.prod(extents)
    return result


@dataclass(frozen=True, slots=True)
class Group:
    """Neighbouring axes of one shape and those of another that count the same elements."""

    ours: tuple[int, ...]
    theirs: tuple[int, ...]


def aligned(ours: Sequence[Extent], theirs: Sequence[Extent]) -> tuple[Group, ...]:
    """Return how the axes of two shapes of as many elements correspond, in the smallest groups.

    An axis of extent 1 that the other shape lacks is a group of its own.

    Example:
        >>> for group in aligned((8, 4, 16), (32, 1, 16)):
        ...     print(group.ours, group.theirs)
        (0, 1) (0,)
        () (1,)
        (2,) (2,)
    """
    return tuple(_groups(ours, theirs))


def _groups(ours: Sequence[Extent], theirs: Sequence[Extent]) -> Iterator[Group]:
    i = j = 0
    while i < len(ours) or j < len(theirs):
        one, other = ours[i : i + 1], theirs[j : j + 1]
        if list(one) == [1] and list(other) != [1]:
            stop = i + 1, j
        elif list(other) == [1] and list(one) != [1]:
            stop = i, j + 1
        else:
            lengths = _shortest(ours[i:], theirs[j:])
            stop = i + lengths[0], j + lengths[1]
        yield Group(tuple(range(i, stop[0])), tuple(range(j, stop[1])))
        i, j = stop


def _shortest(ours: Sequence[Extent], theirs: Sequence[Extent]) -> tuple[int, int]:
    """Return how many first axes of each have the same product; all of them if none have."""
    counts: dict[Extent, int] = {}
    for count, size in enumerate(accumulate(ours, _times), start=1):
        counts.setdefault(size, count)
    for count, size in enumerate(accumulate(theirs, _times), start=1):
        if size in counts:
            return counts[size], count
    return len(ours), len(theirs)


def _times(one: Extent, other: Extent) -> Extent:
    result: Extent = one * other
    return result
