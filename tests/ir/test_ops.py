# SPDX-License-Identifier: MIT
"""The op table: rows agree with themselves, and meanings with Python's math and ml_dtypes."""

import math
import re
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cklang.ir import numeric
from cklang.ir.casts import CASTS
from cklang.ir.ops import OPS, Kind, Op
from cklang.ir.rules import AttrKind
from cklang.types import DTYPES, bf16, bool_, f16, f32, i32
from cklang.types import Kind as DKind

POINTWISE = [row for row in OPS.values() if row.kind is Kind.POINTWISE]
WIDTHS = {"int", "unsigned", "bits", "last"}
HELPERS = {
    "exp", "exp2", "expm1", "log", "log1p", "tanh", "erf", "sqrt", "rsqrt", "rcp", "pow", "abs",
    "min", "max", "floor", "rint", "copysign", "isnan", "isfinite", "isinf", "signbit",
    "floor_divide", "floor_divide_i32", "mod", "mod_i32",
}  # fmt: skip
NUMBERS = np.array(
    [
        0.0, -0.0, 1e-40, -1e-40, 0.3, -0.3, 1.0, -1.0, 2.5, -3.0, 3.0, 40.0, -40.0, 100000.0,
        -100000.0, 3e38, -3e38, math.inf, -math.inf, math.nan,
    ]
)  # fmt: skip


def attrs_of(row: Op) -> dict[str, float]:
    return {"lo": -1.0, "hi": 2.0} if row.name == "clamp" else {a.name: 0.25 for a in row.attrs}


@pytest.mark.parametrize("row", POINTWISE, ids=lambda row: row.name)
def test_c_uses_its_operands_attributes_and_known_helpers(row: Op) -> None:
    legal = {str(index) for index in range(row.operands)} | {attr.name for attr in row.attrs}
    for text in (row.c, row.c_int, row.c_i64):
        if text is not None:
            assert set(re.findall(r"\{(\w+)\}", text)) - WIDTHS == legal
            assert set(re.findall(r"ck_(\w+)", text)) <= HELPERS
    assert row.c is not None or row.c_int is not None
    assert all(attr.kind is AttrKind.FLOAT for attr in row.attrs)


@pytest.mark.parametrize(
    "row",
    [
        row
        for row in POINTWISE
        # Those jump, so that the rounding of their operands moves results by an integer.
        if row.dtype.apply((f32,) * row.operands, {})
        and row.name not in ("floor_divide", "mod", "fmod")
    ],
    ids=lambda row: row.name,
)
def test_meanings_work_in_both_float_widths(row: Op) -> None:
    x, y = (grid.ravel() for grid in np.meshgrid(NUMBERS, NUMBERS))
    operands = (x, y)[: row.operands]
    with np.errstate(all="ignore"):
        wide = np.asarray(row.numpy(*operands, **attrs_of(row)))
        narrow = np.asarray(
            row.numpy(
                *(each.astype(np.float32) for each in operands),
                **{name: np.float32(value) for name, value in attrs_of(row).items()},
            )
        )
    assert wide.dtype in (np.float64, np.bool_)
    assert narrow.dtype in (np.float32, np.bool_)
    assert wide.shape == narrow.shape == x.shape
    ordinary = (np.abs(x) < 100) & ((np.abs(x) > 1e-9) | (x == 0))
    small = ordinary & ((row.operands == 1) | (np.abs(y) < 100) & ((np.abs(y) > 1e-9) | (y == 0)))
    small &= np.abs(wide.astype(np.float64)) < 1e30
    np.testing.assert_allclose(
        narrow[small].astype(np.float64), wide[small].astype(np.float64), rtol=1e-4, atol=1e-6
    )


def _relu(x: float) -> float:
    return x if math.isnan(x) else max(x, 0.0)


EXACT: dict[str, Callable[[float], float]] = {
    "relu": _relu, "exp": math.exp, "expm1": math.expm1, "tanh": math.tanh, "erf": math.erf,
    "gelu": lambda x: x * 0.5 * math.erfc(-x / math.sqrt(2)),
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)), "silu": lambda x: x / (1 + math.exp(-x)),
    "softplus": lambda x: math.log1p(math.exp(x)),
    "mish": lambda x: x * math.tanh(math.log1p(math.exp(x))),
    "softsign": lambda x: x / (1 + abs(x)), "hardswish": lambda x: x * min(max(x + 3, 0), 6) / 6,
    "hardsigmoid": lambda x: min(max(x + 3, 0), 6) / 6, "reciprocal": lambda x: 1 / x,
    "square": lambda x: x * x, "floor": math.floor, "ceil": math.ceil, "round": round,
    "trunc": math.trunc, "sin": math.sin, "cos": math.cos, "tan": math.tan, "atan": math.atan,
    "asinh": math.asinh, "sinh": math.sinh, "cosh": math.cosh, "cbrt": math.cbrt, "erfc": math.erfc,
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
@given(x=st.floats(-300, 300).filter(lambda x: abs(x) > 1e-300))
def test_meanings_against_python(name: str, x: float) -> None:
    got = float(OPS[name].numpy(np.array([x]))[0])
    # gelu's own formula cancels for large negative x: absolute in x.
    assert got == pytest.approx(EXACT[name](x), rel=1e-12, abs=1e-14 * max(1, abs(x)))


