# SPDX-License-Identifier: MIT
"""The ops ``concat`` and ``stack``: tensors one after the other in one tensor.

They compute nothing: what computes a part writes it into its place.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from cklang.errors import error
from cklang.ir.nodes import Attr, Operation
from cklang.ir.numeric import Array
from cklang.ir.rules import DTypeRule, Shape, ShapeRule
from cklang.types import DType, extent_value

JOINS = CONCAT, STACK = "concat", "stack"
"""The names of the ops."""

MOST_PARTS = 64
"""The tensors that one op joins."""


def concatenated(*parts: Array, axis: int, shape: Sequence[int]) -> Array:
    """Return arrays one after the other along an axis."""
    del shape
    return np.concatenate(parts, axis)


def stacked(*parts: Array, axis: int, shape: Sequence[int]) -> Array:
    """Return arrays one after the other along a new axis."""
    del shape
    return np.stack(parts, axis)


def axis_of(operation: Operation) -> int:
    """Return the axis along which a join puts its parts."""
    axis = operation.attr("axis")
    return axis if isinstance(axis, int) else 0


def _concat_shape(
    shapes: tuple[Shape, ...], attrs: Mapping[str, Attr], declared: Shape | None
) -> Shape | None:
    axis = attrs["axis"]
    if declared is None or not isinstance(axis, int) or not 0 <= axis < len(declared):
        return None
    rests = {(*shape[:axis], *shape[axis + 1 :]) for shape in shapes if len(shape) > axis}
    own = (*declared[:axis], *declared[axis + 1 :])
    return declared if rests == {own} and all(len(s) == len(declared) for s in shapes) else None


def _stack_shape(
    shapes: tuple[Shape, ...], attrs: Mapping[str, Attr], declared: Shape | None
) -> Shape | None:
    axis = attrs["axis"]
    if declared is None or not isinstance(axis, int) or not 0 <= axis < len(declared):
        return None
    rest = (*declared[:axis], *declared[axis + 1 :])
    return declared if set(shapes) == {rest} and declared[axis] == len(shapes) else None


def _same_dtype(dtypes: tuple[DType, ...], _attrs: Mapping[str, Attr]) -> DType | None:
    return dtypes[0] if len(set(dtypes)) == 1 and not dtypes[0].packed else None


CONCAT_SHAPE = ShapeRule(
    text="operands of one shape but for the axis `axis`, along which the result has all of them",
    apply=_concat_shape,
    declared=True,
)
STACK_SHAPE = ShapeRule(
    text="operands of one shape; the result has the axis `axis` besides, as long as there are "
    "operands",
    apply=_stack_shape,
    declared=True,
)
JOIN_DTYPE = DTypeRule(text="operands of one dtype of 8 bits or more, kept", apply=_same_dtype)


def check(operation: Operation, dims: Mapping[str, int]) -> None:
    """Check the extent of a concatenation.

    Raises:
        CkValueError: I039, it is not that of the parts together.
    """
    if operation.op == CONCAT:
        axis = axis_of(operation)
        parts = [extent_value(part.type.shape[axis], dims) for part in operation.operands]
        extent = operation.result.type.shape[axis]
        want = extent_value(extent, dims)
        if sum(parts) != want:
            raise error(
                "I039", at=operation.span, axis=axis, got=sum(parts), extent=extent, want=want
            )
