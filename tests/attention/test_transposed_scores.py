# SPDX-License-Identifier: MIT
"""Functions of scores, soft caps and the lse in the pipelines that read V from LDS transposed."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.arch import arch
from cklang.families.attention.key import AttentionAlgorithm, AttentionSignature, ScoreKind
from cklang.families.attention.lower import lower_attention
from cklang.fusion.functions import NO_FUNCTIONS
from cklang.keys import Key
from cklang.selection.rules import violations
from cklang.types import DType, bf16, f16
from tests.support.algorithms import V3
from tests.support.arrays import uniform
from tests.support.attention_ops import arrays
from tests.support.checks import check
from tests.support.coverage import Covered

B, H, G, S, T, D, E, P = ck.dims("B H G S T D E P")
F: Any = ck.dtype_var("F", ck.f16, ck.bf16)
ARCH = "gfx950"

FEW_128 = AttentionAlgorithm(
    tile=(16, 32, 64, 128, 32, 128),
    warps=(1, 1, 1),
    warp_tile=(16, 16, 32),
    pipeline="qr_async_trload",  # type: ignore[arg-type]
    vector=8,
    block_per_cu=2,
)
MANY_64 = replace(FEW_128, tile=(128, 64, 32, 64, 32, 64), warps=(4, 1, 1), warp_tile=(32, 32, 16))
# Rows of q and k: ragged tiles, one row, more rows than keys, several tiles of v3, no key.
SHAPES = [(150, 333), (1, 1), (70, 33), (300, 200), (5, 0)]


@ck.op
def positioned(
    q: F[B, H, S, D], k: F[B, G, T, D], v: F[B, G, T, E], slope: ck.f32[H], table: ck.f32[B, T]
) -> tuple[F[B, H, S, E], ck.f32[B, H, S]]:
    return ck.attention(
        q,
        k,
        v,
        score=lambda s, b, h, i, j: ck.tanh(s) * 4 + slope[h] * (j - i).to(ck.f32) + table[b, j],
        mask=ck.causal("bottom_right"),
        return_lse=True,
    )


@ck.op
def softened(q: F[B, H, S, D], k: F[B, G, T, D], v: F[B, G, T, E]) -> F[B, H, S, E]:
    return ck.attention(q, k, v, score=lambda s: ck.tanh(s / 20) * 20)


@ck.op
def scaled(
    q: F[B, H, S, D], k: F[B, G, T, D], v: F[B, G, T, E]
) -> tuple[F[B, H, S, E], ck.f32[B, H, S]]:
    return ck.attention(q, k, v, scale=0.25, return_lse=True)


@ck.op
def packed(
    q: F[S, H, D], k: F[T, G, D], v: F[T, G, E], mine: ck.i32[P], theirs: ck.i32[P]
) -> F[S, H, E]:
    return ck.attention(
        q,
        k,
        v,
        cu_seqlens_q=mine,
        cu_seqlens_k=theirs,
        score=lambda s, i, j: s - 0.125 * ck.abs((i - j).to(ck.f32)),
    )


def tensors(dtype: DType, queries: int, keys: int, head: int) -> list[Any]:
    """Return q, k and v of four heads that share two, rows outside heads in memory."""
    n = {"B": 2, "H": 4, "G": 2, "S": queries, "T": keys, "D": head, "E": head}
    return arrays(np.random.default_rng(queries + keys), n, rows_first=True, dtype=dtype)


def check_positioned(algorithm: AttentionAlgorithm, dtype: DType, head: int) -> None:
    op = positioned.using(algorithm, splits=1)
    for queries, keys in SHAPES:
        own = [uniform(4, dtype=ck.f32), uniform(2, keys, dtype=ck.f32)]
        check(op, [*tensors(dtype, queries, keys, head), *own], ARCH)


@pytest.mark.usefixtures("compiler")
def test_functions_of_the_score_in_v3(covered: Covered) -> None:
    """A function that asks every place and tensors, a mask, and the lse of what they leave."""
    check_positioned(V3, f16, 128)
    covered("attention: v3, functions of the score", "f16", ARCH)
    covered("attention: v3, lse", "f16", ARCH)


@pytest.mark.usefixtures("compiler")
def test_functions_of_the_score_in_transposed_loads(covered: Covered) -> None:
    check_positioned(FEW_128, f16, 128)
    covered("attention: qr_async_trload, functions of the score", "f16", ARCH)


@pytest.mark.full
def test_functions_of_the_score_of_bf16(covered: Covered) -> None:
    check_positioned(V3, bf16, 104)
    covered("attention: v3, functions of the score", "bf16", ARCH)
    check_positioned(MANY_64, bf16, 40)
    covered("attention: qr_async_trload, functions of the score", "bf16", ARCH)


@pytest.mark.full
def test_the_lse_of_v3_has_the_scale(covered: Covered) -> None:
    """CK Tile's own leaves it out; ours hands it scores that have it. Splits combine by the lse."""
    for queries, keys in SHAPES:
        check(scaled.using(V3, splits=1), tensors(bf16, queries, keys, 128), ARCH)
        check(scaled.using(V3, splits=3), tensors(bf16, queries, keys, 128), ARCH)
    covered("attention: v3, lse", "bf16", ARCH)
    covered("attention: v3, split-KV", "bf16", ARCH)


@pytest.mark.full
@pytest.mark.parametrize("algorithm", [V3, FEW_128], ids=["v3", "trload"])
def test_soft_caps(algorithm: AttentionAlgorithm, covered: Covered) -> None:
    for queries, keys in SHAPES:
        check(softened.using(algorithm, splits=1), tensors(f16, queries, keys, 128), ARCH)
    covered(f"attention: {algorithm.pipeline.value}, soft cap", "f16", ARCH)


@pytest.mark.full
def test_packed_sequences_in_v3(covered: Covered) -> None:
    """Also of keys of exactly two tiles, where CK Tile's waves would not wait for the second."""
    lengths = [(70, 90), (5, 0), (33, 130), (40, 50), (0, 4), (1, 1)]
    mine, theirs = (np.cumsum([0, *side]).astype(np.int32) for side in zip(*lengths, strict=True))
    shapes = ((mine[-1], 4, 128), (theirs[-1], 2, 128), (theirs[-1], 2, 128))
    check(packed.using(V3), [*(uniform(*shape) for shape in shapes), mine, theirs], ARCH)
    covered("attention: v3, packed sequences", "f16", ARCH)


def test_a_kernel_has_the_hook_where_it_needs_it() -> None:
    """The plain kernels stay as they are: each asks masks at edges alone, and scales itself."""
    cases: tuple[tuple[AttentionAlgorithm, dict[str, Any], bool], ...] = (
        (V3, {}, False),
        (V3, {"lse": True}, True),
        (V3, {"split": True}, True),
        (V3, {"score": ScoreKind.SOFT_CAP}, True),
        (FEW_128, {"lse": True}, False),
        (FEW_128, {"score": ScoreKind.SOFT_CAP}, True),
    )
    for algorithm, fields, hooked in cases:
        signature = AttentionSignature(dtype=f16, dtype_o=f16, dtype_bias=f16, **fields)
        assert not list(violations(algorithm, signature, arch(ARCH)))
        source = lower_attention(Key(signature, algorithm, ARCH), NO_FUNCTIONS)
        assert ("cklang::Scored<" in source.stencil) == hooked
        assert ("attention_scored.hpp" in source.stencil) == hooked
