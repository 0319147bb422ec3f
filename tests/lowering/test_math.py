# SPDX-License-Identifier: MIT
"""The functions of ``cklang/math.h``, compiled for this machine's CPU, against double precision."""

import ctypes
import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from cklang.ir.numeric import round_float
from cklang.lowering import headers
from cklang.types import DTYPES
from tests.support.host_library import call_loop, host_library, loop

Array = NDArray[np.floating]

EIGHT_BITS = ("fp8", "bf8", "fp8_fnuz", "bf8_fnuz")
ROUNDING = ("round_f16", *(f"round_{name}" for name in EIGHT_BITS))
UNARY = ("tanh", "erf", "expm1", "log1p", "floor", "rsqrt", "rcp", *ROUNDING)
BINARY = ("pow", "min", "max")

SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.0, -3.0, 2.5, -2.5, 1e-40, -1e-40]
SPECIAL += [np.inf, -np.inf, np.nan, 3.4e38, -3.4e38, 1e-10, -1e-10, 16777216.0, 16777217.0, 88.8]

# Largest error allowed, in units in the last place of the exact result.
BOUNDS = {"tanh": 1.6, "erf": 1.2, "expm1": 1.5, "log1p": 0.9, "pow": 1.2}


@pytest.fixture(scope="module")
def library() -> ctypes.CDLL:
    unary = (loop(name, f"ck_{name}(x0)", "float") for name in UNARY)
    binary = (loop(name, f"ck_{name}(x0, x1)", "float", 2) for name in BINARY)
    return host_library(['#include "cklang/math.h"', *unary, *binary])


def call(library: ctypes.CDLL, name: str, *inputs: Array) -> NDArray[np.float32]:
    arrays = np.broadcast_arrays(*inputs)
    return call_loop(library, name, *(each.astype(np.float32) for each in arrays))


def ulps(got: Array, exact: Array) -> float:
    """The largest error in units in the last place of the exact value; both finite or equal."""
    wide = exact.astype(np.float64)
    rounded = wide.astype(np.float32)
    normal = np.isfinite(rounded)
    same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    assert np.all(same | normal), (got[~(same | normal)], wide[~(same | normal)])
    error = np.abs(got[normal].astype(np.float64) - wide[normal])
    unit = np.spacing(np.maximum(np.abs(rounded[normal]), np.float32(1.2e-38))).astype(np.float64)
    return float(np.max(error / unit))


def samples(low: float, high: float, count: int = 400_000) -> NDArray[np.float32]:
    rng = np.random.default_rng(7)
    uniform = rng.uniform(low, high, count)
    tiny = rng.choice([-1.0, 1.0], count) * np.exp2(rng.uniform(-126, 3, count))
    return np.concatenate([uniform, tiny]).astype(np.float32)


_erf = np.vectorize(math.erf)


@pytest.mark.parametrize(
    ("name", "exact", "low", "high"),
    [
        ("tanh", np.tanh, -12.0, 12.0),
        ("erf", _erf, -5.0, 5.0),
        ("expm1", np.expm1, -30.0, 89.0),
        ("log1p", np.log1p, -0.999999, 100.0),
        ("log1p", np.log1p, 0.0, 3e38),
    ],
)
def test_accuracy(
    library: ctypes.CDLL, name: str, exact: Callable[[Array], Array], low: float, high: float
) -> None:
    x = samples(low, high)
    x = x[x > -1] if name == "log1p" else x
    worst = ulps(call(library, name, x), exact(x.astype(np.float64)))
    assert worst <= BOUNDS[name], worst


@pytest.mark.parametrize(
    ("name", "exact"), [("tanh", np.tanh), ("erf", _erf), ("expm1", np.expm1), ("log1p", np.log1p)]
)
def test_special_values(library: ctypes.CDLL, name: str, exact: Callable[[Array], Array]) -> None:
    x = np.array(SPECIAL, np.float32)
    with np.errstate(all="ignore"):
        want = exact(x.astype(np.float64)).astype(np.float32)
    got = call(library, name, x)
    np.testing.assert_allclose(got, want, rtol=3e-7)
    np.testing.assert_array_equal(np.signbit(got[:2]), np.signbit(want[:2]))