@pytest.mark.parametrize("name", ["sigmoid", "silu", "softplus", "gelu", "gelu_tanh", "mish"])
def test_activations_of_large_numbers(name: str) -> None:
    x = np.array([-1e30, 1e30])
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        low, high = OPS[name].numpy(x)
    assert low == 0
    assert high == (1.0 if name == "sigmoid" else 1e30)


@pytest.mark.parametrize("name", ["minimum", "maximum"])
def test_nan_wins_in_minimum_and_maximum(name: str) -> None:
    x = np.array([math.nan, 1.0])
    with np.errstate(all="ignore"):
        assert np.isnan(OPS[name].numpy(x, x[::-1])).all()


@pytest.mark.parametrize("name", [row.name for row in POINTWISE if row.operands == 1])
def test_nan_stays_nan(name: str) -> None:
    row = OPS[name]
    if row.dtype.apply((f32,), {}) != f32:
        assert name in ("isnan", "isfinite", "isinf", "signbit", "logical_not", "bitwise_not")
        return
    with np.errstate(all="ignore"):
        assert np.isnan(row.numpy(np.array([math.nan]), **attrs_of(row))).all()


def test_pow_has_the_special_cases_of_powf() -> None:
    x = np.array([-8.0, 0.0, 1.0, math.nan, -2.0, -0.0])
    y = np.array([1 / 3, -1.0, math.nan, 0.0, 3.0, -3.0])
    with np.errstate(all="ignore"):
        got = OPS["pow"].numpy(x, y)
    np.testing.assert_array_equal(got, [math.nan, math.inf, 1.0, 1.0, -8.0, -math.inf])


def test_every_half_and_bfloat_rounds_to_itself() -> None:
    bits = np.arange(65536, dtype=np.uint16)
    for dtype, kind in ((f16, np.dtype(np.float16)), (bf16, np.dtype(ml_dtypes.bfloat16))):
        with np.errstate(invalid="ignore"):
            numbers = bits.view(kind).astype(np.float64)
        np.testing.assert_array_equal(numeric.round_float(numbers, dtype), numbers)


@given(st.integers(0, 2**32 - 1))
def test_rounding_agrees_with_numpy_and_ml_dtypes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 2**32, 4096, dtype=np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        for dtype in (f16, bf16):
            want = x.astype(dtype.numpy).astype(np.float64)
            np.testing.assert_array_equal(numeric.round_float(x.astype(np.float64), dtype), want)
        wide = rng.standard_normal(512) * np.exp2(rng.integers(-160, 160, 512))
        want = wide.astype(np.float32).astype(np.float64)
        np.testing.assert_array_equal(numeric.round_float(wide, f32), want)
        want = wide.astype(np.float16).astype(np.float64)
        np.testing.assert_array_equal(numeric.round_float(wide, f16), want)


def test_bf16_is_rounded_once() -> None:
    # By way of f32 this falls on a tie and then to even; it lies above the tie.
    x = np.array([1 + 2**-8 + 2**-30])
    assert numeric.round_float(x, bf16)[0] == 1 + 2**-7


def test_casts_to_integers_saturate() -> None:
    x = np.array([1.9, -1.9, 3e9, -3e9, math.nan, math.inf, -math.inf, 0.0])
    top, bottom = 2**31 - 1, -(2**31)
    want = [1, -1, top, bottom, 0, top, bottom, 0]
    assert numeric.cast(x, i32).tolist() == want
    assert numeric.cast(x, bool_).tolist() == [True] * 7 + [False]


ROUNDINGS = {f"round_{d}" for d in DTYPES.values() if d.kind is DKind.FLOAT and d.bits < 32}


def test_every_cast_has_one_expression_of_its_operand() -> None:
    for text in CASTS.values():
        assert set(re.findall(r"\{(\w+)\}", text)) == {"0"}
        assert set(re.findall(r"ck_(\w+)", text)) <= ROUNDINGS
