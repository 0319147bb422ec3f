# SPDX-License-Identifier: MIT
"""Ops with an attention of f16 or bf16 and arguments for them, which tests of several GPUs call.

They have few signatures: a stencil serves all shapes, layouts and functions.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

import cklang as ck
from cklang.ops.attention_backward import Gradients
from cklang.reference.attention_grad import SharedBias, gradients_with_bound
from cklang.runtime.op import Op
from cklang.testing import assert_close
from cklang.types import DType, f16, f32
from tests.support.arrays import Array, uniform

B, H, G, S, T, D, E, P, N, M, C, X, Y = ck.dims("B H G S T D E P N M C X Y")
F: Any = ck.dtype_var("F", ck.f16, ck.bf16)


@ck.op
def plain(q: F[B, H, S, D], k: F[B, G, T, D], v: F[B, G, T, E]) -> F[B, H, S, E]:
    return ck.attention(q, k, v)


@ck.op
def windowed(
    q: F[B, H, S, D],
    k: F[B, G, T, D],
    v: F[B, G, T, E],
    left: ck.const[int] = 5,
    right: ck.const[int] = 2,
    corner: ck.const[str] = "bottom_right",
    sink: ck.const[int] = 0,
) -> F[B, H, S, E]:
    return ck.attention(q, k, v, mask=ck.sliding_window(left, right, corner=corner, sink=sink))


@ck.op
def varied(
    q: F[B, H, S, D],
    k: F[B, G, T, D],
    v: F[B, G, T, E],
    slopes: ck.f32[H],
    bias: F[1, H, S, T],
    mine: ck.i32[B, S],
    theirs: ck.i32[B, T],
    scale: ck.f32,
) -> tuple[F[B, H, S, E], ck.f32[B, H, S]]:
    return ck.attention(
        q,
        k,
        v,
        scale=scale,
        score=lambda s, b, h, i, j: (
            2.0 * ck.tanh(s / 2.0) + slopes[h] * (j - i).to(ck.f32) + bias[b, h, i, j]
        ),
        mask=lambda b, i, j: mine[b, i] == theirs[b, j],
        return_lse=True,
    )


@ck.op
def dropped(q: F[B, H, S, D], k: F[B, G, T, D], v: F[B, G, T, E], seed: ck.i32) -> F[B, H, S, E]:
    return ck.attention(q, k, v, dropout=0.25, seed=seed, offset=3)


@ck.op
def packed(
    q: F[S, H, D],
    k: F[T, G, D],
    v: F[T, G, E],
    mine: ck.i32[P],
    theirs: ck.i32[P],
    slopes: ck.f32[P, H],
) -> tuple[F[S, H, E], ck.f32[H, S]]:
    return ck.attention(
        q,
        k,
        v,
        cu_seqlens_q=mine,
        cu_seqlens_k=theirs,
        mask=lambda i, j, q_len, k_len: j <= i + (k_len - q_len),
        score=lambda s, b, h, i, j: s + slopes[b, h] * (j - i).to(ck.f32),
        return_lse=True,
    )


@ck.op
def skipping(
    q: F[S, H, D],
    k: F[T, G, D],
    v: F[T, G, E],
    mine: ck.i32[P],
    theirs: ck.i32[P],
    slopes: ck.f32[P, H],
    least: ck.i32,
) -> tuple[F[S, H, E], ck.f32[H, S]]:
    return ck.attention(
        q,
        k,
        v,
        cu_seqlens_q=mine,
        cu_seqlens_k=theirs,
        min_seqlen_q=least,
        mask=lambda i, j, q_len, k_len: j <= i + (k_len - q_len),
        score=lambda s, b, h, i, j: s + slopes[b, h] * (j - i).to(ck.f32),
        return_lse=True,
    )


@ck.op
def cached(
    q: F[B, H, S, D], k: F[T, G, 16, D], v: F[T, G, 16, E], lengths: ck.i32[B], table: ck.i32[B, P]
) -> F[B, H, S, E]:
    return ck.attention(
        q, k, v, seqlens_k=lengths, block_table=table, mask=ck.causal("bottom_right")
    )


@ck.op
def measured(
    q: F[B, H, S, D], k: F[B, G, T, D], v: F[B, G, T, E], lengths: ck.i32[B]
) -> F[B, H, S, E]:
    return ck.attention(q, k, v, seqlens_k=lengths)


@ck.op
def prefill(
    q: F[S, H, D],
    k: F[T, G, N, D],
    v: F[T, G, N, E],
    starts: ck.i32[P],
    lengths: ck.i32[B],
    table: ck.i32[B, C],
) -> F[S, H, E]:
    return ck.attention(
        q,
        k,
        v,
        cu_seqlens_q=starts,
        seqlens_k=lengths,
        block_table=table,
        mask=ck.causal("bottom_right"),
    )


@ck.op
def prefill_of_one_list(
    q: F[S, H, D],
    k: F[T, G, N, D],
    v: F[T, G, N, E],
    starts: ck.i32[P],
    lengths: ck.i32[B],
    pages: ck.i32[C],
    begins: ck.i32[P],
) -> F[S, H, E]:
    return ck.attention(
        q,
        k,
        v,
        cu_seqlens_q=starts,
        seqlens_k=lengths,
        block_table=pages,
        page_starts=begins,
        mask=ck.causal("bottom_right"),
    )


@ck.op
def finished(
    q: F[B, H, S, D],
    k: F[B, G, T, D],
    v: F[B, G, T, E],
    slopes: ck.f32[H],
    mine: ck.i32[B, S],
    theirs: ck.i32[B, T],
    shift: F[E],
    res: F[B, H, S, E],
    factor: ck.f32,
) -> tuple[F[B, H, S, E], ck.f32[B, H, S]]:
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
def distant(q: F[B, H, S, D], k: F[B, G, T, D], v: F[B, G, T, D], far: ck.f32[H]) -> F[B, H, S, D]:
    return ck.attention(
        q,
        k,
        v,
        mask=lambda h, i, j: (j <= i + 60) | (h == 1),
        score=lambda s, h, i, j: s - far[h] * ck.abs((i - j).to(ck.f32)),
        dropout=0.25,
        seed=77,
        offset=3,
    )


@ck.op
def biased(
    q: F[B, H, S, D], k: F[B, G, T, D], v: F[B, G, T, D], bias: F[B, H, S, T]
) -> F[B, H, S, D]:
    return ck.attention(
        q,
        k,
        v,
        mask=lambda h, i, j: (j <= i + 60) | (h == 1),
        score=lambda s, b, h, i, j: s + bias[b, h, i, j],
        dropout=0.25,
        seed=77,
        offset=3,
    )


@ck.op
def relative(
    q: F[B, H, S, D], k: F[B, G, T, D], v: F[B, G, T, D], bias: F[X, Y, T]
) -> F[B, H, S, D]:
    return ck.attention(
        q,
        k,
        v,
        mask=lambda h, i, j: (j <= i + 60) | (h == 1),
        score=lambda s, h, i, j: s + bias[h, i, j],
        dropout=0.25,
        seed=77,
        offset=3,
    )


@ck.op
def packed_rows(
    q: F[N, H, D],
    k: F[M, G, D],
    v: F[M, G, D],
    mine: ck.i32[P],
    theirs: ck.i32[P],
    slopes: ck.f32[P, H],
) -> F[N, H, D]:
    return ck.attention(
        q,
        k,
        v,
        cu_seqlens_q=mine,
        cu_seqlens_k=theirs,
        mask=lambda i, j, q_len, k_len: j <= i + (k_len - q_len),
        score=lambda s, b, h, i, j: s + slopes[b, h] * (j - i).to(ck.f32),
    )


@ck.op
def capped(q: F[B, H, S, D], k: F[B, G, T, D], v: F[B, G, T, E]) -> F[B, H, S, E]:
    return ck.attention(q, k, v, score=lambda s: 3.0 * ck.tanh(s / 3.0))


@ck.op
def sloped(
    q: F[B, H, S, D], k: F[B, G, T, D], v: F[B, G, T, E], slopes: ck.f32[H]
) -> F[B, H, S, E]:
    return ck.attention(
        q, k, v, score=lambda s, h, i, j: s - slopes[h] * ck.abs((i - j).to(ck.f32))
    )


@ck.op
def shifted(
    q: F[B, H, S, D], k: F[B, G, T, D], v: F[B, G, T, E], bias: F[B, H, S, T]
) -> F[B, H, S, E]:
    return ck.attention(q, k, v, score=lambda s, b, h, i, j: s + bias[b, h, i, j])


def within(
    op: Op, args: Sequence[Any], grad: Array, gradients: Gradients, bias: SharedBias | None = None
) -> Sequence[Array]:
    """Hold gradients against the reference's bounds, and return these."""
    wanted, bounds = gradients_with_bound(op.ir(*args), args, grad, bias)
    for got, want, bound in zip(gradients, wanted, bounds, strict=False):
        assert got.dtype == want.dtype
        assert_close(got, want, bound)
    return bounds


