# SPDX-License-Identifier: MIT
"""The reference on cases worked out by hand, and its refusals."""

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from cklang.errors import CkError
from cklang.ir.parser import parse_function
from cklang.reference.bounds import evaluate_with_bound
from cklang.reference.evaluate import evaluate
from cklang.types import DTYPES
from tests.support.errors import expect_error


def result(text: str, *arrays: Any) -> Any:
    """The one result; value and bound evaluators must agree."""
    function = parse_function(text)
    (got,) = evaluate(function, arrays)
    (again,), (bound,) = evaluate_with_bound(function, arrays)
    np.testing.assert_array_equal(
        np.asarray(got).astype(np.float64), np.asarray(again).astype(np.float64)
    )
    assert bound.shape == got.shape
    assert (bound >= 0).all()
    return got


def pointwise(op: str, *arrays: Any, to: str = "f32", attrs: str = "") -> Any:
    """Apply one op to f32 vectors."""
    params = ", ".join(f"%x{i}: f32[N]" for i in range(len(arrays)))
    names = ", ".join(f"%x{i}" for i in range(len(arrays)))
    text = f"func @f({params}) -> {to}[N] {{ %r: {to}[N] = {op}({names}) {attrs} return %r }}"
    return result(text, *(np.array(array, np.float32) for array in arrays))


GEMM = (
    "func @f(%a: f16[M, K], %b: f16[K, N]) -> f32[M, N] { %r: f32[M, N] = gemm(%a, %b) return %r }"
)


@pytest.mark.parametrize("shape", [(3, 4, 5), (1, 1, 1), (0, 4, 5), (3, 0, 5), (3, 4, 0)])
def test_gemm(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    rng = np.random.default_rng(0)
    a, b = rng.integers(-4, 5, (m, k)), rng.integers(-4, 5, (k, n))
    got = result(GEMM, a.astype(np.float16), b.astype(np.float16))
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, a @ b)


def test_a_linear_layer_with_its_casts() -> None:
    text = """func @f(%x: bf16[M, K], %w: bf16[N, K], %b: bf16[N]) -> bf16[M, N] {
      %0: bf16[K, N] = transpose(%w) {perm = [1, 0]}
      %1: f32[M, N] = gemm(%x, %0)
      %2: f32[N] = cast(%b) {to = f32}
      %3: f32[M, N] = broadcast(%2) {dims = [1]}
      %4: f32[M, N] = add(%1, %3)
      %5: bf16[M, N] = cast(%4) {to = bf16}
      return %5 }"""
    x = np.array([[1, 2]], ml_dtypes.bfloat16)
    w = np.array([[3, 4], [100, 1]], ml_dtypes.bfloat16)
    b = np.array([0.5, 0.25], ml_dtypes.bfloat16)
    got = result(text, x, w, b)
    assert got.dtype == ml_dtypes.bfloat16
    # 102.25 lies in the middle of two bf16 numbers and goes to the even one.
    assert got.astype(np.float64).tolist() == [[11.5, 102.0]]


def test_only_casts_round() -> None:
    third = pointwise("div", [1.0], [3.0])
    assert third[0] == np.float32(1 / 3)
    text = """func @f(%x: f32[], %y: f32[]) -> f32[] {
      %0: f32[] = div(%x, %y) %1: CAST[] = cast(%0) {to = CAST} %2: f32[] = cast(%1) {to = f32}
      %3: f32[] = mul(%2, %y) return %3 }"""
    assert float(result(text.replace("CAST", "f32"), 1.0, 3.0)) == np.float32(1 / 3) * 3.0
    assert float(result(text.replace("CAST", "f16"), 1.0, 3.0)) == np.float16(1 / 3) * 3.0


def test_attributes_and_constants_are_f32_numbers() -> None:
    text = """func @f(%x: f32[]) -> f32[] {
      %c: f32[] = constant() {value = 0.1} %0: f32[] = leaky_relu(%x) {slope = 0.1}
      %1: f32[] = add(%0, %c) return %1 }"""
    assert float(result(text, -1.0)) == float(np.float32(0.1)) - float(np.float32(0.1))


