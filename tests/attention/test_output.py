# SPDX-License-Identifier: MIT
"""What is computed of o: in the kernel that stores it, whichever that is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.errors import CkError
from cklang.testing import reports

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("attention")]

B, H, G, S, T, D, E, P = ck.dims("B H G S T D E P")
GPU = "emu:gfx942"


@ck.op
def finished(
    q: ck.f16[B, H, S, D],
    k: ck.f16[B, G, T, D],
    v: ck.f16[B, G, T, E],
    slopes: ck.f32[H],
    mine: ck.i32[B, S],
    theirs: ck.i32[B, T],
    shift: ck.f16[E],
    res: ck.f16[B, H, S, E],
    factor: ck.f32,
) -> tuple[ck.f16[B, H, S, E], ck.f32[B, H, S]]:
    o, lse = ck.attention(
        q,
        k,
        v,
        score=lambda s, h, i, j: s + slopes[h] * (j - i).to(ck.f32),
        mask=lambda b, i, j: mine[b, i] == theirs[b, j],
        return_lse=True,
    )
    return ck.silu(o * slopes[:, None, None] + shift) * factor + res, lse


@ck.op
def finished_rows(
    q: ck.f16[S, H, D],
    k: ck.f16[T, G, D],
    v: ck.f16[T, G, E],
    mine: ck.i32[P],
    theirs: ck.i32[P],
    slopes: ck.f32[P, H],
    res: ck.f16[S, H, E],
    shift: ck.f16[S, 1, 1],
) -> tuple[ck.f16[S, H, E], ck.f32[H, S]]:
    o, lse = ck.attention(
        q,
        k,
        v,
        cu_seqlens_q=mine,
        cu_seqlens_k=theirs,
        mask=lambda i, j, q_len, k_len: j <= i + (k_len - q_len),
        score=lambda s, b, h, i, j: s + slopes[b, h] * (j - i).to(ck.f32),
        return_lse=True,
    )
    return ck.relu(o + shift) - res, lse


@ck.op
def quantised(
    q: ck.fp8_fnuz[B, H, S, D],
    k: ck.fp8_fnuz[B, G, T, D],
    v: ck.fp8_fnuz[B, G, T, E],
    factor: ck.f32,
    shift: ck.bf16[E],
) -> ck.bf16[B, H, S, E]:
    o = ck.attention(q, k, v, scale=128**-0.5 / 16, mask=ck.causal("bottom_right"))
    return ck.silu(o * factor) + shift


def numbers(*shape: int, dtype: Any = np.float16) -> Any:
    return np.random.default_rng(sum(shape)).uniform(-1, 1, shape).astype(dtype)


def check(op: Any, args: list[Any]) -> None:
    for each in reports(op, args, op(*args, device=GPU)):
        each.check()


@pytest.mark.parametrize(("rows", "splits"), [(70, 1), (1, 1), (3, 2)])
def test_what_is_computed_of_o(rows: int, splits: int, covered: Callable[..., None]) -> None:
    args = [
        numbers(2, 4, rows, 64),
        numbers(2, 2, 150, 64),
        numbers(2, 2, 150, 48),
        numbers(4, dtype=np.float32),
        np.arange(2 * rows, dtype=np.int32).reshape(2, rows) % 3,
        np.arange(300, dtype=np.int32).reshape(2, 150) % 3,
        numbers(48),
        numbers(2, rows, 4, 48).swapaxes(1, 2),
        0.75,
    ]
    check(finished.using(splits=splits), args)
    covered("attention: function of o" + (", split-KV" if splits > 1 else ""), "f16", "gfx942")


def test_rows_of_packed_sequences_are_those_of_the_arrays() -> None:
    starts = np.array([0, 70, 75, 110], np.int32)
    args = [
        numbers(110, 4, 64),
        numbers(110, 2, 64),
        numbers(110, 2, 48),
        starts,
        starts,
        numbers(4, 4, dtype=np.float32),
        numbers(110, 4, 48),
        numbers(110, 1, 1),
    ]
    check(finished_rows, args)
    check(finished_rows.using(splits=2), args)


def test_the_factor_of_quantised_values_goes_behind(covered: Callable[..., None]) -> None:
    args: list[Any] = [
        8 * numbers(1, heads, rows, 128, dtype=np.float32)
        for heads, rows in ((4, 70), (2, 150), (2, 150))
    ]
    args = [each.astype(ck.fp8_fnuz.numpy) for each in args]
    check(quantised, [*args, np.float32(0.07), numbers(128, dtype=ck.bf16.numpy)])
    covered("attention: function of o", "fp8_fnuz bf16", "gfx942")


def test_a_new_function_of_o_is_a_fill() -> None:
    text = finished.explain(*_small())
    assert "output expression: computed of o in f32 as it is stored" in text
    assert "ck_output" in finished.inspect(*_small())


def test_backward_kernels_do_not_know_it() -> None:
    @ck.op
    def halved(
        q: ck.f16[B, H, S, D], k: ck.f16[B, G, T, D], v: ck.f16[B, G, T, D]
    ) -> ck.f16[B, H, S, D]:
        return ck.attention(q, k, v) * 0.5

    x = np.ones((1, 1, 8, 64), np.float16)
    with pytest.raises(CkError, match="G007"):
        ck.attention_grad(halved, x, x, x, grad=x)


def _small() -> list[Any]:
    return [
        numbers(1, 2, 3, 64),
        numbers(1, 2, 5, 64),
        numbers(1, 2, 5, 64),
        numbers(2, dtype=np.float32),
        np.zeros((1, 3), np.int32),
        np.zeros((1, 5), np.int32),
        numbers(64),
        numbers(1, 2, 3, 64),
        1.0,
    ]
