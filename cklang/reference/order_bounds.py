# SPDX-License-Identifier: MIT
"""The bound rules of ``cumsum``, ``cumprod``, ``sort`` and ``argsort``.

**Cumulative sums.** In whatever order the elements up to one are added, each passes at most as many
additions as there are elements: with u = 2**-24 and n of them the error is at most
n u / (1 - n u) times their sum of magnitudes. Sums of i32 wrap and are exact.

**Cumulative products.** The error is that of ``reduce_prod`` (:mod:`cklang.reference.row_bounds`)
over the elements up to one.

**Order.** Element k of uncertain elements in order lies between element k of their lower ends and
element k of their upper ends. Its index is sure if no other interval meets its own.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from cklang.ir.nodes import Operation
from cklang.ir.order import (
    ARGSORT,
    COUNT,
    CUMPROD,
    CUMSUM,
    DESCENDING,
    SORT,
    argsorted,
    cumprod,
    cumsum,
    in_order,
)
from cklang.reference.evaluate import F32_OVERFLOW
from cklang.reference.sums import UNIT, Known, finite
from cklang.types import Dim, i32

_I32_OVERFLOW = 2.0**31
_LEAST_NORMAL = 2.0**-126
_QUANTUM = 2.0**-149


def _bound_cumsum(operation: Operation, operands: Sequence[Known], _dims: dict[Dim, int]) -> Known:
    """Return cumulative sums with their errors."""
    (x,), axis = operands, _number(operation, "axis")
    value = cumsum(x.value, axis)
    passed = np.cumsum(finite(x.error), axis=axis)
    unknown = np.cumsum(np.isinf(x.error), axis=axis) > 0
    size = np.cumsum(np.abs(finite(x.value.astype(np.float64))), axis=axis) + passed
    if operation.result.type.dtype == i32:
        wild = unknown | ((size >= _I32_OVERFLOW) & (passed > 0))
        return Known(value=value, error=np.where(wild, np.inf, passed))
    count = np.cumsum(np.ones(x.value.shape), axis=axis)
    error = passed + size * count * UNIT / (1 - count * UNIT)
    # Some partial sum may leave the range of f32, also beside an infinity.
    wild = (size + error >= F32_OVERFLOW) & ~np.isnan(value)
    error = np.where(np.isfinite(value), error, 0.0)
    return Known(value=value, error=np.where(wild | unknown, np.inf, error))


def _bound_cumprod(operation: Operation, operands: Sequence[Known], _dims: dict[Dim, int]) -> Known:
    """Return cumulative products with their errors."""
    (x,), axis = operands, _number(operation, "axis")
    value = cumprod(x.value, axis)
    size, off = finite(np.abs(x.value.astype(np.float64))), finite(x.error)
    largest = np.cumprod(size + off, axis=axis)
    any_off = np.cumsum(off, axis=axis) > 0
    passed = np.where(any_off, largest - np.cumprod(size, axis=axis), 0.0)
    unknown = np.cumsum(np.isinf(x.error), axis=axis) > 0
    if operation.result.type.dtype == i32:
        wild = unknown | ((largest >= _I32_OVERFLOW) & any_off)
        return Known(value=value, error=np.where(wild, np.inf, passed))
    count = np.cumsum(np.ones(x.value.shape), axis=axis)
    relative = count * UNIT / (1 - count * UNIT)
    # The largest partial product of any order, and the least one that is not surely 0.
    most = np.cumprod(np.maximum(size + off, 1.0), axis=axis)
    factors = np.where((size == 0) & (off == 0), 1.0, np.maximum(size - off, 0.0))
    factors = np.where(np.isinf(x.value), 1.0, factors)
    may_underflow = np.cumprod(np.minimum(factors, 1.0), axis=axis) < _LEAST_NORMAL
    error = passed + largest * relative + np.where(may_underflow, count * _QUANTUM * most, 0.0)
    is_nan = np.cumsum(np.isnan(x.value), axis=axis) > 0
    wild = (most * (1 + relative) >= F32_OVERFLOW) & ~np.isinf(value)
    wild |= may_underflow & (np.cumsum(np.isinf(x.value), axis=axis) > 0)
    error = np.where(np.isfinite(value), error, 0.0)
    error = np.where((wild & ~is_nan) | unknown, np.inf, error)
    return Known(value=value, error=error)


def _bound_sort(operation: Operation, operands: Sequence[Known], _dims: dict[Dim, int]) -> Known:
    """Return elements in order with their errors."""
    (x,) = operands
    axis, count, descending = _order(operation)
    value = in_order(x.value, axis, count, descending)
    if not x.error.any():
        return Known.exact(value)
    off = finite(x.error)
    low, high = (in_order(end, axis, count, descending) for end in (x.value - off, x.value + off))
    error = np.maximum(finite(high - value), finite(value - low))
    unknown = np.isinf(x.error).any(axis=axis, keepdims=True)
    return Known(value=value, error=np.where(unknown, np.inf, error))


def _bound_argsort(operation: Operation, operands: Sequence[Known], _dims: dict[Dim, int]) -> Known:
    """Return indices in order; any may be right where intervals meet."""
    (x,) = operands
    axis, count, descending = _order(operation)
    index = argsorted(x.value, axis, 0, descending)
    error = np.zeros(index.shape)
    if x.error.any():
        sign = -1.0 if descending else 1.0
        numbers, off = (
            np.moveaxis(np.take_along_axis(each, index, axis), axis, -1)
            for each in (sign * x.value, x.error)
        )
        below = np.maximum.accumulate(numbers + off, axis=-1)[..., :-1]
        above = np.minimum.accumulate((numbers - off)[..., ::-1], axis=-1)[..., ::-1][..., 1:]
        meets = np.zeros(numbers.shape, np.bool_)
        meets[..., 1:] |= ~(below < (numbers - off)[..., 1:])
        meets[..., :-1] |= ~(above > (numbers + off)[..., :-1])
        error = np.where(np.moveaxis(meets, -1, axis), np.inf, 0.0)
    first = np.arange(count or index.shape[axis])
    return Known(value=np.take(index, first, axis), error=np.take(error, first, axis))


def _order(operation: Operation) -> tuple[int, int, int]:
    axis, count, descending = (_number(operation, name) for name in ("axis", COUNT, DESCENDING))
    return axis, count, descending


def _number(operation: Operation, name: str) -> int:
    return int(str(operation.attr(name)))


ORDER_BOUNDS: Mapping[str, Callable[[Operation, Sequence[Known], dict[Dim, int]], Known]] = (
    MappingProxyType(
        {CUMSUM: _bound_cumsum, CUMPROD: _bound_cumprod, SORT: _bound_sort, ARGSORT: _bound_argsort}
    )
)
"""The bound rule of each op along an ordered axis."""
