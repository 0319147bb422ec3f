# SPDX-License-Identifier: MIT
"""The rules of algorithms one by one, what they advise, and the enumeration of what is legal."""

from dataclasses import fields, replace
from itertools import islice, product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cklang.arch import KnownWrong, arch
from cklang.families.gemm.key import Algorithm, DKind, EpilogueKind, Pipeline, Scheduler
from cklang.families.gemm.rules import RULES
from cklang.families.gemm.rules.algorithm import matches
from cklang.families.gemm.rules.dealing import access_pattern
from cklang.families.gemm.rules.resources import shuffled_bytes, staged_bytes
from cklang.selection.diagnose import advise, fix
from cklang.selection.rules import violations
from cklang.selection.space import enumerate_legal, legal_values, pattern
from cklang.types import DType, bf8, bf16, f16, f32, fp8, fp8_fnuz
from tests.support.algorithms import BASE, narrow
from tests.support.errors import expect_error
from tests.support.gemm_keys import shape, signature
from tests.support.typed import instance

MI300X = arch("gfx942")
F16 = signature()


def rejected(algorithm: Algorithm, gpu: str = "gfx942", dtype: Any = f16, **how: Any) -> set[str]:
    return {r.rule for r in violations(algorithm, signature(dtype, **how), arch(gpu))}


def test_the_base_is_legal_everywhere() -> None:
    for gpu in ("gfx90a", "gfx942", "gfx950"):
        assert rejected(BASE, gpu) == set()


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"pipeline": Pipeline.COMP_ASYNC}, "pipeline"),
        ({"scheduler": Scheduler.INTERWAVE}, "combination"),
        ({"warp_tile": (32, 32, 4)}, "warp-tile"),
        ({"warps": (1, 3, 1)}, "warps"),
        ({"warps": (8, 4, 1)}, "threads"),
        ({"tile": (96, 128, 32)}, "tile-m"),
        ({"tile": (128, 96, 32)}, "tile-n"),
        ({"tile": (128, 128, 20)}, "tile-k"),
        ({"tile": (256, 256, 128)}, "lds-mainloop"),
        ({"tile": (256, 256, 64), "block_per_cu": 2}, "registers"),
        ({"tile": (64, 64, 8)}, "load-a"),
        ({"tile": (64, 64, 8)}, "load-b"),
        ({"tile": (96, 64, 64), "warp_tile": (16, 16, 16)}, "shuffle"),
        ({"vector_a": 16}, "width-a"),
        ({"vector_b": 3}, "width-b"),
        ({"vector_e": 16}, "width-e"),
        ({"vector_d": (8,)}, "width-d"),
        ({"split_k": 3}, "generated"),
    ],
)
def test_each_rule_objects(changes: dict[str, Any], rule: str) -> None:
    assert rule in rejected(replace(BASE, **changes))


C = {"transpose_c": True}
DEEP_8 = {"tile": (128, 128, 128)}


@pytest.mark.parametrize(
    ("gpu", "dtype", "layouts", "warp_tile", "changes", "rule"),
    [
        ("gfx90a", f32, "rcr", (16, 16, 4), C, "transposed-tile"),
        ("gfx942", f16, "rcr", (64, 4, 16), C, "transposed-tile"),
        ("gfx950", bf16, "rcr", (4, 64, 16), C, "transposed-tile"),
        ("gfx942", fp8_fnuz, "rcr", (32, 32, 32), C, "transposed-tile"),
        ("gfx950", fp8, "ccr", (32, 32, 32), {}, "transposing-loads"),
        ("gfx950", bf8, "rrr", (16, 16, 64), {}, "transposing-loads"),
        ("gfx950", fp8, "ccr", (16, 16, 128), DEEP_8 | C, "transposing-loads"),
        ("gfx950", f16, "ccr", (64, 4, 16), {}, "transposing-loads"),
        ("gfx950", f32, "rcr", (16, 16, 4), {}, None),
        ("gfx90a", f32, "rcr", (16, 16, 16), C, None),
        ("gfx950", fp8, "rcr", (32, 32, 32), {}, None),
        ("gfx950", fp8, "ccr", (16, 16, 128), DEEP_8, None),
        ("gfx942", fp8_fnuz, "ccr", (32, 32, 32), {}, None),
        ("gfx950", f32, "ccr", (16, 16, 4), {}, None),
        ("gfx950", f16, "ccr", (32, 32, 16), C, None),
        ("gfx1201", f16, "ccr", (16, 16, 16), C, None),
    ],
)
def test_a_warp_tile_has_the_forms_that_the_dispatcher_has(
    gpu: str,
    dtype: DType,
    layouts: str,
    warp_tile: tuple[int, int, int],
    changes: dict[str, Any],
    rule: str | None,
) -> None:
    """Those with a rule do not compile: ``WarpGemmDispatcher`` is not defined."""
    form = narrow(warp_tile=warp_tile, warps=(2, 2, 1), tile=(128, 128, 64))
    refused = rejected(replace(form, **changes), gpu, dtype, layouts=layouts)
    assert refused & {"transposed-tile", "transposing-loads", "warp-tile"} == {rule} - {None}


