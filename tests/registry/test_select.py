# SPDX-License-Identifier: MIT
"""Selection: deterministic, total, quick, and with a reason for everything."""

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cklang as ck
from cklang.arch import arch
from cklang.build.builder import BuildResult, Wanted
from cklang.build.parallel import BuildSummary
from cklang.device.artifact import Artifact
from cklang.device.resources import Resources
from cklang.errors import CkError
from cklang.families.gemm.key import GemmKey
from cklang.families.gemm.problem import Problem
from cklang.selection.pool import Pool
from cklang.selection.registry import Registry
from cklang.selection.request import Request
from cklang.selection.rules import violations
from cklang.selection.select import find, select
from cklang.selection.space import enumerate_legal, pattern
from cklang.tune.on_device import Costs
from cklang.tune.strategies import Autotune
from cklang.types import bf16, f32
from tests.support.algorithms import BASE
from tests.support.errors import expect_error
from tests.support.gemm_keys import RELU, epilogue, key, shape, signature

MI300X = arch("gfx942")
EMPTY = Registry("empty")
WHOLE = shape(1024, 1024, 1024)


def registry(*keys: GemmKey) -> Registry:
    mine = Registry("mine")
    for kernel_key in keys:
        mine.add(kernel_key, RELU)
    return mine


def code_of(problem: Problem, **options: Any) -> CkError:
    with pytest.raises(CkError) as caught:
        select(problem, **options)
    return caught.value


def test_first_fit_takes_the_first_legal_one_and_says_why_not_the_others() -> None:
    narrow = key(vector_a=1, vector_b=1)
    mine = registry(key(), narrow)
    chosen = select(shape(128, 256, 63), registry=mine, arch="gfx942", strategy="first_fit")
    assert chosen.key == narrow
    assert (chosen.position, chosen.candidates) == (1, 2)
    (why,) = chosen.rejections
    assert why.rule == "vector-a"
    assert "63" in str(why)
    assert "multiple of 8" in str(why)
    assert chosen.origin == "registry 'mine'"


def test_priority_goes_before_order() -> None:
    mine = registry(key(), key(tile=(64, 64, 32)))
    mine.add(key(tile=(256, 128, 32)), RELU, priority=1)
    chosen = select(WHOLE, registry=mine, arch="gfx942", strategy="first_fit")
    assert chosen.key.algorithm.tile == (256, 128, 32)


def test_only_kernels_of_the_whole_signature_and_gpu_are_candidates() -> None:
    other = epilogue("exp")
    mine = registry(key("gfx950"))
    mine.add(key(region=other), other)
    chosen = select(WHOLE, registry=mine, arch="gfx942", strategy="first_fit")
    assert "on demand" in chosen.origin
    assert select(WHOLE, registry=mine, arch="gfx950").origin == "registry 'mine'"


def test_what_no_registered_kernel_can_run_is_built_on_demand() -> None:
    mine = registry(key())
    chosen = select(shape(128, 255, 63), registry=mine, arch="gfx942")
    assert "on demand" in chosen.origin
    assert chosen.key not in mine
    assert len(mine) == 1, "selecting declares nothing"


def test_a_signature_without_preset_is_served_from_the_whole_legal_set() -> None:
    mixed = ck.dispatch.problem(64, 64, 64, a=bf16, e=f32, layouts="rcr")
    assert "preset" in select(mixed, registry=EMPTY, arch="gfx942").origin
    spec = replace(MI300X, name="gfx9ff")
    chosen = select(WHOLE, registry=EMPTY, arch=spec)
    assert chosen.origin == "every legal algorithm, built on demand"
    assert chosen.key.arch == "gfx9ff"


def test_refusals_carry_every_reason() -> None:
    huge = shape(1 << 20, 64, 1 << 12)
    mine = registry(key(), key(vector_a=1))
    problem = code_of(huge, registry=mine, arch="gfx942")
    assert problem.code == "K101"
    assert "operand-size" in str(problem)
    assert "must be below 2147483648" in str(problem)


def test_unknown_gpus_and_strategies_are_refused() -> None:
    assert code_of(WHOLE, arch="gfx94").code == "K004"
    unknown = code_of(WHOLE, arch="gfx942", strategy="first-fit")
    assert unknown.code == "K001"
    assert "first_fit" in str(unknown)


def test_the_cost_model_prefers_small_tiles_for_small_problems() -> None:
    mine = registry(key(), key(tile=(64, 64, 32), warp_tile=(16, 16, 16)))
    small = select(shape(64, 64, 512), registry=mine, arch="gfx942", strategy="heuristic")
    large = select(shape(8192, 8192, 512), registry=mine, arch="gfx942", strategy="heuristic")
    assert small.key.algorithm.tile == (64, 64, 32)
    assert large.key.algorithm.tile == (128, 128, 32)
    assert "µs predicted" in small.reason


