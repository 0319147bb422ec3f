# SPDX-License-Identifier: MIT
"""Steps of the gradients of an attention, each with what a kernel may add to the error."""

import numpy as np

from cklang.reference.sums import UNIT, Known, finite, float_sums, gamma


def times(x: Known, y: Known) -> Known:
    """Return the product of each two elements."""
    value = x.value * y.value
    size_x, size_y = np.abs(finite(x.value)), np.abs(finite(y.value))
    off = size_x * finite(y.error) + size_y * finite(x.error) + finite(x.error) * finite(y.error)
    # Nothing that is masked has a gradient, whatever its score.
    wild = (np.isinf(x.error) | np.isinf(y.error) | ~np.isfinite(value)) & (x.value != 0)
    wild |= np.isinf(x.error)
    return Known(value=finite(value), error=np.where(wild, np.inf, off + 4 * UNIT * np.abs(value)))


def narrowed(known: Known, grain: float, least: float, step: float) -> Known:
    """Return what is known of values after they were rounded to the element type."""
    size = np.abs(known.value) + finite(known.error)
    lost = np.where((size > 0) & (size < 2 * least), np.minimum(size, step), 0.0)
    return Known(value=known.value, error=known.error + grain * size + lost)


def multiplied(left: Known, right: Known) -> Known:
    """Return a matrix product that may be added up in parts."""
    value, off, magnitude = float_sums(left, right)
    wild = np.isinf(left.error).any(-1, keepdims=True)
    return Known(value=value, error=np.where(wild, np.inf, off + 8 * UNIT * magnitude))


def scaled(known: Known, factor: float) -> Known:
    """Return values times a factor."""
    value = factor * known.value
    return Known(value=value, error=abs(factor) * known.error + 4 * UNIT * np.abs(finite(value)))


def added(known: Known, count: int) -> Known:
    """Return the sum over the ``count`` heads that share one of the keys."""
    batch, heads, *rest = known.value.shape
    value, off = (
        array.reshape(batch, heads // max(count, 1), count, *rest)
        for array in (known.value, known.error)
    )
    magnitude = (np.abs(finite(value)) + finite(off)).sum(2)
    return Known(value=value.sum(2), error=off.sum(2) + gamma(count) * magnitude)
