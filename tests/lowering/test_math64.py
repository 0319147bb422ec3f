# SPDX-License-Identifier: MIT
"""Device math in double precision, compiled for this machine's CPU, against extended precision."""

import ctypes
import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.host_library import call_loop, host_library, loop

Array = NDArray[np.float64]
LD = np.longdouble

LINE = np.linspace(-1, 1, 4001)
WIDE = np.concatenate([LINE * 10, LINE * 1e3, LINE * 1e6, 10.0 ** (LINE * 300)])
POSITIVE = np.concatenate([10.0 ** (LINE * 300), 1 + LINE * 0.99, 1 + LINE * 1e-6])
HUGE = np.concatenate([WIDE, 10.0 ** (154 + LINE * 153), -(10.0 ** (20 + LINE * 10))])

#: Function: exact meaning, inputs, largest error in units in the last place.
UNARY: dict[str, tuple[Callable[..., object], Array, float]] = {
    "exp": (np.exp, LINE * 745, 2),
    "exp2": (np.exp2, LINE * 1074, 2),
    "expm1": (np.expm1, np.concatenate([LINE * 700, LINE, LINE * 1e-5]), 4),
    "log": (np.log, POSITIVE, 2),
    "log2": (np.log2, POSITIVE, 3),
    "log10": (np.log10, POSITIVE, 3),
    "log1p": (np.log1p, np.concatenate([LINE[1:], LINE * 1e-5, POSITIVE]), 2),
    "cbrt": (np.cbrt, WIDE, 1),
    "sin": (np.sin, HUGE, 3),
    "cos": (np.cos, HUGE, 3),
    "tan": (np.tan, HUGE, 4),
    "asin": (np.arcsin, LINE, 4),
    "acos": (np.arccos, LINE, 4),
    "atan": (np.arctan, WIDE, 2),
    "sinh": (np.sinh, np.concatenate([LINE * 709, LINE, LINE * 1e-5]), 4),
    "cosh": (np.cosh, LINE * 709, 4),
    "tanh": (np.tanh, np.concatenate([LINE * 30, LINE, LINE * 1e-5]), 4),
    "asinh": (np.arcsinh, WIDE, 4),
    "acosh": (np.arccosh, np.concatenate([1 + np.abs(WIDE), 1 + np.abs(LINE)]), 4),
    "atanh": (np.arctanh, np.concatenate([LINE[1:-1], LINE * 1e-5]), 4),
    "erf": (np.vectorize(math.erf), np.concatenate([LINE * 7, LINE * 1e-3]), 10),
    "erfc": (np.vectorize(math.erfc), np.concatenate([LINE * 26, LINE]), 20),
    "tgamma": (np.vectorize(math.gamma), np.abs(LINE[:-1]) * 169.3 + 0.01, 1000),
}
BINARY: dict[str, tuple[Callable[..., object], Array, Array, float]] = {
    "pow": (np.power, np.abs(WIDE) + 1e-300, np.resize(LINE * 20, WIDE.shape), 16),
    "hypot": (np.hypot, WIDE, WIDE[::-1].copy(), 2),
    "atan2": (np.arctan2, WIDE, WIDE[::-1].copy(), 3),
    "fmod": (np.fmod, WIDE[:8000], WIDE[:8000][::-1] * 1e-3 + 1e-9, 0),
}


@pytest.fixture(scope="module")
def library() -> ctypes.CDLL:
    unary = (loop(name, f"ck64_{name}(x0)", "double") for name in (*UNARY, "lgamma"))
    binary = (loop(name, f"ck64_{name}(x0, x1)", "double", 2) for name in (*BINARY, "remainder"))
    return host_library(['#include "cklang/trig64.h"', *unary, *binary], optimise="-O1")


def call(library: ctypes.CDLL, name: str, *inputs: Array) -> Array:
    return call_loop(library, name, *(np.asarray(each, np.float64) for each in inputs))


def ulps(got: Array, exact: NDArray[np.longdouble]) -> float:
    with np.errstate(over="ignore"):
        want = exact.astype(np.float64)
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    finite = np.isfinite(want) & ~same
    assert (np.isfinite(got[finite])).all()
    assert same[~np.isfinite(want)].all()
    if not finite.any():
        return 0.0
    error = np.abs(got[finite].astype(LD) - exact[finite]) / np.spacing(np.abs(want[finite]))
    return float(error.max())


@pytest.mark.parametrize("name", UNARY)
def test_unary(library: ctypes.CDLL, name: str) -> None:
    function, inputs, bound = UNARY[name]
    with np.errstate(all="ignore"):
        exact = np.asarray(function(inputs.astype(LD)), LD)
    assert ulps(call(library, name, inputs), exact) <= bound


@pytest.mark.parametrize("name", BINARY)
def test_binary(library: ctypes.CDLL, name: str) -> None:
    function, left, right, bound = BINARY[name]
    with np.errstate(all="ignore"):
        exact = np.asarray(function(left.astype(LD), right.astype(LD)), LD)
    assert ulps(call(library, name, left, right), exact) <= bound


def test_lgamma_is_near_in_absolute_terms_where_it_crosses_zero(library: ctypes.CDLL) -> None:
    inputs = np.abs(LINE[:-1]) * 1000 + 0.01
    want = np.vectorize(math.lgamma)(inputs)
    np.testing.assert_allclose(call(library, "lgamma", inputs), want, rtol=2e-15, atol=4e-15)


def test_remainder_is_exact(library: ctypes.CDLL) -> None:
    left, right = WIDE[:4000], WIDE[:4000][::-1] * 1e-3 + 1e-9
    want = np.vectorize(math.remainder)(left, right)
    np.testing.assert_array_equal(call(library, "remainder", left, right), want)


SPECIAL = np.array(
    [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 2.0, -2.0, 0.5, 3.0, -3.0, -1e17]
)


@pytest.mark.parametrize("name", [n for n in UNARY if n not in ("erf", "erfc", "tgamma")])
def test_special_values_of_unary_functions(library: ctypes.CDLL, name: str) -> None:
    with np.errstate(all="ignore"):
        want = np.asarray(UNARY[name][0](SPECIAL), np.float64)
    got = call(library, name, SPECIAL)
    np.testing.assert_allclose(got, want, rtol=1e-15)
    zero = want == 0
    np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(want[zero]))


@pytest.mark.parametrize("name", ["pow", "hypot", "atan2", "fmod"])
def test_special_values_of_binary_functions(library: ctypes.CDLL, name: str) -> None:
    left, right = (np.ravel(x).copy() for x in np.meshgrid(SPECIAL, SPECIAL))
    with np.errstate(all="ignore"):
        want = np.asarray(BINARY[name][0](left, right), np.float64)
    np.testing.assert_allclose(call(library, name, left, right), want, rtol=1e-15)
