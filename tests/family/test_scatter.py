# SPDX-License-Identifier: MIT
"""Rows written and added at indices: ``ck.scatter``, ``ck.scatter_add``, ``ck.segment_sum``."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cklang as ck
from cklang.families import plan_of
from cklang.families.scatter.fuse import FusedScatter
from cklang.reference.bounds import evaluate_with_bound
from cklang.runtime.op import Op
from tests.support.checks import check, launches
from tests.support.coverage import Covered
from tests.support.errors import expect_error
from tests.support.written_ops import expression_op

M, N, K, S, V = ck.dims("M N K S V")

Array = np.ndarray[Any, Any]


@ck.op
def gradient_of_embedding(dy: ck.f16[M, K], ids: ck.i32[M], table: ck.f16[V, K]) -> ck.f16[V, K]:
    return ck.segment_sum(dy, ids, V)


@ck.op
def written(x: ck.f16[V, K], ids: ck.i64[M, N], rows: ck.f16[M, N, K]) -> ck.f16[V, K]:
    return ck.scatter(x, ids, rows)


@ck.op
def added(x: ck.f32[V, K], ids: ck.i32[M], rows: ck.f16[M, K]) -> ck.f32[V, K]:
    return ck.scatter_add(x, ids, rows)


@ck.op
def columns(x: ck.f32[K, V], ids: ck.i32[M], rows: ck.f16[K, M]) -> ck.f32[K, V]:
    return ck.scatter_add(x, ids, rows, axis=-1)


@ck.op
def counts(ids: ck.i32[M], x: ck.f32[V]) -> ck.i32[V]:
    return ck.segment_sum(ids * 0 + 1, ids, V)


@ck.op
def of_product(x: ck.f16[M, K], w: ck.f16[N, K], ids: ck.i32[M], y: ck.f32[V, N]) -> ck.f32[V, N]:
    return ck.relu(ck.scatter_add(y, ids, x @ w.T))


def drawn(op: Op, sizes: dict[str, int], seed: int) -> list[Array]:
    """Return arguments for an op: indices are those of an axis V."""
    rng = np.random.default_rng(seed)
    args: list[Array] = []
    for param in op.program.specialise().params:
        shape, dtype = param.type.extents(sizes), param.type.dtype.numpy
        is_index = param.name == "ids"
        numbers = rng.integers(0, sizes["V"], shape) if is_index else rng.normal(size=shape)
        args.append(np.asarray(numbers).astype(dtype))
    return args


# --- the meaning


@given(rank=st.integers(1, 3), indices=st.integers(0, 2), data=st.data())
def test_scatter_is_numpys_and_torchs(
    torch: Any, rank: int, indices: int, data: st.DataObject
) -> None:
    axis = data.draw(st.integers(0, rank - 1))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    x = rng.normal(size=(3,) * rank).astype(np.float32)
    ids = rng.integers(0, 3, (2,) * indices).astype(np.int32)
    rows = np.take(rng.normal(size=(3,) * rank).astype(np.float32), ids, axis)
    want = np.moveaxis(x, axis, 0).copy()
    lines = np.moveaxis(rows.reshape((*x.shape[:axis], -1, *x.shape[axis + 1 :])), axis, 0)
    want[ids.reshape(-1)] = lines
    want = np.moveaxis(want, 0, axis)
    assert np.array_equal(ck.scatter(x, ids, rows, axis), want)
    flat = torch.from_numpy(ids.reshape(-1).copy())
    source = torch.from_numpy(np.moveaxis(lines, 0, axis).copy())
    total = torch.from_numpy(x).index_add(axis, flat, source).numpy()
    assert np.allclose(ck.scatter_add(x, ids, rows, axis), total, atol=1e-5)
    assert np.allclose(ck.segment_sum(rows, ids, 3, axis), total - x, atol=1e-5)
    axes = [f"ck.f32[{', '.join(map(str, shape))}]" for shape in (x.shape, rows.shape) if shape]
    index = f"ck.i32[{', '.join(map(str, ids.shape))}]" if indices else "ck.i32"
    if len(axes) < 2:
        axes.append("ck.f32")
    op = expression_op(
        f"x: {axes[0]}, i: {index}, r: {axes[1]}",
        f"tuple[{axes[0]}, {axes[0]}]",
        f"(ck.scatter(x, i, r, {axis}), ck.scatter_add(x, i, r, {axis}))",
    )
    values, errors = evaluate_with_bound(op.program.specialise(), [x, ids, rows])
    assert np.array_equal(values[0], want)
    assert not errors[0].any()
    assert (np.abs(values[1] - total) <= errors[1] + 1e-6).all()


def test_of_equal_indices_the_last_row_stays_and_others_write_nothing() -> None:
    function = written.program.specialise()
    x, rows = np.zeros((3, 1), np.float16), np.arange(1, 5, dtype=np.float16).reshape(1, 4, 1)
    (value,), _ = evaluate_with_bound(function, [x, np.array([[1, 1, -1, 3]]), rows])
    assert value.ravel().tolist() == [0, 2, 0]


def test_a_cast_of_the_sums_is_part_of_the_kernel() -> None:
    (kernel,) = plan_of(gradient_of_embedding.program.specialise()).kernels
    assert isinstance(kernel, FusedScatter)
    assert kernel.result.type.dtype == ck.f16
    assert [value.name for value in kernel.inputs] == ["ids", "dy"]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("ck.scatter(x, i, x)", "F042"),
        ("ck.scatter(x, x, r)", "F066"),
        ("ck.scatter(x, i, r.to(ck.f32))", "F066"),
        ("ck.scatter(x, i, r, axis=2)", "F067"),
        ("ck.scatter_add(1.0, i, r)", "F066"),
        ("ck.segment_sum(r, i, -1)", "F067"),
        ("ck.segment_sum(r, i, 2.0)", "F067"),
        ("ck.segment_sum(i, x[None], 3)", "F066"),
    ],
)
def test_a_wrong_scatter_is_an_error(words: str, code: str) -> None:
    params = "x: ck.f16[V, K], i: ck.i32[N], r: ck.f16[N, K]"
    with expect_error(code) as caught:
        expression_op(params, "ck.f16[V, K]", words).program.specialise()
    assert caught.value.at is not None


# --- the kernels


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(
    "op", [gradient_of_embedding, written, added, columns, counts], ids=lambda op: op.program.name
)
@settings(max_examples=5, deadline=None)
@given(
    rows=st.integers(1, 9),
    length=st.sampled_from([1, 7, 64, 260, 1030]),
    extent=st.integers(1, 9),
    seed=st.integers(0, 99),
)
def test_rows_at_indices(op: Op, rows: int, length: int, extent: int, seed: int) -> None:
    check(op, drawn(op, {"M": rows, "N": 3, "K": length, "V": extent}, seed))


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("op", [gradient_of_embedding, written], ids=lambda op: op.program.name)
def test_of_many_rows_a_kernel_finds_equal_indices(op: Op) -> None:
    args = drawn(op, {"M": 1100, "N": 1, "K": 5, "V": 60}, 0)
    first = check(op, args)
    assert len(launches(op)) == 3
    assert np.array_equal(first, op(*args))


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("gpu", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"])
def test_every_gpu(gpu: str, covered: Covered) -> None:
    for op in (gradient_of_embedding, written):
        check(op, drawn(op, {"M": 70, "N": 1, "K": 44, "V": 9}, 0), gpu)
    covered("rows written and added at indices", "f16", gpu)


@pytest.mark.usefixtures("compiler")
def test_strides_of_all_operands() -> None:
    x, ids, rows = drawn(added, {"M": 9, "K": 38, "V": 8}, 1)
    out = np.zeros((38, 8), np.float32).T
    check(added, (x[::-1, ::-1], ids[::-2], rows.T.copy().T[::2]), out=out)
    assert np.shares_memory(added(x, ids, rows, out=out), out)


@ck.op
def repeated(ids: ck.i32[N, K], rows: ck.f32[N, K], x: ck.f32[V]) -> ck.f32[V]:
    places = ck.broadcast_to(ids, (3, N, K))
    return ck.segment_sum(ck.broadcast_to(rows, (3, N, K)), places, V)


@pytest.mark.usefixtures("compiler")
def test_indices_and_rows_may_repeat() -> None:
    check(repeated, drawn(repeated, {"N": 3, "K": 5, "V": 4}, 2))
    assert [each.key.family for each in launches(repeated)] == ["rowwise", "scatter"]


@pytest.mark.usefixtures("compiler")
def test_a_product_is_added_at_indices() -> None:
    check(of_product, drawn(of_product, {"M": 6, "K": 37, "V": 11, "N": 9}, 1))


@pytest.mark.usefixtures("compiler")
def test_an_index_in_host_memory_is_checked_at_each_call() -> None:
    x, ids, rows = drawn(added, {"M": 4, "K": 7, "V": 8}, 0)
    added(x, ids, rows)
    for wrong in (8, -1):
        ids[2] = wrong
        with expect_error("A056", match=rf"ids\[2\] is {wrong}.* from 0 to 7"):
            added(x, ids, rows)


@pytest.mark.usefixtures("compiler")
def test_computed_indices_outside_of_the_axis_write_nothing() -> None:
    ids = np.array([-1, 2, 3, 2**31 - 1], np.int32)
    assert check(
        shifted, (np.ones((3, 2), np.float16), ids, np.zeros((4, 2), np.float16))
    ).tolist() == [[1, 1], [1, 1], [0, 0]]


@ck.op
def shifted(x: ck.f16[V, K], ids: ck.i32[M], rows: ck.f16[M, K]) -> ck.f16[V, K]:
    return ck.scatter(x, ids * 1, rows)


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("rows", [0, 1])
def test_without_rows_or_elements_the_tensor_stays(rows: int) -> None:
    x = np.ones((3, 5 * (1 - rows)), np.float32)
    ids, terms = np.zeros(rows, np.int32), np.zeros((rows, x.shape[1]), np.float16)
    assert np.array_equal(check(added, (x, ids, terms)), x)