def test_what_a_registry_has_built_replaces_the_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    mine, other = (registry(key(), key(tile=(64, 64, 32))) for _ in range(2))
    large = shape(8192, 8192, 1024)
    before = select(large, registry=mine, arch="gfx942", strategy="heuristic")
    assert mine.resources(before.key) is None
    assert "code objects" not in before.reason
    greedy = Resources(
        vgprs=512,
        agprs=0,
        sgprs=16,
        lds_bytes=65536,
        scratch_bytes=0,
        vgpr_spills=0,
        sgpr_spills=0,
        kernarg_bytes=64,
    )

    def build(kernels: Sequence[Wanted], **_: object) -> BuildSummary:
        (wanted,) = [key for key, _ in kernels if key == before.key]
        files = dict.fromkeys(("folder", "code_object", "host_shim", "source"), Path())
        artifact = Artifact(
            key=wanted,
            symbol="",
            schedule="",
            resources=greedy,
            seconds=0,
            cached=True,
            steps={},
            **files,
        )
        result = BuildResult(key=wanted, artifact=artifact, failure=None)
        return BuildSummary(results=(result,), seconds=0)

    monkeypatch.setattr("cklang.build.parallel.build", build)
    mine.build()
    assert mine.resources(before.key) == greedy
    after = select(large, registry=mine, arch="gfx942", strategy="heuristic")
    assert "(1 with the registers and LDS of their code objects)" in after.reason
    predicted = [float(chosen.reason.split()[0]) for chosen in (before, after)]
    assert after.key != before.key or predicted[1] > predicted[0]
    version = mine.version
    mine.build()
    assert mine.version == version, "nothing new is known"
    # What others have built, or the cache holds, changes nothing.
    assert select(large, registry=other, arch="gfx942").reason == before.reason
    assert mine.same_as(other)


def test_rules_filter_before_the_heuristic_ranks() -> None:
    wide = key(tile=(64, 64, 32), warp_tile=(16, 16, 16))
    narrow = key(vector_a=1, vector_b=1)
    chosen = select(shape(64, 64, 63), registry=registry(wide, narrow), arch="gfx942")
    assert chosen.key == narrow


def test_without_measurements_the_reason_says_whose_constants_they_are() -> None:
    for spec, carried in ((replace(MI300X, compute_units=70), True), (MI300X, False)):
        chosen = select(WHOLE, registry=registry(key()), arch=spec, strategy="heuristic")
        said = "constants carried over from gfx942 with 80 compute units" in chosen.reason
        assert said is carried


def test_without_a_rate_the_first_is_taken_and_the_reason_says_so() -> None:
    spec = replace(MI300X, matrix_rates=())
    chosen = select(WHOLE, registry=registry(key()), arch=spec, strategy="heuristic")
    assert "no prediction: arch_specs gives gfx942 no matrix rate for f16" in chosen.reason


def test_a_heuristic_is_any_function_from_problems_to_keys() -> None:
    keys = [key(), key(tile=(64, 64, 32)), key(tile=(256, 128, 32))]

    def smallest(problem: object) -> Sequence[GemmKey]:
        return [key(tile=(32, 32, 32)), *sorted(keys, key=lambda k: k.algorithm.tile)]

    chosen = select(WHOLE, registry=registry(*keys), arch="gfx942", strategy=smallest)
    assert chosen.key.algorithm.tile == (64, 64, 32)
    assert "number 2 of the heuristic" in chosen.reason
    nothing = select(WHOLE, registry=registry(*keys), arch="gfx942", strategy=lambda p: [])
    assert nothing.key == keys[0]
    assert "names no legal candidate" in nothing.reason


def test_autotune_takes_the_cheapest_that_was_measured() -> None:
    keys = [key(), key(tile=(64, 64, 32)), key(tile=(256, 128, 32))]
    measured: list[GemmKey] = []

    def measure(keys: Sequence[GemmKey], *rest: object) -> Costs:
        measured.extend(keys)
        values = tuple(float(k.algorithm.tile[0]) for k in keys)
        return Costs(values=values, unit="apples", device="a test")

    tuned = select(
        WHOLE, registry=registry(*keys), arch="gfx942", strategy=Autotune(limit=2, measure=measure)
    )
    assert len(measured) == 2
    assert tuned.key.algorithm.tile[0] == min(k.algorithm.tile[0] for k in measured)
    assert "apples, the least of 2 measured on a test" in tuned.reason


def test_autotune_needs_something_to_build() -> None:
    assert code_of(WHOLE, registry=EMPTY, arch="gfx942", strategy="autotune").code == "K010"