def test_f32_overflows_to_infinity_between_steps() -> None:
    text = """func @f(%x: f32[N]) -> f32[N] {
      %0: f32[N] = exp(%x) %1: f32[N] = log(%0) return %1 }"""
    got = result(text, np.array([80, 100, -200], np.float32))
    assert got[0] == 80
    assert got[1] == math.inf


def test_f16_overflows_to_infinity() -> None:
    text = "func @f(%x: f32[N]) -> f16[N] { %r: f16[N] = cast(%x) {to = f16} return %r }"
    got = result(text, np.array([65504, 65519.996, 65520, -1e30, math.nan], np.float32))
    np.testing.assert_array_equal(got, np.array([65504, 65504, math.inf, -math.inf, math.nan]))


def test_nan_and_infinity_go_through() -> None:
    nan, inf = math.nan, math.inf
    x = [nan, inf, -inf, 1.0]
    np.testing.assert_array_equal(pointwise("relu", x), [nan, inf, 0, 1])
    np.testing.assert_array_equal(pointwise("minimum", x, [0, nan, 0, nan]), [nan, nan, -inf, nan])
    clamp = pointwise("clamp", x, attrs="{lo = -1.0, hi = 2.0}")
    np.testing.assert_array_equal(clamp, [nan, 2, -1, 1])
    np.testing.assert_array_equal(pointwise("lt", x, [1] * 4, to="bool"), [0, 0, 1, 0])
    np.testing.assert_array_equal(pointwise("ne", x, x, to="bool"), [1, 0, 0, 0])
    np.testing.assert_array_equal(pointwise("sigmoid", x), [nan, 1, 0, np.float32(0.7310585786)])


def test_integers_and_bools() -> None:
    text = """func @f(%i: i32[N], %j: i8[N], %c: bool[N]) -> f32[N] {
      %0: i32[N] = cast(%j) {to = i32} %1: i32[N] = add(%i, %0) %2: i32[N] = where(%c, %1, %i)
      %3: f32[N] = cast(%2) {to = f32} return %3 }"""
    i = np.array([2**31 - 1, 2**31 - 1, 7], np.int32)
    j = np.array([1, 1, -9], np.int8)
    got = result(text, i, j, np.array([True, False, True]))
    assert got.tolist() == [-(2.0**31), 2.0**31, -2.0]


def test_broadcasts_and_transposes() -> None:
    text = """func @f(%r: f32[N], %c: f32[M], %o: f32[M, 1], %s: f32[], %t: f32[N, M])
      -> f32[M, N] {
      %0: f32[M, N] = broadcast(%r) {dims = [1]} %1: f32[M, N] = broadcast(%c) {dims = [0]}
      %2: f32[M, N] = broadcast(%o) {dims = [0, 1]} %3: f32[M, N] = broadcast(%s) {dims = []}
      %4: f32[M, N] = transpose(%t) {perm = [1, 0]} %5: f32[M, N] = add(%0, %1)
      %6: f32[M, N] = add(%2, %3) %7: f32[M, N] = add(%5, %6) %8: f32[M, N] = add(%7, %4)
      return %8 }"""
    r, c, o, s, t = (
        np.arange(n, dtype=np.float32).reshape(shape)
        for n, shape in ((3, (3,)), (2, (2,)), (2, (2, 1)), (1, ()), (6, (3, 2)))
    )
    np.testing.assert_array_equal(result(text, r, c, o, s, t), r + c[:, None] + o + s + t.T)


@pytest.mark.parametrize(
    ("arrays", "code"),
    [
        ([np.zeros((2, 3), np.float16)], "I030"),
        ([np.zeros((2, 3), np.float32), np.zeros((3, 2), np.float16)], "I031"),
        ([np.zeros(3, np.float16), np.zeros((3, 2), np.float16)], "I031"),
        ([np.zeros((2, 3), np.float16), np.zeros((4, 2), np.float16)], "I032"),
    ],
)
def test_wrong_arrays(arrays: list[Any], code: str) -> None:
    with expect_error(code):
        evaluate(parse_function(GEMM), arrays)


