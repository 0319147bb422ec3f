# SPDX-License-Identifier: MIT
"""Reductions: their meaning against NumPy, their bounds against f32 in any order."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cklang.errors import CkValueError
from cklang.ir.builder import Builder
from cklang.ir.infer import infer
from cklang.ir.nodes import Function
from cklang.ir.reductions import MEANINGS, SINGLE_AXIS, read_axes
from cklang.reference.bounds import evaluate_with_bound
from cklang.reference.evaluate import evaluate
from cklang.testing import assert_close
from cklang.testing.strategies import Values, arrays
from cklang.types import DTYPES, DType, TensorType, bf16, f16, f32, i32
from tests.support.errors import expect_error

UNIT = 2.0**-24
NUMPY: dict[str, Callable[..., Any]] = {
    "reduce_sum": np.sum,
    "reduce_mean": np.mean,
    "reduce_max": np.max,
    "reduce_min": np.min,
    "reduce_prod": np.prod,
}
FLOATS = st.floats(-1e4, 1e4, width=32) | st.sampled_from([np.inf, -np.inf, np.nan, 3e38, 0.0])


def reduction(
    op: str, shape: tuple[int, ...], axes: tuple[int, ...], dtype: DType = f32, *, inexact: int = 0
) -> Function:
    """A reduction of a parameter, after as many multiplications by 1 as ``inexact`` says."""
    builder = Builder("f")
    x = builder.param("x", TensorType(dtype=dtype, shape=shape))
    if inexact:
        one = builder.broadcast(builder.param("one", TensorType(dtype=f32, shape=())), shape)
        for _ in range(inexact):
            x = builder.append("mul", x, one)
    return builder.finish(builder.append(op, x, axes=axes))


def bounded(op: str, row: Any, **more: Any) -> tuple[Any, float]:
    """The result of a row, and its bound."""
    x = np.asarray(row, np.float32)
    ones = [np.float32(1)] * bool(more.get("inexact"))
    (value,), (bound,) = evaluate_with_bound(reduction(op, x.shape, (0,), **more), [x, *ones])
    return value, float(bound)


# --- the meaning


@pytest.mark.parametrize("op", NUMPY)
@given(
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=5),
    data=st.data(),
    dtype=st.sampled_from([f16, bf16, f32]),
)
def test_any_axes_are_reduced_as_numpy_does(
    op: str, shape: list[int], data: st.DataObject, dtype: DType
) -> None:
    axes = tuple(sorted(data.draw(st.sets(st.sampled_from(range(len(shape))), min_size=1))))
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype.numpy)
    (got,) = evaluate(reduction(op, tuple(shape), axes, dtype), [x])
    want = NUMPY[op](x.astype(np.float64), axis=axes).astype(np.float32)
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("op", ["reduce_sum", "reduce_prod", "reduce_max", "reduce_min"])
@given(st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=9))
def test_integers_are_exact_and_wrap(op: str, row: list[int]) -> None:
    x = np.array(row, np.int32)
    function = reduction(op, x.shape, (0,), i32)
    (got,), (bound,) = evaluate_with_bound(function, [x])
    with np.errstate(over="ignore"):
        want = NUMPY[op](x, dtype=np.int32) if op in ("reduce_sum", "reduce_prod") else NUMPY[op](x)
    assert got.dtype == np.int32
    assert got == want
    assert bound == 0


EMPTY = {"reduce_sum": (0.0, 0), "reduce_prod": (1.0, 1)}


@pytest.mark.parametrize("op", EMPTY)
def test_the_sum_and_the_product_of_no_elements(op: str) -> None:
    for want, dtype in zip(EMPTY[op], (f32, i32), strict=True):
        function = reduction(op, (2, 0), (1,), dtype)
        (got,), (bound,) = evaluate_with_bound(function, [np.zeros((2, 0), dtype.numpy)])
        np.testing.assert_array_equal(got, np.full(2, want, got.dtype))
        assert (bound == 0).all()


@pytest.mark.parametrize("op", sorted(set(MEANINGS) - set(EMPTY)))
def test_other_reductions_need_an_element(op: str) -> None:
    with expect_error("I048", match=r"of a tensor of shape \(2, 0\)", kind=CkValueError):
        evaluate_with_bound(reduction(op, (2, 0), (1,), f32), [np.zeros((2, 0), np.float32)])


@pytest.mark.parametrize("op", ["reduce_max", "reduce_min"])
def test_a_nan_is_the_extreme(op: str) -> None:
    assert np.isnan(bounded(op, [1.0, np.nan, np.inf])[0])


@pytest.mark.parametrize(
    ("op", "numpy"), [("reduce_argmax", np.argmax), ("reduce_argmin", np.argmin)]
)
@given(row=st.lists(FLOATS | st.sampled_from([1.0, 1.0]), min_size=1, max_size=9))
def test_indices_are_numpys(op: str, numpy: Callable[..., Any], row: list[float]) -> None:
    value, bound = bounded(op, row)
    assert value == numpy(np.array(row, np.float32))
    assert value.dtype == np.int32
    assert bound == 0


# --- types


@pytest.mark.parametrize(
    ("op", "dtype", "axes", "code"),
    [
        ("reduce_sum", f32, (), "I019"),
        ("reduce_sum", f32, (2,), "I019"),
        ("reduce_sum", f32, (-1,), "I019"),
        ("reduce_sum", f32, (1, 0), "I019"),
        ("reduce_sum", f32, (0, 0), "I019"),
        ("reduce_argmax", f32, (0, 1), "I019"),
        ("reduce_mean", i32, (0,), "I018"),
        ("reduce_sum", DTYPES["fp8"], (0,), "I018"),
        ("reduce_max", DTYPES["bool"], (0,), "I018"),
        ("reduce_argmin", DTYPES["i8"], (0,), "I018"),
    ],
)
def test_wrong_types_break_a_rule(op: str, dtype: DType, axes: tuple[int, ...], code: str) -> None:
    with expect_error(code):
        infer(op, [TensorType(dtype=dtype, shape=(2, 3))], {"axes": axes})


def test_axes_beyond_the_fifth_and_scalars_break_a_rule() -> None:
    for shape in ((), (2,) * 6):
        with expect_error("I019"):
            infer("reduce_sum", [TensorType(dtype=f32, shape=shape)], {"axes": (0,)})
    assert infer("reduce_sum", [TensorType(dtype=f16, shape=(2,))], {"axes": (0,)}).shape == ()


def test_axes_are_read_as_numpy_reads_them() -> None:
    assert read_axes(None, 3) == (0, 1, 2)
    assert read_axes(-1, 3) == (2,)
    assert read_axes((-1, 0), 3) == (0, 2)
    assert read_axes(np.int64(1), 3) == (1,)
    for axis in (3, -4, (0, 0), (0, -3), (), True, 1.0, "x", [0]):
        with pytest.raises(ValueError, match="axis"):
            read_axes(axis, 3)
    with pytest.raises(ValueError, match="one axis"):
        read_axes((0, 1), 3, is_single=True)


# --- the bounds


def added(row: Any) -> np.float32:
    total = np.float32(0)
    for number in row:
        total = np.float32(total + number)
    return total


def divided(row: Any) -> np.float32:
    return np.float32(added(row) / np.float32(len(row)))


def scaled(row: Any) -> np.float32:
    return np.float32(added(row) * np.float32(1 / np.float32(len(row))))


def multiplied(row: Any) -> np.float32:
    product = np.float32(1)
    for number in row:
        product = np.float32(product * number)
    return product


KERNELS = [
    ("reduce_sum", added),
    ("reduce_mean", divided),
    ("reduce_mean", scaled),
    ("reduce_prod", multiplied),
]
"""What a kernel may compute, element after element."""


@pytest.mark.parametrize(
    ("op", "kernel"), KERNELS, ids=lambda each: getattr(each, "__name__", each)
)
@given(row=st.lists(FLOATS, min_size=1, max_size=40), random=st.randoms())
def test_any_order_is_within_the_bound(
    op: str, kernel: Callable[[Any], Any], row: list[float], random: Any
) -> None:
    value, bound = bounded(op, row)
    random.shuffle(row)
    with np.errstate(all="ignore"):
        got = kernel(np.array(row, np.float32))
    assert_close(got, value, bound, unchecked=1)


@given(
    row=st.lists(st.sampled_from([1e-30, 1e30, -1e20, 0.0, 1e-45, np.inf, 3.0]), max_size=12),
    random=st.randoms(),
)
def test_products_that_leave_the_range_on_the_way(row: list[float], random: Any) -> None:
    value, bound = bounded("reduce_prod", row)
    random.shuffle(row)
    with np.errstate(all="ignore"):
        got = multiplied(np.array(row, np.float32))
    assert_close(got, value, bound, unchecked=1)


@pytest.mark.parametrize("op", [*NUMPY, *sorted(SINGLE_AXIS)])
@given(row=st.lists(st.floats(-10, 10, width=32), min_size=1, max_size=20), data=st.data())
def test_errors_of_elements_are_passed_on(op: str, row: list[float], data: st.DataObject) -> None:
    x = np.array(row, np.float32)
    value, bound = bounded(op, row, inexact=3)
    steps = st.lists(st.integers(-3, 3), min_size=len(row), max_size=len(row))
    moved = x.astype(np.float64) * (1 + UNIT * np.array(data.draw(steps)))
    got = MEANINGS[op](moved, (0,))
    # The reference and the kernel's result round to f32 once more.
    assert abs(float(got) - float(value)) <= bound + abs(float(value)) * 2 * UNIT


@pytest.mark.parametrize("op", ["reduce_sum", "reduce_mean", "reduce_prod"])
@pytest.mark.parametrize("count", [1, 30, 1000])
def test_bounds_are_not_loose(op: str, count: int) -> None:
    """The bound is n u (and 8 u of a mean) of the result, for numbers of one sign."""
    row = np.random.default_rng(0).uniform(0.9, 1.1, count).astype(np.float32)
    value, bound = bounded(op, row)
    roundings = count + (8 if op == "reduce_mean" else 0) + 1
    assert count * UNIT * abs(value) <= bound <= 1.01 * roundings * UNIT * abs(value)


@pytest.mark.parametrize("op", ["reduce_max", "reduce_min"])
def test_exact_extremes_have_no_error(op: str) -> None:
    assert bounded(op, [1.0, -2.0, 1e30]) == (1e30 if op == "reduce_max" else -2.0, 0.0)


def test_an_index_is_open_only_where_intervals_meet() -> None:
    assert bounded("reduce_argmax", [1.0, 2.0, 1.5], inexact=1) == (1, 0)
    assert bounded("reduce_argmax", [1.0, 2.0, 2.0], inexact=1)[1] == np.inf
    assert bounded("reduce_argmax", [1.0, 2.0, 2.0]) == (1, 0)
    assert bounded("reduce_argmin", [1.0, np.nan, 2.0], inexact=1) == (1, 0)


def test_sums_of_uncertain_integers() -> None:
    builder = Builder("f")
    x = builder.param("x", TensorType(dtype=f32, shape=(3,)))
    one = builder.broadcast(builder.param("one", TensorType(dtype=f32, shape=())), (3,))
    numbers = builder.cast(builder.append("mul", x, one), i32)
    function = builder.finish(builder.append("reduce_sum", numbers, axes=(0,)))
    (value,), (bound,) = evaluate_with_bound(
        function, [np.array([2, 3.5, 9], np.float32), np.float32(1)]
    )
    assert value == 14
    assert bound == 2
    (_,), (bound,) = evaluate_with_bound(
        function, [np.array([2e9, 2e9, 9], np.float32), np.float32(1)]
    )
    assert bound == np.inf


@pytest.mark.parametrize("dtype", [f16, bf16], ids=str)
@given(data=st.data())
def test_narrow_elements_are_widened_exactly(dtype: DType, data: st.DataObject) -> None:
    x = data.draw(arrays(dtype, (3, 7), [Values.WIDE]))
    assume(np.isfinite(x.astype(np.float32)).all())
    (value,), (bound,) = evaluate_with_bound(reduction("reduce_sum", (3, 7), (1,), dtype), [x])
    with np.errstate(all="ignore"):
        rows = np.stack([added(row) for row in x.astype(np.float32)])
    assert_close(rows, value, bound, unchecked=1)
