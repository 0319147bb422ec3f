# SPDX-License-Identifier: MIT
"""Attention in registries and in selection: keys, JSON, wildcards, strategies, splits."""

import json
import re
from dataclasses import fields, replace
from enum import Enum
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cklang as ck
from cklang.arch import arch
from cklang.errors import CkError
from cklang.families import key_from_json
from cklang.families.attention.helper_keys import combine_key, reduce_key
from cklang.families.attention.key import (
    AttentionAlgorithm,
    AttentionKey,
    AttentionPipeline,
    ScoreKind,
)
from cklang.families.attention.problem import AttentionCase
from cklang.families.attention_backward.key import AttentionGradKey
from cklang.fusion.functions import NO_FUNCTIONS
from cklang.selection.registry import Registry
from cklang.selection.rules import violations
from cklang.selection.space import attention_pattern, enumerate_legal
from cklang.types import DType, f16, f32
from tests.support.algorithms import BASE
from tests.support.attention_keys import (
    HELPERS,
    PLAIN,
    PROBLEM,
    arrays,
    attention_keys,
    biased,
    capped,
    filled,
    functions,
    key,
    plain,
)


def test_kernels_of_every_kind_stand_side_by_side() -> None:
    registry = filled()
    kinds = {each.key.family for each in registry}
    assert kinds == {"attention", "attention_backward", *HELPERS}
    assert len(registry.filter(lambda k: k.arch == "gfx950")) < len(registry)
    combine = combine_key("gfx942", f16, lse=True)
    assert combine in registry
    assert registry.remove(combine)
    assert registry.find(combine) is None
    assert registry.merge(filled()) == 1


def test_json_loses_nothing() -> None:
    registry = filled()
    text = json.dumps(registry.to_json())
    assert Registry.from_json(json.loads(text)).same_as(registry)
    stored = json.loads(text)["functions"]
    assert len(stored) == len(set(stored)) == 2, "the two functions, each once"


def test_functions_must_be_those_of_the_key() -> None:
    registry = Registry("mine")
    with pytest.raises(CkError, match="CK-K007"):
        registry.add(key(), functions())
    with pytest.raises(CkError, match="CK-K007"):
        registry.add(combine_key("gfx942", f16, lse=True), functions())


def test_every_field_is_part_of_the_identity() -> None:
    """Mask, score, dropout, lse, padding, tile (and so the head size) and GPU: all of them."""
    base = key()
    others: list[AttentionKey] = [replace(base, arch="gfx950")]
    for part in ("signature", "algorithm"):
        record: Any = getattr(base, part)
        for each in fields(record):
            changed = replace(record, **{each.name: other_value(getattr(record, each.name))})
            others.append(replace(base, **{part: changed}))
    assert len({k.digest for k in [base, *others]}) == 1 + len(others)
    assert len({k.label for k in [base, *others]}) == 1 + len(others)
    assert all(key_from_json(json.loads(json.dumps(k.to_json()))) == k for k in others)


def other_value(value: Any) -> Any:
    match value:
        case bool():
            return not value
        case Enum():
            return next(each for each in type(value) if each is not value)
        case int():
            return value + 1
        case str():
            return value + "a"
        case DType():
            return f32
        case None:
            return (128, 64)
    return (*value[:-1], value[-1] + 1)


def test_wildcards_expand_to_all_legal_kernels() -> None:
    registry = Registry("mine")
    everything: dict[str, Any] = dict.fromkeys((f.name for f in fields(AttentionAlgorithm)), "*")
    new = registry.declare(PLAIN, NO_FUNCTIONS, "gfx942", attention_pattern(**everything))
    listed = list(enumerate_legal(PLAIN, "gfx942"))
    assert new == len(listed) == len(set(listed)) > 100
    assert [key.algorithm for key in attention_keys(registry)] == listed
    for algorithm in listed[::40]:
        assert next(violations(algorithm, PLAIN, arch("gfx942")), None) is None
    assert {a.pipeline.value for a in listed} == {"qr", "qr_async", "qs", "long_head"}
    assert not all(a.pad_k for a in listed)
    assert not all(a.pad_q for a in listed), "of those that are not asynchronous"
    some = attention_pattern(pipeline="qr", tile="*", pad_k=[True, False])
    for algorithm in enumerate_legal(PLAIN, "gfx942", some):
        assert some.accepts(algorithm)


