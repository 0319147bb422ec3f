# SPDX-License-Identifier: MIT
"""Attention of bf8: two bits of mantissa, and the places of fp8 in registers."""

from typing import Any

import pytest

import cklang as ck
from cklang.types import DType, bf8, bf8_fnuz
from tests.support.arrays import uniform
from tests.support.checks import check
from tests.support.coverage import Covered

B, G, H, S, T, D, E = ck.dims("B G H S T D E")
F: Any = ck.dtype_var("F", ck.bf8, ck.bf8_fnuz)


@ck.op
def plain(q: F[B, H, S, D], k: F[B, G, T, D], v: F[B, G, T, E]) -> ck.f32[B, H, S, E]:
    return ck.attention(q, k, v)


@ck.op
def dropped(q: F[B, H, S, D], k: F[B, G, T, D], v: F[B, G, T, E]) -> ck.bf16[B, H, S, E]:
    o = ck.attention(
        q, k, v, score=lambda s, i, j: s + 0.01 * (j - i).to(ck.f32), dropout=0.25, seed=11
    )
    return o.to(ck.bf16)


GPUS = [("gfx942", bf8_fnuz), ("gfx950", bf8), ("gfx1201", bf8)]


@pytest.mark.parametrize(("gpu", "dtype"), GPUS, ids=str)
def test_every_head_size_has_a_kernel(gpu: str, dtype: DType) -> None:
    for head in (1, 60, 64, 128, 256):
        problem = ck.dispatch.attention_problem(1, 2, 64, 64, head, dtype=dtype, o=ck.f32)
        assert ck.dispatch.select(problem, arch=gpu).key.signature.dtype == dtype


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(("gpu", "dtype"), GPUS, ids=str)
def test_attention(gpu: str, dtype: DType, covered: Covered) -> None:
    args = [8 * uniform(1, 2, rows, 64) for rows in (70, 150, 150)]
    check(plain, [each.astype(dtype.numpy) for each in args], gpu)
    covered("attention, head sizes 64 and 64", f"{dtype.family} f32", gpu)


@pytest.mark.full
@pytest.mark.parametrize(("gpu", "dtype"), GPUS, ids=str)
@pytest.mark.parametrize("head", [128, 256])
def test_longer_heads(gpu: str, dtype: DType, head: int, covered: Covered) -> None:
    args = [4 * uniform(1, 2, rows, head) for rows in (70, 150, 150)]
    check(plain, [each.astype(dtype.numpy) for each in args], gpu)
    covered(f"attention, head sizes {head} and {head}", f"{dtype.family} f32", gpu)


@pytest.mark.full
@pytest.mark.parametrize(("gpu", "dtype"), GPUS, ids=str)
def test_scores_and_dropout(gpu: str, dtype: DType, covered: Covered) -> None:
    args = [8 * uniform(1, 2, rows, 64) for rows in (70, 150, 150)]
    check(dropped, [each.astype(dtype.numpy) for each in args], gpu)
    covered("attention: dropout", f"{dtype.family} bf16", gpu)
