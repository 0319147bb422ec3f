# SPDX-License-Identifier: MIT
"""What is computed of o: in the kernel that stores it, whichever that is."""

from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.errors import CkError
from tests.support.arrays import uniform
from tests.support.attention_ops import finished, finished_args
from tests.support.checks import check
from tests.support.coverage import Covered

B, H, G, S, T, D, E, P = ck.dims("B H G S T D E P")


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


Q: Any = ck.dtype_var("Q", ck.fp8, ck.fp8_fnuz)


@ck.op
def quantised(
    q: Q[B, H, S, D], k: Q[B, G, T, D], v: Q[B, G, T, E], factor: ck.f32, shift: ck.bf16[E]
) -> ck.bf16[B, H, S, E]:
    o = ck.attention(q, k, v, scale=128**-0.5 / 16, mask=ck.causal("bottom_right"))
    return ck.silu(o * factor) + shift


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(("rows", "splits"), [(70, 1), (1, 1), (3, 2)])
def test_what_is_computed_of_o(rows: int, splits: int, covered: Covered) -> None:
    check(finished.using(splits=splits), finished_args(rows))
    covered("attention: function of o" + (", split-KV" if splits > 1 else ""), "f16", "gfx942")


@pytest.mark.usefixtures("compiler")
def test_rows_of_packed_sequences_are_those_of_the_arrays() -> None:
    starts = np.array([0, 70, 75, 110], np.int32)
    args = [
        uniform(110, 4, 64),
        uniform(110, 2, 64),
        uniform(110, 2, 48),
        starts,
        starts,
        uniform(4, 4, dtype=ck.f32),
        uniform(110, 4, 48),
        uniform(110, 1, 1),
    ]
    check(finished_rows, args)
    check(finished_rows.using(splits=2), args)


@pytest.mark.usefixtures("stencils")
def test_the_factor_of_quantised_values_goes_behind(covered: Covered) -> None:
    args: list[Any] = [
        8 * uniform(1, heads, rows, 128, dtype=ck.f32)
        for heads, rows in ((4, 70), (2, 150), (2, 150))
    ]
    args = [each.astype(ck.fp8_fnuz.numpy) for each in args]
    check(quantised, [*args, np.float32(0.07), uniform(128, dtype=ck.bf16)])
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
        uniform(1, 2, 3, 64),
        uniform(1, 2, 5, 64),
        uniform(1, 2, 5, 64),
        uniform(2, dtype=ck.f32),
        np.zeros((1, 3), np.int32),
        np.zeros((1, 5), np.int32),
        uniform(64),
        uniform(1, 2, 3, 64),
        1.0,
    ]
