# SPDX-License-Identifier: MIT
"""``strategy="compiled_first"``: what is compiled runs, and else what programs share."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import cklang as ck
from cklang.build.builder import shared_builder
from cklang.fusion.functions import Functions
from cklang.keys import AnyKey
from cklang.selection.registry import Registry
from cklang.selection.select import AnySelection, select
from tests.support.gemm_keys import RELU, shape

ARCH = "gfx942"
SMALL, LARGE = shape(80, 512, 128), shape(4096, 4096, 4096)


class Compiler:
    """Stands for a builder that knows what is compiled."""

    def __init__(self) -> None:
        self.compiled: set[AnyKey] = set()

    def is_compiled(self, kernel: AnyKey, functions: Functions) -> bool:
        return kernel in self.compiled

    def find(self, kernel: AnyKey, functions: Functions) -> None:
        return None


@pytest.fixture
def builder(monkeypatch: pytest.MonkeyPatch) -> Compiler:
    instead = Compiler()
    monkeypatch.setattr("cklang.build.builder.shared_builder", lambda: instead)
    return instead


def choose(problem: object, strategy: str = "compiled_first") -> AnySelection:
    with ck.using(registry=Registry("none"), preset="catalogue"):
        return select(problem, arch=ARCH, strategy=strategy, functions=RELU)


def test_products_share_a_tile_where_nothing_is_compiled(builder: Compiler) -> None:
    chosen = [choose(shape(m, n, k)) for m, n, k in ((80, 512, 128), (80, 128, 256), (80, 192, 64))]
    assert len({each.key for each in chosen}) == 1
    assert "programs share this one; a GPU's own choice is " in chosen[0].reason
    assert choose(SMALL, "heuristic").key.label in chosen[0].reason


def test_what_is_compiled_is_taken(builder: Compiler) -> None:
    best = choose(SMALL, "heuristic").key
    pool = choose(SMALL).pool
    other = next(
        key
        for key, legal in zip(pool.keys, pool.legal(SMALL), strict=True)
        if legal and key.algorithm.tile == best.algorithm.tile and key != best
    )
    builder.compiled = {other}
    chosen = choose(SMALL)
    assert chosen.key == other
    assert "compiled already" in chosen.reason


def test_the_best_one_needs_no_word(builder: Compiler) -> None:
    best = choose(SMALL, "heuristic")
    builder.compiled = {best.key}
    assert choose(SMALL).reason == best.reason


def test_what_is_much_slower_is_not_taken(builder: Compiler) -> None:
    pool = choose(LARGE).pool
    times = pool.times_of(LARGE)
    builder.compiled = {key for key, t in zip(pool.keys, times, strict=True) if t > 2 * min(times)}
    assert choose(LARGE).key not in builder.compiled


def test_it_looks_into_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CKLANG_CACHE_DIR", str(tmp_path))
    wanted = choose(SMALL).key, RELU
    one = shared_builder()
    assert one.store.root == tmp_path
    assert not one.is_compiled(*wanted)
    job = one._job(*wanted)
    for kind in ("stencil", "host"):
        one.store.get_or_build(kind, job.stencil, lambda folder: {})
    assert one.is_compiled(*wanted)
    assert "compiled already" in choose(SMALL).reason


def test_an_op_says_so(builder: Compiler) -> None:
    x, w = ck.dims("X W")

    @ck.op
    def product(a: ck.f16[x, 64], b: ck.f16[w, 64]) -> ck.f16[x, w]:
        return a @ b.T

    arrays = [np.empty(shape, np.float16) for shape in ((80, 64), (96, 64))]
    with ck.using(strategy="compiled_first", preset="catalogue"):
        assert "a GPU's own choice is" in str(product.explain(*arrays, device="emu:gfx942"))
    assert "own choice" not in str(product.explain(*arrays, device="emu:gfx942"))
