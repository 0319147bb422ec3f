# SPDX-License-Identifier: MIT
"""The pipelines of gfx950 that read V from LDS transposed, within the reference's bound.

Each kernel is named, so that the test knows which one runs, and serves several shapes.
"""

from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.errors import CkError
from cklang.families.attention.host import AttentionOperand
from cklang.families.attention.key import AttentionAlgorithm
from cklang.types import DType, bf16, f16
from tests.support.algorithms import V3
from tests.support.arrays import uniform
from tests.support.attention_harness import Inputs, build, key_of
from tests.support.attention_harness import check as check_directly
from tests.support.attention_ops import arrays
from tests.support.checks import check
from tests.support.coverage import Covered

B, H, G, S, T, D, E, P = ck.dims("B H G S T D E P")
F: Any = ck.dtype_var("F", ck.f16, ck.bf16)
ARCH = "gfx950"


@ck.op
def causal(
    q: F[B, H, S, D], k: F[B, G, T, D], v: F[B, G, T, E]
) -> tuple[F[B, H, S, E], ck.f32[B, H, S]]:
    return ck.attention(q, k, v, mask=ck.causal("bottom_right"), return_lse=True)


@ck.op
def whole(q: F[B, H, S, D], k: F[B, G, T, D], v: F[B, G, T, E]) -> F[B, H, S, E]:
    return ck.attention(q, k, v)


@ck.op
def documents(
    q: F[B, H, S, D],
    k: F[B, G, T, D],
    v: F[B, G, T, E],
    mine: ck.i32[B, S],
    theirs: ck.i32[B, T],
    gate: ck.f32[H],
) -> F[B, H, S, E]:
    o = ck.attention(
        q, k, v, mask=lambda b, i, j, q_len, k_len: (mine[b, i] == theirs[b, j]) & (j <= i + 9)
    )
    return ck.silu(o * gate[:, None, None])


@ck.op
def packed(
    q: F[S, H, D], k: F[T, G, D], v: F[T, G, E], mine: ck.i32[P], theirs: ck.i32[P]
) -> F[S, H, E]:
    return ck.attention(
        q, k, v, cu_seqlens_q=mine, cu_seqlens_k=theirs, mask=ck.sliding_window(40, 3)
    )


def trload(*tile: int, warps: int, warp_tile: tuple[int, int, int]) -> AttentionAlgorithm:
    return AttentionAlgorithm(
        tile=tile,  # type: ignore[arg-type]
        warps=(warps, 1, 1),
        warp_tile=warp_tile,
        pipeline="qr_async_trload",  # type: ignore[arg-type]
        vector=8,
        block_per_cu=2,
    )


MANY_64 = trload(128, 64, 32, 64, 32, 64, warps=4, warp_tile=(32, 32, 16))
MANY_128 = trload(128, 64, 32, 128, 16, 128, warps=4, warp_tile=(32, 32, 16))
SOME_64 = trload(32, 32, 64, 64, 32, 64, warps=1, warp_tile=(32, 32, 16))
SOME_128 = trload(32, 32, 128, 128, 32, 128, warps=1, warp_tile=(32, 32, 16))
FEW_64 = trload(16, 32, 64, 64, 32, 64, warps=1, warp_tile=(16, 16, 32))
FEW_128 = trload(16, 32, 64, 128, 32, 128, warps=1, warp_tile=(16, 16, 32))

# Rows of q and k, head sizes: whole tiles, ragged ones, one row, more rows than keys, no key.
SHAPES = [(128, 64, 64, 64), (150, 333, 40, 56), (1, 1, 8, 64), (70, 33, 64, 16), (5, 0, 24, 8)]


def tensors(dtype: DType, queries: int, keys: int, head: int, head_v: int) -> list[Any]:
    """Return q, k and v of four heads that share two, rows outside heads in memory."""
    n = {"B": 2, "H": 4, "G": 2, "S": queries, "T": keys, "D": head, "E": head_v}
    return arrays(np.random.default_rng(queries + keys), n, rows_first=True, dtype=dtype)


def check_shapes(op: Any, dtype: DType, times: int) -> None:
    """Check an op for heads of up to 64 elements ``times`` what the shapes say."""
    for queries, keys, head, head_v in SHAPES:
        check(op, tensors(dtype, queries, keys, times * head, times * head_v), ARCH)


def document_args(dtype: DType, queries: int, keys: int, head: int) -> list[Any]:
    rng = np.random.default_rng(queries)
    ids = [rng.integers(0, 3, (2, rows)).astype(np.int32) for rows in (queries, keys)]
    return [*tensors(dtype, queries, keys, head, head), *ids, uniform(4, dtype=ck.f32)]


BRANCHES = """#include "cklang/attention_hole.h"
int ck_mask(CK_ATTENTION_PARAMS)
{
    const CK_GLOBAL int* mine = (const CK_GLOBAL int*)t[0].data;
    const CK_GLOBAL int* theirs = (const CK_GLOBAL int*)t[1].data;
    return j <= i + 9 && mine[i] == theirs[j];
}
"""


