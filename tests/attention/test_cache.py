# SPDX-License-Identifier: MIT
"""Keys and values in pages, splits of the keys and their combination, rows behind those of a cache.

One stencil for all problems of the first two, with the user's functions in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cklang.families import key_from_json
from cklang.families.attention.helper_keys import Rotary, append_key, combine_key
from cklang.families.attention.host import AppendProblem, AttentionProblem, AttentionTensor
from cklang.testing import assert_close
from cklang.types import DType, bf16, f16
from tests.support.arrays import Array
from tests.support.attention_harness import (
    build,
    key_of,
    reference_with_bound,
    run,
    stored,
    tensor,
    widened,
)

SHARED = key_of(score="function", mask="window", paged=True, split=True, lse=False)
COMBINE = combine_key("gfx942", f16, lse=True)
SCORE = """#include "cklang/attention_hole.h"
float ck_score(float s, CK_ATTENTION_PARAMS) { return s - 0.01f * (T - j) + 0.5f * b; }
"""


@dataclass(slots=True)
class Paged:
    """Rows of every sequence in pages in any order."""

    page: int
    table: Array
    starts: Array | None
    rows: list[Array]
    """[heads, length, width] of each sequence."""
    pool: Array
    """[pages, page, heads, width]."""

    @staticmethod
    def make(rng: Any, lengths: list[int], heads: int, width: int, page: int, flat: bool) -> Paged:
        counts = [-(-length // page) for length in lengths]
        order = rng.permutation(sum(counts) + 2).astype(np.int32)
        pool = stored(rng.uniform(-1, 1, (len(order), page, heads, width)), f16)
        ends = np.cumsum([0, *counts])
        own = [order[a:b] for a, b in pairwise(ends)]
        rows = [
            pool[pages].reshape(-1, heads, width)[:length].transpose(1, 0, 2)
            for pages, length in zip(own, lengths, strict=True)
        ]
        if flat:
            return Paged(page, order, ends[:-1].astype(np.int32), rows, pool)
        # No kernel may look at entries of pages that a sequence does not have.
        table = np.full((len(lengths), max(counts) + 1), 1 << 30, np.int32)
        for row, pages in zip(table, own, strict=True):
            row[: len(pages)] = pages
        return Paged(page, table, None, rows, pool)

    def fields(self) -> dict[str, Any]:
        return {
            "pages": self.table.ctypes.data,
            "pages_stride": self.table.shape[-1],
            "page_starts": 0 if self.starts is None else self.starts.ctypes.data,
            "page_size": self.page,
        }

    def tensor(self) -> AttentionTensor:
        page, row, head = (stride // 2 for stride in self.pool.strides[:3])
        return AttentionTensor(
            pointer=self.pool.ctypes.data, stride_batch=page, stride_head=head, stride_seq=row
        )


@pytest.mark.usefixtures("compiler")
@given(
    lengths=st.lists(st.integers(0, 300), min_size=1, max_size=3),
    seqlen_q=st.sampled_from((1, 3, 130)),
    kv_heads=st.integers(1, 2),
    page=st.sampled_from((1, 7, 16, 128)),
    splits=st.integers(1, 6),
    hdim_v=st.sampled_from((24, 64)),
    left=st.sampled_from((-1, 50)),
    flat=st.booleans(),
)
def test_splits_of_keys_in_pages(
    lengths: list[int],
    seqlen_q: int,
    kv_heads: int,
    page: int,
    splits: int,
    hdim_v: int,
    left: int,
    flat: bool,
) -> None:
    rng = np.random.default_rng(len(lengths))
    batch, heads, hdim_q = len(lengths), 2 * kv_heads, 40
    k = Paged.make(rng, lengths, kv_heads, hdim_q, page, flat)
    v = Paged.make(rng, lengths, kv_heads, hdim_v, page, flat)
    # One table serves both.
    v = Paged(page, k.table, k.starts, v.rows, v.pool[: len(k.pool)])
    counts = [-(-length // page) for length in lengths]
    for b, length in enumerate(lengths):
        first = 0 if k.starts is None else k.starts[b]
        own = (k.table[b] if k.starts is None else k.table[first:])[: counts[b]]
        v.rows[b] = v.pool[own].reshape(-1, kv_heads, hdim_v)[:length].transpose(1, 0, 2)
    q = stored(rng.uniform(-1, 1, (batch, heads, seqlen_q, hdim_q)), f16)
    o = np.full((batch, heads, seqlen_q, hdim_v), 77, np.float16)
    lse = np.full(o.shape[:3], 77, np.float32)
    part = np.full((splits, *o.shape), 77, np.float32)
    part_lse = np.full((splits, *lse.shape), 77, np.float32)
    each = np.array(lengths, np.int32)
    problem = AttentionProblem(
        batch=batch,
        heads=heads,
        kv_heads=kv_heads,
        seqlen_q=seqlen_q,
        seqlen_k=max(lengths),
        hdim_q=hdim_q,
        hdim_v=hdim_v,
        q=tensor(q),
        k=k.tensor(),
        v=v.tensor(),
        o=tensor(o),
        lse=tensor(lse),
        lengths_k=each.ctypes.data,
        partial_o=tensor(part[0]),
        partial_lse=tensor(part_lse[0]),
        stride_split_o=part[0].size,
        stride_split_lse=part_lse[0].size,
        splits=splits,
        scale=0.2,
        left=left,
        right=0,
        from_bottom_right=True,
        **k.fields(),
    )
    run(build(SHARED, SCORE), problem)
    run(build(COMBINE), problem)
    for b, length in enumerate(lengths):
        shift = length - seqlen_q
        want, want_lse, bound, bound_lse = reference_with_bound(
            widened(q[b : b + 1]),
            widened(k.rows[b][None]),
            widened(v.rows[b][None]),
            0.2,
            f16,
            score=lambda s, _, h, i, j, t=length, n=b: s - 0.01 * (t - j) + 0.5 * n,
            mask=lambda _, h, i, j, d=shift: (j <= i + d) & ((j >= i + d - left) | (left < 0)),
        )
        assert_close(widened(o[b]), want[0], bound[0])
        assert_close(lse[b].astype(np.float64), want_lse[0], bound_lse[0])


def turned(
    x: Array, cosine: Array, sine: Array, rotary: Rotary, width: int, dtype: DType
) -> tuple[Array, Array]:
    """Turn the first ``width`` elements of [..., row, head size] by [..., row, width / 2].

    Also how far a kernel may be off: products and their sum in f32, rounded to ``dtype``.
    """
    result, size = x.copy(), np.zeros_like(x)
    pairs = np.arange(width // 2)
    a, b = (
        (2 * pairs, 2 * pairs + 1) if rotary is Rotary.INTERLEAVED else (pairs, pairs + width // 2)
    )
    c, s = widened(cosine), widened(sine)
    result[..., a] = x[..., a] * c - x[..., b] * s
    result[..., b] = x[..., b] * c + x[..., a] * s
    size[..., a] = abs(x[..., a] * c) + abs(x[..., b] * s)
    size[..., b] = abs(x[..., b] * c) + abs(x[..., a] * s)
    half_ulp = 2.0**-11 if dtype == f16 else 2.0**-8
    return result, 2.0**-22 * size + half_ulp * abs(result) + 2.0**-25


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("rotary", [Rotary.INTERLEAVED, Rotary.HALF])
@pytest.mark.parametrize("page", [5, 16])
def test_rows_are_turned_into_pages(rotary: Rotary, page: int) -> None:
    rng = np.random.default_rng(page)
    batch, heads, rows, width, rotary_width = 3, 2, 7, 40, 24
    cache_lengths = np.array([0, 13, 30], np.int32)
    cache = Paged.make(rng, [int(n) + rows for n in cache_lengths], heads, width, page, flat=False)
    before = cache.pool.copy()
    new = stored(rng.uniform(-1, 1, (batch, heads, rows, width)), f16)
    angles = np.outer(np.arange(64), 0.5 ** np.arange(rotary_width // 2))
    cosine, sine = stored(np.cos(angles), f16), stored(np.sin(angles), f16)
    run(
        build(append_key("gfx942", f16, rotary, paged=True)),
        AppendProblem(
            batch=batch,
            heads=heads,
            rows=rows,
            width=width,
            rotary_width=rotary_width,
            source=tensor(new),
            target=cache.tensor(),
            starts=cache_lengths.ctypes.data,
            cosine=cosine.ctypes.data,
            sine=sine.ctypes.data,
            **cache.fields(),
        ),
    )
    expected, bound = widened(before), np.zeros(before.shape)
    for b, start in enumerate(cache_lengths):
        places = slice(start, start + rows)
        rotated, off = turned(
            widened(new[b]), cosine[places], sine[places], rotary, rotary_width, f16
        )
        for i in range(rows):
            number, inside = divmod(int(start) + i, page)
            expected[cache.table[b, number], inside] = rotated[:, i]
            bound[cache.table[b, number], inside] = off[:, i]
    # The bound of what is not written is 0.
    assert_close(widened(cache.pool), expected, bound)


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("advance", [True, False])
def test_queries_are_turned_to_a_place_of_their_own(advance: bool) -> None:
    rng = np.random.default_rng(0)
    shape, rotary_width = (2, 3, 4, 16), 16
    q = stored(rng.uniform(-1, 1, shape), bf16)
    result = np.zeros_like(q)
    cache_lengths = np.array([3, 9], np.int32)
    angles = np.outer(np.arange(32), 0.5 ** np.arange(rotary_width // 2))
    cosine, sine = stored(np.cos(angles), bf16), stored(np.sin(angles), bf16)
    run(
        build(append_key("gfx942", bf16, Rotary.HALF)),
        AppendProblem(
            batch=2,
            heads=3,
            rows=4,
            width=16,
            rotary_width=rotary_width,
            source=tensor(q),
            target=tensor(result),
            starts=cache_lengths.ctypes.data,
            cosine=cosine.ctypes.data,
            sine=sine.ctypes.data,
            advance=advance,
            behind=False,
        ),
    )
    for b, start in enumerate(cache_lengths):
        positions = start + np.arange(4) * advance
        want, bound = turned(
            widened(q[b]), cosine[positions], sine[positions], Rotary.HALF, rotary_width, bf16
        )
        assert_close(widened(result[b]), want, bound)


@pytest.mark.usefixtures("compiler")
def test_rows_without_a_place_are_not_written() -> None:
    rng = np.random.default_rng(2)
    new = stored(rng.uniform(-1, 1, (1, 1, 4, 8)), bf16)
    result = np.full((1, 1, 8, 8), 99, np.uint16)
    cache_lengths = np.array([4], np.int32)
    angles = np.outer(np.arange(5), 0.5 ** np.arange(4))
    cosine, sine = stored(np.cos(angles), bf16), stored(np.sin(angles), bf16)
    run(
        build(append_key("gfx942", bf16, Rotary.HALF)),
        AppendProblem(
            batch=1,
            heads=1,
            rows=4,
            width=8,
            rotary_width=8,
            source=tensor(new),
            target=tensor(result),
            starts=cache_lengths.ctypes.data,
            cosine=cosine.ctypes.data,
            sine=sine.ctypes.data,
            capacity=6,
            positions=5,
        ),
    )
    # The table ends at position 4, so what lies beyond is turned like it.
    last = [4, 4]
    want, bound = turned(widened(new[0, :, :2]), cosine[last], sine[last], Rotary.HALF, 8, bf16)
    assert_close(widened(result[0, :, 4:6]), want, bound)
    np.testing.assert_array_equal(result[0, :, [*range(4), 6, 7]], 99)


@pytest.mark.usefixtures("compiler")
def test_refusals() -> None:
    face = build(COMBINE).face
    problem = AttentionProblem(
        batch=1,
        heads=1,
        kv_heads=1,
        seqlen_q=1,
        seqlen_k=1,
        hdim_q=8,
        hdim_v=0,
        q=AttentionTensor(),
        k=AttentionTensor(),
        v=AttentionTensor(),
        o=AttentionTensor(),
        scale=1.0,
    )
    assert face.describe(problem) == ("batch, heads, queries and head sizes must be 1 or more")
    append = build(append_key("gfx942", bf16, Rotary.HALF)).face
    rows = AppendProblem(
        batch=1, heads=1, rows=1, width=8, source=AttentionTensor(), target=AttentionTensor()
    )
    answer = append.describe(rows)
    assert "need tables of cosine and sine" in str(answer)


def test_keys_are_read_back() -> None:
    for key in (COMBINE, append_key("gfx942", f16, Rotary.HALF, paged=True)):
        assert key_from_json(key.to_json()) == key
        assert key.stencil == key
