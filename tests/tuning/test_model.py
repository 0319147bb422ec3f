# SPDX-License-Identifier: MIT
"""The cost model: it counts right, is total and deterministic, and its terms make up its times."""

import json
import math
import time
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cklang as ck
from cklang.arch import arch
from cklang.errors import CkError, CkUnsupportedError, CkValueError
from cklang.families.conv.problem import ConvProblem, conv_problem
from cklang.families.cost_constants import FittedSet, fitted, fitted_sets, read_set
from cklang.families.gemm.cost.model import CostModel, GemmShape, Ranker, estimate, rank
from cklang.families.gemm.cost.terms import costs
from cklang.families.gemm.cost.traits import (
    Columns,
    Resources,
    Traits,
    spilled_registers,
    traits_of,
)
from cklang.families.gemm.key import Algorithm, DKind, DOperand, GemmKey
from cklang.families.gemm.plan import FusedGemm
from cklang.families.gemm.sampled_rows import sampled
from cklang.families.memory_cost import matrix_rate
from cklang.fusion.plan import Plan
from cklang.types import DType, bf16, f16, f32, fp8, i8
from tests.support.algorithms import wide
from tests.support.errors import expect_error
from tests.support.gemm_keys import OPEN
from tests.support.typed import instance, only

SPEC = arch("gfx942")

extents = st.integers(1, 40_000)
shapes = st.builds(GemmShape, m=extents, n=extents, k=extents)
algorithms = st.builds(
    Algorithm,
    tile=st.tuples(*[st.sampled_from((16, 32, 64, 96, 128, 256))] * 2, st.sampled_from((32, 64))),
    warps=st.sampled_from(((1, 4, 1), (2, 2, 1), (4, 1, 1), (1, 1, 1), (2, 1, 2))),
    warp_tile=st.just((16, 16, 16)),
    vector_a=st.just(8),
    vector_b=st.just(8),
    vector_e=st.just(8),
    split_k=st.sampled_from((1, 2, 8)),
    double_buffer=st.booleans(),
    block_per_cu=st.integers(1, 2),
)
keys = st.builds(
    GemmKey,
    st.sampled_from((OPEN, replace(OPEN, dtype_a=bf16, dtype_b=bf16, dtype_e=f32))),
    algorithms,
    st.sampled_from(("gfx942", "gfx950")),
)


def key(tile: tuple[int, int, int] = (128, 128, 64), arch: str = "gfx942", **more: Any) -> GemmKey:
    return GemmKey(OPEN, wide(tile=tile, **more), arch)


@given(keys, shapes)
def test_terms_make_up_the_time(key: GemmKey, shape: GemmShape) -> None:
    predicted = estimate(key, shape)
    assert math.isfinite(predicted.us)
    assert predicted.us > 0
    assert sum(predicted.terms.values()) == pytest.approx(predicted.us, rel=1e-9)
    assert all(term >= -1e-9 * predicted.us for term in predicted.terms.values()), predicted.terms
    assert 0 < predicted.last_round <= 1
    assert 0 <= predicted.padding < 1
    assert predicted.flops <= predicted.padded_flops


def test_elements_beyond_k_spare_a_part_of_their_step() -> None:
    c = replace(fitted(SPEC).constants, beyond_k=0.6)
    model = CostModel([traits_of(key((64, 64, 64)), SPEC)], SPEC, c)
    whole, part, next_whole = (float(model.times(512, 512, k)[0]) for k in (512, 513, 576))
    assert whole < part < next_whole
    # One element takes 0.4 of a step and a little; the other 63 the rest of it.
    assert 0.35 < (part - whole) / (next_whole - whole) < 0.5
    estimate = model.estimate(0, 512, 512, 513)
    assert estimate.steps == 9
    assert sum(estimate.terms.values()) == pytest.approx(part)
    assert min(estimate.terms.values()) >= -1e-9


