# SPDX-License-Identifier: MIT
"""Operands that the program transposes: V with contiguous keys is read so, others are copied."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.errors import CkError
from cklang.families.attention.key import AttentionPipeline
from cklang.types import DType, bf16, f16
from tests.support.algorithms import ATTENTION, V3
from tests.support.arrays import uniform
from tests.support.attention_ops import plain, within
from tests.support.checks import check, launches
from tests.support.coverage import Covered

B, G, H, S, T, D, E, P = ck.dims("B G H S T D E P")


@ck.op
def by_column(
    q: ck.f16[B, H, S, D], k: ck.f16[B, G, T, D], v: ck.f16[B, G, E, T]
) -> ck.f16[B, H, S, E]:
    return ck.attention(q, k, v.mT)


@ck.op
def transposed(
    q: ck.f16[B, H, D, S], k: ck.f16[B, G, D, T], v: ck.f16[B, G, E, T]
) -> ck.f16[B, H, S, E]:
    return ck.attention(q.mT, k.mT, v.mT)


@ck.op
def in_pages(
    q: ck.f16[B, H, S, D],
    k: ck.f16[P, G, T, D],
    v: ck.f16[P, G, D, T],
    table: ck.i32[B, E],
    lengths: ck.i32[B],
) -> ck.f16[B, H, S, D]:
    return ck.attention(q, k, v.mT, block_table=table, seqlens_k=lengths)


def families(op: Any) -> list[str]:
    return [launch.key.family for launch in launches(op)]


@pytest.mark.usefixtures("compiler")
def test_a_transposed_v_is_copied_once(covered: Covered) -> None:
    q, k = uniform(2, 4, 70, 64), uniform(2, 2, 133, 64)
    check(by_column, [q, k, uniform(2, 2, 64, 133)])
    assert families(by_column) == ["layout_copy", "attention"]
    covered("attention: V with its keys contiguous", "f16", "gfx942")


@ck.op
def single(
    q: ck.f32[B, H, S, D], k: ck.f32[B, G, T, D], v: ck.f32[B, G, E, T]
) -> ck.f32[B, H, S, E]:
    return ck.attention(q, k, v.mT)


@ck.op
def of_lengths(
    q: ck.f16[B, H, S, D], k: ck.f16[B, G, T, D], v: ck.f16[B, G, E, T], lengths: ck.i32[B]
) -> ck.f16[B, H, S, E]:
    return ck.attention(q, k, v.mT, seqlens_k=lengths)


READ = "v          read as it lies, with its keys contiguous"


def transposed_v(keys: int, dtype: DType = f16) -> list[Any]:
    return [
        uniform(2, 4, 70, 64, dtype=dtype),
        uniform(2, 2, keys, 64, dtype=dtype),
        uniform(2, 2, 64, keys, dtype=dtype),
    ]


@pytest.mark.usefixtures("compiler")
def test_a_transposed_v_is_read_as_it_lies(covered: Covered) -> None:
    """One kernel takes every number of keys and columns; its loads do not reach beyond either."""
    for keys, width in ((136, 64), (8, 40), (264, 16)):
        q, k, v = transposed_v(keys)
        args = [q, k, v[:, :, :width]]
        check(by_column, args)
        assert families(by_column) == ["attention"]
        assert launches(by_column)[0].key.signature.transposed_v
        check(plain, [q, k, args[2].swapaxes(2, 3)])  # strides say it, not the program
        assert families(plain) == ["attention"]
    covered("attention: V with its keys contiguous, not copied", "f16", "gfx942")


def test_explain_says_whether_v_is_copied() -> None:
    assert READ in by_column.explain(*transposed_v(136), device="emu:gfx942")
    text = by_column.explain(*transposed_v(133), device="emu:gfx942")
    assert READ not in text
    assert "layout_copy" in text
    assert READ in plain.explain(
        *transposed_v(133)[:2], uniform(2, 2, 64, 133).swapaxes(2, 3), device="emu:gfx942"
    )


def test_what_no_kernel_reads_so_is_copied() -> None:
    text = single.explain(*transposed_v(136, ck.f32), device="emu:gfx942")
    assert "layout_copy" in text
    lengths = np.array([7, 136], np.int32)
    assert "layout_copy" in of_lengths.explain(*transposed_v(136), lengths, device="emu:gfx942")
    heads = [uniform(1, 2, n, 128) for n in (70, 136)]
    v = uniform(1, 2, 128, 136)
    assert "layout_copy" in by_column.using(V3).explain(*heads, v, device="emu:gfx950")
    assert READ in by_column.explain(*heads, v, device="emu:gfx950")


EVERYWHERE = [
    ("gfx90a", bf16, AttentionPipeline.QR_ASYNC),
    ("gfx942", bf16, AttentionPipeline.QR),
    ("gfx950", f16, AttentionPipeline.QS),
    ("gfx1201", f16, None),
    ("gfx1201", bf16, None),
]


@pytest.mark.full
@pytest.mark.parametrize(("gpu", "dtype", "pipeline"), EVERYWHERE, ids=str)
def test_a_transposed_v_on_each_gpu(
    gpu: str, dtype: DType, pipeline: AttentionPipeline | None, covered: Covered
) -> None:
    op = plain.using(replace(ATTENTION, pipeline=pipeline)) if pipeline else plain
    q, k, v = transposed_v(136, dtype)
    check(op, [q, k, v.swapaxes(2, 3)], gpu)
    assert launches(op)[0].key.signature.transposed_v
    covered("attention: V with its keys contiguous, not copied", dtype.name, gpu)


@pytest.mark.full
def test_a_transposed_v_of_long_heads(covered: Covered) -> None:
    args = [uniform(1, 2, 70, 320), uniform(1, 2, 136, 320), uniform(1, 2, 520, 136)]
    check(by_column, args)
    (launch,) = launches(by_column)
    assert launch.key.algorithm.pipeline.value == "long_head"
    assert launch.grid[1] == 2
    covered("attention, head sizes above 256: V with its keys contiguous", "f16", "gfx942")


@pytest.mark.usefixtures("compiler")
def test_contiguous_heads_are_not_copied() -> None:
    """The program transposes V, and memory holds it the other way round."""
    q, k = uniform(2, 4, 70, 64), uniform(2, 2, 133, 64)
    check(by_column, [q, k, uniform(2, 2, 133, 64).swapaxes(2, 3)])
    assert families(by_column) == ["attention"]


@pytest.mark.usefixtures("compiler")
def test_all_three_may_be_transposed() -> None:
    args = [uniform(1, 2, 64, 70), uniform(1, 2, 64, 133), uniform(1, 2, 64, 133, seed=1)]
    check(transposed, args)
    assert families(transposed) == ["layout_copy"] * 3 + ["attention"]


@pytest.mark.usefixtures("compiler")
def test_gradients_lie_as_their_operands_do(covered: Covered) -> None:
    args = [uniform(1, 4, 64, 70), uniform(1, 2, 64, 133), uniform(1, 2, 64, 133, seed=1)]
    grad = uniform(1, 4, 70, 64)
    for op, operands in (
        (transposed, args),
        (by_column, [*(x.swapaxes(2, 3).copy() for x in args[:2]), args[2]]),
    ):
        grads = ck.attention_grad(op, *operands, grad=grad, device="emu:gfx942")
        within(op, operands, grad, grads)
        shapes = [x.shape for x in grads if x is not None]
        assert shapes == [x.shape for x in operands]
    covered("attention backward: transposed operands", "f16", "gfx942")


def test_pages_are_not_copied() -> None:
    q, k, v = uniform(1, 2, 3, 64), uniform(4, 2, 16, 64), uniform(4, 2, 64, 16)
    table, lengths = np.array([[2, 0]], np.int32), np.array([20], np.int32)
    with pytest.raises(CkError, match="attention-contiguous"):
        in_pages.explain(q, k, v, table, lengths, device="emu:gfx942")


def test_an_array_with_such_strides_is_refused() -> None:
    """Only a program that transposes asks for copies."""
    q, k = uniform(1, 2, 3, 64), uniform(1, 2, 64, 16).swapaxes(2, 3)
    with pytest.raises(CkError, match="attention-contiguous"):
        by_column.explain(q, k, uniform(1, 2, 64, 16), device="emu:gfx942")
