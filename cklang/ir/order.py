# SPDX-License-Identifier: MIT
"""The ops ``cumsum``, ``cumprod``, ``sort`` and ``argsort`` along an axis: rules and meanings.

``sort`` gives the elements along an axis in order, ``argsort`` their indices; ``count`` is how many
of them, from the first on, 0 for all. Equal elements stay in their order, the lowest index first,
ascending and descending. As in torch, nan is greater than all numbers.
"""

from collections.abc import Mapping

import numpy as np

from cklang.ir.nodes import Attr
from cklang.ir.numeric import Array
from cklang.ir.reductions import MOST_AXES, REDUCE_DTYPE, ROW_DTYPES, wrapped
from cklang.ir.rules import DTypeRule, Shape, ShapeRule
from cklang.types import DType, i32

CUMSUM = "cumsum"
CUMPROD = "cumprod"
SORT = "sort"
ARGSORT = "argsort"
"""The names of the ops."""

COUNT = "count"
DESCENDING = "descending"
"""Attributes of ``sort`` and ``argsort``."""

SORTED = (*ROW_DTYPES, i32)
"""The dtypes that are sorted."""


def cumsum(x: Array, axis: int) -> Array:
    """Return the sums of all elements up to each along an axis."""
    return wrapped(np.cumsum(x, axis=axis))


def cumprod(x: Array, axis: int) -> Array:
    """Return the products of all elements up to each along an axis."""
    return wrapped(np.cumprod(x, axis=axis))


def argsorted(x: Array, axis: int, count: int, descending: int) -> Array:
    """Return the indices of elements along an axis in order.

    >>> argsorted(np.array([1.0, 3.0, np.nan, 3.0]), 0, 3, 1).tolist()
    [2, 1, 3]
    """
    rows = np.moveaxis(x, axis, -1)
    is_nan = np.isnan(rows) if rows.dtype.kind == "f" else np.zeros(rows.shape, np.bool_)
    numbers = np.where(is_nan, 0, rows)
    # Stable: what both keys leave equal stays in its order.
    keys = (-numbers, ~is_nan) if descending else (numbers, is_nan)
    order = np.lexsort(keys, axis=-1)
    return np.moveaxis(order[..., : count or None], -1, axis)


def in_order(x: Array, axis: int, count: int, descending: int) -> Array:
    """Return elements along an axis in order."""
    return np.take_along_axis(x, argsorted(x, axis, count, descending), axis)


def _axis_shape(
    shapes: tuple[Shape, ...], attrs: Mapping[str, Attr], _declared: Shape | None
) -> Shape | None:
    (shape,), axis = shapes, attrs["axis"]
    is_axis = isinstance(axis, int) and 0 <= axis < len(shape) <= MOST_AXES
    return shape if is_axis else None


def _sorted_shape(
    shapes: tuple[Shape, ...], attrs: Mapping[str, Attr], declared: Shape | None
) -> Shape | None:
    shape = _axis_shape(shapes, attrs, declared)
    axis, count = attrs["axis"], attrs[COUNT]
    if shape is None or not isinstance(axis, int) or not isinstance(count, int):
        return None
    extent = shape[axis]
    if count < 0 or (isinstance(extent, int) and count > extent) or attrs[DESCENDING] not in (0, 1):
        return None
    return (*shape[:axis], count, *shape[axis + 1 :]) if count else shape


def _sorted_dtype(dtypes: tuple[DType, ...], _attrs: Mapping[str, Attr]) -> DType | None:
    return dtypes[0] if dtypes[0] in SORTED else None


CUMSUM_SHAPE = ShapeRule(text=f"one to {MOST_AXES} axes; `axis` is one of them", apply=_axis_shape)
CUMSUM_DTYPE = REDUCE_DTYPE
SORT_SHAPE = ShapeRule(
    text=f"one to {MOST_AXES} axes; `axis` is one of them, `count` is 0 or its extent in the "
    "result, `descending` 0 or 1",
    apply=_sorted_shape,
)
SORT_DTYPE = DTypeRule(text="an operand of f16, bf16, f32 or i32, kept", apply=_sorted_dtype)
ARGSORT_DTYPE = DTypeRule(
    text="an operand of f16, bf16, f32 or i32; gives i32",
    apply=lambda dtypes, attrs: None if _sorted_dtype(dtypes, attrs) is None else i32,
)
