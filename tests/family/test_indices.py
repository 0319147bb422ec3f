# SPDX-License-Identifier: MIT
"""Indices as values: ``ck.arange`` in kernels of rows, epilogues and prologues."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cklang as ck
from cklang.errors import CkError
from cklang.families import plan_of
from cklang.families.rowwise.fuse import FusedRows
from cklang.reference.bounds import evaluate_with_bound
from cklang.runtime.op import Op
from cklang.types import bf16
from tests.support.checks import check, launches
from tests.support.errors import expect_error
from tests.support.written_ops import expression_op, written_op

M, N, K, S, V = ck.dims("M N K S V")
GPUS = ("gfx942", "gfx1201")


# --- arange


@ck.op
def ramp(x: ck.f16[M, K]) -> ck.f32[M, K]:
    return x + ck.arange(K) * 2 - ck.arange(x.shape[0])[:, None]


@ck.op
def moment(x: ck.f16[M, K]) -> ck.f32[M]:
    return (x * ck.arange(K)).sum(-1)


@ck.op
def places_of_two_axes(x: ck.f32[M, N, K]) -> ck.f32[N]:
    return (x * (ck.arange(M)[:, None, None] - ck.arange(K))).sum((0, 2))


@ck.op
def alone(x: ck.f16[M, K]) -> ck.i32[K // 2]:
    return ck.arange(K // 2) * 3


@ck.op
def itself(x: ck.f16[M, K]) -> tuple[ck.i32[K], ck.i32[3]]:
    return ck.arange(K), ck.arange(3)


@ck.op
def in_epilogue(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f32[M, N]:
    return x @ w.T + ck.arange(N)


@ck.op
def in_prologue(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f32[M, N]:
    return (x + ck.arange(K)).to(ck.f16) @ w.T


def test_the_reference_counts_along_an_axis() -> None:
    x = np.zeros((2, 3), np.float16)
    (value,), (error,) = evaluate_with_bound(ramp.program.specialise(), [x])
    assert value.tolist() == [[0, 2, 4], [-1, 1, 3]]
    assert error.max() < 1e-6
    (value,), (error,) = evaluate_with_bound(
        alone.program.specialise(), [np.zeros((1, 7), np.float16)]
    )
    assert value.tolist() == [0, 3, 6]
    assert not error.any()
    eager = ck.arange(3)
    assert eager.dtype == np.int32
    assert eager.tolist() == [0, 1, 2]


def test_a_kernel_of_rows_reads_no_memory_for_indices() -> None:
    (kernel,) = plan_of(ramp.program.specialise()).kernels
    assert isinstance(kernel, FusedRows)
    assert [value.name for value in kernel.inputs] == ["x"]
    assert len(kernel.indices) == 2


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("ck.arange(-1)", "F067"),
        ("ck.arange(2.0)", "F067"),
        ("ck.arange(x)", "F067"),
        ("ck.arange((3, 4))", "F067"),
        ("ck.arange(N)", "F068"),
    ],
)
def test_a_wrong_number_of_indices_is_an_error(words: str, code: str) -> None:
    with expect_error(code):
        expression_op("x: ck.f16[M, K]", "ck.f32[M, K]", f"x + {words}").program.specialise()


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("op", [ramp, moment, alone, itself], ids=lambda op: op.program.name)
@settings(max_examples=5, deadline=None)
@given(rows=st.integers(1, 9), length=st.sampled_from([2, 7, 37, 64, 200]), turned=st.booleans())
def test_indices_in_kernels_of_rows(op: Op, gpu: str, rows: int, length: int, turned: bool) -> None:
    x = numbers((length, rows), 3).T if turned else numbers((rows, length), 3)
    check(op, (x,), gpu)


@pytest.mark.usefixtures("compiler")
def test_a_row_along_two_axes_knows_both_places() -> None:
    x = numbers((3, 5, 7), 0).astype(np.float32)
    check(places_of_two_axes, (x,))
    check(places_of_two_axes, (x[::-1].transpose(1, 0, 2).copy().transpose(1, 0, 2),))


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("op", [in_epilogue, in_prologue], ids=lambda op: op.program.name)
def test_products_read_indices_from_a_table(op: Op) -> None:
    check(op, (numbers((5, 37), 1), numbers((9, 37), 2)))
    assert len(launches(op)) == 1


# --- cross-entropy


@ck.op
def losses(x: ck.bf16[M, K], targets: ck.i32[M]) -> ck.f32[M]:
    return ck.cross_entropy(x, targets)


@ck.op
def losses_of_pixels(x: ck.f32[M, K, N], targets: ck.i32[M, N]) -> ck.f32[M, N]:
    return ck.cross_entropy(x, targets, axis=1)


@pytest.mark.parametrize("axis", [-1, 1, 0, -3])
def test_cross_entropy_is_torchs(torch: Any, axis: int) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4, 4, 4)).astype(np.float32) * 9
    targets = rng.integers(0, 4, (4, 4)).astype(np.int32)
    logits = torch.from_numpy(np.moveaxis(x, axis, 1))
    want = torch.nn.functional.cross_entropy(
        logits, torch.from_numpy(targets).long(), reduction="none"
    )
    assert np.allclose(ck.cross_entropy(x, targets, axis), want.numpy(), atol=1e-5)
    params, words = "x: ck.f32[4, 4, 4], t: ck.i32[4, 4]", f"ck.cross_entropy(x, t, axis={axis})"
    function = expression_op(params, "ck.f32[4, 4]", words).program.specialise()
    (value,), (error,) = evaluate_with_bound(function, [x, targets])
    assert (np.abs(value - want.numpy()) <= error + 1e-5).all()


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("gpu", GPUS)
@settings(max_examples=5, deadline=None)
@given(rows=st.integers(1, 9), length=st.sampled_from([1, 7, 64, 200]), seed=st.integers(0, 99))
def test_cross_entropy_is_one_kernel(gpu: str, rows: int, length: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, length, 3)).astype(np.float32)
    targets = rng.integers(0, length, (rows, 3)).astype(np.int32)
    check(losses_of_pixels, (x, targets), gpu)
    check(losses, (x[..., 0].astype(bf16.numpy), targets[:, 0]), gpu)
    assert len(launches(losses)) == len(launches(losses_of_pixels)) == 1


# --- argmax, argmin


@ck.op
def greatest(x: ck.f16[M, K]) -> tuple[ck.i32[M], ck.i32[M]]:
    return x.argmax(-1), ck.argmin(x, axis=-1)


@ck.op
def greatest_of_columns(x: ck.f32[M, K]) -> ck.i32[1, K]:
    return ck.argmax(-x, axis=0, keepdims=True)


@ck.op
def least_integer(x: ck.i32[M, K]) -> ck.i32[M]:
    return ck.argmin(x, axis=1)


@ck.op
def chosen_expert(x: ck.f16[M, K], w: ck.f16[N, K], table: ck.f32[N]) -> ck.f32[M]:
    return table[ck.argmax(x @ w.T, axis=-1)]


def drawn_rows(seed: int, rows: int, length: int) -> np.ndarray[Any, Any]:
    """Return rows with equal elements, infinities and nan."""
    rng = np.random.default_rng(seed)
    choices = np.array([-np.inf, -1, 0, 0, 1, 2, np.inf, np.nan], np.float32)
    weights = np.array([1, 9, 9, 9, 9, 9, seed % 2, seed % 3 == 0])
    return rng.choice(choices, (rows, length), p=weights / weights.sum()).astype(np.float32)


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("gpu", GPUS)
@settings(max_examples=8, deadline=None)
@given(rows=st.integers(1, 7), length=st.sampled_from([1, 7, 64, 200]), seed=st.integers(0, 99))
def test_indices_of_extremes_are_numpys(gpu: str, rows: int, length: int, seed: int) -> None:
    x = drawn_rows(seed, rows, length)
    high, low = check(greatest, (x.astype(np.float16),), gpu)
    assert np.array_equal(high, np.argmax(x, -1))
    assert np.array_equal(low, np.argmin(x, -1))
    assert len(launches(greatest)) == 1
    check(greatest_of_columns, (x.T.copy(),), gpu)
    integers = np.random.default_rng(seed).integers(-3, 3, (rows, length)).astype(np.int32)
    check(least_integer, (integers,), gpu)


@pytest.mark.usefixtures("compiler")
def test_long_rows_are_read_again() -> None:
    x = np.zeros((2, 40000), np.float32).T
    x[39999, 1] = x[20011, 1] = -3
    assert check(greatest_of_columns, (x,)).tolist() == [[0, 20011]]


@pytest.mark.usefixtures("compiler")
def test_the_greatest_of_a_product_indexes_a_table() -> None:
    table = np.arange(11, dtype=np.float32)
    check(chosen_expert, (numbers((5, 37), 1), numbers((11, 37), 2), table), unchecked=1.0)


# --- take


@ck.op
def embedding(table: ck.f16[V, K], ids: ck.i32[M, S]) -> ck.f16[M, S, K]:
    return table[ids]


@ck.op
def embedding64(table: ck.bf16[V, K], ids: ck.i64[M]) -> ck.f32[M, K]:
    return ck.take(table, ids) * 2.0


@ck.op
def columns(table: ck.f16[V, K], ids: ck.i32[M]) -> ck.f32[V, M]:
    return table[:, ids] + 1.0


@ck.op
def weighted(x: ck.f16[M, K], weights: ck.f32[V], ids: ck.i32[M, K]) -> ck.f32[M]:
    return (x * weights[ids]).sum(-1)


@ck.op
def embedding_and_norm(
    table: ck.f16[V, K], ids: ck.i32[M], gain: ck.f16[K]
) -> tuple[ck.f16[M, K], ck.f16[M, K]]:
    h = table[ids]
    return h, ck.rms_norm(h, gain)


@ck.op
def turned_table(table: ck.i8[K, V], ids: ck.i32[M]) -> ck.i8[M, K]:
    return table.T[ids]


@ck.op
def computed_indices(table: ck.f16[V, K], ids: ck.i32[M]) -> ck.f16[M, K]:
    return table[(ids + ck.arange(M)) % V]


@ck.op
def limited(table: ck.f32[V], ids: ck.i32[M]) -> ck.f32[M]:
    return table[ids * 1]


@ck.op
def of_product(table: ck.f16[V, K], ids: ck.i32[M], w: ck.f16[N, K]) -> ck.f32[M, N]:
    return table[ids] @ w.T


@ck.op
def from_product(x: ck.f16[V, K], w: ck.f16[N, K], ids: ck.i32[M]) -> ck.f32[M, N]:
    return (x @ w.T)[ids] * 2.0


@ck.op
def added_to_product(
    x: ck.f16[M, K], w: ck.f16[N, K], table: ck.f32[V, N], ids: ck.i32[M]
) -> ck.f32[M, N]:
    return x @ w.T + table[ids]


TAKES = [
    embedding,
    embedding64,
    columns,
    weighted,
    embedding_and_norm,
    turned_table,
    computed_indices,
]
PRODUCTS = {of_product: 1, from_product: 2, added_to_product: 2}
"""Ops with products, and their launches."""


def arguments(op: Op, sizes: dict[str, int], seed: int) -> list[np.ndarray[Any, Any]]:
    """Return arrays for an op: indices are those of the dim V, or of the columns."""
    rng = np.random.default_rng(seed)
    limit = sizes["K" if op is columns else "V"]
    args = []
    for param in op.program.specialise().params:
        shape = param.type.extents(sizes)
        dtype = param.type.dtype
        if param.name == "ids":
            args.append(rng.integers(0, limit, shape).astype(dtype.numpy))
        elif dtype == ck.i8:
            args.append(rng.integers(-9, 9, shape).astype(np.int8))
        else:
            args.append(rng.normal(size=shape).astype(dtype.numpy))
    return args


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("op", TAKES, ids=lambda op: op.program.name)
@settings(max_examples=4, deadline=None)
@given(
    rows=st.integers(1, 7),
    length=st.sampled_from([1, 7, 64, 200]),
    table=st.integers(1, 9),
    seed=st.integers(0, 99),
)
def test_rows_at_indices(op: Op, gpu: str, rows: int, length: int, table: int, seed: int) -> None:
    args = arguments(op, {"M": rows, "S": 3, "K": length, "V": table}, seed)
    check(op, args, gpu, unchecked=1.0 if op is embedding_and_norm else 0.1)
    assert len(launches(op)) == 1


@pytest.mark.usefixtures("compiler")
def test_strides_of_tables_and_indices() -> None:
    table, ids = arguments(embedding, {"M": 4, "S": 3, "K": 37, "V": 8}, 0)
    check(embedding, (table[::-2], ids.T[::-1].copy().T[:, ::-1] // 2))


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("op", PRODUCTS, ids=lambda op: op.program.name)
def test_products_of_what_is_taken(op: Op) -> None:
    check(op, arguments(op, {"M": 6, "K": 37, "V": 11, "N": 9}, 1))
    assert len(launches(op)) == PRODUCTS[op]


@pytest.mark.usefixtures("compiler")
def test_an_index_in_host_memory_is_checked_at_each_call() -> None:
    table, ids = arguments(embedding, {"M": 4, "S": 3, "K": 7, "V": 8}, 0)
    embedding(table, ids)
    for wrong in (8, -1):
        ids[2, 1] = wrong
        with expect_error("A056", match=rf"ids\[2, 1\] is {wrong}.* from 0 to 7"):
            embedding(table, ids)


@pytest.mark.usefixtures("compiler")
def test_computed_indices_are_limited_to_the_axis() -> None:
    table = np.arange(5, dtype=np.float32)
    result = check(limited, (table, np.array([-7, 3, 5, 2**31 - 1], np.int32)))
    assert result.tolist() == [0, 3, 4, 4]


@pytest.mark.usefixtures("compiler")
def test_a_table_without_elements_is_refused() -> None:
    table, ids = np.zeros((0, 4), np.float16), np.zeros((1, 1), np.int64)
    with pytest.raises(CkError, match="from 0 to -1"):
        embedding(table, ids.astype(np.int32))
    with expect_error("A072", match="without elements"):
        limited(np.zeros(0, np.float32), np.zeros(3, np.int32))


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("x[i, i]", "F053"),
        ("x[0, i]", "F053"),
        ("x[x]", "F066"),
        ("ck.take(x, 2)", "F066"),
        ("ck.take(x, i, axis=2)", "F067"),
    ],
)
def test_a_wrong_index_is_an_error(words: str, code: str) -> None:
    params = "x: ck.f16[M, K], i: ck.i32[N], i64: ck.i64[N]"
    with expect_error(code) as caught:
        expression_op(params, "ck.f16[M, K]", words).program.specialise()
    assert caught.value.at is not None


@given(rank=st.integers(1, 3), indices=st.integers(0, 2), data=st.data())
def test_take_is_numpys(rank: int, indices: int, data: st.DataObject) -> None:
    axis = data.draw(st.integers(0, rank - 1))
    table = np.arange(3**rank, dtype=np.float32).reshape((3,) * rank)
    ids = np.random.default_rng(rank).integers(0, 3, (2,) * indices).astype(np.int32)
    assert np.array_equal(ck.take(table, ids, axis), np.take(table, ids, axis))
    text = ["a b c"[: 2 * rank - 1].replace(" ", ", "), "d e"[: max(2 * indices - 1, 0)]]
    names = [text[0], text[1].replace(" ", ", ")]
    shape = names[0].split(", ")
    shape[axis : axis + 1] = names[1].split(", ") if indices else []
    kind = f"ck.i32[{names[1]}]" if indices else "ck.i32"
    result = f"ck.f32[{', '.join(shape)}]" if shape else "ck.f32"
    op = written_op(
        f"@ck.op\ndef f(t: ck.f32[{names[0]}], i: {kind}) -> {result}:\n"
        f"    return ck.take(t, i, {axis})\n",
        "a b c d e",
    )
    (value,), (error,) = evaluate_with_bound(op.program.specialise(), [table, ids])
    assert np.array_equal(value, np.take(table, ids, axis))
    assert not error.any()


def numbers(shape: tuple[int, ...], seed: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float16)
