# SPDX-License-Identifier: MIT
"""Compare a result with its reference: every element within its own bound, or a report."""

from typing import Any

import numpy as np

from cklang.errors import error
from cklang.ir.numeric import Array
from cklang.reference.distance import error_ratios, largest_ratio
from cklang.reference.sums import gamma
from cklang.types import DType

__all__ = ["UNCHECKED", "assert_close", "largest_ratio", "tolerance", "unchecked_share"]

UNCHECKED = 0.05
"""The share of elements that a comparison may leave unchecked unless the caller says otherwise."""

# Half the distance between neighbours, relative to the number.
_HALF_ULP = {"f16": 2.0**-11, "bf16": 2.0**-8, "f32": 2.0**-24}
_HALF_ULP |= {"fp8": 2.0**-4, "bf8": 2.0**-3, "fp8_fnuz": 2.0**-4, "bf8_fnuz": 2.0**-3}


def assert_close(
    got: Any, reference: Any, bound: Any, *, what: str = "the result", unchecked: float = UNCHECKED
) -> None:
    """Check that ``got`` is within ``bound`` of ``reference``, element by element.

    Infinities and nan must be met in kind, unless the bound is infinite there.
    :func:`cklang.reference.bounds.evaluate_with_bound` gives reference and bound.

    An infinite bound checks nothing. It is expected where the reference is infinite or nan itself,
    which the inputs cause; elsewhere the bound has outgrown the type, and a comparison of few other
    elements says little. ``unchecked`` limits those (:func:`unchecked_share`).

    Args:
        got: An array of any dtype of the language.
        reference: An array of the same shape and dtype.
        bound: Absolute errors that are allowed: an array of the shape, or one number.
        what: How messages call ``got``.
        unchecked: The largest share of elements, from 0 to 1, that may have an infinite bound
            beside a finite reference. Tests that draw infinities and huge numbers need 1.

    Example:
        >>> from cklang.testing import assert_close
        >>> reference = np.array([1.0, 2.0, 4.0])
        >>> assert_close(np.array([1.0, 2.125, 4.0]), reference, bound=0.25)

    Raises:
        CkMismatchError: Shapes or dtypes differ (T002), or elements are outside (T001): the
            message has their number and the worst one with its index, both values, its bound
            and the ratio of error to bound. Or more elements than allowed are unchecked (T004).
            It is an AssertionError.
    """
    got, reference = np.asarray(got), np.asarray(reference)
    for name in ("shape", "dtype"):
        if getattr(got, name) != getattr(reference, name):
            raise error("T002", what=name, got=getattr(got, name), want=getattr(reference, name))
    limits = np.broadcast_to(bound, got.shape)
    ratios = error_ratios(got, reference, limits)
    outside = int((ratios > 1).sum())
    if outside:
        raise error(
            "T001", count=outside, size=got.size, worst=_worst(got, reference, bound, ratios, what)
        )
    share = unchecked_share(reference, limits)
    if share > unchecked:
        raise error(
            "T004",
            count=round(share * got.size),
            size=got.size,
            what=what,
            limit=f"{unchecked:.4g}",
        )


def unchecked_share(reference: Any, bound: Any) -> float:
    """Return the share of elements, 0 to 1, whose bound is infinite and whose reference is finite.

    0 for an empty array.
    """
    values = np.asarray(reference).astype(np.float64)
    open_ended = np.isinf(np.broadcast_to(bound, values.shape)) & np.isfinite(values)
    return float(open_ended.mean()) if values.size else 0.0


def tolerance(dtype: DType, k: int) -> float:
    """Return how far a product of depth ``k`` stored as ``dtype`` may be from the exact one.

    The result is relative to the sum of magnitudes: ``|error| <= tolerance * sum_k |a| |b|``,
    for any order of summation. It is for tests that have no reference bound at hand.

    Example:
        >>> from cklang.testing import tolerance
        >>> f"{tolerance(ck.f16, 1024):.2g}"
        '0.00061'

    Raises:
        CkValueError: ``dtype`` is no float of 8 to 32 bits (T003).
    """
    if dtype.name not in _HALF_ULP:
        raise error("T003", got=dtype, known=", ".join(_HALF_ULP))
    return gamma(k) + (1 + gamma(k)) * _HALF_ULP[dtype.name]


def _worst(got: Array, reference: Array, bound: Any, ratios: Array, what: str) -> str:
    index = np.unravel_index(int(np.argmax(ratios)), ratios.shape)
    place = ", ".join(str(int(axis)) for axis in index)
    limit = np.broadcast_to(bound, got.shape)[index]
    distance = abs(float(got[index]) - float(reference[index]))
    return "\n".join(
        [
            f"worst at [{place}] of {what}, {got.dtype}{list(got.shape)}",
            f"got      {float(got[index])!r}",
            f"expected {float(reference[index])!r}",
            f"error    {distance:.6g}, bound {float(limit):.6g}, ratio {float(ratios[index]):.4g}",
        ]
    )
