# SPDX-License-Identifier: MIT
"""The op ``extent``: the extent of an axis as a number that a kernel reads.

It reads no element of its operand, so no kernel waits for that: the plan of a call knows the
extents, and keeps each that is used in device memory.
"""

from collections.abc import Mapping

import numpy as np

from cklang.ir.nodes import Attr, Function
from cklang.ir.numeric import Array
from cklang.ir.rules import DTypeRule, Shape, ShapeRule
from cklang.types import i32

EXTENT = "extent"
"""The name of the op."""


def extent(x: Array, axis: int) -> Array:
    """Return how many elements ``x`` has along ``axis``."""
    return np.asarray(x.shape[axis], np.int64)


def _shape(
    shapes: tuple[Shape, ...], attrs: Mapping[str, Attr], _declared: Shape | None
) -> Shape | None:
    axis = attrs["axis"]
    return () if isinstance(axis, int) and 0 <= axis < len(shapes[0]) else None


EXTENT_SHAPE = ShapeRule(text="an operand that has axis `axis`; gives rank 0", apply=_shape)
EXTENT_DTYPE = DTypeRule(text="any operand; gives i32", apply=lambda _dtypes, _attrs: i32)


def extent_numbers(function: Function, dims: Mapping[str, int]) -> dict[str, int]:
    """Return the number that each ``extent`` of a function is, by the name of its result.

    >>> from cklang.ir.parser import parse_function
    >>> x = parse_function("func @f(%x: i32[N, 4]) -> i32[] { "
    ...                    "%0: i32[] = extent(%x) {axis = 0} return %0 }")
    >>> extent_numbers(x, {"N": 9})
    {'0': 9}
    """
    numbers = {}
    for operation in function.body:
        if operation.op == EXTENT:
            shape = operation.operands[0].type.extents(dims)
            numbers[operation.result.name] = shape[int(str(operation.attr("axis")))]
    return numbers
