# SPDX-License-Identifier: MIT
"""The ops of indices: ``arange`` counts along an axis, ``take`` reads a tensor at indices.

``take_along`` has an index of its own for each element. Kernels of rows compute ``arange`` from the
place of an element. Other kernels read it: the plan of a call keeps in device memory what they use.
Only kernels of rows compute ``take`` and ``take_along``.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from cklang.errors import error
from cklang.ir.nodes import Attr, Function
from cklang.ir.numeric import Array
from cklang.ir.rules import DTypeRule, Shape, ShapeRule
from cklang.types import DType, i32, i64

ARANGE = "arange"
TAKE = "take"
TAKE_ALONG = "take_along"
"""The names of the ops."""

INDEX_DTYPES = (i32, i64)
"""The dtypes of indices of ``take`` and ``take_along``."""


def arange(shape: Sequence[int]) -> Array:
    """Return the index of each element along the one axis of ``shape``."""
    return np.arange(shape[0], dtype=np.int64)


def _shape(
    _shapes: tuple[Shape, ...], _attrs: Mapping[str, Attr], declared: Shape | None
) -> Shape | None:
    return declared if declared is not None and len(declared) == 1 else None


ARANGE_SHAPE = ShapeRule(text="one axis", apply=_shape, declared=True)
ARANGE_DTYPE = DTypeRule(text="no operand; gives i32", apply=lambda _dtypes, _attrs: i32)


def taken(table: Array, indices: Array, axis: int) -> Array:
    """Return ``table`` at indices along an axis, each limited to it; 0 where it has no extent."""
    if not table.shape[axis]:
        rest = (*table.shape[:axis], *indices.shape, *table.shape[axis + 1 :])
        return np.zeros(rest, table.dtype)
    return np.take(table, np.clip(indices, 0, table.shape[axis] - 1), axis)


def take_axes(rank: int, indices: int, axis: int) -> tuple[tuple[int | None, ...], ...]:
    """Return which axis of the table, and of the indices, runs with each axis of a ``take``.

    The table has ``rank`` axes; those of the ``indices`` replace one of them.

    Example:
        >>> take_axes(2, 2, 0)  # rows of a matrix: [i, j, k] is the table's [., k] and [i, j]
        ((None, None, 1), (0, 1, None))
    """
    own = range(indices)
    before, after = range(axis), range(axis + 1, rank)
    table = (*before, *(None for _ in own), *after)
    return table, (*(None for _ in before), *own, *(None for _ in after))


def taken_along(table: Array, indices: Array, axis: int) -> Array:
    """Return an element of ``table`` for each index, limited to the axis; 0 where it has none."""
    if not table.shape[axis]:
        return np.zeros(indices.shape, table.dtype)
    return np.take_along_axis(table, np.clip(indices, 0, table.shape[axis] - 1), axis)


def _along_axes(rank: int, indices: int, axis: int) -> tuple[tuple[int | None, ...], ...]:
    """Return which axis of the table, and of the indices, runs with each of a ``take_along``."""
    return tuple(None if own == axis else own for own in range(rank)), tuple(range(indices))


def check_indices(name: str, indices: Array, extent: int) -> None:
    """Check indices of ``take``."""
    if not indices.size or (indices.min() >= 0 and indices.max() < extent):
        return
    outside = np.argwhere((indices < 0) | (indices >= extent))
    place = tuple(outside[0].tolist())
    raise error(
        "A056",
        name=name,
        index=", ".join(map(str, place)),
        got=int(indices[place]),
        low=0,
        high=extent - 1,
        why=f"the axis that it indexes has {extent} elements",
        option="an index",
    )


def _take_shape(
    shapes: tuple[Shape, ...], attrs: Mapping[str, Attr], _declared: Shape | None
) -> Shape | None:
    (table, indices), axis = shapes, attrs["axis"]
    if not isinstance(axis, int) or not 0 <= axis < len(table):
        return None
    return (*table[:axis], *indices, *table[axis + 1 :])


def _along_shape(
    shapes: tuple[Shape, ...], attrs: Mapping[str, Attr], _declared: Shape | None
) -> Shape | None:
    (table, indices), axis = shapes, attrs["axis"]
    if not isinstance(axis, int) or not 0 <= axis < len(table) == len(indices):
        return None
    same = (*table[:axis], indices[axis], *table[axis + 1 :])
    return indices if indices == same else None


def _take_dtype(dtypes: tuple[DType, ...], _attrs: Mapping[str, Attr]) -> DType | None:
    table, indices = dtypes
    is_read = not table.packed and (table.bits <= _WIDEST or table == i64)
    return table if is_read and indices in INDEX_DTYPES else None


_WIDEST = 32

TAKE_SHAPE = ShapeRule(
    text="a tensor and indices of any rank, whose axes replace its axis `axis`", apply=_take_shape
)
ALONG_SHAPE = ShapeRule(
    text="a tensor and indices of equal extents but along `axis`; gives the shape of the indices",
    apply=_along_shape,
)
TAKE_DTYPE = DTypeRule(
    text="a tensor of 8 to 32 bits an element or of i64, kept; indices of i32 or i64",
    apply=_take_dtype,
)


GATHER_AXES: Mapping[str, Callable[[int, int, int], tuple[tuple[int | None, ...], ...]]] = {
    TAKE: take_axes,
    TAKE_ALONG: _along_axes,
}
"""Which axes of the table and of the indices run with those of the result, by the op."""


def index_ranges(function: Function, dims: Mapping[str, int]) -> dict[str, range]:
    """Return the numbers that each ``arange`` of a function has, by the name of its result.

    >>> from cklang.ir.parser import parse_function
    >>> x = parse_function("func @f(%x: f32[N]) -> i32[N] { %0: i32[N] = arange() return %0 }")
    >>> index_ranges(x, {"N": 9})
    {'0': range(0, 9)}
    """
    return {
        operation.result.name: range(operation.result.type.extents(dims)[0])
        for operation in function.body
        if operation.op == ARANGE
    }
