# SPDX-License-Identifier: MIT
"""The bound rules of reductions: how far a kernel's results may be from the exact ones.

u is 2**-24 and n the number of elements that are reduced to one.

**Sums.** Elements are widened exactly and added in f32, each addition rounded to nearest. Whatever
the order, an element passes at most as many additions as there are elements, so the error is at
most n u / (1 - n u) times the sum of magnitudes. Additions lose nothing among subnormal numbers.

**Means.** The sum is divided by n, or multiplied by 1 / n, which a kernel may compute as a
reciprocal: 8 u cover either, and 2**-122 what a division loses among subnormal numbers.

**Products.** An element passes at most n multiplications, so the error is at most n u / (1 - n u)
times the product of magnitudes. A partial product may be subnormal where the product is not: each
multiplication then loses up to 2**-149, which the other elements multiply. Where elements above 1
or below it could overflow or underflow in some order, next to infinities and zeros, anything may
come out.

**Maxima and minima.** Comparisons are exact: the result lies between the maxima of the lower and of
the upper ends of the elements' intervals. An index is sure if no other interval reaches the
greatest element's.

Sums and products of i32 are exact, since they wrap in any order.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from cklang.ir.nodes import Operation
from cklang.ir.numeric import Array
from cklang.ir.pooling import AVG_POOL, MAX_POOL, counted, windowed
from cklang.ir.reductions import MEANINGS, reduced_extents
from cklang.reference.evaluate import F32_OVERFLOW
from cklang.reference.sums import UNIT, Known, finite
from cklang.types import Dim, i32

_I32_OVERFLOW = 2.0**31
_LEAST_NORMAL = 2.0**-126
_QUANTUM = 2.0**-149
_MEAN_ROUNDINGS = 8 * UNIT
_MEAN_FLUSHED = 2.0**-122


def _bound_sum(operation: Operation, operands: Sequence[Known], _dims: dict[Dim, int]) -> Known:
    """Return the sums with their errors."""
    (x,), axes = operands, _axes(operation)
    value = MEANINGS["reduce_sum"](x.value, axes)
    if operation.result.type.dtype == i32:
        size = np.sum(np.abs(x.value) + finite(x.error), axis=axes)
        return _wrapping(x, axes, value, size, np.asarray(np.sum(finite(x.error), axis=axes)))
    return Known(value=value, error=_error_of_sum(x, axes, value))


def _error_of_sum(x: Known, axes: tuple[int, ...], value: Array) -> Array:
    passed = np.sum(finite(x.error), axis=axes)
    above, below = (
        np.sum(np.maximum(finite(side), 0.0), axis=axes) for side in (x.value, -x.value)
    )
    lost = (above + below + passed) * _relative(x, axes)
    error = passed + lost
    # A partial sum may leave the range of f32, which matters beside an infinity of the other sign
    # too; and an unknown element may be anything.
    sizes = np.where(np.isinf(value), np.where(value > 0, below, above), above + below)
    wild = (sizes + error >= F32_OVERFLOW) & ~np.isnan(value)
    error = np.where(np.isfinite(value), error, 0.0)
    return np.where(wild | _unknown(x, axes), np.inf, error)


def _relative(x: Known, axes: tuple[int, ...]) -> float:
    """Return the relative error of as many roundings as there are elements."""
    roundings = reduced_extents(x.value.shape, axes) * UNIT
    return roundings / (1 - roundings)


def _wrapping(x: Known, axes: tuple[int, ...], value: Array, size: Array, passed: Array) -> Known:
    """Return integers that wrap: uncertain ones may be anything once they reach 2**31."""
    may_wrap = (size >= _I32_OVERFLOW) & (passed > 0)
    wild = may_wrap | np.isinf(x.error).any(axis=axes)
    return Known(value=value, error=np.where(wild, np.inf, passed))


def _bound_mean(operation: Operation, operands: Sequence[Known], _dims: dict[Dim, int]) -> Known:
    """Return the means with their errors."""
    (x,), axes = operands, _axes(operation)
    return _mean(x, axes, np.asarray(reduced_extents(x.value.shape, axes)))


def _mean(x: Known, axes: tuple[int, ...], count: Array) -> Known:
    """Return sums along axes over a count, with their errors."""
    total = MEANINGS["reduce_sum"](x.value, axes)
    value = np.asarray(total / count.astype(x.value.dtype))
    error = _error_of_sum(x, axes, total) / np.maximum(count, 1)
    lost = (finite(np.abs(value)) + error) * _MEAN_ROUNDINGS + _MEAN_FLUSHED
    error = error + np.where(np.isfinite(value), lost, 0.0)
    return Known(value=value, error=error)


def _bound_pool(operation: Operation, operands: Sequence[Known], _dims: dict[Dim, int]) -> Known:
    """Return what windows have, with errors: those of a row that is a window."""
    (x,), attrs = operands, dict[str, Any](operation.attrs)
    padding, is_mean = attrs.pop("padding", 0), operation.op == AVG_POOL
    fills = (0.0 if is_mean else -np.inf, 0.0)
    numbers = zip((x.value, x.error), fills, strict=True)
    value, error = (windowed(array, fill, **attrs) for array, fill in numbers)
    rows = Known(value=value, error=error)
    axes = tuple(range(x.value.ndim, value.ndim))
    if not is_mean:
        return _extreme(MEANINGS["reduce_max"], rows, axes)
    return _mean(rows, axes, counted(x.value.shape, padding, **attrs))


def _bound_prod(operation: Operation, operands: Sequence[Known], _dims: dict[Dim, int]) -> Known:
    """Return the products with their errors."""
    (x,), axes = operands, _axes(operation)
    value = MEANINGS["reduce_prod"](x.value, axes)
    size, off = finite(np.abs(x.value)), finite(x.error)
    largest = np.prod(size + off, axis=axes)
    passed = np.where(off.any(axis=axes), largest - np.prod(size, axis=axes), 0.0)
    if operation.result.type.dtype == i32:
        return _wrapping(x, axes, value, largest, np.asarray(passed))
    # The largest partial product of any order, and the least one that is not surely 0.
    most = np.prod(np.maximum(size + off, 1.0), axis=axes)
    factors = np.where((size == 0) & (off == 0), 1.0, np.maximum(size - off, 0.0))
    factors = np.where(np.isinf(x.value), 1.0, factors)
    may_underflow = np.prod(np.minimum(factors, 1.0), axis=axes) < _LEAST_NORMAL
    count = reduced_extents(x.value.shape, axes)
    error = passed + largest * _relative(x, axes)
    error = error + np.where(may_underflow, count * _QUANTUM * most, 0.0)
    is_nan = np.isnan(x.value).any(axis=axes)
    wild = (most * (1 + _relative(x, axes)) >= F32_OVERFLOW) & ~np.isinf(value)
    wild |= may_underflow & np.isinf(x.value).any(axis=axes)
    error = np.where(np.isfinite(value), error, 0.0)
    error = np.where((wild & ~is_nan) | _unknown(x, axes), np.inf, error)
    return Known(value=value, error=error)


def _bound_extreme(operation: Operation, operands: Sequence[Known], _dims: dict[Dim, int]) -> Known:
    """Return maxima or minima with their errors."""
    return _extreme(MEANINGS[operation.op], operands[0], _axes(operation))


def _extreme(
    extreme: Callable[[Array, tuple[int, ...]], Array], x: Known, axes: tuple[int, ...]
) -> Known:
    """Return maxima or minima along axes with their errors."""
    value, off = extreme(x.value, axes), finite(x.error)
    lowest, highest = (extreme(end, axes) for end in (x.value - off, x.value + off))
    error = np.maximum(finite(highest - value), finite(value - lowest))
    error = np.where(_unknown(x, axes), np.inf, error)
    return Known(value=value, error=error)


def _bound_index(operation: Operation, operands: Sequence[Known], _dims: dict[Dim, int]) -> Known:
    """Return the indices of extremes; any may be right where intervals overlap."""
    (x,), (axis,) = operands, _axes(operation)
    index = MEANINGS[operation.op](x.value, (axis,))
    if not x.value.shape[axis] or not x.error.any():
        return Known.exact(index)
    numbers = x.value if operation.op == "reduce_argmax" else -x.value
    place = np.expand_dims(index, axis)
    low, off = (np.take_along_axis(array, place, axis) for array in (numbers - x.error, x.error))
    rivals = (numbers + x.error >= low) & ((x.error > 0) | (off > 0))
    np.put_along_axis(rivals, place, False, axis)
    unsure = rivals.any(axis=axis) | np.isinf(x.error).any(axis=axis)
    return Known(value=index, error=np.where(unsure, np.inf, 0.0))


def _axes(operation: Operation) -> tuple[int, ...]:
    axes = operation.attr("axes")
    return tuple(a for a in axes if isinstance(a, int)) if isinstance(axes, tuple) else ()


def _unknown(x: Known, axes: tuple[int, ...]) -> Array:
    """Tell which results have an element that may be anything, and none that is surely nan."""
    is_nan = np.isnan(x.value) & np.isfinite(x.error)
    return np.asarray(np.isinf(x.error).any(axis=axes) & ~is_nan.any(axis=axes))


ROW_BOUNDS: Mapping[str, Callable[[Operation, Sequence[Known], dict[Dim, int]], Known]] = (
    MappingProxyType(
        {
            "reduce_sum": _bound_sum,
            "reduce_mean": _bound_mean,
            "reduce_max": _bound_extreme,
            "reduce_min": _bound_extreme,
            "reduce_prod": _bound_prod,
            "reduce_argmax": _bound_index,
            "reduce_argmin": _bound_index,
            MAX_POOL: _bound_pool,
            AVG_POOL: _bound_pool,
        }
    )
)
"""The bound rule of each op that reduces axes or windows."""
