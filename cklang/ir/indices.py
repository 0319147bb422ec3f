# SPDX-License-Identifier: MIT
"""The op ``arange``: the numbers 0, 1, 2, … along an axis.

Kernels of rows compute them from the place of an element. Other kernels read them: the plan of a
call keeps those that are used in device memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from cklang.ir.nodes import Attr, Function
from cklang.ir.numeric import Array
from cklang.ir.rules import DTypeRule, Shape, ShapeRule
from cklang.types import i32

__all__ = ["ARANGE", "ARANGE_DTYPE", "ARANGE_SHAPE", "arange", "index_ranges"]

ARANGE = "arange"
"""The name of the op."""


def arange(shape: Sequence[int]) -> Array:
    """Return the index of each element along the one axis of ``shape``."""
    return np.arange(shape[0], dtype=np.int64)


def _shape(
    _shapes: tuple[Shape, ...], _attrs: Mapping[str, Attr], declared: Shape | None
) -> Shape | None:
    return declared if declared is not None and len(declared) == 1 else None


ARANGE_SHAPE = ShapeRule(text="one axis", apply=_shape, declared=True)
ARANGE_DTYPE = DTypeRule(text="no operand; gives i32", apply=lambda _dtypes, _attrs: i32)


def index_ranges(function: Function, dims: Mapping[str, int]) -> dict[str, range]:
    """Return the numbers that each ``arange`` of a function has, by the name of its result.

    Args:
        function: A verified function.
        dims: The extent of each dim of its values, by name.

    >>> from cklang.ir.parser import parse_function
    >>> x = parse_function("func @f(%x: f32[N]) -> i32[N] { %0: i32[N] = arange() return %0 }")
    >>> index_ranges(x, {"N": 9})
    {'0': range(0, 9)}
    """
    return {
        each.result.name: range(each.result.type.extents(dims)[0])
        for each in function.body
        if each.op == ARANGE
    }