@given(keys, st.builds(GemmShape, m=st.integers(1, 900), n=st.integers(1, 900), k=extents))
@settings(max_examples=40)
def test_counts_are_those_of_a_dispatch(key: GemmKey, shape: GemmShape) -> None:
    a, spec = key.algorithm, arch(key.arch)
    pieces = range(a.split_k)
    origins = [
        (m, n)
        for _ in pieces
        for m in range(0, shape.m, a.tile[0])
        for n in range(0, shape.n, a.tile[1])
    ]
    busiest = max(Counter(i % spec.compute_units for i in range(len(origins))).values())
    predicted = estimate(key, shape)
    assert predicted.workgroups == len(origins)
    # compv3 computes two K tiles at least; split-K shares them out evenly.
    k_tiles = len(range(0, shape.k, a.tile[2]))
    shares = [len(range(part, k_tiles, a.split_k)) for part in pieces]
    assert predicted.steps == max(2, *shares)
    assert predicted.rounds == len(range(0, busiest, predicted.occupancy))
    step_flops = 2 * a.tile[0] * a.tile[1] * a.tile[2]
    tiles = len(origins) // a.split_k
    assert predicted.waves == len(origins) * a.warps[0] * a.warps[1] * a.warps[2]
    assert predicted.padded_flops == tiles * sum(max(2, share) for share in shares) * step_flops
    rows = sum(min(a.tile[0], shape.m - m) for m, _ in origins[:tiles])
    columns = sum(min(a.tile[1], shape.n - n) for _, n in origins[:tiles])
    each = key.signature.dtype_a.bytes
    assert predicted.bytes_loaded == pytest.approx((rows + columns) * shape.k * each)


@given(st.lists(keys, min_size=1, max_size=6), shapes, st.integers(1, 64))
def test_several_products_are_several_times_the_work(
    drawn_keys: list[GemmKey], shape: GemmShape, products: int
) -> None:
    drawn_keys = [replace(key, arch="gfx942") for key in drawn_keys]
    several = replace(shape, products=products)
    for ranked in rank(drawn_keys, several):
        together, single = estimate(ranked.key, several), estimate(ranked.key, shape)
        assert together.us == pytest.approx(ranked.us)
        assert together.workgroups == products * single.workgroups
        assert together.flops == products * single.flops
        assert together.padded_flops == products * single.padded_flops
        assert together.us >= single.us


