# SPDX-License-Identifier: MIT
"""Bounds hold for float32 kernels of all summation orders, and are tight enough to find bugs."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cklang.ir.nodes import Function
from cklang.ir.numeric import gelu
from cklang.ir.ops import OPS, Kind
from cklang.ir.parser import parse_function
from cklang.reference.bounds import BOUNDS, evaluate_with_bound
from cklang.reference.sums import gamma
from cklang.testing import assert_close
from cklang.testing.compare import largest_ratio
from tests.support.narrow import MODES, evaluate32
from tests.support.programs import arguments, gemm_functions, programs

LINEAR = parse_function("""
func @linear(%x: f16[M, K], %w: f16[K, N], %bias: f16[N], %res: f16[M, N]) -> f16[M, N] {
  %1: f32[M, N] = gemm(%x, %w)
  %2: f32[N] = cast(%bias) {to = f32}
  %3: f32[M, N] = broadcast(%2) {dims = [1]}
  %4: f32[M, N] = add(%1, %3)
  %5: f32[M, N] = gelu(%4)
  %6: f32[M, N] = cast(%res) {to = f32}
  %7: f32[M, N] = add(%5, %6)
  %8: f16[M, N] = cast(%7) {to = f16}
  return %8
}""")


def test_every_op_has_a_bound() -> None:
    missing = set(OPS) - set(BOUNDS)
    assert not missing, "add rules to OP_BOUNDS in cklang/reference/op_bounds.py"


@given(st.data(), st.sampled_from(MODES), st.integers(0, 1000))
def test_float32_kernels_are_within_their_bound(data: st.DataObject, mode: str, seed: int) -> None:
    function = data.draw(st.one_of(gemm_functions(), programs(gemms=2)))
    arrays = data.draw(arguments(function))
    (want,), (bound,) = evaluate_with_bound(function, arrays)
    # The draw has infinities and huge numbers, beside which a sum may be anything.
    assert_close(evaluate32(function, arrays, mode, seed), want, bound, unchecked=1)


@pytest.mark.parametrize("row", [row for row in OPS.values() if row.kind is Kind.POINTWISE])
def test_each_op_in_float32_is_within_its_bound(row: Any) -> None:
    kinds = {"f32": np.float32, "i32": np.int32, "bool": np.bool_}
    kind = next(k for k in ("f32", "bool", "i32") if _typed(row, k))
    types = ["bool", "f32", "f32"] if row.operands == 3 else [kind] * row.operands
    to = _typed(row, kind)
    attrs = ", ".join(f"{attr.name} = {1.5 if attr.name != 'lo' else -1.5}" for attr in row.attrs)
    function = parse_function(
        f"func @f({', '.join(f'%x{i}: {t}[N]' for i, t in enumerate(types))}) -> {to}[N] {{"
        f"%r: {to}[N] = {row.name}({', '.join(f'%x{i}' for i in range(row.operands))}) "
        f"{{{attrs}}} return %r }}"
    )
    rng = np.random.default_rng(7)
    for _ in range(20):
        bits = rng.integers(0, 2**32, (row.operands, 4096), dtype=np.uint32).view(np.float32)
        near = (rng.standard_normal((row.operands, 4096)) * 4).astype(np.float32)
        for numbers in (bits, near, np.round(near)):
            arrays = tuple(
                (x > 0) if t == "bool" else x.astype(kinds[t])
                for x, t in zip(numbers, types, strict=True)
            )
            (want,), (bound,) = evaluate_with_bound(function, arrays)
            assert_close(evaluate32(function, arrays, "nearest", 0), want, bound)


def _typed(row: Any, kind: str) -> str | None:
    from cklang.types import DTYPES, bool_

    dtypes = [DTYPES[kind]] * row.operands
    if row.operands == 3:
        dtypes[0] = bool_
    result = row.dtype.apply(tuple(dtypes), {})
    return None if result is None else result.name


def linear_arrays(m: int = 64, n: int = 48, k: int = 96) -> tuple[Any, ...]:
    rng = np.random.default_rng(3)
    shapes = ((m, k), (k, n), (n,), (m, n))
    return tuple(rng.standard_normal(shape).astype(np.float16) for shape in shapes)


def linear(x: Any, w: Any, bias: Any, res: Any, acc: Any = None) -> Any:
    acc = x.astype(np.float32) @ w.astype(np.float32) if acc is None else acc
    return (gelu(acc + bias.astype(np.float32)) + res.astype(np.float32)).astype(np.float16)


def test_the_bound_of_ordinary_numbers_is_about_an_ulp() -> None:
    arrays = linear_arrays()
    (want,), (bound,) = evaluate_with_bound(LINEAR, arrays)
    assert_close(linear(*arrays), want, bound)
    ulp = np.spacing(np.abs(want)).astype(np.float64)
    assert np.median(bound / ulp) <= 1
    assert (bound == 0).mean() > 0.2


GEMM = """func @f(%a: DTYPE[M, K], %b: DTYPE[K, N]) -> f32[M, N] {
  %r: f32[M, N] = gemm(%a, %b) return %r }"""


def test_bugs_are_found() -> None:
    x, w, bias, res = linear_arrays()
    (want,), (bound,) = evaluate_with_bound(LINEAR, (x, w, bias, res))
    wide = x.astype(np.float32) @ w.astype(np.float32)
    mistakes = {
        "a k too few": linear(x[:, :-1], w[:-1], bias, res),
        "the accumulator rounded before the epilogue": linear(
            x, w, bias, res, acc=wide.astype(np.float16).astype(np.float32)
        ),
        "bias along m": linear(x, w, np.resize(bias, 64)[:, None], res),
        "the residual transposed in a tile": linear(x, w, bias, np.roll(res, 1, axis=0)),
        "tanh gelu": (
            OPS["gelu_tanh"].numpy(wide + bias.astype(np.float32)) + res.astype(np.float32)
        ).astype(np.float16),
        "rounding toward zero": _toward_zero(x, w, bias, res),
    }
    for name, got in mistakes.items():
        assert largest_ratio(got, want, bound) > 1, name


def _toward_zero(x: Any, w: Any, bias: Any, res: Any) -> Any:
    exact = gelu(x.astype(np.float64) @ w.astype(np.float64) + bias.astype(np.float64))
    exact = exact + res.astype(np.float64)
    near = exact.astype(np.float16)
    over = np.abs(near.astype(np.float64)) > np.abs(exact)
    return np.where(over, np.nextafter(near, np.float16(0)), near)


def bounds_of(text: str, *arrays: Any) -> list[float]:
    _, (bound,) = evaluate_with_bound(parse_function(text), arrays)
    return np.asarray(bound).ravel().tolist()


def test_exact_arithmetic_has_no_bound() -> None:
    text = """func @f(%x: f16[N]) -> f16[N] {
      %0: f32[N] = cast(%x) {to = f32} %1: f32[N] = abs(%0) %2: f32[N] = relu(%1)
      %3: f16[N] = cast(%2) {to = f16} return %3 }"""
    assert bounds_of(text, np.array([1.5, -2, math.inf], "f2")) == [0, 0, 0]


def test_uncertain_comparisons_make_the_choice_the_bound() -> None:
    text = """func @f(%x: f32[N], %y: f32[N]) -> f32[N] {
      %0: f32[N] = exp(%x) %1: bool[N] = lt(%0, %y)
      %a: f32[] = constant() {value = 5.0} %b: f32[] = constant() {value = 2.0}
      %2: f32[N] = broadcast(%a) {dims = []} %3: f32[N] = broadcast(%b) {dims = []}
      %4: f32[N] = where(%1, %2, %3) return %4 }"""
    one = np.array([0, 0, 0, math.nan], "f4")
    assert bounds_of(text, one, np.array([1, 1.5, 0.5, 1], "f4")) == [3, 0, 0, 0]


@pytest.mark.parametrize(
    ("step", "number"),
    [("div(%one, %0)", 0.0), ("reciprocal(%0)", 0.0), ("pow(%0, %one)", 0.0), ("pow(%x, %0)", -2)],
)
def test_poles_between_the_ends_of_an_interval_are_seen(step: str, number: float) -> None:
    # %0 is the number, off by the rounding of two steps.
    text = f"""func @f(%x: f32[N], %one: f32[N]) -> f32[N] {{
      %e: f32[N] = exp(%one) %s: f32[N] = add(%x, %e) %0: f32[N] = sub(%s, %e)
      %1: f32[N] = {step} return %1 }}"""
    x = np.full(1, number, "f4")
    (bound,) = bounds_of(text, x, np.ones(1, "f4"))
    assert bound == math.inf


def test_overflow_at_the_edge_is_either() -> None:
    text = "func @f(%x: f32[N], %y: f32[N]) -> f32[N] { %0: f32[N] = div(%x, %y) return %0 }"
    largest = np.full(3, np.finfo(np.float32).max)
    at, below, beyond = bounds_of(text, largest, np.array([1, 1.01, 0.99], "f4"))
    assert at == math.inf
    assert 0 < below < 1e33
    assert beyond == 0


def test_infinities_must_be_met_where_nothing_is_uncertain() -> None:
    text = GEMM.replace("DTYPE", "f16")
    a = np.array([[math.inf, 1], [1, 1], [math.nan, 1]], "f2")
    b = np.array([[1, 6e-8], [1, 1]], "f2")
    (want,), (bound,) = evaluate_with_bound(parse_function(text), (a, b))
    assert want[0, 0] == math.inf
    assert np.isnan(want[2, 0])
    assert bound[0, 0] == bound[2, 0] == 0
    # An infinity times a subnormal that a matrix unit may flush.
    assert bound[0, 1] == math.inf
    assert 0 < bound[1, 0] < 1e-5
    assert 6e-8 <= bound[1, 1] < 1e-5


def test_partial_sums_beyond_f32_may_be_anything() -> None:
    text = GEMM.replace("DTYPE", "f32")
    a = np.array([[3e38, 3e38, -3e38], [1e38, 1e38, -1e38]], "f4")
    _, (bound,) = evaluate_with_bound(parse_function(text), (a, np.ones((3, 1), "f4")))
    assert bound[0, 0] == math.inf
    assert bound[1, 0] < 1e33


def test_what_may_be_anything_stays_so() -> None:
    text = """func @f(%a: f32[M, K], %b: f32[K, N]) -> f32[M, N] { %0: f32[M, N] = gemm(%a, %b)
      %1: f32[M, N] = mul(%0, %0) %2: f32[M, N] = add(%1, %0) return %2 }"""
    # The product may overflow; minus infinity plus infinity is a nan that no kernel need meet.
    assert bounds_of(text, np.array([[-3e38, -3e38]], "f4"), np.ones((2, 1), "f4")) == [math.inf]


def test_gamma_is_a_sum_of_truncations() -> None:
    assert gamma(0) < 1e-6
    assert gamma(256) == (2 * 256 + 8) * 2.0**-24
    text = GEMM.replace("DTYPE", "f16")
    ones = np.ones((1, 100), "f2")
    (bound,) = bounds_of(text, ones, -ones.T)
    assert bound == pytest.approx(100 * gamma(100))


def test_a_chain_of_many_ops_is_bounded() -> None:
    body = " ".join(f"%c{i + 1}: f32[N] = tanh(%c{i})" for i in range(40))
    function: Function = parse_function(f"func @f(%c0: f32[N]) -> f32[N] {{ {body} return %c40 }}")
    x = np.linspace(-3, 3, 50).astype(np.float32)
    (want,), (bound,) = evaluate_with_bound(function, (x,))
    assert_close(evaluate32(function, (x,), "nearest", 0), want, bound)
    assert bound.max() < 1e-4


def test_poles_of_scalars_are_seen() -> None:
    text = """func @f(%a: f32[], %b: f32[]) -> f32[] {
      %0: f32[] = mul(%a, %b) %1: f32[] = sub(%0, %a) %2: f32[] = div(%b, %1) return %2
    }"""
    function = parse_function(text)
    (_, bound), (_, wild) = (
        [each[0] for each in evaluate_with_bound(function, (np.float32(3), np.float32(b)))]
        for b in (0.1, 1.0 + 2.0**-20)
    )
    assert 0 < bound < 1e-6
    assert wild > 0.1


def test_every_op_has_a_bound_rule() -> None:
    assert set(BOUNDS) == set(OPS)
