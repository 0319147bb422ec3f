# SPDX-License-Identifier: MIT
"""The bound rules of ops that accumulate, sort, scatter and choose experts.

**Cumulative sums.** In whatever order the elements up to one are added, each passes at most as many
additions as there are elements: with u = 2**-24 and n of them the error is at most
n u / (1 - n u) times their sum of magnitudes. Sums of i32 wrap and are exact.

**Cumulative products.** The error is that of ``reduce_prod`` (:mod:`cklang.reference.row_bounds`)
over the elements up to one.

**Order.** Element k of uncertain elements in order lies between element k of their lower ends and
element k of their upper ends. Its index is sure if no other interval meets its own.

**Scattering.** Written rows have their own errors. A sum of n rows and of what was there before is
computed in f32: with u = 2**-24 its error is at most n u / (1 - n u) times the sum of magnitudes,
in whatever order. Sums of i32 are exact, since they wrap.

**Scores of experts.** The logarithm of a score is off by at most twice the largest error of a logit
of its row, and by the roundings of an exponential and a division, 16 u. Those of a softmax add (n +
|x|) u for the sum of n and the distance |x| to the largest logit. What is below the normal numbers
may be lost.

**Choice of experts.** An index is sure if its interval of keys meets no other, and if the intervals
of the groups that are allowed meet none of those that are not. Weights of unsure experts may be
anything.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from cklang.ir.expert_gate import LEAST_SUM, MOE_INDICES, MOE_WEIGHTS, chosen, scores
from cklang.ir.nodes import Operation
from cklang.ir.numeric import Array
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
from cklang.ir.scatter import SCATTER, SCATTER_ADD
from cklang.reference.evaluate import F32_OVERFLOW, apply
from cklang.reference.sums import UNIT, Known, finite
from cklang.types import Dim, i32

_STEPS = 16
"""Roundings of an exponential and a division, in units of 2**-24."""

_FLUSHED = 2.0**-122
_MOST = 80.0
"""The largest logarithm of an error that is told from an unknown one."""


class _Gate:
    """The keys and scores of an operation, with their errors."""

    def __init__(self, operation: Operation, operands: Sequence[Known]) -> None:
        integers = ("count", "groups", "kept", "renormalised", "sigmoid")
        self.scale = float(str(operation.attr("scale")))
        self.count, self.groups, self.kept, self.renormalised, sigmoid = (
            int(str(operation.attr(name))) for name in integers
        )
        x, *biases = operands
        wide = x.value.astype(np.float64)
        self.scores = scores(wide, sigmoid)
        off = x.error.max(axis=-1, keepdims=True, initial=0.0)
        steps: Array = np.full(wide.shape, _STEPS * UNIT)
        if not sigmoid:
            distance = np.abs(finite(wide - wide.max(axis=-1, keepdims=True)))
            steps = steps + (wide.shape[-1] + distance) * UNIT
        self.logarithm = np.minimum(2 * off + steps, _MOST)
        self.unknown = (2 * off + steps > _MOST) | np.isnan(self.scores)
        if not biases:
            self.keys, self.error = x.value, x.error
        else:
            (bias,) = biases
            self.keys = self.scores + bias.value
            moved = self.scores * np.expm1(self.logarithm) + _FLUSHED
            self.error = moved + bias.error + UNIT * np.abs(finite(self.keys))
        self.of_two = bool(biases)
        self.places = chosen(self.keys, self.count, self.groups, self.kept, of_two=self.of_two)

    def unsure(self) -> Array:
        """Tell of each place whether another expert may be there."""
        low, high = self.keys - self.error, self.keys + self.error
        if not self.error.any():
            return np.zeros(self.places.shape, np.bool_)
        ends = [
            chosen(end, self.count, self.groups, self.kept, of_two=self.of_two)
            for end in (low, high)
        ]
        at_low, at_high = (np.take_along_axis(end, self.places, -1) for end in (low, high))
        before = (high[..., None, :] >= at_low[..., None]) & ~(
            low[..., None, :] > at_high[..., None]
        )
        meets: Array = before.sum(axis=-1) > 1
        differ = np.any([end != self.places for end in ends], axis=0).any(axis=-1, keepdims=True)
        result: Array = meets | differ | self._groups_meet(low, high)
        return result

    def _groups_meet(self, low: Array, high: Array) -> Array:
        """Tell of each row whether other groups may be allowed."""
        if self.kept == self.groups:
            return np.zeros((*self.keys.shape[:-1], 1), np.bool_)
        ends = []
        for end in (low, high):
            split = np.sort(end.reshape(*end.shape[:-1], self.groups, -1), axis=-1)
            ends.append(split[..., -1 - self.of_two :].sum(axis=-1))
        rounding = 4 * UNIT * np.abs(finite(ends[1]))
        best = np.argsort(-(ends[0] + ends[1]), axis=-1, kind="stable")
        lows, highs = (
            np.take_along_axis(end, best, -1) for end in (ends[0] - rounding, ends[1] + rounding)
        )
        worst = lows[..., : self.kept].min(axis=-1, keepdims=True)
        result: Array = highs[..., self.kept :].max(axis=-1, keepdims=True) >= worst
        return result


def _bound_indices(operation: Operation, operands: Sequence[Known], _dims: dict[Dim, int]) -> Known:
    """Return experts; any may be right where intervals meet."""
    gate = _Gate(operation, operands)
    return Known(value=gate.places, error=np.where(gate.unsure(), np.inf, 0.0))


def _bound_weights(operation: Operation, operands: Sequence[Known], _dims: dict[Dim, int]) -> Known:
    """Return the weights of experts with their errors."""
    gate = _Gate(operation, operands)
    value, steps, unknown = (
        np.take_along_axis(np.broadcast_to(array, gate.keys.shape), gate.places, -1)
        for array in (gate.scores, gate.logarithm, gate.unknown)
    )
    unknown = unknown | gate.unsure()
    lost = _FLUSHED
    if gate.renormalised:
        total = value.sum(axis=-1, keepdims=True) + LEAST_SUM
        value = value / total
        steps = np.minimum(steps + steps.max(axis=-1, keepdims=True) + gate.count * UNIT, _MOST)
        lost = _FLUSHED * gate.count / total
        unknown = unknown | unknown.any(axis=-1, keepdims=True)
    value = value * gate.scale
    error = np.abs(finite(value)) * np.expm1(steps + 4 * UNIT) + lost * abs(gate.scale) + _FLUSHED
    return Known(value=value, error=np.where(unknown & ~np.isnan(value), np.inf, error))


GATE_BOUNDS: Mapping[str, Callable[[Operation, Sequence[Known], dict[Dim, int]], Known]] = (
    MappingProxyType({MOE_WEIGHTS: _bound_weights, MOE_INDICES: _bound_indices})
)
"""The bound rule of each op that chooses experts."""


def _written(operation: Operation, operands: Sequence[Known], dims: dict[Dim, int]) -> Known:
    """Return written rows with their errors; an uncertain index may write anything anywhere."""
    indices, *tensors = operands
    value = apply(operation, [indices.value, *(tensor.value for tensor in tensors)], dims)
    errors = [indices.value, *(tensor.error.astype(np.float64) for tensor in tensors)]
    return Known(value=value, error=_unless_sure(apply(operation, errors, dims), indices))


def _added(operation: Operation, operands: Sequence[Known], dims: dict[Dim, int]) -> Known:
    """Return sums of rows with their errors."""
    indices, *terms = operands
    at = indices.value

    def sums(arrays: Sequence[Array]) -> Array:
        return apply(operation, [at, *arrays], dims)

    value = sums([term.value for term in terms])
    passed = sums([finite(term.error) for term in terms])
    size = sums([np.abs(finite(term.value.astype(np.float64))) for term in terms])
    unknown = sums([np.isinf(term.error).astype(np.float64) for term in terms]) > 0
    if operation.result.type.dtype == i32:
        return Known(value=value, error=_unless_sure(np.where(unknown, np.inf, passed), indices))
    count = sums([np.ones_like(term.value, np.float64) for term in terms])
    roundings = count * UNIT
    error = passed + (size + passed) * roundings / (1 - roundings)
    # A partial sum may leave the range of f32.
    wild = (size + error >= F32_OVERFLOW) & ~np.isnan(value)
    error = np.where(np.isfinite(value), error, 0.0)
    error = np.where(wild | unknown, np.inf, error)
    return Known(value=value, error=_unless_sure(error, indices))


def _unless_sure(error: Array, indices: Known) -> Array:
    return np.full_like(error, np.inf) if indices.error.any() else error


SCATTER_BOUNDS: Mapping[str, Callable[[Operation, Sequence[Known], dict[Dim, int]], Known]] = (
    MappingProxyType({SCATTER: _written, SCATTER_ADD: _added})
)
"""The bound rule of each op that writes at indices."""


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
            np.moveaxis(np.take_along_axis(array, index, axis), axis, -1)
            for array in (sign * x.value, x.error)
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
