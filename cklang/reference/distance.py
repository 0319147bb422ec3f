# SPDX-License-Identifier: MIT
"""How far a result is from its reference, in units of the error that each element may have."""

from typing import Any

import numpy as np

from cklang.ir.numeric import Array


def largest_ratio(got: Any, reference: Any, bound: Any) -> float:
    """Return the largest error in units of its bound: at most 1 if it is right.

    0 for an empty array; infinite where a bound of 0 or a kind (nan, infinity) is missed.
    """
    got, reference = np.asarray(got), np.asarray(reference)
    return float(
        np.max(error_ratios(got, reference, np.broadcast_to(bound, got.shape)), initial=0.0)
    )


def error_ratios(got: Array, reference: Array, bound: Array) -> Array:
    """Return error / bound; 0 where equal, infinite where nothing allows the difference."""
    limit = np.asarray(bound, np.float64)
    with np.errstate(all="ignore"):
        x, y = got.astype(np.float64), reference.astype(np.float64)
        distance = np.abs(x - y)
        same = (x == y) | (np.isnan(x) & np.isnan(y))
        ratio = np.where(limit > 0, distance / limit, np.inf)
    ratio = np.where(np.isnan(ratio), np.inf, ratio)
    return np.where(same | np.isinf(limit), 0.0, ratio)
