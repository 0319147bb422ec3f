# SPDX-License-Identifier: MIT
"""Integers in functions of kernels: epilogues of products, and scores and masks of attention."""

from typing import Any

import numpy as np
import pytest

import cklang as ck
from tests.support.algorithms import DEEP, narrow
from tests.support.checks import check

M, N, K, B, H, G, S, T, D = ck.dims("M N K B H G S T D")
WIDTH = 7

pytestmark = pytest.mark.usefixtures("stencils")


@ck.op
def bucketed(
    x: ck.f16[M, K], w: ck.f16[N, K], column: ck.f16[N], cell: ck.f16[M, N]
) -> ck.f16[M, N]:
    large, small = column.to(ck.i32) << 16, cell.to(ck.i32)
    bits = (large >> 9) ^ ((small >> 2) & 0xFF) | (~small & 1)
    bucket = bits // 5 - small % -7 + large // small % 64
    return x @ w.T + bucket * 0.25


def test_integers_in_an_epilogue() -> None:
    rng = np.random.default_rng(0)
    x, w = (rng.uniform(-1, 1, (rows, 40)).astype(np.float16) for rows in (70, 33))
    column = rng.integers(-2000, 2000, 33).astype(np.float16)
    cell = rng.integers(-20, 20, (70, 33)).astype(np.float16)
    column[:3], cell[0, :4] = (-32768, -32767, 32760), (-1, 0, 1, 2)
    check(bucketed.using(narrow(2, warp_tile=DEEP)), (x, w, column, cell))


@ck.op
def remainders(
    x: ck.f16[M, K], w: ck.f16[N, K], column: ck.f16[N], cell: ck.f16[M, N]
) -> ck.f16[M, N]:
    return x @ w.T + column // cell + cell % column


def test_floor_division_of_floats_in_an_epilogue() -> None:
    rng = np.random.default_rng(1)
    x, w = (rng.uniform(-1, 1, (rows, 40)).astype(np.float16) for rows in (70, 33))
    column, cell = (rng.uniform(-9, 9, shape).astype(np.float16) for shape in ((33,), (70, 33)))
    column[:3], cell[:4, 3] = (0, np.inf, np.nan), (0, -np.inf, 0.5, -6.5)
    check(remainders.using(narrow(2, warp_tile=DEEP)), (x, w, column, cell))


@ck.fn
def near(i: Any, j: Any) -> Any:
    """Whether two positions lie in one block."""
    return i // WIDTH == j // WIDTH


@ck.op
def neighbours(
    q: ck.f16[B, H, S, D], k: ck.f16[B, G, T, D], v: ck.f16[B, G, T, D]
) -> tuple[ck.f16[B, H, S, D], ck.f32[B, H, S]]:
    return ck.attention(
        q,
        k,
        v,
        score=lambda s, h, i, j: s - (i - j) % 5 * 0.125 + (h ^ (j & 3)) / 8,
        mask=lambda i, j: near(i, j) | (j % 16 == 0),
        return_lse=True,
    )


def test_integers_in_scores_and_masks() -> None:
    rng = np.random.default_rng(2)
    n = {"B": 1, "H": 2, "G": 1}
    q = rng.uniform(-1, 1, (n["B"], n["H"], 45, 64)).astype(np.float16)
    k, v = (rng.uniform(-1, 1, (n["B"], n["G"], 70, 64)).astype(np.float16) for _ in "kv")
    check(neighbours, (q, k, v))
