# SPDX-License-Identifier: MIT
"""Ops with an attention, called: within their reference's bound on the emulator, for any shape.

The ops have few signatures, which ``examples/07_attention.py`` has too: each stencil is compiled
once and serves all shapes, layouts and functions here.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cklang as ck
from cklang.arch import arch
from cklang.errors import CkError
from cklang.families.attention.key import AttentionPipeline, MaskKind, ScoreKind
from cklang.families.attention.problem import AttentionCase
from cklang.families.attention.rules import RULES
from tests.support.algorithms import ATTENTION, NARROW
from tests.support.attention_ops import (
    arrays,
    cached,
    cached_args,
    dropped,
    measured,
    packed,
    packed_args,
    plain,
    prefill,
    prefill_args,
    prefill_of_one_list,
    skipping,
    varied,
    windowed,
)
from tests.support.checks import check, launches
from tests.support.coverage import Covered
from tests.support.typed import only

B, H, G, S, T, D, E, P, N, C = ck.dims("B H G S T D E P N C")
ARCH = "gfx942"


@ck.op
def skipping_ones(
    q: ck.f16[S, H, D], k: ck.f16[T, G, D], v: ck.f16[T, G, E], mine: ck.i32[P], theirs: ck.i32[P]
) -> tuple[ck.f16[S, H, E], ck.f32[H, S]]:
    return ck.attention(
        q,
        k,
        v,
        cu_seqlens_q=mine,
        cu_seqlens_k=theirs,
        min_seqlen_q=1,
        mask=lambda i, j, k_len: 2 * j < k_len + i,
        score=lambda s: s * s,
        return_lse=True,
    )


@st.composite
def sizes(draw: st.DrawFn) -> dict[str, int]:
    lengths = st.one_of(st.integers(1, 5), st.integers(30, 140), st.just(128))
    heads = draw(st.integers(1, 2))
    return {
        "B": draw(st.integers(1, 2)),
        "G": heads,
        "H": heads * draw(st.integers(1, 3)),
        "S": draw(lengths),
        "T": draw(st.one_of(st.just(0), lengths)),
        # All of one tiling; which tiling serves which head size is tested without building it.
        "D": 8 * draw(st.integers(5, 8)),
        "E": 8 * draw(st.integers(1, 8)),
    }


@pytest.mark.usefixtures("stencils")
@settings(max_examples=12)
@given(sizes(), st.booleans(), st.integers(0, 99))
def test_any_shape(n: dict[str, int], rows_first: bool, seed: int) -> None:
    check(plain, arrays(np.random.default_rng(seed), n, rows_first))


@pytest.mark.usefixtures("compiler")
@settings(max_examples=12)
@given(
    sizes(),
    st.integers(0, 70),
    st.integers(0, 70),
    st.sampled_from(["top_left", "bottom_right"]),
    st.sampled_from([0, 3]),
)
def test_windows(n: dict[str, int], left: int, right: int, corner: str, sink: int) -> None:
    args = arrays(np.random.default_rng(left), n)
    check(windowed, args, left=left, right=right, corner=corner, sink=sink)


@pytest.mark.usefixtures("stencils")
@settings(max_examples=12)
@given(sizes(), st.floats(-1, 1, width=32), st.integers(0, 99))
def test_scores_and_masks(n: dict[str, int], scale: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    args = arrays(rng, n, bool(seed % 2))
    args += [
        rng.uniform(0, 0.1, n["H"]).astype(np.float32),
        rng.uniform(-1, 1, (1, n["H"], n["S"], n["T"])).astype(np.float16),
        rng.integers(0, 3, (n["B"], n["S"]), np.int32),
        rng.integers(0, 3, (n["B"], n["T"]), np.int32)[:, ::-1],
        scale,
    ]
    check(varied, args)


@pytest.mark.usefixtures("compiler")
@settings(max_examples=12)
@given(
    st.lists(
        st.tuples(st.sampled_from([0, 1, 5, 64, 130]), st.integers(0, 140)), min_size=1, max_size=4
    ),
    st.integers(0, 99),
)
def test_packed_sequences(lengths: list[tuple[int, int]], seed: int) -> None:
    check(packed, packed_args(lengths, seed))


@pytest.mark.usefixtures("stencils")
@settings(max_examples=12)
@given(
    st.lists(st.integers(0, 144), min_size=1, max_size=3),
    st.sampled_from([1, 3]),
    st.integers(0, 99),
)
def test_keys_in_pages(lengths: list[int], queries: int, seed: int) -> None:
    check(cached.using(splits=3), cached_args(lengths, queries, seed))


def check_prefill(lengths: list[tuple[int, int]], page: int, splits: int, seed: int) -> None:
    """Check queries and keys of some lengths, with keys in pages of ``page`` rows."""
    args = prefill_args(lengths, page, seed)
    table = args[-1]
    first = check(prefill.using(splits=splits), args)
    begins = np.arange(len(table) + 1, dtype=np.int32) * table.shape[1]
    one_list = [*args[:-1], table.reshape(-1), begins]
    second = check(prefill_of_one_list.using(splits=splits), one_list)
    np.testing.assert_array_equal(first, second)


@pytest.mark.usefixtures("stencils")
@settings(max_examples=8)
@given(
    st.lists(st.tuples(st.integers(1, 140), st.integers(0, 140)), min_size=1, max_size=3),
    st.sampled_from([1, 16, 50]),
    st.integers(0, 99),
)
def test_packed_queries_and_keys_in_pages(
    lengths: list[tuple[int, int]], page: int, seed: int
) -> None:
    check_prefill(lengths, page, 1, seed)


@pytest.mark.usefixtures("stencils")
def test_coverage_of_prefill(covered: Covered) -> None:
    check_prefill([(70, 140), (1, 9), (5, 0)], 16, 1, 3)
    covered("attention: packed queries, keys in pages", "f16", ARCH)


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("least", [0, 1, 5, 70, 100])
def test_short_packed_sequences_are_skipped(least: int, covered: Covered) -> None:
    """The kernel leaves their rows as they are, in a result that is given too."""
    lengths = [(70, 90), (5, 0), (1, 40), (6, 130), (1, 1)]
    mine, theirs = (np.cumsum([0, *side]).astype(np.int32) for side in zip(*lengths, strict=True))
    rng = np.random.default_rng(least)
    shapes = ((mine[-1], 4, 64), (theirs[-1], 2, 64), (theirs[-1], 2, 40))
    tensors = [rng.uniform(-1, 1, shape).astype(np.float16) for shape in shapes]
    slopes = rng.uniform(-0.1, 0.1, (6, 4)).astype(np.float32)
    args = [*tensors, mine, theirs, slopes, np.int32(least)]
    o = np.full((mine[-1], 4, 40), 7, np.float16)
    lse = np.full((4, mine[-1]), 7, np.float32)
    kept = np.repeat([queries <= least for queries, _ in lengths], np.diff(mine))
    # Nothing is said of what stands in rows that are skipped.
    check(skipping, args, out=(o, lse), unchecked=float(kept.mean()))
    assert (o[kept] == 7).all()
    assert (lse[:, kept] == 7).all()
    assert not (lse[:, ~kept] == 7).any()
    if least == 1:
        check(skipping_ones, args[:5])
        with pytest.raises(CkError, match="attention-skip"):
            skipping.using(splits=2)(*args, device=f"emu:{ARCH}")
        covered("attention: packed sequences, short ones skipped", "f16", ARCH)


@pytest.mark.usefixtures("emulator")
def test_packed_sequences_have_a_length_each() -> None:
    q, k = np.zeros((5, 2, 64), np.float16), np.zeros((4, 2, 16, 64), np.float16)
    starts, lengths, table = (np.zeros(n, np.int32) for n in (4, 2, (2, 2)))
    with pytest.raises(CkError, match="lengths has 2 lengths, but the call has 3 packed sequences"):
        prefill(q, k, k, starts, lengths, table)


@pytest.mark.usefixtures("stencils")
def test_sequences_have_as_many_keys_as_they_say() -> None:
    n = {"B": 3, "G": 2, "H": 4, "S": 40, "T": 75, "D": 64, "E": 64}
    args = arrays(np.random.default_rng(7), n)
    check(measured, [*args, np.array([75, 0, 31], np.int32)])


def test_lists_lie_side_by_side() -> None:
    q = np.zeros((2, 4, 1, 64), np.float16)
    k = np.zeros((9, 2, 16, 64), np.float16)
    lengths, table = np.zeros(4, np.int32)[::2], np.zeros((2, 3), np.int32)
    with pytest.raises(CkError, match="attention-lists:"):
        cached.explain(q, k, k, lengths, table)
    with pytest.raises(CkError, match="attention-lists:"):
        cached.explain(q, k, k, lengths.copy(), np.zeros((2, 6), np.int32)[:, ::2])


@pytest.mark.usefixtures("compiler")
@settings(max_examples=12)
@given(sizes(), st.integers(1, 6), st.integers(0, 99))
def test_splits_of_the_keys(n: dict[str, int], splits: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    args = [
        *arrays(rng, n),
        rng.uniform(0, 0.1, n["H"]).astype(np.float32),
        rng.uniform(-1, 1, (1, n["H"], n["S"], n["T"])).astype(np.float16),
        rng.integers(0, 3, (n["B"], n["S"]), np.int32),
        rng.integers(0, 3, (n["B"], n["T"]), np.int32),
        0.25,
    ]
    op = varied.using(splits=splits)
    check(op, args)
    parts = min(splits, max(-(-n["T"] // 64), 1))
    assert len(launches(op)) == (2 if parts > 1 else 1)


def test_splits_are_chosen_where_a_gpu_would_be_idle() -> None:
    def said(batch: int, keys: int, op: Any = plain) -> str:
        q, k = (np.zeros((1, 8, rows, 64), np.float16) for rows in (1, 1))
        q, k = np.repeat(q, batch, 0), np.broadcast_to(k[:, :1], (batch, 8, keys, 64))
        return str(op.explain(q, k, k))

    assert "in 8 splits" in said(1, 4096)
    assert "it combines 8 splits of the keys" in said(1, 4096)
    assert "kernel 1 computes %1: attention" in said(1, 4096)
    assert "splits" not in said(1, 900)
    assert "splits" not in said(64, 4096)
    assert "in 3 splits" in said(64, 4096, plain.using(splits=3))
    assert "splits" not in said(1, 4096, plain.using(splits=1))
    with pytest.raises(CkError, match="CK-K011"):
        plain.using(splits=0)


@pytest.mark.usefixtures("stencils")
def test_the_error_of_the_basic_case() -> None:
    """65,536 outputs, inputs uniform in [-0.5, 0.5): half a step of f16 at 0.125 is 6.1e-5."""
    rng = np.random.default_rng(0)
    q, k, v = (rng.uniform(-0.5, 0.5, (2, 4, 128, 64)).astype(np.float16) for _ in range(3))
    o = plain(q, k, v, device=f"emu:{ARCH}")
    assert o.size == 65536
    wanted = ck.attention(q, k, v)
    assert np.abs(o - wanted).max() <= 7.3e-5


@pytest.mark.usefixtures("stencils")
def test_coverage(covered: Covered) -> None:
    """One call of each op, for the table of what works where."""
    n = {"B": 2, "G": 2, "H": 4, "S": 40, "T": 75, "D": 64, "E": 64}
    args = arrays(np.random.default_rng(1), n)
    check(plain, args)
    covered("attention, head sizes 64 and 64", "f16", ARCH)
    check(windowed, args)
    covered("attention: window", "f16", ARCH)
    check(packed, packed_args([(70, 90), (5, 0), (33, 130)], 1))
    covered("attention: packed sequences, lse", "f16", ARCH)


@pytest.mark.usefixtures("stencils")
def test_coverage_of_pages(covered: Covered) -> None:
    check(cached.using(splits=3), cached_args([100, 0, 144], 1, 1))
    covered("attention: split-KV, keys in pages", "f16", ARCH)


@pytest.mark.usefixtures("stencils")
def test_dropout_is_that_of_the_reference(covered: Covered) -> None:
    n = {"B": 2, "G": 1, "H": 2, "S": 70, "T": 90, "D": 64, "E": 64}
    args = arrays(np.random.default_rng(2), n)
    first = check(dropped, [*args, 7])
    # The same plan with another seed: only the address of the number is in the arguments.
    second = check(dropped, [*args, -8])
    assert dropped.last is not None
    assert dropped.last.memoised
    assert (first != second).any()
    covered("attention: dropout", "f16", ARCH)


@pytest.mark.usefixtures("stencils")
def test_results_go_where_they_are_told() -> None:
    n = {"B": 1, "G": 1, "H": 2, "S": 33, "T": 40, "D": 64, "E": 64}
    rng = np.random.default_rng(3)
    args = arrays(rng, n)
    args += [
        np.zeros(2, np.float32),
        np.zeros((1, 2, 33, 40), np.float16),
        np.zeros((1, 33), np.int32),
        np.zeros((1, 40), np.int32),
        0.125,
    ]
    out = np.empty((1, 33, 2, 64), np.float16).transpose(0, 2, 1, 3)
    lse = np.empty((1, 2, 33), np.float32)
    got = check(varied, args, out=(out, lse))
    assert got[0] is out
    assert got[1] is lse
    with pytest.raises(CkError, match="CK-A048"):
        varied(*args, out=out)
    with pytest.raises(CkError, match="CK-A043"):
        plain(*args[:3], out=args[0])


@pytest.mark.usefixtures("emulator")
def test_an_empty_result_launches_nothing() -> None:
    args = arrays(
        np.random.default_rng(4), {"B": 0, "G": 1, "H": 1, "S": 4, "T": 4, "D": 8, "E": 8}
    )
    assert plain(*args).shape == (0, 1, 4, 8)
    assert launches(plain) == ()


def test_what_is_said() -> None:
    n = {"B": 1, "G": 1, "H": 2, "S": 33, "T": 40, "D": 40, "E": 24}
    args = arrays(np.random.default_rng(5), n)
    text = windowed.explain(*args)
    assert "window (left 5, right 2) from the bottom right" in text
    assert "µs predicted, the least of" in text
    assert "  softmax " in text
    total = next(line for line in text.splitlines() if line.startswith("  total"))
    assert f"{total.split()[2]} µs predicted" in text
    assert "ck_tile::BlockFmhaPipeline" in plain.inspect(*args)
    case = only(AttentionCase, plain.problems(*args))
    assert case.signature.score is ScoreKind.NONE
    assert case.signature.mask is MaskKind.NONE
    causal = only(AttentionCase, windowed.problems(*args, left=0, right=0))
    assert causal.signature.mask is MaskKind.WINDOW
    assert plain.graph(*args).number_of_nodes() == len(plain.ir(*args).body) + 3 + 1
    with pytest.raises(CkError, match=r"CK-G005 op\.grouped is for matrix products"):
        plain.grouped([args])


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"tile": (128, 64, 16, 32, 32, 32)}, "attention-head-size"),
        ({"pad_d": False}, "attention-head-pad"),
        ({"pad_q": False}, "attention-length-pad"),
        ({"pad_k": False}, "attention-length-pad"),
        ({"vector": 16}, "attention-vector"),
        ({"warp_tile": (32, 32, 7)}, "attention-instruction"),
    ],
)
def test_rules_of_an_algorithm(change: dict[str, Any], rule: str) -> None:
    n = {"B": 1, "G": 1, "H": 1, "S": 33, "T": 40, "D": 40, "E": 40}
    args = arrays(np.random.default_rng(6), n)
    with pytest.raises(CkError, match=f"{rule}:"):
        plain.using(replace(ATTENTION, **change)).explain(*args)


def _strided(shape: tuple[int, ...], strides: tuple[int, ...], offset: int = 0) -> Any:
    buffer = np.zeros(4096, np.float16)[offset:]
    return np.lib.stride_tricks.as_strided(buffer, shape, [2 * stride for stride in strides])


@pytest.mark.parametrize(
    ("q", "rule"),
    [
        (_strided((1, 1, 4, 8), (0, 0, 16, 2)), "attention-contiguous"),
        (np.zeros((1, 1, 4, 8), np.float16)[:, :, ::-1], "attention-span"),
        (np.zeros((1, 1, 4, 0), np.float16), "attention-head-least"),
    ],
)
def test_rules_of_arrays(q: Any, rule: str) -> None:
    k, v = np.zeros((1, 1, 5, q.shape[3]), np.float16), np.zeros((1, 1, 5, 8), np.float16)
    with pytest.raises(CkError, match=f"{rule}:"):
        plain.explain(q, k, v)


@pytest.mark.parametrize(
    ("q", "rule"),
    [
        (_strided((1, 1, 4, 8), (0, 0, 9, 1)), "attention-alignment"),
        (_strided((1, 1, 4, 8), (0, 0, 8, 1), offset=1), "attention-alignment"),
        (np.zeros((1, 1, 4, 12), np.float16), "attention-head-vector"),
    ],
)
def test_what_wide_accesses_cannot_read_narrower_ones_can(q: Any, rule: str) -> None:
    k, v = np.zeros((1, 1, 5, q.shape[3]), np.float16), np.zeros((1, 1, 5, 8), np.float16)
    with pytest.raises(CkError, match=f"{rule}:"):
        plain.using(ATTENTION).explain(q, k, v)
    assert "narrower accesses" in plain.explain(q, k, v)


@pytest.mark.usefixtures("emulator")
def test_heads_are_checked_at_the_call() -> None:
    q, k = np.zeros((1, 4, 3, 8), np.float16), np.zeros((1, 3, 3, 8), np.float16)
    with pytest.raises(CkError, match="CK-I045 4 query heads cannot share 3 key heads"):
        plain(q, k, k)


@pytest.mark.usefixtures("emulator")
def test_head_sizes_beyond_the_tilings_are_refused() -> None:
    q = np.zeros((1, 1, 3, 264), np.float16)
    with pytest.raises(CkError, match="CK-K101") as caught:
        dropped(q, q, q, 1)
    message = str(caught.value)
    assert "attention-head-most: the head size of q and k is 264, must be at most 256" in message
    assert "ck.softmax(q @ k.mT * scale) @ v" in message


@pytest.mark.usefixtures("emulator")
def test_algorithms_belong_to_families() -> None:
    q = np.zeros((1, 1, 3, 8), np.float16)
    with pytest.raises(CkError, match="CK-K022"):
        plain.using(NARROW)(q, q, q)


@pytest.mark.parametrize(
    ("keys", "more", "is_refused"),
    [
        (128, {}, False),
        (0, {}, True),
        (128, {"packed": True}, True),
        (128, {"packed": True, "right": 0}, False),
    ],
    ids=str,
)
def test_where_there_may_be_no_keys_a_pipeline_looks_for_them(
    keys: int, more: dict[str, Any], *, is_refused: bool
) -> None:
    """Without a mask ``qs`` takes a tile of keys of every sequence, and divides by a sum of 0."""
    algorithm = replace(ATTENTION, pipeline=AttentionPipeline.QS)
    case = ck.dispatch.attention_problem(1, 2, 128, keys, 64, **more)
    rejections = RULES.rejections(algorithm, case.signature, arch("gfx942"), case)
    assert [each.rule for each in rejections] == ["attention-no-keys"] * is_refused
