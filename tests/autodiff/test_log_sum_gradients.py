# SPDX-License-Identifier: MIT
"""Gradients through the log-sum-exps of attention, and of sequences with lengths of keys.

A gradient by the log-sum-exp of a row is subtracted from D, which the backward kernel reads. Its
meaning is compared with torch's in float64; on the emulated GPU, also with its bounds.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch

import cklang as ck
from cklang.ir.philox import keep_mask
from cklang.reference.evaluate import evaluate
from cklang.runtime.op import Op
from tests.support.arrays import drawn_for_gradient
from tests.support.attention_ops import packed
from tests.support.checks import check
from tests.support.coverage import Covered
from tests.support.written_ops import expression_op, written_op

pytestmark = pytest.mark.usefixtures("torch")

LENGTHS = [7, 3, 0]
SIZES = {"B": 3, "S": 5, "T": 7}
RESULTS = {
    "both": ("o, lse", "tuple[{o}, ck.f32[B, 4, S]]"),
    "o alone": ("o", "{o}"),
    "the log-sum-exps alone": ("lse", "ck.f32[B, 4, S]"),
}
OPTIONS = {
    "plain": "mask=ck.causal()",
    "with dropout": "mask=ck.causal(), dropout=0.25, seed=7, offset=2",
    "with lengths of keys": "mask=ck.causal(), seqlens_k=lengths",
    "from the last key": "mask=ck.causal('bottom_right'), seqlens_k=lengths",
    "lengths in the score": "score=lambda s, j, k_len: s * (1.5 - 0.1 * (k_len - j)), "
    "seqlens_k=lengths",
    "lengths and dropout": "dropout=0.25, seed=7, offset=2, seqlens_k=lengths",
}


def written(options: str, results: str, dtype: str = "f32", size: int = 8) -> Op:
    """Return an attention of four heads on two with some results."""
    q, k = (f"ck.{dtype}[B, {heads}, {size}]" for heads in ("4, S", "2, T"))
    given, type_ = RESULTS[results]
    params = f"q: {q}, k: {k}, v: {k}, lengths: ck.i32[B]"
    before = [f"o, lse = ck.attention(q, k, v, {options}, return_lse=True)"]
    return expression_op(params, type_.format(o=q), given, before)


def by_torch(
    q: Any, k: Any, v: Any, options: str, length: int, keep: Any = 1.0
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return o and the log-sum-exps of one sequence, of so many keys, in float64."""
    keys, values = (each[:, :length].repeat_interleave(2, 0) for each in (k, v))
    s = q @ keys.mT / q.shape[-1] ** 0.5
    i, j = torch.arange(q.shape[1])[:, None], torch.arange(length)
    if "score" in options:
        s = s * (1.5 - 0.1 * (length - j))
    shift = length - q.shape[1] if "bottom_right" in options else 0
    hidden = (j > i + shift) & ("causal" in options)
    s = s.masked_fill(hidden, -torch.inf)
    # Rows without keys have no weights, and no gradient.
    empty = hidden.all(-1) | (length == 0)
    total = torch.where(empty, 0.0, s.masked_fill(empty[:, None], 0.0).logsumexp(-1))
    p = torch.where(empty[:, None], 0.0, (s - total[..., None]).exp())
    return (p * keep) @ values, torch.where(empty, -torch.inf, total)


def wanted(options: str, results: str, arrays: Sequence[Any]) -> list[Any]:
    """Return the gradients by q, k and v of sequences one after the other."""
    *sides, lengths = (torch.tensor(np.asarray(x, "d")) for x in arrays[:4])
    sides = [each.requires_grad_() for each in sides]
    q, k, v = sides
    shape = (*q.shape[:3], k.shape[2])
    keep = keep_mask(shape, 0.25, 7, 2) / 0.75 if "dropout" in options else np.ones(shape)
    counts = lengths if "seqlens_k" in options else torch.full((len(q),), k.shape[2])
    outs = [
        by_torch(q[b], k[b], v[b], options, int(n), torch.tensor(keep[b, :, :, : int(n)]))
        for b, n in enumerate(counts)
    ]
    o, lse = (torch.stack(each) for each in zip(*outs, strict=True))
    dys = [torch.tensor(np.asarray(x, "d")) for x in arrays[4:]]
    pairs = {"both": (o, lse), "o alone": (o,), "the log-sum-exps alone": (lse,)}[results]
    parts = [
        torch.where(torch.isfinite(y), y * dy, 0.0).sum() for y, dy in zip(pairs, dys, strict=True)
    ]
    grads = torch.autograd.grad(torch.stack(parts).sum(), sides, allow_unused=True)
    return [
        np.zeros(side.shape) if g is None else torch.nan_to_num(g).numpy()
        for side, g in zip(sides, grads, strict=True)
    ]


