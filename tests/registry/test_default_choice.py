# SPDX-License-Identifier: MIT
"""The choice where nobody declared a kernel: a catalogue of tiles, the essential ones preferred.

Tests run with ``CKLANG_PRESET=essential`` (``tests/conftest.py``); users have the catalogue.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import conv_choice
import default_choice
import numpy as np
import pytest
from data import published

import cklang as ck
from cklang import knobs
from cklang.arch import arch
from cklang.families.cost_constants import fitted
from cklang.families.gemm.candidates import candidates
from cklang.families.gemm.key import Algorithm
from cklang.families.gemm.space import GRID
from cklang.families.grid import pattern_of, walk
from cklang.families.presets import parts, tilings
from cklang.selection.strategy import NEAR
from cklang.types import DTYPES
from tests.support.arrays import half
from tests.support.checks import check, launches
from tests.support.errors import expect_error
from tests.support.shared_data import required

GPUS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")


def tile_of(problem: object, gpu: str, preset: str | None = "catalogue") -> tuple[int, int, int]:
    tile: tuple[int, int, int] = ck.dispatch.select(
        problem, arch=gpu, preset=preset
    ).key.algorithm.tile
    return tile


@pytest.mark.parametrize(
    ("gpu", "n", "tile"),
    [
        ("gfx950", 16384, (256, 256, 64)),
        ("gfx942", 8192, (256, 256, 64)),
        ("gfx1201", 8192, (128, 128, 32)),
    ],
)
def test_a_large_product_gets_a_large_tile(gpu: str, n: int, tile: tuple[int, int, int]) -> None:
    assert tile_of(ck.dispatch.problem(n, n, n, a=ck.bf16), gpu) == tile
    old = 64 if gpu == "gfx1201" else 128
    assert tile_of(ck.dispatch.problem(n, n, n, a=ck.bf16), gpu, "essential")[:2] == (old, old)


@pytest.mark.parametrize(
    ("gpu", "dtype", "tile"),
    [("gfx942", ck.fp8_fnuz, (256, 256, 64)), ("gfx950", ck.fp8, (128, 128, 128))],
)
def test_no_kernel_that_spills_is_chosen_for_8_bits(
    gpu: str, dtype: ck.DType, tile: tuple[int, int, int]
) -> None:
    """gfx950's warp tiles with a K of 128 multiply twice as fast as its others."""
    problem = ck.dispatch.problem(4096, 4096, 4096, a=dtype, b=dtype, e=ck.bf16)
    assert tile_of(problem, gpu) == tile


def test_few_rows_get_few_rows() -> None:
    assert tile_of(ck.dispatch.problem(8, 4096, 7168, a=ck.bf16), "gfx950")[0] == 16


def test_an_essential_kernel_is_taken_if_it_is_as_good() -> None:
    taken = {True: 0, False: 0}
    rng = np.random.default_rng(0)
    for m, n, k in rng.integers(1, 300, (200, 3)) * rng.choice([1, 16], (200, 1)):
        choice = ck.dispatch.select(
            ck.dispatch.problem(int(m), int(n), int(k)), arch="gfx942", preset="catalogue"
        )
        weighed = choice.pool.times_of(choice.problem) * choice.pool.handicap
        times = np.where(choice.pool.legal(choice.problem), weighed, np.inf)
        essential = times[: choice.pool.preferred].min() <= (1 + NEAR) * times.min()
        taken[bool(essential)] += 1
        assert (choice.position < choice.pool.preferred) == essential
        assert times[choice.position] <= (1 + NEAR) * times.min()
        assert (f"within {NEAR:.0%} of the least" in choice.reason) == (
            times[choice.position] > times.min()
        )
    assert min(taken.values()) > 5