def packed_rows_args(
    lengths: list[tuple[int, int]], seed: int, dtype: DType = f16
) -> tuple[list[Any], Array]:
    """Return the arguments of :func:`packed_rows` and a gradient of its result."""
    rng = np.random.default_rng(seed)
    starts = np.cumsum([(0, 0), *lengths], axis=0, dtype=np.int32)
    mine, theirs = (np.ascontiguousarray(starts[:, side]) for side in (0, 1))
    rows, keys = (int(each[-1]) for each in (mine, theirs))
    q, k, v, grad = (
        rng.uniform(-1, 1, (count, heads, 64)).astype(dtype.numpy)
        for count, heads in ((rows, 4), (keys, 2), (keys, 2), (rows, 4))
    )
    slopes = rng.uniform(0, 0.1, (len(starts), 4)).astype(np.float32)
    return [q, k, v, mine, theirs, slopes], grad


def arrays(
    rng: np.random.Generator, n: dict[str, int], rows_first: bool = False, dtype: DType = f16
) -> list[Any]:
    """Return q, k and v; with ``rows_first`` their rows stand before their heads in memory."""
    result = []
    for shape in ("BHSD", "BGTD", "BGTE"):
        order = [shape[0], shape[2], shape[1], shape[3]] if rows_first else shape
        x = rng.uniform(-1, 1, [n[axis] for axis in order]).astype(dtype.numpy)
        result.append(x.transpose(0, 2, 1, 3) if rows_first else x)
    return result


