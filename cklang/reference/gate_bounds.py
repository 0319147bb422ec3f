# SPDX-License-Identifier: MIT
"""The bound rules of ``moe_weights`` and ``moe_indices``.

**Scores.** The logarithm of a score is off by at most twice the largest error of a logit of its
row, and by the roundings of an exponential and a division, 16 u. Those of a softmax add (n + |x|) u
for the sum of n and the distance |x| to the largest logit. What is below the normal numbers may be
lost.

**Choice.** An index is sure if its interval of keys meets no other, and if the intervals of the
groups that are allowed meet none of those that are not. Weights of unsure experts may be anything.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from cklang.ir.expert_gate import LEAST_SUM, MOE_INDICES, MOE_WEIGHTS, chosen, scores
from cklang.ir.nodes import Operation
from cklang.ir.numeric import Array
from cklang.reference.sums import UNIT, Known, finite
from cklang.types import Dim

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
        np.take_along_axis(np.broadcast_to(each, gate.keys.shape), gate.places, -1)
        for each in (gate.scores, gate.logarithm, gate.unknown)
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