def test_tiles_that_no_table_has_are_named_or_not_there() -> None:
    tile = (64, 64, 32, 64, 32, 64)
    named = attention_pattern(tile=[tile, (64, 64, 64, 64, 32, 64)], warps=(2, 1, 1))
    assert {a.tile for a in enumerate_legal(PLAIN, "gfx942", named)} == {tile}
    assert tile not in {a.tile for a in enumerate_legal(PLAIN, "gfx942")}


def test_patterns_belong_to_families() -> None:
    for wrong in (ck.dispatch.pattern(tile="*"), attention_pattern(gradient=True)):
        with pytest.raises(CkError, match=r"CK-K023 .* but these kernels take AttentionAlgorithm"):
            Registry("mine").declare(PLAIN, NO_FUNCTIONS, "gfx942", wrong)
    with pytest.raises(CkError, match="CK-K001"):
        attention_pattern(vector_a=8)
    some = attention_pattern(tile=(128, 64, 32, 64, 32, 1024))
    with pytest.raises(CkError, match="CK-K008"):
        Registry("mine").declare(PLAIN, NO_FUNCTIONS, "gfx942", some)


# --- selection

B, H, G, S, T, D = ck.dims("B H G S T D")

lengths = st.integers(1, 300)


@given(
    heads=st.sampled_from([(4, 4), (4, 2), (3, 1)]),
    queries=lengths,
    keys=lengths,
    head=st.integers(1, 32).map(lambda n: 8 * n),
    window=st.sampled_from([(None, None), (None, 0), (7, 3)]),
    rows_first=st.booleans(),
)
def test_problems_without_arrays_are_those_of_calls(
    heads: tuple[int, int],
    queries: int,
    keys: int,
    head: int,
    window: tuple[int | None, int | None],
    rows_first: bool,
) -> None:
    def zeros(count: int, rows: int) -> Any:
        shape = (2, rows, count, head) if rows_first else (2, count, rows, head)
        values = np.zeros(shape, np.float16)
        return values.transpose(0, 2, 1, 3) if rows_first else values

    mask = None if window == (None, None) else ck.sliding_window(*window, corner="bottom_right")

    @ck.op
    def some(
        q: ck.f16[B, H, S, D], k: ck.f16[B, G, T, D], v: ck.f16[B, G, T, D]
    ) -> tuple[ck.f16[B, H, S, D], ck.f32[B, H, S]]:
        return ck.attention(q, k, v, mask=mask, return_lse=True)

    out = zeros(heads[0], queries), np.zeros((2, heads[0], queries), np.float32)
    args = zeros(heads[0], queries), zeros(heads[1], keys), zeros(heads[1], keys)
    (case,) = some.using(splits=1).problems(*args, out=out)
    alone = ck.dispatch.attention_problem(
        2,
        heads[0],
        queries,
        keys,
        head,
        kv_heads=heads[1],
        left=window[0],
        right=window[1],
        corner="bottom_right",
        layout="bshd" if rows_first else "bhsd",
        lse=True,
    )
    assert isinstance(case, AttentionCase)
    assert (alone.signature, alone.problem) == (case.signature, case.problem)
    assert (
        ck.dispatch.select(alone, arch="gfx942").key
        == some.using(splits=1)._choices(args, {}, out, "emu:gfx942")[0].selection.key
    )


def test_problems_are_refused_where_they_are_made() -> None:
    numbers: dict[str, Any] = {"batch": 1, "heads": 4, "queries": 8, "keys": 16, "head": 64}
    for change in (
        {"heads": 0},
        {"keys": -1},
        {"layout": "bdsh"},
        {"corner": "left"},
        {"page_size": 7},
        {"score": "soft"},
        {"kv_heads": 3},
        {"sink": -1},
    ):
        with pytest.raises(CkError, match=r"CK-(K001|K011|K030|I045)"):
            ck.dispatch.attention_problem(**{**numbers, **change})