@given(keys, shapes)
def test_stream_k_shares_all_steps_evenly(key: GemmKey, shape: GemmShape) -> None:
    key = replace(key, algorithm=replace(key.algorithm, split_k=1, stream_k=True))
    a, spec = key.algorithm, arch(key.arch)
    tiles = -(-shape.m // a.tile[0]) * -(-shape.n // a.tile[1])
    steps = tiles * -(-shape.k // a.tile[2])
    blocks = min(spec.compute_units * a.block_per_cu, steps)
    predicted = estimate(key, shape)
    assert predicted.workgroups == blocks
    assert predicted.steps == max(2, -(-steps // blocks))
    assert predicted.terms["split_k"] > 0
    assert predicted.us == pytest.approx(sum(predicted.terms.values()))
    (ranked,) = rank([key], shape)
    assert ranked.us == pytest.approx(predicted.us)


def test_stream_k_fills_the_last_round() -> None:
    whole, streamed = key((256, 256, 64)), key((256, 256, 64), stream_k=True)
    uneven = GemmShape(m=256 * 19, n=256 * 17, k=16384)  # 323 tiles on 304 compute units
    assert estimate(streamed, uneven).us < 0.75 * estimate(whole, uneven).us


@given(st.lists(keys, min_size=1, max_size=8, unique=True), shapes)
def test_a_ranking_is_sorted_complete_and_repeatable(
    drawn_keys: list[GemmKey], shape: GemmShape
) -> None:
    drawn_keys = [replace(key, arch="gfx950") for key in drawn_keys]
    ranked = rank(drawn_keys, shape)
    assert Counter(r.key for r in ranked) == Counter(drawn_keys)
    assert [r.us for r in ranked] == sorted(r.us for r in ranked)
    assert rank(drawn_keys, shape) == ranked
    assert Ranker(keys=tuple(drawn_keys)).choose(shape) == ranked[0].key


def test_equal_times_keep_the_order_of_the_keys() -> None:
    twins = [key(), key(num_wave_groups=2), key(num_wave_groups=3)]
    assert [r.key for r in rank(twins, GemmShape(m=512, n=512, k=512))] == twins


def test_a_small_problem_wants_a_small_tile_and_a_large_one_a_large_tile() -> None:
    small, large = key((16, 64, 64)), key((128, 128, 64))
    assert rank([large, small], GemmShape(m=16, n=4096, k=4096))[0].key == small
    assert rank([small, large], GemmShape(m=8192, n=8192, k=4096))[0].key == large


def test_full_sized_operands_of_the_epilogue_cost_time() -> None:
    d = DOperand(dtype=f32, kind=DKind.FULL)
    plain = key()
    wide = replace(plain, signature=replace(OPEN, d=(d,)))
    narrow = replace(plain, signature=replace(OPEN, d=(replace(d, kind=DKind.ROW),)))
    shape = GemmShape(m=4096, n=4096, k=64)
    assert estimate(wide, shape).us > estimate(plain, shape).us
    assert estimate(narrow, shape).us == estimate(plain, shape).us


def test_waves_of_one_simd_overlap() -> None:
    """A workgroup of 16 waves that is alone hides more of its own work than one of four."""
    spec = arch("gfx950")
    waves = ((1, 1, 1), (2, 2, 1), (4, 2, 1), (4, 4, 1))
    kernels = [
        Traits.of(
            spec,
            tile=(128, 128, 64),
            waves=each,
            rate=1000.0,
            prefetches=True,
            bytes_a=2,
            bytes_b=2,
            bytes_out=2,
        )
        for each in waves
    ]
    cost = costs(Columns.stack(kernels), spec, fitted(spec).constants)
    assert (cost.work[1:] >= cost.work[:-1]).all(), "more waves read more of LDS"
    assert cost.latency[3] < cost.latency[2] < cost.latency[1]


def test_narrow_loads_cost_time() -> None:
    wide = key()
    narrow = replace(wide, algorithm=replace(wide.algorithm, vector_a=1))
    shape = GemmShape(m=100, n=100, k=4096)
    assert estimate(narrow, shape).us > estimate(wide, shape).us


def test_resources_of_a_built_kernel_decide_its_occupancy() -> None:
    shape = GemmShape(m=4096, n=4096, k=4096)
    lean = estimate(key(), shape, resources=Resources(vgprs=128, lds_bytes=16384))
    fat = estimate(key(), shape, resources=Resources(vgprs=512, lds_bytes=65536))
    assert (lean.occupancy, fat.occupancy) == (4, 1)


def test_spills_of_a_built_kernel_cost_time() -> None:
    shape = GemmShape(m=4096, n=4096, k=4096)
    none, some = (
        estimate(key(), shape, resources=Resources(vgprs=512, lds_bytes=65536, spills=spills))
        for spills in (0, 50)
    )
    assert 1.3 * none.us < some.us < 2 * none.us


@pytest.mark.parametrize(
    ("dtype", "tile", "spills"),
    [
        (f16, (256, 256, 64), False),
        (fp8, (256, 256, 64), False),
        (fp8, (256, 256, 128), True),
        (i8, (256, 256, 128), True),
        (fp8, (256, 128, 128), False),
    ],
)
def test_tiles_that_spill_are_known(dtype: DType, tile: tuple[int, int, int], spills: bool) -> None:
    signature = replace(OPEN, dtype_a=dtype, dtype_b=dtype)
    for gpu in ("gfx942", "gfx950"):
        algorithm = replace(wide(tile=tile), warps=(2, 2, 1), warp_tile=(32, 32, 16))
        assert (spilled_registers(signature, algorithm, arch(gpu)) > 0) is spills


def test_a_variant_has_its_own_compute_units_and_constants() -> None:
    shape = GemmShape(m=4096, n=4096, k=4096)
    small = SPEC.with_compute_units(80)
    assert small.product == "AMD Instinct MI308X"
    predicted = estimate(key(), shape, spec=small)
    assert predicted.us > 2 * estimate(key(), shape).us
    assert SPEC.with_compute_units(SPEC.compute_units) is SPEC
    with expect_error("K006", match="304", kind=CkValueError):
        SPEC.with_compute_units(81)


def test_an_explanation_names_terms_and_runner_up() -> None:
    ranker = Ranker(keys=(key(), key((64, 64, 64)), key((16, 64, 64))))
    shape = GemmShape(m=999, n=999, k=999)
    text = ranker.explain(shape)
    first, second, third = (r.key.label for r in ranker.rank(shape))
    for word in ("chosen", "runner-up", "launch", "latency", "split_k", "memory", "padding"):
        assert word in text
    assert first in text
    assert second in text
    assert third not in text
    assert "quickest of 3" in text


@pytest.mark.parametrize(
    ("code", "act"),
    [
        ("N002", lambda: matrix_rate(SPEC, ("i32", "i32", "i32"), (16, 16, 16))),
        ("N004", lambda: rank([key(), key(arch="gfx950")], GemmShape(m=1, n=1, k=1))),
        ("N005", lambda: rank([], GemmShape(m=1, n=1, k=1))),
        ("K011", lambda: GemmShape(m=0, n=1, k=1)),
        ("K004", lambda: estimate(key(arch="gfx000"), GemmShape(m=1, n=1, k=1))),
    ],
)
def test_what_the_model_does_not_know_is_a_named_error(code: str, act: object) -> None:
    with pytest.raises((CkUnsupportedError, CkValueError)) as caught:
        act()  # type: ignore[operator]
    assert caught.value.code == code


@pytest.mark.parametrize("gpu", ["gfx90a", "gfx1100", "gfx1201"])
def test_a_gpu_without_measurements_takes_over_the_best_constants(gpu: str) -> None:
    spec, fitted_set = arch(gpu), fitted(arch(gpu))
    assert fitted_set.carried_from == "gfx942 with 304 compute units"
    own = fitted(SPEC).constants
    memory = spec.memory_bytes_per_second / SPEC.memory_bytes_per_second
    assert fitted_set.constants.memory_cold == pytest.approx(own.memory_cold * memory)
    l1 = [s.compute_units * s.clock_hz * s.l1_bytes_per_clock for s in (spec, SPEC)]
    assert fitted_set.constants.l2 == pytest.approx(own.l2 * l1[0] / l1[1])
    assert fitted_set.constants.launch == own.launch
    # The order follows how tiles fill the GPU.
    small, large = (key((side, side, 64), arch=gpu) for side in (32, 128))
    few, many = (GemmShape(m=side, n=side, k=4096) for side in (128, 8192))
    assert estimate(small, few).us < estimate(large, few).us
    assert estimate(small, many).us > estimate(large, many).us


def test_another_product_takes_those_of_the_nearest_one_of_its_chip() -> None:
    for units, near in ((100, 80), (200, 304), (304, 304)):
        carried = "" if units == near else f"gfx942 with {near} compute units"
        assert fitted(replace(SPEC, compute_units=units)).carried_from == carried


FITS = {"gemm": ("benchmarks/fit_cost_model.py", 0.15), "conv": ("benchmarks/conv_choice.py", 0.08)}
"""The script of each family's constants, and the most that the median error of a time may be."""


@pytest.mark.parametrize(
    "fitted_set", fitted_sets(), ids=lambda s: f"{s.gpu}-{s.compute_units}-{s.family}"
)
def test_a_fitted_set_survives_json_and_says_where_it_comes_from(fitted_set: FittedSet) -> None:
    text = json.dumps(fitted_set.to_json())
    assert read_set("copy", text) == fitted_set
    script, most_error = FITS[fitted_set.family]
    assert fitted_set.provenance["script"] == script
    assert 0 < fitted_set.error["median"] < most_error


def test_a_family_without_measurements_has_the_constants_of_products() -> None:
    gpu = arch("gfx950")
    assert fitted(gpu, "conv") != fitted(gpu)
    assert fitted(gpu, "attention") == fitted(gpu)
    for name in ("gfx942", "gfx90a", "gfx1201"):
        assert fitted(arch(name), "conv") == fitted(arch(name))


def _without(data: dict[str, object], name: str) -> dict[str, object]:
    return {k: v for k, v in data.items() if k != name}


def test_a_corrupt_or_older_set_is_refused() -> None:
    data = fitted(SPEC).to_json()
    values = data["constants"]
    bad = {
        "N003": [
            "{",
            "[]",
            json.dumps(_without(data, "error")),
            json.dumps(data | {"extra": 1}),
            json.dumps(data | {"constants": [1.0]}),
            json.dumps(data | {"compute_units": "304"}),
            json.dumps(data | {"constants": _without(values, "launch")}),
            json.dumps(data | {"constants": values | {"launch": "2"}}),
            json.dumps(data | {"constants": values | {"launch": float("nan")}}),
            json.dumps(data | {"constants": values | {"launch": -1.0}}),
        ],
        "K003": [json.dumps(data | {"version": 0}), json.dumps(_without(data, "version"))],
    }
    for code, texts in bad.items():
        for text in texts:
            with pytest.raises(CkError) as caught:
                read_set("broken.json", text)
            assert caught.value.code == code, text


def test_ranking_is_quick() -> None:
    rows = [traits_of(key(), SPEC)] * 500
    many = CostModel([replace(r, tile_m=16.0 + i) for i, r in enumerate(rows)], SPEC)
    one = Ranker(keys=(key(), key((64, 64, 64))))
    shape = GemmShape(m=1000, n=4096, k=4096)
    one.choose(shape)
    # Processor time, the best of many: the machine may be busy.
    assert _best(lambda: many.times(1000.0, 4096.0, 4096.0)) < 300e-6
    assert _best(lambda: one.choose(shape)) < 15e-6


def _best(act: object) -> float:
    seconds = []
    for _ in range(30):
        start = time.process_time_ns()
        for _ in range(20):
            act()  # type: ignore[operator]
        seconds.append((time.process_time_ns() - start) / 20e9)
    return min(seconds)


def test_traits_of_nothing_are_refused() -> None:
    with expect_error("N005", kind=CkValueError):
        Columns.stack([])
    assert isinstance(traits_of(key(), SPEC), Traits)


def _conv_key(problem: ConvProblem, **more: Any) -> GemmKey:
    return replace(key((64, 64, 64), **more), signature=problem.signature)


@pytest.mark.parametrize("direction", ["conv", "conv_grad_input", "conv_grad_weight"])
def test_groups_in_one_tile_are_fewer_and_larger_products(direction: str) -> None:
    problem = conv_problem(
        [8, 28, 28, 256], [256, 3, 3, 4], direction=direction, groups=64, padding=1, alignment=16
    )
    apart, merged = _conv_key(problem), _conv_key(problem, groups_merged=16)
    ranker = Ranker(keys=(apart, merged))
    one, four = (ranker.estimate(each, problem) for each in (apart, merged))
    products, m, n, k = problem.product(16)
    assert (products, problem.products) == (4, 64)
    assert four.workgroups == products * -(-m // 64) * -(-n // 64)
    assert four.workgroups < one.workgroups
    # Zero blocks are computed, but neither needed nor moved.
    assert four.flops == one.flops
    assert four.bytes_least == one.bytes_least
    assert four.padded_flops == 2 * products * np.prod([-(-x // 64) * 64 for x in (m, n, k)])
    assert ranker.choose(problem) == merged
    slow = [ranker.estimate(each, problem).us for each in (apart, merged)]
    np.testing.assert_allclose(ranker.model.times_of(problem), slow, rtol=1e-12)


def test_a_problem_without_groups_has_nothing_to_merge() -> None:
    ranker = Ranker(keys=(key(), key(groups_merged=4)))
    shape = GemmShape(m=500, n=400, k=300)
    plain, merging = (ranker.estimate(each, shape) for each in ranker.keys)
    assert merging.workgroups == plain.workgroups


@pytest.mark.parametrize("direction", ["conv", "conv_grad_input", "conv_grad_weight"])
@pytest.mark.parametrize("stride", [1, 2])
def test_what_taps_read_again_is_moved_once(direction: str, stride: int) -> None:
    problem = conv_problem(
        [8, 28, 28, 64], [96, 3, 3, 64], direction=direction, padding=1, stride=stride, alignment=16
    )
    stored = [np.prod(problem.extents(role)) * 2 for role in problem.roles]
    predicted = estimate(_conv_key(problem), problem)
    assert predicted.bytes_least == pytest.approx(sum(stored), rel=0.01)
    products, m, n, k = problem.product()
    flat = estimate(_conv_key(problem), GemmShape(m=m, n=n, k=k, products=products))
    assert flat.bytes_least > predicted.bytes_least
    assert flat.us > predicted.us
    # What workgroups ask L2 for is the same.
    assert flat.bytes_loaded == predicted.bytes_loaded


def test_a_convolution_of_single_elements_is_a_product() -> None:
    problem = conv_problem([4, 9, 9, 64], [96, 1, 1, 64], alignment=16)
    assert problem.unique_fraction == (1.0, 1.0)
    shape = GemmShape(m=problem.m, n=problem.n, k=problem.k)
    estimates = [estimate(_conv_key(problem), each) for each in (problem, shape)]
    assert estimates[0] == estimates[1]


# --- kernels that are checked by some of their rows

M, N, K = ck.dims("M N K")


@ck.op
def scaled(x: ck.fp8[M, K], w: ck.fp8[N, K], s: ck.f32[M / 64, K / 128]) -> ck.f32[M, N]:
    return ck.gemm(x, w.T, scale_a=s)


def test_all_rows_are_compared_where_scales_belong_to_several() -> None:
    shapes = (128, 1024), (2048, 1024)
    args = [np.zeros(shape, ck.fp8.numpy) for shape in shapes]
    args.append(np.zeros((2, 8), np.float32))
    kernel = only(FusedGemm, instance(Plan, scaled.fusion(*args)).kernels)
    assert sampled(kernel, args, [np.zeros((128, 2048), np.float32)]) is None
