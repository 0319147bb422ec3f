# SPDX-License-Identifier: MIT
"""Query heads of a group as rows of one tile: when they can be, when they are, and what it gives.

The op is that of ``test_calls.py``, whose stencil serves both forms.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cklang as ck
from cklang.families.attention.family import ATTENTION
from cklang.families.attention.folded_heads import fold_heads
from cklang.families.attention.host import AttentionTensor
from cklang.families.attention.key import MaskKind
from cklang.families.attention.problem import AttentionCase
from cklang.runtime.op import Op
from cklang.selection.select import select
from tests.support.attention_ops import arrays, plain
from tests.support.checks import check, launches

B, H, G, S, T, D, E = ck.dims("B H G S T D E")
F: Any = ck.dtype_var("F", ck.f16, ck.bf16)


def problem(queries: int = 1, kv_heads: int = 2, heads: int = 8, **more: Any) -> AttentionCase:
    case: AttentionCase = ck.dispatch.attention_problem(
        3, heads, queries, 96, 64, kv_heads=kv_heads, **more
    )
    return case


def elements(tensor: AttentionTensor, batch: int, heads: int, rows: int) -> set[int]:
    """Return where the rows of a tensor begin."""
    b, h, i = np.ogrid[:batch, :heads, :rows]
    at = b * tensor.stride_batch + h * tensor.stride_head + i * tensor.stride_seq
    return set(at.ravel().tolist())


@given(
    group=st.integers(2, 5),
    kv_heads=st.integers(1, 3),
    queries=st.integers(1, 9),
    layout=st.sampled_from(["bhsd", "bshd"]),
    lse=st.booleans(),
)
def test_rows_are_the_heads_and_queries(
    group: int, kv_heads: int, queries: int, layout: str, lse: bool
) -> None:
    case = problem(queries, kv_heads, group * kv_heads, layout=layout, lse=lse)
    p, folded = case.problem, fold_heads(case)
    if queries > 1 and layout == "bshd":
        # Rows of o follow each other with one key head alone; those of lse are in another order.
        assert (folded is None) == (kv_heads > 1 or lse)
    else:
        assert folded is not None
    if folded is None:
        return
    f = folded.problem
    assert (f.heads, f.seqlen_q, folded.folded) == (kv_heads, group * queries, group)
    for name in ("q", "o", *(["lse"] if lse else [])):
        was, now = getattr(p, name), getattr(f, name)
        for head in range(kv_heads):
            mine = replace(was, pointer=0)
            first = head * group * mine.stride_head
            want = {at + first for at in elements(mine, 3, group, queries)}
            got = {at + head * now.stride_head for at in elements(now, 3, 1, group * queries)}
            assert got == want, name
    assert replace(f, q=p.q, o=p.o, lse=p.lse, heads=p.heads, seqlen_q=p.seqlen_q) == p


CAUSAL: dict[str, Any] = {"right": 0, "corner": "bottom_right"}
REFUSED: dict[str, dict[str, Any]] = {
    "one head a group": {"heads": 2},
    "many queries": {"queries": 256},
    "a window": {"queries": 3, **CAUSAL},
    "one query from the top left": {"right": 0},
    "one query that sees some keys": {**CAUSAL, "left": 8},
    "dropout": {"dropout": 0.5},
    "packed": {"packed": True},
    "a function that is not known": {"score": "function"},
    "a mask that is not known": {"masked": True},
    "a bias of CK Tile's": {"score": "bias"},
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_asks_for_a_row_is_not_folded(why: str) -> None:
    assert fold_heads(problem(**REFUSED[why])) is None


def test_one_query_at_the_last_key_sees_all() -> None:
    folded = fold_heads(problem(**CAUSAL))
    assert folded is not None
    assert folded.signature.mask is MaskKind.NONE
    assert (folded.problem.left, folded.problem.right) == (-1, -1)


@ck.op
def by_key(q: F[B, H, S, D], k: F[B, G, T, D], v: F[B, G, T, E]) -> F[B, H, S, E]:
    return ck.attention(q, k, v, score=lambda s, j: s - 0.5 * j.to(ck.f32))


@ck.op
def by_head(q: F[B, H, S, D], k: F[B, G, T, D], v: F[B, G, T, E]) -> F[B, H, S, E]:
    return ck.attention(q, k, v, score=lambda s, h: s - 0.5 * h.to(ck.f32))


@ck.op
def by_distance(q: F[B, H, S, D], k: F[B, G, T, D], v: F[B, G, T, E]) -> F[B, H, S, E]:
    return ck.attention(q, k, v, mask=lambda i, j: 2 * j != i)


@pytest.mark.parametrize(("op", "folds"), [(by_key, True), (by_head, False), (by_distance, False)])
def test_functions_of_the_key_alone_are_folded(op: Op, folds: bool) -> None:
    q, k = np.ones((2, 8, 1, 64), np.float16), np.ones((2, 2, 32, 64), np.float16)
    (case,) = op.problems(q, k, k)
    folded = fold_heads(case)
    assert (folded is not None) == folds
    assert folded is None or folded.signature == case.signature


@pytest.mark.parametrize("gpu", ["gfx90a", "gfx942", "gfx950"])
def test_decoding_with_latent_heads_is_predicted_many_times_quicker(gpu: str) -> None:
    case = ck.dispatch.attention_problem(8, 128, 1, 8192, 576, kv_heads=1, head_v=512)
    chosen = select(case, arch=gpu, strategy="heuristic")

    def least(problem: AttentionCase) -> float:
        pool = select(problem.in_splits(1), arch=gpu, splits=1).pool
        return float(pool.times_of(problem)[pool.legal(problem)].min())

    assert chosen.problem.folded == 128
    assert least(chosen.problem) < 0.1 * min(least(case.in_splits(n)) for n in (1, 2, 4, 8, 16))
    assert "the 128 heads of each key head as rows of one" in chosen.reason


def test_full_tiles_are_left_as_they_are() -> None:
    chosen = select(ck.dispatch.attention_problem(4, 8, 128, 512, 64, kv_heads=2), arch="gfx942")
    assert chosen.problem.folded == 1


def test_explain_says_it() -> None:
    q, k = np.ones((8, 64, 1, 64), np.float16), np.ones((8, 1, 4096, 64), np.float16)
    text = plain.explain(q, k, k, device="emu:gfx942")
    assert "heads      the 64 heads of each key head as rows of one" in text
    assert "64 heads of a group as rows" in text


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fold heads wherever they can be, whatever is predicted."""

    def folded(case: AttentionCase, splits: int | None) -> tuple[AttentionCase, ...]:
        way = fold_heads(case) or case
        return (way if (splits or 1) == 1 else way.split(splits or 1),)

    monkeypatch.setattr(ATTENTION, "variants", replace(ATTENTION.variants, of=folded))


def check_folded(splits: int) -> None:
    @given(
        group=st.integers(2, 6),
        kv_heads=st.integers(1, 2),
        queries=st.integers(1, 40),
        keys=st.integers(1, 140),
        rows_first=st.booleans(),
    )
    @settings(max_examples=12)
    def run(group: int, kv_heads: int, queries: int, keys: int, rows_first: bool) -> None:
        sizes = {"B": 2, "G": kv_heads, "H": group * kv_heads, "S": queries, "T": keys}
        numbers = np.random.default_rng(keys)
        args = arrays(numbers, sizes | {"D": 64, "E": 64}, rows_first)
        op = plain.using(splits=splits)
        check(op, args, "gfx942")
        assert len(launches(op)) == (1 if splits == 1 or keys <= 64 else 2)

    run()


@pytest.mark.usefixtures("stencils", "always")
def test_folded_heads_give_the_attention() -> None:
    check_folded(1)


@pytest.mark.usefixtures("compiler", "always")
def test_folded_heads_in_splits_give_the_attention() -> None:
    check_folded(3)
