# SPDX-License-Identifier: MIT
"""Error bounds of ops that jump: integers made of uncertain floats, and remainders of these."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cklang as ck
from cklang.ir.parser import parse_function
from cklang.reference.bounds import evaluate_with_bound
from cklang.reference.evaluate import evaluate
from cklang.testing import assert_close
from cklang.types import DType, f32, i8, i32, i64
from tests.support.narrow import evaluate32
from tests.support.written_ops import expression_op

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


@pytest.mark.parametrize("dtype", [i32, i64], ids=str)
@pytest.mark.parametrize("op", [*OPS, *BITS, "add", "subtract", "multiply", "maximum"])
def test_integers_are_numpys_and_exact(op: str, dtype: DType) -> None:
    name = {"subtract": "sub", "multiply": "mul"}.get(op, op)
    function = parse_function(
        f"func @f(%x: {dtype}[N], %y: {dtype}[N]) -> {dtype}[N] {{ "
        f"%r: {dtype}[N] = {name}(%x, %y) return %r }}"
    )
    rng, ends = np.random.default_rng(0), np.iinfo(dtype.numpy)
    wide = rng.integers(ends.min, ends.max, (2, 1000), dtype.numpy, endpoint=True)
    edges = np.array([ends.min, ends.min + 1, -1, 0, 1, ends.max], dtype.numpy)
    mesh = np.reshape(np.meshgrid(edges, edges), (2, -1))
    arrays = tuple(np.concatenate(pair) for pair in zip(wide, mesh, strict=True))
    with np.errstate(all="ignore"):
        want = getattr(np, op)(*arrays)
    (got,), (bound,) = evaluate_with_bound(function, arrays)
    np.testing.assert_array_equal(got, want)
    assert not bound.any()


BOTH = ["({} + {})", "({} * {})", "({} - {})", "({} // {})", "({} % {})", "({} ^ {})", "({} & {})"]
NESTED = st.recursive(
    st.sampled_from(["x", "y", "(x + n)", "(y >> 5)"]),
    lambda inner: st.one_of(
        st.builds(str.format, st.sampled_from(BOTH), inner, st.sampled_from(["x", "n", "7", "-3"])),
        st.builds(str.format, st.sampled_from(BOTH), inner, inner),
        st.builds("ck.where({} < {}, {}, y)".format, inner, inner, inner),
        st.builds("({} << (n & 63))".format, inner),
    ),
    max_leaves=6,
)


@settings(max_examples=40, deadline=None)
@given(words=NESTED)
def test_expressions_of_i64_and_i32_are_numpys(words: str) -> None:
    op = expression_op("x: ck.i64[N], y: ck.i64[N], n: ck.i32[N]", "ck.i64[N]", words)
    rng = np.random.default_rng(len(words))
    x, y = rng.integers(-(2**63), 2**63 - 1, (2, 50), endpoint=True) >> rng.integers(0, 63, 50)
    n = rng.integers(-(2**31), 2**31, 50).astype(np.int32)
    with np.errstate(all="ignore"):
        want = eval(words, {"ck": ck, "x": x, "y": y, "n": n})
    (got,) = evaluate(op.program.specialise(), [x, y, n])
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("source", [f32, i32, i64], ids=str)
@pytest.mark.parametrize("to", [i8, i32, i64], ids=str)
def test_casts_to_integers_saturate(source: DType, to: DType) -> None:
    function = parse_function(
        f"func @f(%x: {source}[N]) -> {to}[N] {{ %r: {to}[N] = cast(%x) {{to = {to}}} return %r }}"
    )
    numbers = [-(2**63), -(2**40), -(2**31), -130, -1, 0, 127, 2**31 - 1, 2**62, 2**63 - 1]
    if source == i32:
        numbers = [number for number in numbers if -(2**31) <= number < 2**31]
    x = np.array(numbers, source.numpy)
    (got,), ends = evaluate(function, [x]), np.iinfo(to.numpy)
    assert got.tolist() == [min(max(int(number), ends.min), ends.max) for number in x.tolist()]


def test_a_remainder_is_uncertain_where_its_quotient_is() -> None:
    function = parse_function(PROGRAM.format(type="f32", body=FLOATS.format(op="mod")))
    x, w = np.full((1, 3), 2.0, np.float32), np.array([[1.0, 0.7]] * 3, np.float32)
    y = np.array([[3.0, 3.0]], np.float32)
    _, (bound,) = evaluate_with_bound(function, (x, w, y))
    assert bound[0, 0] == np.inf
    assert bound[0, 1] < 1e-4


# --- casts

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