def test_packed_sequences_and_pages_have_kernels() -> None:
    packed = ck.dispatch.attention_problem(3, 4, 100, 120, 64, packed=True, dropout=0.5, lse=True)
    assert ck.dispatch.select(packed, arch="gfx942").key.signature.packed
    paged = ck.dispatch.attention_problem(3, 4, 1, 4096, 64, page_size=16)
    chosen = ck.dispatch.select(paged, arch="gfx942", splits=1)
    assert chosen.key.algorithm.pipeline.value == "qr"
    rejected = {rejection.rule for rejection in chosen.rejections}
    assert rejected <= {"attention-head-size"}


def test_a_registry_comes_first_and_is_added_to_by_nobody() -> None:
    mine = Registry("mine")
    mine.declare(
        PLAIN, NO_FUNCTIONS, "gfx942", attention_pattern(pipeline="qs", block_per_cu=[1, 2])
    )
    before = mine.version
    chosen = ck.dispatch.select(PROBLEM, registry=mine, arch="gfx942")
    assert chosen.key.algorithm.pipeline.value == "qs"
    assert chosen.origin == "registry 'mine'"
    assert mine.version == before
    assert ck.dispatch.select(PROBLEM, registry=mine, arch="gfx950").origin.startswith("preset")
    mine.remove(chosen.key)
    assert ck.dispatch.select(PROBLEM, registry=mine, arch="gfx942").key != chosen.key


def test_strategies() -> None:
    first = ck.dispatch.select(PROBLEM, arch="gfx942", strategy="first_fit")
    assert first.key.algorithm.tile == (128, 64, 32, 64, 32, 64)
    assert "the first to which no rule objects" in first.reason
    best = ck.dispatch.select(PROBLEM, arch="gfx942")
    times = best.pool.times_of(best.problem)
    legal = best.pool.legal(best.problem)
    assert times[best.position] == times[legal].min()
    assert f"{times[best.position]:.2f} µs predicted" in best.reason
    last = best.pool.keys[int(np.flatnonzero(legal)[-1])]
    named = ck.dispatch.select(PROBLEM, arch="gfx942", strategy=lambda problem: [last])
    assert named.key == last
    tuned = ck.dispatch.select(PROBLEM, arch="gfx942", strategy="tuned")
    assert tuned.key == best.key
    assert "nothing of it is in the tuning database" in tuned.reason
    high = Registry("high")
    high.add(last, NO_FUNCTIONS, priority=2)
    high.add(first.key, NO_FUNCTIONS)
    assert (
        ck.dispatch.select(PROBLEM, registry=high, arch="gfx942", strategy="first_fit").key == last
    )


def test_rejected_candidates_say_why() -> None:
    wide = ck.dispatch.attention_problem(1, 1, 8, 8, 192)
    chosen = ck.dispatch.select(wide, arch="gfx942", strategy="first_fit")
    assert {r.rule for r in chosen.rejections} == {"attention-head-size"}
    assert "the head size of q and k is 192, must be at most 128" in str(chosen.rejections[-3])
    with pytest.raises(CkError, match="CK-K102") as caught:
        ck.dispatch.select(ck.dispatch.attention_problem(1, 1, 8, 8, 64, dtype=f32), arch="gfx1100")
    assert "attention-dtype" in str(caught.value)
    odd = ck.dispatch.select(
        ck.dispatch.attention_problem(1, 1, 8, 8, 60), arch="gfx942", strategy="first_fit"
    )
    assert {r.rule for r in odd.rejections} == {"attention-head-size"}
    assert odd.origin == "narrower accesses, built on demand"