def test_extents_that_disagree_are_named() -> None:
    with pytest.raises(CkError) as caught:
        evaluate(parse_function(GEMM), [np.zeros((2, 3), "f2"), np.zeros((4, 2), "f2")])
    assert caught.value.message == "axis 0 of %b is K = 3, but its array has 4 there"
    assert caught.value.hint == "K = 3 since %a"


def test_an_integer_product_is_exact_and_wraps() -> None:
    rng = np.random.default_rng(3)
    x, w = (rng.integers(-128, 128, s).astype(np.int8) for s in ((5, 300), (300, 7)))
    text = (
        "func @f(%x: i8[M, K], %w: i8[K, N]) -> i32[M, N] "
        "{ %r: i32[M, N] = gemm(%x, %w) return %r }"
    )
    assert np.array_equal(result(text, x, w), x.astype(np.int32) @ w.astype(np.int32))
    full = np.full((1, 2**17 + 5), -128, np.int8)
    wrapped = result(text, full, full.T)
    assert wrapped.item() == (2**17 + 5) * 2**14 - 2**32


@pytest.mark.parametrize(
    ("name", "largest"), [("fp8", 448), ("bf8", 57344), ("fp8_fnuz", 240), ("bf8_fnuz", 57344)]
)
def test_8_bit_floats_multiply_and_saturate(name: str, largest: float) -> None:
    dtype = DTYPES[name].numpy
    text = (
        f"func @f(%x: {name}[M, K], %w: {name}[K, N]) -> {name}[M, N] "
        f"{{ %g: f32[M, N] = gemm(%x, %w) %r: {name}[M, N] = cast(%g) {{to = {name}}} return %r }}"
    )
    x = np.array([[1.5, -2.0], [-224.0, -224.0], [0.25, 0.0]]).astype(dtype)
    w = np.array([[2.0, 224.0], [0.5, 224.0]]).astype(dtype)
    want = [[2.0, -112.0], [-min(560.0, largest), -largest], [0.5, 56.0]]
    if name.startswith("bf8"):
        want[1][0] = -512.0  # 560 lies between 512 and 640
    assert result(text, x, w).astype(np.float32).tolist() == want


def test_casts_to_integers_saturate() -> None:
    numbers = np.array([1e9, -1e9, 127.9, -128.9, np.nan, np.inf, 3.7], np.float32)
    text = "func @f(%x: f32[N]) -> i8[N] { %r: i8[N] = cast(%x) {to = i8} return %r }"
    assert result(text, numbers).tolist() == [127, -128, 127, -128, 0, 127, 3]
    whole = np.array([300, -300, 5], np.int32)
    text = "func @f(%x: i32[N]) -> i8[N] { %r: i8[N] = cast(%x) {to = i8} return %r }"
    assert result(text, whole).tolist() == [127, -128, 5]


def test_each_value_of_f32_is_an_f32_in_every_use() -> None:
    """x / 49 * 49 is often no x in f32: a comparison and a cast see what a kernel holds."""
    function = parse_function(
        """
func @f(%x: f32[N]) -> f32[N], bool[N], i32[N] {
  %0: f32[] = constant() {value = 49.0}
  %1: f32[N] = broadcast(%0) {dims = []}
  %2: f32[N] = div(%x, %1)
  %3: f32[N] = mul(%2, %1)
  %4: bool[N] = eq(%3, %x)
  %5: i32[N] = cast(%3) {to = i32}
  return %3, %4, %5
}
"""
    )
    x = np.arange(1, 200, dtype=np.float32)
    product, equal, whole = evaluate(function, [x])
    np.testing.assert_array_equal(product, (x / np.float32(49)) * np.float32(49))
    np.testing.assert_array_equal(equal, product == x)
    assert not equal.all()
    np.testing.assert_array_equal(whole, np.trunc(product))
    values, bounds = evaluate_with_bound(function, [x])
    np.testing.assert_array_equal(values[0], product)
    assert np.all(bounds[0] <= 4 * 2.0**-23 * x)