@pytest.mark.usefixtures("stencils")
@pytest.mark.parametrize(("queries", "keys"), [(20, 31), (40, 70)])
def test_a_mask_function_of_branches(queries: int, keys: int) -> None:
    """Where loads stand under conditions, clang 22 loses the -inf of a mask that branches too."""
    rng = np.random.default_rng(keys)
    ids = [rng.integers(0, 3, rows).astype(np.int32) for rows in (queries, keys)]
    mine, theirs = ids
    check_directly(
        build(key_of(f16, FEW_64, ARCH, mask="function"), BRANCHES),
        Inputs(heads=2, seqlen_q=queries, seqlen_k=keys),
        mask=lambda b, h, i, j: (j <= i + 9) & (mine[i] == theirs[j]),
        operands=tuple(
            AttentionOperand(pointer=each.ctypes.data, extents=each.shape, strides=(1,))
            for each in ids
        ),
    )


@pytest.mark.usefixtures("compiler")
def test_masks_lse_and_ragged_shapes(covered: Covered) -> None:
    check_shapes(causal.using(MANY_64, splits=1), f16, 1)
    covered("attention: qr_async_trload, lse", "f16", ARCH)


@pytest.mark.full
def test_a_mask_function_and_splits_of_few_queries(covered: Covered) -> None:
    op = documents.using(FEW_128, splits=3)
    for queries, keys in ((1, 150), (20, 90)):
        check(op, document_args(bf16, queries, keys, 128), ARCH)
    covered("attention: qr_async_trload, mask function, split-KV", "bf16", ARCH)


@pytest.mark.full
def test_packed_sequences(covered: Covered) -> None:
    op = packed.using(SOME_64)
    lengths = [(70, 90), (5, 0), (33, 130), (0, 4), (1, 1)]
    mine, theirs = (np.cumsum([0, *side]).astype(np.int32) for side in zip(*lengths, strict=True))
    shapes = ((mine[-1], 4, 64), (theirs[-1], 2, 64), (theirs[-1], 2, 48))
    check(op, [*(uniform(*shape) for shape in shapes), mine, theirs], ARCH)
    covered("attention: qr_async_trload, packed sequences", "f16", ARCH)


@pytest.mark.usefixtures("compiler", "sanitized")
def test_v3_asks_masks_and_makes_what_is_stored(covered: Covered) -> None:
    """Also where keys are two tiles of 32, and CK Tile's waves would not wait for the second."""
    op = documents.using(V3, splits=1)
    for queries, keys in ((300, 200), (40, 33), (5, 64), (3, 0)):
        check(op, document_args(bf16, queries, keys, 128), ARCH)
    check(op, document_args(bf16, 20, 70, 104), ARCH)
    covered("attention: v3, functions of mask and o", "bf16", ARCH)


@pytest.mark.full
@pytest.mark.parametrize("dtype", [f16, bf16], ids=str)
@pytest.mark.parametrize("algorithm", [MANY_64, MANY_128, SOME_64, SOME_128, FEW_64, FEW_128])
def test_every_tile(algorithm: AttentionAlgorithm, dtype: DType, covered: Covered) -> None:
    head = algorithm.tile[5]
    check_shapes(causal.using(algorithm, splits=1), dtype, head // 64)
    covered(f"attention: qr_async_trload, head sizes {head} and {head}", dtype.name, ARCH)


@pytest.mark.full
@pytest.mark.parametrize("algorithm", [V3, FEW_128], ids=["v3", "trload"])
def test_without_a_mask(algorithm: AttentionAlgorithm, covered: Covered) -> None:
    check_shapes(whole.using(algorithm, splits=1), f16, 2)
    covered(f"attention: {algorithm.pipeline.value}, no mask", "f16", ARCH)


@pytest.mark.usefixtures("emulator")
def test_another_gpu_is_refused_by_name() -> None:
    q, k, v = tensors(f16, 40, 40, 128, 128)
    for algorithm in (V3, MANY_128):
        with pytest.raises(CkError, match="attention-pipeline"):
            whole.using(algorithm, splits=1)(q, k, v, device="emu:gfx942")


def test_long_sequences_are_for_many_queries_and_short_ones_for_few() -> None:
    """What the cost model expects of them, as the clock does."""
    long = ck.dispatch.select(
        ck.dispatch.attention_problem(1, 16, 4096, 4096, 128, dtype=f16), arch=ARCH
    )
    assert long.key.algorithm.tile == MANY_128.tile
    short = ck.dispatch.select(
        ck.dispatch.attention_problem(4, 32, 1, 512, 128, dtype=f16), arch=ARCH
    )
    assert short.key.algorithm.tile == FEW_128.tile
    stored = ck.dispatch.select(
        ck.dispatch.attention_problem(1, 16, 4096, 4096, 128, lse=True), arch=ARCH
    )
    assert stored.key.algorithm.tile == MANY_128.tile
