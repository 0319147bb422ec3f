# SPDX-License-Identifier: MIT
"""The bound rule of ``sample``: a token is sure if no rounding of weights leads to another one.

The exponent z of a weight is off by twice the largest error of a logit of its row over the
temperature, and by the roundings of a difference and two products, 6 |z| u; the exponential adds
8 u. Each weight is in an interval then, and so are the sums up to it. Filters let a logit pass
surely or perhaps: the sums have the sure ones at their lower ends, those that may pass at their
upper ends.
"""

from collections.abc import Sequence

import numpy as np

from cklang.ir.nodes import Operation
from cklang.ir.numeric import Array
from cklang.ir.sampling import (
    at_least,
    factor,
    fixed_point,
    is_greedy,
    limited,
    random_bits,
    reach,
    sample,
)
from cklang.reference.sums import UNIT, Known
from cklang.types import Dim

_LOST = -1000.0
"""An exponent whose weight is 0 whatever its error."""

_MOST = 80.0
"""The largest logarithm of an error that is told from an unknown one."""


def bound_sample(operation: Operation, operands: Sequence[Known], _dims: dict[Dim, int]) -> Known:
    """Return tokens; any may be right where intervals meet."""
    x, *numbers = operands
    tokens = sample(x.value, *(number.value for number in numbers))
    if any(number.error.any() for number in numbers):
        return Known(value=tokens, error=np.full(tokens.shape, np.inf))
    bits = random_bits(numbers[0].value, numbers[1].value, tokens.shape)
    columns = [np.broadcast_to(n.value, tokens.shape).ravel().tolist() for n in numbers[2:]]
    lines = (array.reshape(tokens.size, x.value.shape[-1]) for array in (x.value, x.error))
    rows = map(_Row, *lines, bits)
    places = zip(rows, tokens.flat, *columns, strict=True)
    error = np.array([0.0 if row.is_sure(*rest) else np.inf for row, *rest in places])
    return Known(value=tokens, error=error.reshape(tokens.shape))


class _Row:
    """Logits, their errors, and the bits by which a token is drawn."""

    def __init__(self, x: Array, errors: Array, bits: int) -> None:
        self.x, self.off, self.bits = limited(x), float(errors.max()), bits

    def is_sure(
        self, token: int, temperature: float, top_k: int, top_p: float, min_p: float
    ) -> bool:
        """Tell whether every kernel draws this token."""
        x, most, slack = self.x, float(self.x.max()), 2 * self.off
        if is_greedy(temperature) or most == -np.inf:
            return not slack or int((x >= most - slack).sum()) == 1
        z = (x - most) * factor(temperature)
        steps = np.where(z == 0.0, 0.0, (6 * np.abs(z) + 8) * UNIT) + slack * factor(temperature)
        steps = np.where(z < _LOST, 0.0, steps)
        if not steps.max() < _MOST:
            return False
        span = reach(temperature, min_p)
        slack += 8 * UNIT * (span + abs(most)) if 0.0 < span < np.inf else 0.0
        spans = (span - slack, span + slack)
        low, high = (
            np.where(mask & (x >= most - max(end, 0.0)), fixed_point(np.exp(z + sign * steps)), 0)
            for mask, end, sign in zip(self._top_k(top_k), spans, (-1, 1), strict=True)
        )
        if top_p < 1.0:
            low, high = self._top_p(low, high, top_p)
        below, until = np.cumsum(high) - high, np.cumsum(low)
        least, most = (self.bits * int(end.sum()) >> 64 for end in (low, high))
        return int(below[token]) <= least and int(until[token]) > most

    def _top_k(self, top_k: int) -> tuple[Array, Array]:
        """Return which logits surely pass, and which may."""
        x, slack = self.x, 2 * self.off
        if not 0 < top_k < x.size:
            return np.ones(x.shape, np.bool_), np.ones(x.shape, np.bool_)
        last = np.partition(x, x.size - top_k)[x.size - top_k]
        may = x >= last - slack
        return (may if not slack or may.sum() <= top_k else x > last + slack), may

    def _top_p(self, low: Array, high: Array, top_p: float) -> tuple[Array, Array]:
        """Return the weights that surely pass, and those that may."""
        order = np.argsort(self.x, kind="stable")
        rising, slack = self.x[order], 2 * self.off
        # What is surely greater, and what may be.
        least, most = (np.append(np.cumsum(end[order][::-1])[::-1], 0) for end in (low, high))
        sure = least[np.searchsorted(rising, self.x + slack, "right")]
        may = most[np.searchsorted(rising, self.x - slack, "left" if slack else "right")]
        may = may - high if slack else may
        wanted = [at_least(top_p, int(end.sum())) for end in (low, high)]
        return np.where(may < wanted[0], low, 0), np.where(sure < wanted[1], high, 0)