ASYNC = narrow(
    tile=(128, 128, 64),
    warps=(2, 2, 1),
    warp_tile=(16, 16, 16),
    pipeline=Pipeline.COMP_ASYNC,
    double_buffer=True,
)


@pytest.mark.parametrize(
    ("dtype", "layouts", "is_refused"),
    [
        (f32, "rrr", True),
        (f32, "ccr", True),
        (f32, "crr", True),
        (f32, "rcr", False),
        (f16, "crr", False),
        (fp8, "rrr", False),
    ],
)
def test_what_is_loaded_into_lds_is_transposed_there(
    dtype: DType, layouts: str, is_refused: bool
) -> None:
    """Of f32, 99 % of the elements were wrong: LDS held rows of K, and columns were read."""
    for spatial in (0, 2):
        s = replace(signature(dtype, layouts=layouts), spatial=spatial)
        refused = {r.rule for r in violations(ASYNC, s, arch("gfx950"))}
        assert ("async-order" in refused) is is_refused
    legal = {
        r.rule for r in violations(replace(ASYNC, pipeline=Pipeline.COMPV4), s, arch("gfx950"))
    }
    assert "async-order" not in legal


@pytest.mark.parametrize(
    ("dtype", "layouts", "tile", "vectors", "is_refused"),
    [
        (f32, "rcr", (64, 64, 128), (1, 4), True),
        (f32, "rcr", (64, 64, 128), (4, 1), True),
        (f32, "rcr", (64, 64, 64), (1, 1), False),
        (f16, "rrr", (128, 256, 64), (8, 2), True),
        (f16, "rrr", (128, 256, 64), (8, 8), False),
        (f16, "rrr", (128, 128, 64), (8, 2), False),
    ],
)
def test_a_lane_loads_one_access_of_a_row_into_lds(
    dtype: DType,
    layouts: str,
    tile: tuple[int, int, int],
    vectors: tuple[int, int],
    is_refused: bool,
) -> None:
    """A lane's second access went between the first ones of its neighbours."""
    a, b = vectors
    algorithm = replace(ASYNC, tile=tile, vector_a=a, vector_b=b)
    refused = rejected(algorithm, "gfx950", dtype, layouts=layouts)
    assert ("async-width" in refused) is is_refused


@pytest.mark.parametrize(("dtype", "bytes_"), [(f32, 4), (f16, 2), (fp8, 1)])
def test_memory_is_loaded_into_lds_by_4_or_16_bytes(dtype: DType, bytes_: int) -> None:
    """The others are a static assertion of CK Tile's ``amd_async_buffer_load``."""
    form = narrow(tile=(128, 128, 64), pipeline=Pipeline.COMP_ASYNC, double_buffer=True)
    for width in (1, 2, 4, 8, 16):
        wide, vector_b = 16 // bytes_, max(1, width // bytes_)
        moved = vector_b * bytes_
        refused = rejected(replace(form, vector_a=wide, vector_b=vector_b), "gfx950", dtype)
        assert ("async-loads" in refused) == (moved not in (4, 16))


def test_a_wave_is_not_split_between_wave_groups() -> None:
    one = replace(BASE, tile=(16, 16, 16), warps=(1, 1, 1), warp_tile=(16, 16, 16))
    assert {"load-a", "load-b"} <= rejected(replace(one, num_wave_groups=2))
    legal = fix(replace(one, num_wave_groups=2), F16, "gfx942").algorithm
    assert instance(Algorithm, legal).num_wave_groups == 1


def test_every_rule_has_an_id_a_sentence_and_known_fields() -> None:
    names = {f.name for f in fields(Algorithm)}
    for rule in RULES.rules:
        assert rule.id == rule.id.lower().replace("_", "-")
        assert len(rule.sentence.split()) >= 4
        assert set(rule.reads) <= names


def test_rules_read_the_fields_they_name_and_no_others() -> None:
    """A rule that read another field would be asked too early by the enumeration."""
    other = narrow(tile=(64, 64, 64), warps=(1, 4, 1), block_per_cu=2, pad_m=False, persistent=True)
    for rule in RULES.algorithms:
        kept = {name: getattr(BASE, name) for name in rule.reads}
        mixed = replace(other, **kept)
        assert (rule.check(mixed, F16, MI300X) is None) == (rule.check(BASE, F16, MI300X) is None)


