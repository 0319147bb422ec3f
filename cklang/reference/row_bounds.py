# SPDX-License-Identifier: MIT
"""The bound rules of reductions of rows: how far sums and maxima in f32 may be off.

**Sums.** Rows are widened exactly and added in f32, each addition rounded to nearest. Whatever the
order, an element passes at most as many additions as the row has elements, so the error is at most
n u / (1 - n u) times the sum of magnitudes; u is 2**-24, n the length. Additions lose nothing
among subnormal numbers.

**Maxima.** Comparisons are exact: the result lies between the maxima of the lower and of the upper
ends of the elements' intervals.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cklang.ir.nodes import Operation
from cklang.ir.numeric import Array
from cklang.ir.reductions import row_max, row_sum
from cklang.reference.evaluate import F32_OVERFLOW, limit
from cklang.reference.sums import UNIT, Known, finite
from cklang.types import Dim

__all__ = ["bound_max", "bound_sum"]


def bound_sum(operation: Operation, operands: Sequence[Known], _dims: dict[Dim, int]) -> Known:
    """Return the sums of rows with their errors."""
    (x,) = operands
    value = row_sum(x.value.astype(np.float64))
    passed = row_sum(finite(x.error))
    size = row_sum(finite(np.abs(x.value))) + passed
    roundings = x.value.shape[-1] * UNIT
    error = passed + size * roundings / (1 - roundings)
    # A partial sum may leave the range of f32, and an unknown element may be anything.
    wild = (size + error >= F32_OVERFLOW) & np.isfinite(value)
    error = np.where(np.isfinite(value), error, 0.0)
    return Known(
        value=limit(operation.result, value), error=np.where(wild | _unknown(x), np.inf, error)
    )


def bound_max(operation: Operation, operands: Sequence[Known], _dims: dict[Dim, int]) -> Known:
    """Return the maxima of rows with their errors."""
    (x,) = operands
    value, off = row_max(x.value), finite(x.error)
    lowest, highest = row_max(x.value - off), row_max(x.value + off)
    error = np.maximum(finite(highest - value), finite(value - lowest))
    return Known(value=limit(operation.result, value), error=np.where(_unknown(x), np.inf, error))


def _unknown(x: Known) -> Array:
    """Tell which rows have an element that may be anything, and none that is surely nan."""
    is_nan = np.isnan(x.value) & np.isfinite(x.error)
    return np.asarray(np.isinf(x.error).any(axis=-1) & ~is_nan.any(axis=-1))