def drawn(op: Op, sizes: dict[str, int], lengths: Sequence[int]) -> list[Any]:
    """Return arguments of the gradient of an op."""
    arrays = drawn_for_gradient(op, sizes)
    arrays[3] = np.array(lengths, np.int32)
    return arrays


@pytest.mark.parametrize("results", RESULTS)
@pytest.mark.parametrize(
    ("name", "size", "kernels"),
    [*((name, 8, 1) for name in OPTIONS), ("plain", 130, 0), ("from the last key", 130, 0)],
)
def test_gradients_follow_torch(name: str, size: int, kernels: int, results: str) -> None:
    """Products compute those of heads of more than 128 elements of f32."""
    op = written(OPTIONS[name], results, size=size)
    arrays = drawn(op, SIZES, LENGTHS)
    function = ck.vjp(op).ir(*arrays)
    assert [each.op for each in function.body].count("attention_dq") == kernels
    want = wanted(OPTIONS[name], results, arrays)
    for mine, theirs in zip(evaluate(function, arrays), want, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=2e-5, atol=2e-5)


def test_products_of_f16_give_the_same() -> None:
    """As for heads of more than 256 elements of f16, whose keys beyond a length may be anything."""
    options = OPTIONS["from the last key"]
    op = written(options, "both", "f16", 264)
    arrays = drawn(op, SIZES, LENGTHS)
    want = wanted(options, "both", arrays)
    for side in (1, 2):
        for b, length in enumerate(LENGTHS):
            arrays[side][b, :, length:] = np.nan
    for mine, theirs in zip(evaluate(ck.vjp(op).ir(*arrays), arrays), want, strict=True):
        np.testing.assert_allclose(mine.astype("d"), theirs, rtol=0.01, atol=0.1)


def packed_arrays(lengths: Sequence[tuple[int, int]]) -> list[Any]:
    """Return arguments of the gradient of :func:`packed`, heads of 64 elements of f16."""
    rng = np.random.default_rng(1)
    starts = np.cumsum([(0, 0), *lengths], axis=0, dtype=np.int32)
    rows, keys = map(int, starts[-1])
    shapes = ((rows, 4), (keys, 2), (keys, 2), (rows, 4))
    q, k, v, do = (rng.uniform(-1, 1, (*shape, 64)).astype("e") for shape in shapes)
    slopes = rng.uniform(0, 0.1, (len(starts), 4)).astype("f")
    dlse = rng.uniform(-1, 1, (4, rows)).astype("f")
    return [q, k, v, *(np.ascontiguousarray(starts[:, side]) for side in (0, 1)), slopes, do, dlse]