def test_lds_counts_the_pipeline_and_the_epilogue() -> None:
    assert staged_bytes(BASE, F16) == 2 * 128 * 32 * 2
    assert shuffled_bytes(BASE, F16, MI300X) == 64 * 64 * 4
    small = replace(BASE, warp_tile=(16, 16, 16))
    assert shuffled_bytes(small, F16, MI300X) == 64 * 32 * 4, "two warp tiles a store of eight"
    budget = MI300X.budget("compv4")
    assert budget is not None
    assert budget * 2 == MI300X.lds_bytes


def test_gfx950_has_more_lds_than_gfx942() -> None:
    wide = replace(BASE, tile=(256, 256, 64), vector_a=8)
    assert "lds-mainloop" not in rejected(wide, "gfx950")
    assert "lds-mainloop" in rejected(replace(BASE, tile=(256, 256, 128)), "gfx942")
    assert "lds-mainloop" not in rejected(replace(BASE, tile=(256, 256, 128)), "gfx950")


@given(
    outer=st.sampled_from([16, 32, 64, 96, 128, 192, 256]),
    row=st.sampled_from([16, 32, 64, 96, 128, 192, 256]),
    vector=st.sampled_from([1, 2, 4, 8, 16]),
    warps=st.sampled_from([1, 2, 4, 8]),
    wave=st.sampled_from([32, 64]),
)
def test_an_access_pattern_touches_every_element_once(
    outer: int, row: int, vector: int, warps: int, wave: int
) -> None:
    access = access_pattern(warps * wave, wave, outer, row, vector)
    if access is None:
        return
    width, times = access
    lanes = row // width
    touched = [
        (step * warps * (wave // lanes) + warp * (wave // lanes) + lane // lanes, lane % lanes)
        for step, warp, lane in product(range(times), range(warps), range(wave))
    ]
    assert len(set(touched)) == len(touched) == outer * row // width


def test_known_wrong_rows_match_what_they_say() -> None:
    row = KnownWrong(
        id="x",
        claim="",
        evidence="",
        seen="",
        excluded=True,
        epilogues=("cshuffle",),
        odd_repeat=True,
        warp_tile_mn=(32,),
    )
    odd = replace(BASE, tile=(192, 128, 32))
    assert matches(row, odd, F16)
    assert not matches(row, BASE, F16)
    assert not matches(row, replace(odd, epilogue=EpilogueKind.DEFAULT), F16)
    assert not matches(row, replace(odd, warp_tile=(16, 16, 16)), F16)


def test_every_known_wrong_row_has_evidence_and_what_was_seen() -> None:
    for name in ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"):
        for row in arch(name).known_wrong:
            assert row.claim
            assert row.evidence
            assert row.seen


def test_advise_returns_all_violations_with_legal_values() -> None:
    bad = replace(BASE, tile=(96, 128, 32), vector_a=3, scheduler=Scheduler.INTERWAVE)
    advice_of = {v.rule: v for v in advise(bad, F16, "gfx942")}
    assert {"tile-m", "width-a", "combination"} <= set(advice_of)
    nearest = dict(advice_of["width-a"].nearest)
    assert nearest["vector_a"][0] in (1, 2, 8)
    assert dict(advice_of["combination"].nearest)["scheduler"] == (Scheduler.INTRAWAVE,)
    assert "legal: scheduler = intrawave" in str(advice_of["combination"])
    for advice in advice_of.values():
        for name, values in advice.nearest:
            for value in values:
                changed = replace(bad, **{name: value})
                assert advice.rule not in rejected(changed)


def test_advise_asks_the_problem_too() -> None:
    problem = shape(128, 128, 63)
    advice_of = {v.rule: v for v in advise(BASE, F16, "gfx942", problem)}
    assert set(advice_of) == {"vector-a", "vector-b"}
    assert dict(advice_of["vector-a"].nearest) == {"vector_a": (1,)}


def test_fix_proposes_and_says_what_it_changed() -> None:
    bad = replace(BASE, warp_tile=(32, 32, 4), scheduler=Scheduler.INTERWAVE)
    proposal = fix(bad, F16, "gfx942")
    assert rejected(instance(Algorithm, proposal.algorithm)) == set()
    assert {c.field for c in proposal.changes} == {"warp_tile", "scheduler"}
    assert "scheduler: interwave -> intrawave" in str(proposal)
    assert bad.scheduler is Scheduler.INTERWAVE, "the given algorithm is as it was"


def test_fix_leaves_a_legal_algorithm_alone() -> None:
    proposal = fix(BASE, F16, "gfx942", shape(128, 128, 64))
    assert proposal.algorithm == BASE
    assert proposal.changes == ()
    assert str(proposal) == "nothing to change"


def test_fix_says_when_nothing_can_help() -> None:
    huge = shape(1 << 20, 64, 1 << 12)
    with expect_error("K009"):
        fix(BASE, F16, "gfx942", huge)


extents = st.sampled_from([8, 16, 48, 64, 96, 128, 192, 256, 320])


@settings(max_examples=5)
@given(
    tile=st.tuples(extents, extents, st.sampled_from([8, 16, 32, 64, 96])),
    warps=st.sampled_from([(1, 1, 1), (2, 2, 1), (4, 1, 1), (3, 1, 1), (8, 4, 1)]),
    warp_tile=st.sampled_from([(32, 32, 8), (16, 16, 16), (8, 8, 8), (64, 4, 16)]),
    vector=st.sampled_from([1, 2, 3, 8, 32]),
    k=st.integers(1, 70),
)
def test_whatever_is_asked_fix_finds_a_legal_neighbour(
    tile: tuple[int, int, int],
    warps: tuple[int, int, int],
    warp_tile: tuple[int, int, int],
    vector: int,
    k: int,
) -> None:
    requested = replace(
        BASE, tile=tile, warps=warps, warp_tile=warp_tile, vector_a=vector, vector_e=vector
    )
    problem = shape(100, 100, k)
    proposal = fix(requested, F16, "gfx942", problem)
    assert list(violations(proposal.algorithm, F16, MI300X, problem)) == []
    rebuilt = replace(requested, **{c.field: c.after for c in proposal.changes})
    assert rebuilt == proposal.algorithm


SMALL = pattern(
    pipeline="*",
    scheduler="*",
    epilogue="*",
    tile=[(64, 64, 32), (96, 64, 16)],
    warps=[(2, 2, 1), (1, 4, 1)],
    warp_tile="*",
    double_buffer="*",
)


def brute_force(gpu: str, kernel_signature: Any) -> set[Algorithm]:
    spec = arch(gpu)
    names = list(SMALL.choices)
    values = [SMALL.values(name, legal_values(name, kernel_signature, spec)) for name in names]
    vectors = [(8, 8, 8), (1, 1, 1)]
    legal = set()
    for chosen in product(*values):
        for a, b, e in vectors:
            algorithm = Algorithm(
                **dict(zip(names, chosen, strict=True)), vector_a=a, vector_b=b, vector_e=e
            )
            if not list(violations(algorithm, kernel_signature, spec)):
                legal.add(algorithm)
    return legal


def test_enumeration_is_what_the_rules_allow() -> None:
    listed = list(enumerate_legal(F16, "gfx942", SMALL))
    assert len(set(listed)) == len(listed)
    everything = brute_force("gfx942", F16)
    wide = {a for a in listed if (a.vector_a, a.vector_b, a.vector_e) in ((8, 8, 8), (1, 1, 1))}
    assert wide == everything
    assert len(everything) > 8


def test_enumeration_is_lazy_and_canonical() -> None:
    first = list(islice(enumerate_legal(F16, "gfx950"), 50))
    assert first == list(islice(enumerate_legal(F16, "gfx950"), 50))
    assert len(set(first)) == 50


@given(
    gpu=st.sampled_from(["gfx90a", "gfx942", "gfx950"]),
    dtype=st.sampled_from([f16, bf16, f32]),
    layouts=st.sampled_from(["rcr", "rrr", "ccr", "crr"]),
    place=st.integers(0, 300),
)
def test_what_is_enumerated_is_legal(gpu: str, dtype: Any, layouts: str, place: int) -> None:
    kernel_signature = signature(dtype, layouts, d=((f16, DKind.ROW), (f32, DKind.STRIDED)))
    for algorithm in islice(enumerate_legal(kernel_signature, gpu), place, place + 3):
        assert list(violations(algorithm, kernel_signature, arch(gpu))) == []


@pytest.mark.parametrize(
    ("choices", "code"),
    [
        ({"colour": "red"}, "K001"),
        ({"pipeline": "compv33"}, "K001"),
        ({"tile": "128x128"}, "K002"),
        ({"tile": []}, "K024"),
        ({"persistent": 1}, "K002"),
    ],
)
def test_patterns_are_checked(choices: dict[str, Any], code: str) -> None:
    with expect_error(code):
        pattern(**choices)


def test_patterns_accept_what_they_name() -> None:
    some = pattern(tile=[(128, 128, 32), (64, 64, 32)], pipeline="compv3", warps="*")
    assert some.accepts(BASE)
    assert not some.accepts(replace(BASE, tile=(256, 128, 32)))
    assert not some.accepts(replace(BASE, pipeline=Pipeline.MEM))
