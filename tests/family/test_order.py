# SPDX-License-Identifier: MIT
"""``ck.cumsum``, ``ck.sort``, ``ck.argsort`` and ``ck.topk``."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cklang as ck
from cklang.families import plan_of
from cklang.families.scan.fuse import FusedScan
from cklang.families.sort.fuse import FusedSort
from cklang.reference.bounds import evaluate_with_bound
from tests.support.checks import check, launches
from tests.support.coverage import Covered
from tests.support.errors import expect_error
from tests.support.written_ops import expression_op

M, N, K, E = ck.dims("M N K E")

Array = np.ndarray[Any, Any]


@ck.op
def sums(x: ck.f16[M, K]) -> ck.f16[M, K]:
    return x.cumsum(-1)


@ck.op
def sums_of_columns(x: ck.f32[M, K]) -> ck.f32[M, K]:
    return ck.cumsum(x, axis=0)


@ck.op
def products(x: ck.f32[M, K]) -> ck.f32[M, K]:
    return x.cumprod(-1)


@ck.op
def products_of_columns(x: ck.i32[M, K]) -> ck.i32[M, K]:
    return ck.cumprod(x, axis=0)


@ck.op
def counts(x: ck.f16[M, K]) -> ck.i32[M, K]:
    return ck.cumsum(x > 0, axis=1)


@ck.op
def three(x: ck.f16[M, K]) -> tuple[ck.f16[M, 3], ck.i32[M, 3]]:
    return ck.topk(x, 3)


@ck.op
def least_of_columns(x: ck.f32[M, K]) -> ck.i32[2, K]:
    _, indices = x.topk(2, axis=0, largest=False)
    return indices


@ck.op
def in_order(x: ck.f32[M, K]) -> tuple[ck.f32[M, K], ck.i32[M, K]]:
    return ck.sort(x), ck.argsort(x)


@ck.op
def integers(x: ck.i32[M, K]) -> ck.i32[M, K]:
    return ck.sort(x, descending=True)


@ck.op
def gate(x: ck.f16[M, K], w: ck.f16[E, K]) -> tuple[ck.f32[M, 2], ck.i32[M, 2]]:
    weights, experts = ck.topk(ck.softmax(x @ w.T), 2)
    return weights / weights.sum(-1, keepdims=True), experts


@ck.op
def nucleus(x: ck.f32[M, K]) -> ck.f32[M, K]:
    p = ck.softmax(x)
    ordered = ck.sort(p, descending=True)
    return ck.where(ck.cumsum(ordered, -1) - ordered < 0.5, ordered, 0.0)


def drawn(seed: int, rows: int, length: int) -> Array:
    """Return rows with equal elements, zeros of both signs, infinities and nan."""
    rng = np.random.default_rng(seed)
    choices = np.array([-np.inf, -2, -1, -0.0, 0.0, 1, 2, 5, np.inf, np.nan], np.float32)
    x = rng.choice(choices, (rows, length))
    return np.where(rng.random(x.shape) < 0.5, rng.normal(size=x.shape), x).astype(np.float32)


# --- the meaning


@given(rank=st.integers(1, 3), seed=st.integers(0, 99), data=st.data())
def test_they_are_numpys_and_torchs(torch: Any, rank: int, seed: int, data: st.DataObject) -> None:
    axis = data.draw(st.integers(0, rank - 1))
    x = drawn(seed, 1, 4**rank).reshape((4,) * rank)
    tensor, descending = torch.from_numpy(x), data.draw(st.booleans())
    values, indices = torch.sort(tensor, dim=axis, descending=descending, stable=True)
    assert np.array_equal(ck.sort(x, axis, descending), values.numpy(), equal_nan=True)
    assert np.array_equal(ck.argsort(x, axis, descending), indices.numpy())
    shape = ", ".join(["4"] * rank)
    first = ", ".join("2" if place == axis else "4" for place in range(rank))
    op = expression_op(
        f"x: ck.f32[{shape}]",
        f"tuple[ck.f32[{first}], ck.i32[{first}], ck.f32[{shape}]]",
        f"(v, i, ck.cumsum(x, {axis}))",
        before=[f"v, i = ck.topk(x, 2, {axis}, largest={descending})"],
    )
    results, errors = evaluate_with_bound(op.program.specialise(), [x])
    part = tuple(slice(2) if place == axis else slice(None) for place in range(rank))
    assert np.array_equal(results[0], values.numpy()[part], equal_nan=True)
    assert np.array_equal(results[1], indices.numpy()[part])
    assert not errors[0].any()
    assert not errors[1].any()
    with np.errstate(invalid="ignore"):
        assert np.allclose(results[2], np.cumsum(x, axis), equal_nan=True, atol=1e-5)
    eager = ck.topk(x, 2, axis, descending)
    assert np.array_equal(eager[1], results[1])


def test_sums_of_a_wide_range_have_bounds() -> None:
    x = np.array([[1e8, 1.0, -1e8, 1.0]], np.float32)
    function = sums_of_columns.program.specialise()
    (value,), (error,) = evaluate_with_bound(function, [x.T.copy()])
    assert value.ravel().tolist() == [1e8, 1e8, 1.0, 2.0]
    running = np.cumsum(x, dtype=np.float32)
    assert (np.abs(running - value.ravel()) <= error.ravel()).all()
    assert error[0, 0] < 10


def test_products_have_bounds() -> None:
    function = products.program.specialise()
    x = np.array([[1.5, 1e30, 1e30, 1e-30], [2.0, 0.0, np.inf, 3.0]], np.float32)
    (value,), (error,) = evaluate_with_bound(function, [x])
    assert np.allclose(value[0, :2], [1.5, 1.5e30])
    assert np.isinf(error[0, 2:]).all()  # another order stays in the range, or leaves it
    assert (error[0, :2] < 1e-6 * value[0, :2]).all()
    assert np.isnan(value[1, 2:]).all()
    assert ck.cumprod(np.array([2, 3, -1]), 0).tolist() == [2, 6, -6]


def test_an_index_is_unsure_where_intervals_meet() -> None:
    @ck.op
    def best(x: ck.f32[K], y: ck.f32[K]) -> ck.i32[K]:
        return ck.argsort(x + y)

    x = np.array([0.5, 2.0, 2.0000002, 1.0], np.float32)
    _, (error,) = evaluate_with_bound(best.program.specialise(), [x, x / 3])
    assert np.isinf(error).tolist() == [False, False, True, True]


def test_sort_and_argsort_of_one_tensor_are_one_kernel() -> None:
    (kernel,) = plan_of(three.program.specialise()).kernels
    assert isinstance(kernel, FusedSort)
    assert len(kernel.results) == 2
    (kernel,) = plan_of(sums.program.specialise()).kernels
    assert isinstance(kernel, FusedScan)
    assert kernel.result.type.dtype == ck.f16


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("ck.cumsum(x, 2)", "F067"),
        ("ck.cumsum(1.0, 0)", "F066"),
        ("ck.sort(x, descending=1)", "F067"),
        ("ck.argsort(i64)", "F066"),
        ("ck.topk(x, 0)[0]", "F067"),
        ("ck.topk(x, 5)[0]", "F067"),
        ("ck.topk(x, N)[0]", "F067"),
        ("ck.topk(x, 2, largest=None)[0]", "F067"),
    ],
)
def test_a_wrong_order_is_an_error(words: str, code: str) -> None:
    params = "x: ck.f16[M, 4], i64: ck.i64[N]"
    with expect_error(code) as caught:
        expression_op(params, "ck.f16[M, 4]", words).program.specialise()
    assert caught.value.at is not None


# --- the kernels


@pytest.mark.usefixtures("compiler")
@settings(max_examples=6, deadline=None)
@given(
    rows=st.integers(1, 6),
    length=st.sampled_from([1, 7, 64, 257, 1030, 5000]),
    seed=st.integers(0, 99),
)
def test_cumulative_sums(rows: int, length: int, seed: int) -> None:
    x = np.random.default_rng(seed).normal(size=(rows, length)).astype(np.float16)
    check(sums, (x,))
    check(counts, (x,))
    check(sums_of_columns, (x.T.astype(np.float32),))
    wide = np.repeat(x[:, :300].T, 65, axis=1).astype(np.float32)
    check(sums_of_columns, (wide,))
    assert len(launches(sums)) == len(launches(sums_of_columns)) == 1


@pytest.mark.usefixtures("compiler")
@settings(max_examples=4, deadline=None)
@given(length=st.sampled_from([1, 65, 256, 300, 2000]), seed=st.integers(0, 99))
def test_cumulative_products(length: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = np.exp(rng.normal(size=(3, length)) / 30).astype(np.float32)
    x[1, length // 2 :] *= -1
    check(products, (x,))
    n = rng.integers(-5, 6, (length, 70)).astype(np.int32)
    result = check(products_of_columns, (n,))
    with np.errstate(over="ignore"):
        assert np.array_equal(result, np.cumprod(n, 0, dtype=np.int32))
    (launch,) = launches(products)
    assert launch.key.signature.who.multiplies


@pytest.mark.usefixtures("compiler")
def test_a_long_row_is_summed_piece_by_piece() -> None:
    x = np.ones((1, 1 << 16), np.float32).T
    assert check(sums_of_columns, (x,))[-1, 0] == 1 << 16
    x[100] = np.inf
    assert np.isinf(check(sums_of_columns, (x,), unchecked=1.0)[100:]).all()


@pytest.mark.usefixtures("compiler")
@settings(max_examples=6, deadline=None)
@given(
    rows=st.integers(1, 5), length=st.sampled_from([3, 7, 64, 200, 1024]), seed=st.integers(0, 99)
)
def test_rows_in_order(rows: int, length: int, seed: int) -> None:
    x = drawn(seed, rows, length)
    values, indices = check(in_order, (x,))
    assert np.array_equal(np.take_along_axis(x, indices, 1), values, equal_nan=True)
    check(three, (x.astype(np.float16),))
    check(least_of_columns, (x.T,))
    check(integers, (np.random.default_rng(seed).integers(-9, 9, x.shape).astype(np.int32),))
    assert len(launches(in_order)) == len(launches(three)) == 1


@pytest.mark.usefixtures("compiler")
def test_the_greatest_of_long_rows() -> None:
    x = np.zeros((2, 9000), np.float16)
    x[0, [8999, 17, 1500]] = 3
    x[1, 1023:1026] = -1
    values, indices = check(three, (x,))
    assert indices.tolist() == [[17, 1500, 8999], [0, 1, 2]]
    assert values[0].tolist() == [3, 3, 3]
    check(least_of_columns, (drawn(3, 3, 5000).T,))


@pytest.mark.usefixtures("compiler")
def test_too_few_or_too_many_elements_are_refused() -> None:
    for op, length, code in ((three, 2, "A078"), (three, 0, "A078"), (in_order, 4097, "A079")):
        dtype = np.float32 if op is in_order else np.float16
        with expect_error(code):
            op(np.zeros((2, length), dtype))
    assert in_order(np.zeros((0, 7), np.float32))[0].shape == (0, 7)


@pytest.mark.usefixtures("compiler")
def test_gates_and_samplers() -> None:
    rng = np.random.default_rng(0)
    x, w = (rng.normal(size=(n, 37)).astype(np.float16) for n in (6, 16))
    weights, _ = check(gate, (x, w), unchecked=1.0)
    assert np.allclose(weights.sum(-1), 1, atol=1e-6)
    check(nucleus, (rng.normal(size=(3, 50)).astype(np.float32),), unchecked=1.0)


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("gpu", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"])
def test_every_gpu(gpu: str, covered: Covered) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(5, 300)).astype(np.float16)
    check(sums, (x,), gpu)
    check(three, (x,), gpu)
    covered("cumulative sums, top k", "f16", gpu)
