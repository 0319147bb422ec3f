# SPDX-License-Identifier: MIT
"""Rows reduced to one number each: rules of types and the NumPy meaning."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from cklang.ir.nodes import Attr
from cklang.ir.numeric import Array
from cklang.ir.rules import DTypeRule, Shape, ShapeRule
from cklang.types import DType, bf16, f16, f32

__all__ = ["MOST_AXES", "REDUCTIONS", "ROW_DTYPE", "ROW_DTYPES", "ROW_SHAPE", "row_max", "row_sum"]

REDUCTIONS: Mapping[str, str] = MappingProxyType({"sum": "reduce_sum", "max": "reduce_max"})
"""The ops by what they do with a row, as NumPy calls it."""

MOST_AXES = 5
"""The axes of a tensor whose rows are reduced, the last one included, at most."""

ROW_DTYPES = (f16, bf16, f32)
"""What rows are of; they are reduced in f32."""


def row_sum(x: Array) -> Array:
    """Return the sum of each row; that of an empty row is 0."""
    return np.asarray(np.sum(x, axis=-1))


def row_max(x: Array) -> Array:
    """Return the greatest element of each row, nan if it has one; -inf for an empty row."""
    return np.asarray(np.max(x, axis=-1, initial=-np.inf))


def _shape(
    shapes: tuple[Shape, ...], _attrs: Mapping[str, Attr], _declared: Shape | None
) -> Shape | None:
    (shape,) = shapes
    return shape[:-1] if 2 <= len(shape) <= MOST_AXES else None


def _dtype(dtypes: tuple[DType, ...], _attrs: Mapping[str, Attr]) -> DType | None:
    return f32 if dtypes[0] in ROW_DTYPES else None


ROW_SHAPE = ShapeRule(
    text=f"two to {MOST_AXES} axes, of which the last one is dropped", apply=_shape
)
ROW_DTYPE = DTypeRule(text="an operand of f16, bf16 or f32; gives f32", apply=_dtype)