def test_the_model_chooses_the_number_of_splits() -> None:
    decode = ck.dispatch.attention_problem(1, 8, 1, 8192, 128)
    chosen = ck.dispatch.select(decode, arch="gfx942")
    count = chosen.problem.problem.splits
    assert count > 4
    assert chosen.key.signature.split
    assert f"in {count} splits" in chosen.reason

    def least(splits: int) -> float:
        form = decode.split(splits) if splits > 1 else decode
        selection = (
            ck.dispatch.select(form, arch="gfx942")
            if splits > 1
            else ck.dispatch.select(form, splits=1)
        )
        return float(selection.pool.times_of(form)[selection.position])

    with ck.using(arch="gfx942"):
        for other in (1, 2, 4, 8, 16):
            assert least(count) <= least(other)
    assert ck.dispatch.select(PROBLEM, arch="gfx942").problem.problem.splits == 1
    assert ck.dispatch.select(decode, arch="gfx942", splits=3).problem.problem.splits == 3
    few = ck.dispatch.attention_problem(1, 1, 1, 200, 128)
    assert ck.dispatch.select(few, arch="gfx942", splits=100).problem.problem.splits == 2, (
        "128 keys a tile"
    )
    # Four splits would save less than a tenth.
    busy = ck.dispatch.attention_problem(64, 8, 1, 4096, 64)
    assert ck.dispatch.select(busy, arch="gfx942").problem.problem.splits == 1
    forms = [ck.dispatch.select(busy, arch="gfx942", splits=count) for count in (1, 4)]
    one, four = (float(f.pool.times_of(f.problem)[f.position]) for f in forms)
    assert 0.9 * one < four < one
    # Where the model knows no rate: so many that the GPU is busy, each with 512 keys at least.
    unknown = replace(arch("gfx90a"), matrix_rates=())
    assert ck.dispatch.select(decode, arch=unknown).problem.problem.splits == 110 // 8
    # A registry without kernels that split has kernels all the same.
    mine = Registry("mine")
    mine.declare(replace(PLAIN), NO_FUNCTIONS, "gfx942")
    assert ck.dispatch.select(decode, arch="gfx942", registry=mine).problem.problem.splits == 1


def test_gradients_are_chosen_too() -> None:
    problem = ck.dispatch.attention_grad_problem(
        ck.dispatch.attention_problem(1, 2, 64, 64, 96), deterministic=True
    )
    chosen = ck.dispatch.select(problem, arch="gfx942")
    assert chosen.key.family == "attention_backward"
    assert chosen.key.algorithm.tile[7:] == (96, 96)
    assert chosen.key.signature.deterministic
    mine = Registry("mine")
    some = attention_pattern(gradient=True, pipeline="kr_ktr_vr")
    mine.declare(problem.signature, NO_FUNCTIONS, "gfx942", some)
    mine_too = ck.dispatch.select(problem, registry=mine, arch="gfx942")
    assert mine_too.key.algorithm.pipeline.value == "kr_ktr_vr"
    long = ck.dispatch.attention_grad_problem(
        ck.dispatch.attention_problem(1, 2, 64, 64, 264, dtype=f32)
    )
    with pytest.raises(CkError, match="attention-grad-head-most"):
        ck.dispatch.select(long, arch="gfx942")
    mixed = ck.dispatch.attention_grad_problem(
        ck.dispatch.attention_problem(1, 2, 64, 64, 64, o=f32)
    )
    with pytest.raises(CkError, match="attention-grad-result"):
        ck.dispatch.select(mixed, arch="gfx942")


# --- ops


def test_ops_declare_what_their_calls_take() -> None:
    mine = Registry("mine")
    op = plain.using(registry=mine)
    args = arrays()
    assert op.registry is mine
    new = op.declare(*args, device="emu:gfx942", among=attention_pattern(pipeline="qr", tile="*"))
    assert new == len(mine) > 3
    assert op.declare(*args, device="emu:gfx942") > 0
    assert "from       registry 'mine'" in op.explain(*args, device="emu:gfx942")
    split = op.using(splits=2)
    split.declare(*arrays(1, 2048), device="emu:gfx942")
    assert combine_key("gfx942", f16, lse=False) in mine
    assert any(k.signature.split for k in attention_keys(mine))