def by_sequences(arrays: Sequence[Any]) -> list[Any]:
    """Return the gradients of :func:`packed` by torch in float64."""
    q, k, v, mine, theirs, slopes, do, dlse = (torch.tensor(np.asarray(x, "d")) for x in arrays)
    sides = [each.requires_grad_() for each in (q, k, v)]
    total = torch.zeros((), dtype=torch.float64)
    spans = zip(pairwise(mine.int().tolist()), pairwise(theirs.int().tolist()), strict=True)
    for b, ((i0, i1), (j0, j1)) in enumerate(spans):
        i, j = torch.arange(i1 - i0)[:, None], torch.arange(j1 - j0)
        keys, values = (x[j0:j1].transpose(0, 1).repeat_interleave(2, 0) for x in (k, v))
        s = q[i0:i1].transpose(0, 1) @ keys.mT / 8 + slopes[b][:, None, None] * (j - i)
        hidden = (j > i + (j1 - j0) - (i1 - i0)).expand(s.shape[1:])
        empty = hidden.all(-1)
        s = s.masked_fill(hidden, -torch.inf).masked_fill(empty[:, None], 0.0)
        lse = s.logsumexp(-1)
        weights = (s - lse[..., None]).exp().masked_fill(empty[:, None], 0.0)
        total = total + ((weights @ values).transpose(0, 1) * do[i0:i1]).sum()
        total = total + (lse * dlse[:, i0:i1]).masked_fill(empty, 0.0).sum()
    return [x.numpy() for x in torch.autograd.grad(total, sides)]


def test_packed_sequences_follow_torch() -> None:
    op = ck.vjp(packed, wrt=("q", "k", "v"))
    arrays = packed_arrays([(3, 4), (5, 2), (1, 1)])
    for mine, theirs in zip(evaluate(op.ir(*arrays), arrays), by_sequences(arrays), strict=True):
        np.testing.assert_allclose(mine.astype("d"), theirs, rtol=2e-3, atol=2e-3)


def packed_sequences(gpu: str) -> None:
    """Check the gradients of packed sequences on a GPU, against their bounds and torch."""
    arrays = packed_arrays([(70, 40), (5, 130)])
    results = check(ck.vjp(packed, wrt=("q", "k", "v")), arrays, gpu)
    for mine, theirs in zip(results, by_sequences(arrays), strict=True):
        np.testing.assert_allclose(mine.astype("d"), theirs, atol=0.02)


def lengths_of_keys(gpu: str) -> None:
    """Check those of sequences with lengths of keys, one of them none."""
    options = OPTIONS["from the last key"]
    op = written(options, "both", "f16", 64)
    arrays = drawn(op, {"B": 3, "S": 40, "T": 150}, [150, 33, 0])
    results = check(ck.vjp(op), arrays, gpu)
    for mine, theirs in zip(results, wanted(options, "both", arrays), strict=True):
        np.testing.assert_allclose(mine.astype("d"), theirs, atol=0.02)
    assert not results[1][1, :, 33:].any(), "no query sees these keys"


@pytest.mark.usefixtures("compiler")
def test_packed_sequences_are_within_their_bounds(covered: Covered) -> None:
    packed_sequences("gfx942")
    covered("attention backward: log-sum-exps of packed sequences", "f16", "gfx942")


@pytest.mark.usefixtures("compiler")
def test_lengths_of_keys_are_within_their_bounds(covered: Covered) -> None:
    lengths_of_keys("gfx942")
    covered("attention backward: lengths of keys", "f16", "gfx942")


def test_one_kernel_gives_the_gradients_by_both_results() -> None:
    op = written(OPTIONS["plain"], "both", "f16", 64)
    plan = ck.vjp(op).fusion(*drawn(op, SIZES, LENGTHS))
    assert [each.family for each in plan.kernels] == ["attention", "rowwise", "attention_backward"]


def test_a_gradient_that_repeats_is_stored_for_the_kernel() -> None:
    heads = "ck.f16[B, 2, S, 64]"
    params = f"q: {heads}, k: {heads}, v: {heads}"
    op = expression_op(params, "ck.f32[()]", "ck.sum(ck.attention(q, k, v).to(ck.f32))")
    x = np.ones((1, 2, 5, 64), "e")
    plan = ck.grad(op).fusion(x, x, x)
    assert [each.family for each in plan.kernels].count("attention_backward") == 1


PAGED = (
    "@ck.op\ndef f(q: {q}, k: ck.{d}[N, 2, 4, {n}], v: ck.{d}[N, 2, 4, {n}], lengths: ck.i32[B], "
    "table: ck.i32[B, P]) -> tuple[{q}, ck.f32[B, 4, S]]:\n    return ck.attention("
    "q, {sides}, mask=ck.causal('bottom_right'), seqlens_k=lengths, block_table=table, "
    "return_lse=True)\n"
)


