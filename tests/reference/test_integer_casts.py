# SPDX-License-Identifier: MIT
"""Casts to integers truncate, and their bound is 0 unless the operand may cross an integer."""

from __future__ import annotations

import numpy as np
import pytest

from cklang.ir.parser import parse_function
from cklang.reference.bounds import evaluate_with_bound
from cklang.reference.evaluate import evaluate

CAST = """func @cast(%x: f32[N]) -> i8[N] {{
  %0: f32[N] = {op}(%x)
  %1: i8[N] = cast(%0) {{to = i8}}
  return %1
}}"""
SUM = """func @sum(%a: f32[M, K], %b: f32[K, N]) -> i8[M, N] {
  %0: f32[M, N] = gemm(%a, %b)
  %1: i8[M, N] = cast(%0) {to = i8}
  return %1
}"""
ROUNDED_SUM = SUM.replace("%1: i8[M, N] = cast(%0)", "%1: f32[M, N] = round(%0)").replace(
    "{to = i8}\n  return %1", "\n  %2: i8[M, N] = cast(%1) {to = i8}\n  return %2"
)
NUMBERS = np.array([-2.5, 4.9999, 2.5, 3.5, -0.5, 0.9, 127.9, -128.9, 1e9, np.nan], np.float32)


@pytest.mark.parametrize(
    ("op", "want"),
    [
        ("neg", [2, -4, -2, -3, 0, 0, -127, 127, -128, 0]),
        ("round", [-2, 5, 2, 4, 0, 1, 127, -128, 127, 0]),
        ("trunc", [-2, 4, 2, 3, 0, 0, 127, -128, 127, 0]),
        ("floor", [-3, 4, 2, 3, -1, 0, 127, -128, 127, 0]),
        ("ceil", [-2, 5, 3, 4, 0, 1, 127, -128, 127, 0]),
    ],
)
def test_casts_to_integers_drop_the_fraction_and_have_no_error(op: str, want: list[int]) -> None:
    (values,), (bounds,) = evaluate_with_bound(parse_function(CAST.format(op=op)), [NUMBERS])
    np.testing.assert_array_equal(values, want)
    np.testing.assert_array_equal(bounds, 0)


def test_truncation_agrees_with_numpy() -> None:
    x = np.linspace(-100, 100, 4001, dtype=np.float32)
    (values,) = evaluate(parse_function(CAST.format(op="trunc")), [x])
    np.testing.assert_array_equal(values, x.astype(np.int8))


@pytest.mark.parametrize(
    ("text", "total", "bound"),
    [
        (SUM, 4.9375, 0),
        (SUM, -2.5, 0),
        (SUM, 5.0, 1),
        (SUM, 0.0, 0),
        (SUM, 127.5, 0),
        (SUM, 300.0, 0),
        (ROUNDED_SUM, 4.9375, 0),
        (ROUNDED_SUM, 5.0, 0),
        (ROUNDED_SUM, 4.5, 1),
        (ROUNDED_SUM, 1000.5, 0),
    ],
)
def test_a_sum_is_uncertain_only_where_its_error_crosses_a_step(
    text: str, total: float, bound: int
) -> None:
    a = np.ones((1, 8), np.float32)
    b = np.full((8, 1), total / 8, np.float32)
    _, (bounds,) = evaluate_with_bound(parse_function(text), [a, b])
    np.testing.assert_array_equal(bounds, bound)