def test_pow_special_values(library: ctypes.CDLL) -> None:
    x, y = np.meshgrid(np.array(SPECIAL, np.float32), np.array(SPECIAL, np.float32))
    with np.errstate(all="ignore"):
        want = np.power(x, y, dtype=np.float32)
    got = call(library, "pow", x, y)
    np.testing.assert_allclose(got, want, rtol=5e-7, atol=2e-45)
    zero = (want == 0) & (got == 0)
    np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(want[zero]))


def test_pow_accuracy(library: ctypes.CDLL) -> None:
    rng = np.random.default_rng(3)
    x = np.exp2(rng.uniform(-120, 120, 1_000_000)).astype(np.float32)
    x[::2] = rng.uniform(0.4, 2.5, x[::2].size)
    y = (rng.uniform(-126, 127.9, x.size) / np.log2(x.astype(np.float64))).astype(np.float32)
    with np.errstate(all="ignore"):
        want = np.power(x.astype(np.float64), y.astype(np.float64))
    normal = (want > 1.2e-38) & (want < 3.4e38)
    worst = ulps(call(library, "pow", x, y)[normal], want[normal])
    assert worst <= BOUNDS["pow"], worst


@pytest.mark.parametrize("name", ["min", "max"])
def test_min_and_max_propagate_nan(library: ctypes.CDLL, name: str) -> None:
    x, y = np.meshgrid(np.array(SPECIAL, np.float32), np.array(SPECIAL, np.float32))
    want = getattr(np, f"{name}imum")(x, y)
    np.testing.assert_array_equal(call(library, name, x, y), want)


def test_narrowing_rounds_to_nearest_even(library: ctypes.CDLL) -> None:
    x = np.concatenate([samples(-70000.0, 70000.0, 50_000), np.array(SPECIAL, np.float32)])
    with np.errstate(all="ignore"):
        half = x.astype(np.float16).astype(np.float32)
    np.testing.assert_array_equal(call(library, "round_f16", x), half)


@pytest.mark.parametrize("name", EIGHT_BITS)
def test_8_bit_rounding_is_that_of_the_reference(library: ctypes.CDLL, name: str) -> None:
    dtype = DTYPES[name]
    patterns = np.arange(0, 1 << 32, 65_521, dtype=np.uint64).astype(np.uint32).view(np.float32)
    representable = np.arange(256, dtype=np.uint8).view(dtype.numpy).astype(np.float32)
    representable = representable[np.isfinite(representable)]
    middles = (np.sort(representable)[1:] + np.sort(representable)[:-1]) / 2
    x = np.concatenate(
        [patterns, representable, middles, np.nextafter(middles, np.float32(np.inf))]
    )
    want = round_float(x.astype(np.float64), dtype).astype(np.float32)
    got = call(library, f"round_{name}", x)
    assert np.array_equal(got, want, equal_nan=True)
    # ml_dtypes agrees where it does not overflow: there it gives nan or infinity.
    inside = np.abs(x) <= np.abs(representable).max()
    with np.errstate(all="ignore"):
        other = x.astype(dtype.numpy).astype(np.float32)
    assert np.array_equal(got[inside], other[inside])


def test_header_has_every_helper_of_the_op_table() -> None:
    import re

    from cklang.ir.casts import CASTS
    from cklang.ir.ops import OPS

    expressions = [e for op in OPS.values() for e in (op.c, op.c_int) if e] + list(CASTS.values())
    used = {name for text in expressions for name in re.findall(r"\bck_\w+", text)}
    names = ("cklang/math.h", "cklang/divide.h")
    header = "".join(headers.file(name).read_text() for name in names)
    defined = set(re.findall(r"^CK_MATH \w+ (ck_\w+)\(", header, re.M))
    assert used <= defined, used - defined
