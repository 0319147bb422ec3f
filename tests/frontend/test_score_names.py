# SPDX-License-Identifier: MIT
"""Score and mask functions may have FlexAttention's names for their parameters."""

import re
from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.errors import CkError

B, H, M, N, D = ck.dims("B H M N D")


@ck.fn
def distance_flex(score, h, q_idx, kv_idx):
    return score + (kv_idx - q_idx) * 0.125 * (h + 1)


@ck.op
def short(
    q: ck.f16[B, H, M, D], k: ck.f16[B, H, N, D], v: ck.f16[B, H, N, D]
) -> ck.f16[B, H, M, D]:
    return ck.attention(
        q,
        k,
        v,
        score=lambda s, h, i, j: s + (j - i) * 0.125 * (h + 1),
        mask=lambda b, i, j: i >= j - b,
    )


@ck.op
def flex(q: ck.f16[B, H, M, D], k: ck.f16[B, H, N, D], v: ck.f16[B, H, N, D]) -> ck.f16[B, H, M, D]:
    return ck.attention(
        q,
        k,
        v,
        score=lambda score, h, q_idx, kv_idx: score + (kv_idx - q_idx) * 0.125 * (h + 1),
        mask=lambda b, q_idx, kv_idx: q_idx >= kv_idx - b,
    )


@ck.op
def by_helper(
    q: ck.f16[B, H, M, D], k: ck.f16[B, H, N, D], v: ck.f16[B, H, N, D]
) -> ck.f16[B, H, M, D]:
    return ck.attention(
        q, k, v, score=distance_flex, mask=lambda b, q_idx, kv_idx: q_idx >= kv_idx - b
    )


def text(op: Any) -> str:
    return str(op.program.specialise()).replace(op.program.name, "op")


@pytest.mark.parametrize("op", [flex, by_helper])
def test_both_names_are_one_program(op: Any) -> None:
    assert text(op) == text(short)


def test_outside_of_ops() -> None:
    random = np.random.default_rng(0)
    q, k, v = random.standard_normal((3, 2, 2, 5, 8)).astype(np.float16)
    long = ck.attention(
        q,
        k,
        v,
        score=lambda score, kv_idx: score + kv_idx,
        mask=lambda q_idx, kv_idx: q_idx >= kv_idx,
    )
    np.testing.assert_array_equal(
        long, ck.attention(q, k, v, score=lambda s, j: s + j, mask=lambda i, j: i >= j)
    )


def test_a_mask_has_no_score() -> None:
    def masked(
        q: ck.f16[B, H, M, D], k: ck.f16[B, H, N, D], v: ck.f16[B, H, N, D]
    ) -> ck.f16[B, H, M, D]:
        return ck.attention(q, k, v, mask=lambda score, kv_idx: kv_idx > score)

    with pytest.raises(CkError, match=re.escape("parameter score")):
        ck.op(masked).program.specialise()
