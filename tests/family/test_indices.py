# SPDX-License-Identifier: MIT
"""Indices as values: ``ck.arange`` in kernels of rows, epilogues and prologues."""

from __future__ import annotations

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
from tests.support.checks import check, launches
from tests.support.written_ops import written_op

M, N, K = ck.dims("M N K")
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
    source = f"@ck.op\ndef f(x: ck.f16[M, K]) -> ck.f32[M, K]:\n    return x + {words}\n"
    with pytest.raises(CkError) as caught:
        written_op(source, "M N K").program.specialise()
    assert caught.value.code == code


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


def numbers(shape: tuple[int, ...], seed: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float16)