def gradient_keys(registry: Registry) -> list[AttentionGradKey]:
    return [kernel.key for kernel in registry if kernel.key.family == "attention_backward"]


def test_gradients_are_declared_with_what_they_need() -> None:
    mine = Registry("mine")
    new = plain.declare(*arrays(), device="emu:gfx942", registry=mine, gradient=True)
    assert new == len(mine)
    grads = gradient_keys(mine)
    assert {k.signature.deterministic for k in grads} == {False, True}
    assert all(k.signature.lse for k in attention_keys(mine))
    assert {k.key for k in mine if k.key.family == "reduce"} == {
        reduce_key("gfx942", f16, dot=dot) for dot in (True, False)
    }
    few = Registry("few")
    one = attention_pattern(gradient=True, pipeline="kr_ktr_vr", tile=grads[0].algorithm.tile)
    plain.declare(*arrays(), device="emu:gfx942", registry=few, among=one, gradient=True)
    assert len(gradient_keys(few)) == 2
    far = np.zeros(2, np.float32)
    capped.declare(*arrays(), far, device="emu:gfx942", registry=few, gradient=True)
    assert [key.signature.derivative for key in gradient_keys(few)].count(True) > 0


def test_gradients_of_a_bias_are_declared_with_what_they_need() -> None:
    args = [*arrays(), np.zeros((1, 2, 40, 48), np.float16)]
    mine = Registry("mine")
    biased.declare(*args, device="emu:gfx942", registry=mine, gradient="bias")
    grads = gradient_keys(mine)
    assert {k.signature.deterministic for k in grads} == {False, True}
    assert all(k.signature.bias_grad and k.signature.forward.score is ScoreKind.BIAS for k in grads)
    assert reduce_key("gfx942", f16, dot=False, parts=f16) in mine
    assert {k.signature.score for k in attention_keys(mine)} == {ScoreKind.FUNCTION}
    before = len(mine)
    assert biased.declare(*args, device="emu:gfx942", registry=mine, gradient=True) > 0
    plain_grads = [k.key for k in list(mine)[before:] if k.key.family == "attention_backward"]
    assert plain_grads
    assert not any(k.signature.bias_grad for k in plain_grads)
    with pytest.raises(CkError, match="CK-G008"):
        plain.declare(*arrays(), device="emu:gfx942", registry=mine, gradient="bias")


def test_every_candidate_is_accounted_for() -> None:
    text = plain.explain(*arrays(head=192), device="emu:gfx942")
    lines = [line.split(": ", 1) for line in text.splitlines() if line.startswith("  candidate")]
    rows = arch("gfx942").attention_tiles
    assert len(lines) == sum(len(row.pipelines) for row in rows if "f16" in row.dtypes)
    assert lines[0][0].endswith("128x64x16x32x32x32 qr_async tttt")
    assert lines[0][1].startswith("rejected, attention-head-size: the head size of q and k is 192")
    times = [float(said.split(" ")[0]) for _, said in lines if said.endswith(" µs predicted")]
    assert len(times) == 3
    assert f"because    {min(times):.2f} µs predicted" in text
    # Constants of another GPU tell a time too.
    text = plain.explain(*arrays(head=192), device="emu:gfx90a")
    assert re.search(r"128x128x32x192x32x192 qr tttt: [\d.]+ µs predicted\n", text)


def test_an_algorithm_of_ones_own() -> None:
    tile, pipeline = (128, 64, 32, 64, 32, 64), AttentionPipeline.QS
    algorithm = replace(key().algorithm, tile=tile, pipeline=pipeline)
    text = plain.using(algorithm).explain(*arrays(), device="emu:gfx942")
    assert "you named it, and no rule objects" in text
    assert ", qs, " in text
    with pytest.raises(CkError, match="for an attention"):
        plain.using(BASE).explain(*arrays(), device="emu:gfx942")
