# SPDX-License-Identifier: MIT
"""Error bounds of ops that jump: integers made of uncertain floats, and remainders of these."""

from __future__ import annotations

import numpy as np
import pytest

from cklang.ir.parser import parse_function
from cklang.reference.bounds import evaluate_with_bound
from cklang.testing import assert_close
from tests.support.narrow import evaluate32

PROGRAM = """
func @f(%x: f32[M, K], %w: f32[K, N], %y: f32[M, N]) -> {type}[M, N] {{
  %0: f32[M, N] = gemm(%x, %w)
  {body}
  return %r
}}"""
FLOATS = "%r: f32[M, N] = {op}(%0, %y)"
INTEGERS = """%1: i32[M, N] = cast(%0) {{to = i32}}
  %2: i32[M, N] = cast(%y) {{to = i32}}
  %r: i32[M, N] = {op}(%1, %2)"""
OPS = ("floor_divide", "mod")
BITS = ("bitwise_and", "bitwise_xor", "left_shift", "right_shift")


@pytest.mark.parametrize(
    ("body", "op"), [(FLOATS, op) for op in OPS] + [(INTEGERS, op) for op in (*OPS, *BITS)]
)
@pytest.mark.parametrize("seed", range(5))
def test_sums_in_any_order_are_within_the_bound(body: str, op: str, seed: int) -> None:
    kind = "i32" if body is INTEGERS else "f32"
    function = parse_function(PROGRAM.format(type=kind, body=body.format(op=op)))
    rng = np.random.default_rng(seed)
    # Sums near integers, so that some orders of addition round below them and some do not.
    x = rng.uniform(-1, 1, (40, 30)).astype(np.float32)
    w = np.linalg.pinv(x.astype(np.float64)) @ rng.integers(-9, 9, (40, 20))
    y = rng.integers(-3, 4, (40, 20)).astype(np.float32)
    arrays = (x, w.astype(np.float32), y)
    (want,), (bound,) = evaluate_with_bound(function, arrays)
    for mode in ("nearest", "truncate", "blocks"):
        assert_close(evaluate32(function, arrays, mode, seed), want, bound, unchecked=1)


@pytest.mark.parametrize("op", [*OPS, *BITS])
def test_exact_integers_have_exact_results(op: str) -> None:
    function = parse_function(
        f"func @f(%x: i32[N], %y: i32[N]) -> i32[N] {{ %r: i32[N] = {op}(%x, %y) return %r }}"
    )
    rng = np.random.default_rng(0)
    arrays = tuple(rng.integers(-(2**31), 2**31, (2, 1000)).astype(np.int32))
    _, (bound,) = evaluate_with_bound(function, arrays)
    assert not bound.any()


def test_a_remainder_is_uncertain_where_its_quotient_is() -> None:
    function = parse_function(PROGRAM.format(type="f32", body=FLOATS.format(op="mod")))
    x, w = np.full((1, 3), 2.0, np.float32), np.array([[1.0, 0.7]] * 3, np.float32)
    y = np.array([[3.0, 3.0]], np.float32)
    _, (bound,) = evaluate_with_bound(function, (x, w, y))
    assert bound[0, 0] == np.inf
    assert bound[0, 1] < 1e-4