def test_the_context_gives_registry_gpu_and_strategy() -> None:
    mine = registry(key("gfx950"))
    with ck.using(registry=mine, arch="gfx950", strategy="first_fit"):
        assert select(WHOLE).origin == "registry 'mine'"
        with ck.using(strategy="heuristic"):
            assert "predicted" in select(WHOLE).reason
        assert "fixed order" in select(WHOLE).reason
        assert select(WHOLE, arch="gfx942").key.arch == "gfx942"
    with pytest.raises(CkError, match="gfx94"), ck.using(arch="gfx94"):
        pass


def test_a_named_algorithm_is_checked_and_nothing_else_is_tried() -> None:
    chosen = find(WHOLE, MI300X, Request(algorithm=BASE), RELU)
    assert chosen.key.algorithm == BASE
    with expect_error("K101"):
        find(shape(128, 128, 63), MI300X, Request(algorithm=BASE), RELU)
    with pytest.raises(CkError, match="warp-tile"):
        find(WHOLE, MI300X, Request(algorithm=replace(BASE, warp_tile=(8, 8, 8))), RELU)


def test_kernels_that_no_rule_allows_are_never_chosen() -> None:
    mine = registry(key(warp_tile=(8, 8, 8)), key())
    assert select(WHOLE, registry=mine, arch="gfx942", strategy="first_fit").position == 1


def test_a_selection_is_remembered_until_the_registry_changes() -> None:
    mine = registry(key())
    first = select(WHOLE, registry=mine, arch="gfx942")
    assert select(shape(1024, 1024, 1024), registry=mine, arch="gfx942") is first
    mine.add(key(tile=(64, 64, 32)), RELU, priority=1)
    changed = select(WHOLE, registry=mine, arch="gfx942", strategy="first_fit")
    assert changed.key.algorithm.tile == (64, 64, 32)


extents = st.integers(1, 70) | st.sampled_from([128, 256, 1000, 4096])


@given(
    m=extents,
    n=extents,
    k=st.integers(0, 70) | st.sampled_from([128, 4096]),
    layouts=st.sampled_from(["rcr", "rrr", "ccr", "crr"]),
    alignment=st.sampled_from([2, 4]),
    gap=st.integers(0, 3),
    strategy=st.sampled_from(["first_fit", "heuristic"]),
    gpu=st.sampled_from(["gfx90a", "gfx942", "gfx950"]),
)
def test_selection_is_total_legal_and_deterministic(
    m: int, n: int, k: int, layouts: str, alignment: int, gap: int, strategy: str, gpu: str
) -> None:
    by_row_a, by_row_b = layouts[0] == "r", layouts[1] == "r"
    strides = ((k if by_row_a else m) + gap, (n if by_row_b else k) + gap, n + gap)
    problem = shape(m, n, k, layouts=layouts, strides=strides, alignment=alignment)
    first = select(problem, registry=EMPTY, arch=gpu, strategy=strategy)
    algorithm, chosen_signature = first.key.algorithm, first.key.signature
    assert list(violations(algorithm, chosen_signature, arch(gpu), problem)) == []
    fresh = Registry("another")
    assert select(problem, registry=fresh, arch=gpu, strategy=strategy).key == first.key


@cache
def many(count: int) -> list[GemmKey]:
    wild = pattern(tile="*", warps="*", warp_tile="*", pad_m=[True, False], pad_k=[True, False])
    keys: list[GemmKey] = []
    for index, algorithm in enumerate(enumerate_legal(signature(), MI300X, wild)):
        if index % 31 == 0:
            keys.append(GemmKey(signature(), algorithm, "gfx942"))
        if len(keys) == count:
            break
    return keys


@given(m=extents, n=extents, k=extents)
def test_the_pool_agrees_with_the_rules(m: int, n: int, k: int) -> None:
    problem = shape(m, n, k)
    keys = many(40)
    legal = Pool(keys, MI300X, "a test").legal(problem)
    for position, candidate in enumerate(keys):
        violation = next(
            violations(candidate.algorithm, candidate.signature, MI300X, problem), None
        )
        assert bool(legal[position]) == (violation is None)


@pytest.mark.parametrize("strategy", ["first_fit", "heuristic"])
def test_choosing_among_500_kernels_takes_microseconds(strategy: str) -> None:
    """Generous bounds: other tests share the machine. benchmarks/selection.py measures."""
    mine = registry(*many(500))
    assert len(mine) == 500
    problems = [shape(512 + 8 * i, 512, 1024) for i in range(30)]
    select(WHOLE, registry=mine, arch="gfx942", strategy=strategy)

    def spent(problem: Problem) -> float:
        start = time.perf_counter()
        select(problem, registry=mine, arch="gfx942", strategy=strategy)
        return time.perf_counter() - start

    assert min(spent(problem) for problem in problems) < 2e-3
    assert min(spent(problem) for problem in problems) < 100e-6