@pytest.mark.parametrize("dtype", ["f32", "f16", "fp8_fnuz"])
def test_workgroups_share_sums_where_tiles_are_few(dtype: str) -> None:
    def chosen(m: int, n: int, k: int, preset: str = "catalogue") -> ck.dispatch.Algorithm:
        problem = ck.dispatch.problem(m, n, k, a=DTYPES[dtype])
        selection = ck.dispatch.select(problem, arch="gfx942", preset=preset)
        algorithm: ck.dispatch.Algorithm = selection.key.algorithm
        return algorithm

    deep = chosen(256, 256, 131072)
    assert deep.reduction.value == "tree"
    tiles = -(-256 // deep.tile[0]) * -(-256 // deep.tile[1])
    assert 304 / 2 <= tiles * deep.split_k <= 2 * 304
    assert chosen(8192, 8192, 8192).split_k == 1
    assert chosen(64, 64, 64).split_k == 1
    assert chosen(256, 256, 131072, preset="essential").split_k == 1


def test_the_essential_preset_has_the_essential_kernels_alone() -> None:
    problem = ck.dispatch.problem(512, 512, 512)
    pool = ck.dispatch.select(problem, arch="gfx942", preset="essential").pool
    algorithms = candidates(problem.signature, arch("gfx942"), "essential")
    assert tuple(key.algorithm for key in pool.keys) == algorithms
    assert pool.origin == "preset 'essential', built on demand"
    wider = ck.dispatch.select(problem, arch="gfx942", preset="compute").pool
    assert wider.keys[: len(pool)] == pool.keys
    assert len(wider) > len(pool)


def test_first_fit_and_other_families_are_as_with_the_essential_preset() -> None:
    problem = ck.dispatch.problem(8192, 8192, 8192)
    chosen = {
        name: ck.dispatch.select(problem, arch="gfx942", preset=name, strategy="first_fit").key
        for name in ("essential", "catalogue")
    }
    assert len(set(chosen.values())) == 1
    attention = ck.dispatch.select(
        ck.dispatch.attention_problem(1, 8, 512, 512, 128), arch="gfx942", preset="catalogue"
    )
    assert attention.origin == "preset 'essential', built on demand"


def test_the_preset_of_a_block_of_the_environment_and_by_default() -> None:
    problem = ck.dispatch.problem(16384, 16384, 16384, a=ck.bf16)
    with knobs.scope(CKLANG_PRESET=""):
        assert tile_of(problem, "gfx950", None) == (256, 256, 64)
        with ck.using(preset="essential"):
            assert tile_of(problem, "gfx950", None) == (128, 128, 32)
            with ck.using(strategy="heuristic"):
                assert tile_of(problem, "gfx950", None) == (128, 128, 32)
        with knobs.scope(CKLANG_PRESET="memory"):
            assert tile_of(problem, "gfx950", None) == (128, 128, 32)
        assert tile_of(problem, "gfx950", None) == (256, 256, 64)


def _in_a_block() -> None:
    with ck.using(preset="catalog"):
        pass


def _in_the_environment() -> None:
    with knobs.scope(CKLANG_PRESET="catalog"):
        ck.dispatch.select(ck.dispatch.problem(7, 7, 7), arch="gfx942")


@pytest.mark.parametrize(
    "act",
    [
        _in_a_block,
        _in_the_environment,
        lambda: ck.dispatch.select(ck.dispatch.problem(7, 7, 7), arch="gfx942", preset="catalog"),
    ],
)
def test_an_unknown_preset_is_refused_with_the_nearest_one(act: Callable[[], object]) -> None:
    with expect_error("K001", match="catalogue"):
        act()


SIGNATURES = {
    **{
        name: ck.dispatch.problem(512, 512, 512, a=getattr(ck, name), e=ck.bf16).signature
        for name in ("f16", "bf16", "f32", "fp8", "fp8_fnuz", "i8", "fp4")
    },
    "conv": ck.dispatch.conv_problem(
        (8, 56, 56, 64), (64, 3, 3, 64), spatial=2, padding=1
    ).signature,
}


@pytest.mark.parametrize("part", [part for part in parts("catalogue") if part != "essential"])
def test_every_tiling_of_the_catalogue_is_legal_for_something(part: str) -> None:
    tried: dict[str, bool] = {}
    for signature in SIGNATURES.values():
        for gpu in GPUS:
            for tiling in tilings(part, signature, gpu):
                legal = walk(GRID, signature, arch(gpu), pattern_of(Algorithm, tiling))
                tried[str(tiling)] = tried.get(str(tiling), False) or any(True for _ in legal)
    assert tried
    assert [case for case, legal in tried.items() if not legal] == []


@pytest.mark.parametrize("gpu", default_choice.GPUS)
def test_shapes_of_real_models_are_not_predicted_slower(gpu: str) -> None:
    required(published.TABLE)
    ratios = np.array([new / old for old, new in (p.us for p in default_choice.pairs(gpu, 60))])
    assert ratios.max() <= 1.0
    assert np.median(ratios) < 0.9


@pytest.fixture(scope="module")
def measured() -> conv_choice.Measured:
    required(conv_choice.TABLE)
    return conv_choice.Measured.read()


def test_convolutions_reach_the_speed_of_the_best_measured_kernel(
    measured: conv_choice.Measured,
) -> None:
    scores = conv_choice.scores(measured, conv_choice.predictions(measured, with_fit=False))
    assert scores["the better of two tiles, always"].mean < 0.80
    for kernels in ("30 kernels", "catalogue", "select"):
        choice = scores[f"{kernels}, in sample"]
        assert choice.mean > 0.96, kernels
        assert choice.median > 0.985, kernels
        assert choice.tenth > 0.91, kernels
        assert choice.mean > scores[f"{kernels}, constants of products"].mean, kernels
    held_out = fitted(measured.spec, "conv").error
    assert held_out["mean share"] > 0.965
    assert held_out["median share"] > 0.985
    assert held_out["tenth share"] > 0.91
    assert held_out["median"] < 0.08


def test_what_was_timed_are_channels_rounded_up(measured: conv_choice.Measured) -> None:
    constants = fitted(measured.spec, "conv").constants
    rows = np.array([i for i, p in enumerate(measured.problems) if p.channels % 16])
    assert len(rows) > 30
    known = np.isin(measured.columns, measured.known)
    error = {}
    for name, problems in (("published", measured.problems), ("timed", measured.timed)):
        us = conv_choice.predicted(replace(measured, timed=problems), constants, rows)
        error[name] = np.abs(us / measured.us[rows] - 1.0)[:, known].mean()
    assert error["timed"] < 0.7 * error["published"]


def test_the_catalogue_has_the_timed_kernels(measured: conv_choice.Measured) -> None:
    of_compv3 = {column for column in measured.columns if column.endswith("compv3")}
    assert set(measured.known) == of_compv3


M, N, K = ck.dims("M N K")
B, H, W, C, F = ck.dims("B H W C F")


@ck.op
def product(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
    return ck.relu(x @ w.T)


@ck.op
def convolution(x: ck.f16[B, H, W, C], w: ck.f16[F, 3, 3, C]) -> ck.f16[B, H, W, F]:
    return ck.relu(ck.conv(x, w, padding=1))


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(
    ("gpu", "m", "n", "k"), [("gfx942", 40, 70, 128), ("gfx950", 10, 200, 512)]
)
def test_what_a_product_gets_by_default_computes_it(gpu: str, m: int, n: int, k: int) -> None:
    with ck.using(arch=gpu, preset="catalogue"):
        check(product, (half(m, k), half(n, k)), gpu)
        chosen = ck.dispatch.select(product.problems(half(m, k), half(n, k))[0])
    assert launches(product)[0].key == chosen.key
    assert chosen.position >= chosen.pool.preferred


@pytest.mark.usefixtures("compiler")
def test_what_a_large_product_gets_by_default_computes_a_small_one() -> None:
    problem = ck.dispatch.problem(16384, 16384, 16384)
    algorithm = ck.dispatch.select(problem, arch="gfx950", preset="catalogue").key.algorithm
    check(product.using(algorithm), (half(300, 192), half(520, 192)), "gfx950")


@pytest.mark.usefixtures("compiler")
def test_what_a_convolution_gets_by_default_computes_it() -> None:
    x, w = half(2, 56, 56, 64), half(64, 3, 3, 64)
    with ck.using(arch="gfx950", preset="catalogue"):
        check(convolution, (x, w), "gfx950")
        chosen = ck.dispatch.select(convolution.problems(x, w)[0])
    assert launches(convolution)[0].key == chosen.key
    assert chosen.position >= chosen.pool.preferred