def paged(dtype: str, size: int, sides: str = "k, v") -> Op:
    """Return an attention of four heads on two, with keys in pages of four rows."""
    q = f"ck.{dtype}[B, 4, S, {size}]"
    return written_op(PAGED.format(q=q, d=dtype, n=size, sides=sides), "B S N P")


def paged_arrays(op: Op, count: int, rows: int, lengths: Sequence[int]) -> list[Any]:
    """Return arguments of its gradient: pages in some order, one of them of two sequences."""
    most = -(-max(lengths) // 4)
    arrays = drawn(op, {"B": len(lengths), "S": rows, "N": count, "P": most}, lengths)
    rng = np.random.default_rng(5)
    table = rng.permutation(count)[: len(lengths) * most].reshape(len(lengths), most)
    table[1, 0] = table[0, 0]
    for b, length in enumerate(lengths):
        table[b, -(-length // 4) :] = (1 << 30) * (-1) ** b  # these may hold anything
    arrays[4] = table.astype(np.int32)
    return arrays


def by_pages(arrays: Sequence[Any], sides: str) -> list[Any]:
    """Return the gradients by q and the pages by torch in float64."""
    options = "causal bottom_right seqlens_k"
    q, k, v, lengths, table, *dys = (torch.tensor(np.asarray(x, "d")) for x in arrays)
    pages = [each.requires_grad_() for each in (q, k, v)]
    total = torch.zeros((), dtype=torch.float64)
    for b, n in enumerate(lengths.int().tolist()):
        own = table[b, : -(-n // 4)].long()
        k, v = (
            pages[1 + "kv".index(side)][own].transpose(0, 1).reshape(2, -1, q.shape[-1])
            for side in sides.split(", ")
        )
        results = by_torch(q[b], k, v, options, n)
        for y, dy in zip(results, dys, strict=True):
            total = total + torch.where(torch.isfinite(y), y * dy[b], 0.0).sum()
    grads = torch.autograd.grad(total, pages, allow_unused=True)
    return [
        np.zeros(x.shape) if g is None else g.numpy() for x, g in zip(pages, grads, strict=True)
    ]


@pytest.mark.parametrize("size", [8, 130])
@pytest.mark.parametrize("sides", ["k, v", "k, k"])
def test_pages_follow_torch(sides: str, size: int) -> None:
    op = paged("f32", size, sides)
    arrays = paged_arrays(op, 9, 3, [7, 5, 9])
    function = ck.vjp(op).ir(*arrays)
    has_kernel = any(each.op == "attention_dq" for each in function.body)
    assert has_kernel == (size == 8)
    for mine, theirs in zip(evaluate(function, arrays), by_pages(arrays, sides), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=2e-5, atol=2e-5)


def keys_in_pages(gpu: str) -> None:
    """Check the gradients by q and the pages on a GPU, against their bounds and torch."""
    op = paged("f16", 64)
    arrays = paged_arrays(op, 80, 40, [150, 33])
    results = check(ck.vjp(op), arrays, gpu)
    for mine, theirs in zip(results, by_pages(arrays, "k, v"), strict=True):
        np.testing.assert_allclose(mine.astype("d"), theirs, atol=0.02)


@pytest.mark.full
@pytest.mark.usefixtures("compiler")
def test_pages_are_within_their_bounds(covered: Covered) -> None:
    keys_in_pages("gfx942")
    covered("attention backward: keys in pages", "f16", "gfx942")


ELSEWHERE = {
    "log-sum-exps of packed sequences": packed_sequences,
    "lengths of keys": lengths_of_keys,
    "keys in pages": keys_in_pages,
}


@pytest.mark.full
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("gpu", ["gfx90a", "gfx950", "gfx1100", "gfx1201"])
@pytest.mark.parametrize("name", ELSEWHERE)
def test_other_gpus(name: str, gpu: str, covered: Covered) -> None:
    ELSEWHERE[name](gpu)
    covered(f"attention backward: {name}", "f16", gpu)
