# SPDX-License-Identifier: MIT
"""Gradients of packed queries: with keys in pages, and with ``min_seqlen_q``, beside torch's."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.errors import CkError
from cklang.reference.evaluate import evaluate
from cklang.types import f16
from tests.autodiff.test_log_sum_gradients import by_sequences, packed_arrays
from tests.support.attention_ops import prefill_of_one_list, skipping
from tests.support.checks import check
from tests.support.coverage import Covered

pytestmark = pytest.mark.usefixtures("torch")

S, H, G, D, N, R, P, B, C = ck.dims("S H G D N R P B C")
SIDES = ("q", "k", "v")


@ck.op
def paged(
    q: ck.f16[S, H, D],
    k: ck.f16[N, G, R, D],
    v: ck.f16[N, G, R, D],
    starts: ck.i32[P],
    lengths: ck.i32[B],
    table: ck.i32[B, C],
    slopes: ck.f32[P, H],
) -> tuple[ck.f16[S, H, D], ck.f32[H, S]]:
    return ck.attention(
        q,
        k,
        v,
        cu_seqlens_q=starts,
        seqlens_k=lengths,
        block_table=table,
        mask=ck.causal("bottom_right"),
        score=lambda s, b, h, i, j: s + slopes[b, h] * (j - i).to(ck.f32),
        return_lse=True,
    )


def skipped(arrays: Sequence[Any], least: int) -> list[Any]:
    """Return the arguments of :func:`skipping`'s gradient from those of ``packed``'s."""
    *args, do, dlse = arrays
    return [*args, np.int32(least), do, dlse]


def without_short_ones(arrays: Sequence[Any], least: int) -> list[Any]:
    """Return the gradients by torch where no short sequence counts."""
    *args, do, dlse = (each.copy() for each in arrays)
    for i0, i1 in pairwise(arrays[3].tolist()):
        if i1 - i0 <= least:
            do[i0:i1], dlse[:, i0:i1] = 0, 0
    return by_sequences([*args, do, dlse])


@pytest.mark.parametrize("least", [0, 3, 9])
def test_short_sequences_that_are_skipped_have_no_gradient(least: int) -> None:
    arrays = packed_arrays([(3, 4), (5, 2), (1, 1)])
    gradient = ck.vjp(skipping, wrt=SIDES)
    own = skipped(arrays, least)
    results = evaluate(gradient.ir(*own), own)
    want = without_short_ones(arrays, least)
    for mine, theirs in zip(results, want, strict=True):
        np.testing.assert_allclose(mine.astype("d"), theirs, rtol=2e-3, atol=2e-3)


def skipped_sequences(gpu: str) -> None:
    """Check the gradients of short and long sequences on a GPU, against bounds and torch."""
    arrays = packed_arrays([(70, 40), (5, 130)])
    results = check(ck.vjp(skipping, wrt=SIDES), skipped(arrays, 5), gpu)
    for mine, theirs in zip(results, without_short_ones(arrays, 5), strict=True):
        np.testing.assert_allclose(mine.astype("d"), theirs, atol=0.02)


@pytest.mark.usefixtures("compiler")
def test_skipped_sequences_are_within_their_bounds(covered: Covered) -> None:
    skipped_sequences("gfx942")
    covered("attention backward: packed sequences, min_seqlen_q", "f16", "gfx942")


@pytest.mark.full
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("gpu", ["gfx90a", "gfx950", "gfx1100", "gfx1201"])
def test_skipped_sequences_on_other_gpus(gpu: str, covered: Covered) -> None:
    skipped_sequences(gpu)
    covered("attention backward: packed sequences, min_seqlen_q", "f16", gpu)


def in_pages(arrays: Sequence[Any], rows: int) -> tuple[list[Any], Any]:
    """Return the arguments of :func:`paged`'s gradient for those of ``packed``'s.

    Keys lie in pages of ``rows`` rows, in some order; other rows and elements of the table hold
    anything.

    Returns:
        They, and the page and the row of each key.
    """
    q, k, v, mine, theirs, slopes, do, dlse = arrays
    lengths = np.diff(theirs)
    used = -(-lengths // rows)
    rng = np.random.default_rng(3)
    order = rng.permutation(int(used.sum()) + 2)
    table = np.full((len(lengths), int(used.max())), 1 << 30, np.int32)
    places = []
    for b, (length, count) in enumerate(zip(lengths, used, strict=True)):
        table[b, :count] = order[used[:b].sum() : used[: b + 1].sum()]
        keys = np.arange(length)
        places.append((table[b][keys // rows], keys % rows))
    at = tuple(np.concatenate(each) for each in zip(*places, strict=True))
    pages = []
    for side in (k, v):
        stored = np.full((len(order), side.shape[1], rows, side.shape[2]), np.nan, side.dtype)
        stored[at[0], :, at[1]] = side
        pages.append(stored)
    return [q, *pages, mine, lengths.astype(np.int32), table, slopes, do, dlse], at


def compare_pages(results: Sequence[Any], arrays: Sequence[Any], at: Any, atol: float) -> None:
    """Compare the gradients by q and pages with torch's by q and keys."""
    dq, *pages = results
    mine = [dq, *(page[at[0], :, at[1]] for page in pages)]
    for one, theirs in zip(mine, by_sequences(arrays), strict=True):
        np.testing.assert_allclose(one.astype("d"), theirs, rtol=2e-3, atol=atol)
    for page in pages:
        rest = page.copy()
        rest[at[0], :, at[1]] = 0
        assert not rest.any(), "what no sequence has, no gradient reaches"


@pytest.mark.parametrize("rows", [2, 4])
def test_packed_queries_with_keys_in_pages_follow_torch(rows: int) -> None:
    arrays = packed_arrays([(3, 5), (5, 2), (1, 1)])
    own, at = in_pages(arrays, rows)
    function = ck.vjp(paged, wrt=SIDES).ir(*own)
    assert [each.op for each in function.body].count("attention_dq") == 1
    compare_pages(evaluate(function, own), arrays, at, 2e-3)


@pytest.mark.full
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("gpu", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"])
def test_packed_queries_with_keys_in_pages_are_within_bounds(gpu: str, covered: Covered) -> None:
    arrays = packed_arrays([(40, 70), (5, 33)])
    own, at = in_pages(arrays, 16)
    compare_pages(check(ck.vjp(paged, wrt=SIDES), own, gpu), arrays, at, 0.02)
    covered("attention backward: packed queries, keys in pages", "f16", gpu)


def test_pages_of_all_sequences_in_one_list_say_what_to_write() -> None:
    with pytest.raises(CkError, match=r"(?s)CK-G025.*a block_table with a row for each sequence"):
        ck.vjp(prefill_of_one_list).program.specialise({"F": f16})