def packed_args(lengths: list[tuple[int, int]], seed: int, dtype: DType = f16) -> list[Any]:
    """Return the arguments of :func:`packed` for sequences of these queries and keys."""
    rng = np.random.default_rng(seed)
    mine, theirs = (
        np.cumsum([0, *(pair[side] for pair in lengths)]).astype(np.int32) for side in (0, 1)
    )
    n = {"B": 1, "G": 2, "H": 4, "S": mine[-1], "T": theirs[-1], "D": 64, "E": 48}
    q, k, v = (x[0].swapaxes(0, 1) for x in arrays(rng, n, dtype=dtype))
    slopes = rng.uniform(0, 0.1, (len(mine), 4)).astype(np.float32)
    return [q, k, v, mine, theirs, slopes]


def cached_args(lengths: list[int], queries: int, seed: int, dtype: DType = f16) -> list[Any]:
    """Return the arguments of :func:`cached` for sequences of so many keys."""
    rng = np.random.default_rng(seed)
    batch = len(lengths)
    table = rng.permutation(9 * batch).reshape(batch, 9).astype(np.int32)
    q = rng.uniform(-1, 1, (batch, 4, queries, 64)).astype(dtype.numpy)
    k, v = (rng.uniform(-1, 1, (9 * batch, 16, 2, n)).astype(dtype.numpy) for n in (64, 48))
    # Rows before heads in a page.
    return [q, k.swapaxes(1, 2), v.swapaxes(1, 2), np.array(lengths, np.int32), table]


def prefill_args(
    lengths: list[tuple[int, int]], page: int, seed: int, dtype: DType = f16
) -> list[Any]:
    """Return the arguments of :func:`prefill` with keys in pages of ``page`` rows."""
    rng = np.random.default_rng(seed)
    batch, most = len(lengths), max(-(-keys // page) for _, keys in lengths) + 1
    starts = np.cumsum([0, *(queries for queries, _ in lengths)]).astype(np.int32)
    cache_lengths = np.array([keys for _, keys in lengths], np.int32)
    table = rng.permutation(most * batch).reshape(batch, most).astype(np.int32)
    q = rng.uniform(-1, 1, (starts[-1], 4, 64)).astype(dtype.numpy)
    k, v = (rng.uniform(-1, 1, (most * batch, page, 2, n)).astype(dtype.numpy) for n in (64, 48))
    return [q, k.swapaxes(1, 2), v.swapaxes(1, 2), starts, cache_lengths, table]


def finished_args(rows: int, dtype: DType = f16) -> list[Any]:
    """Return the arguments of :func:`finished` for so many queries and 150 keys."""
    return [
        uniform(2, 4, rows, 64, dtype=dtype),
        uniform(2, 2, 150, 64, dtype=dtype),
        uniform(2, 2, 150, 48, dtype=dtype),
        uniform(4, dtype=f32),
        np.arange(2 * rows, dtype=np.int32).reshape(2, rows) % 3,
        np.arange(300, dtype=np.int32).reshape(2, 150) % 3,
        uniform(48, dtype=dtype),
        uniform(2, rows, 4, 48, dtype=dtype).swapaxes(1, 2),
        0.75,
    ]
