# SPDX-License-Identifier: MIT
"""``strategy="tiered"``: a kernel that is compiled runs while a worker compiles the better one."""

import random
import threading
from collections.abc import Iterator, Sequence

import pytest

import cklang as ck
from cklang.build.builder import Builder, Wanted, shared_builder
from cklang.errors import error
from cklang.families.gemm.key import GemmKey
from cklang.fusion.functions import Functions
from cklang.keys import AnyKey
from cklang.selection import background
from cklang.selection.registry import Registry
from cklang.selection.select import select
from tests.support.algorithms import NARROW, WIDE
from tests.support.arrays import half
from tests.support.checks import check, launches
from tests.support.gemm_keys import RELU, key, shape

ARCH = "gfx942"
PROBLEM = shape(1024, 1024, 1024)


class Compiler:
    """Stands for a builder: knows what is compiled, and compiles when it is allowed to."""

    def __init__(self, *compiled: AnyKey) -> None:
        self.compiled = set(compiled)
        self.go = threading.Event()
        self.asked: list[AnyKey] = []
        self.fails = False

    def is_compiled(self, kernel: AnyKey, functions: Functions) -> bool:
        return kernel in self.compiled

    def build_all(self, wanted: Sequence[Wanted]) -> None:
        assert self.go.wait(10)
        self.asked += [kernel for kernel, _ in wanted]
        if self.fails:
            raise error("B020", label=wanted[0][0].label)
        self.compiled |= {kernel for kernel, _ in wanted}


@pytest.fixture
def builder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Compiler]:
    instead = Compiler()
    monkeypatch.setattr("cklang.build.builder.shared_builder", lambda: instead)
    monkeypatch.setattr(background, "_worker", background._Worker())
    yield instead
    instead.go.set()
    assert background.wait(10)


def three() -> tuple[Registry, list[AnyKey]]:
    """A registry, and its kernels from the quickest for the problem to the slowest."""
    mine = Registry("mine")
    for tile in ((64, 64, 32), (128, 128, 32), (64, 128, 32)):
        mine.add(key(tile=tile), RELU)
    rank = select(PROBLEM, registry=mine, arch=ARCH).pool
    times = rank.times_of(PROBLEM)
    return mine, [rank.keys[place] for place in sorted(range(3), key=lambda i: times[i])]


def choose(registry: Registry) -> tuple[AnyKey, AnyKey | None]:
    chosen = select(PROBLEM, registry=registry, arch=ARCH, strategy="tiered", functions=RELU)
    return chosen.key, chosen.awaited


def test_the_best_compiled_one_runs_until_the_best_is_there(builder: Compiler) -> None:
    registry, (best, second, third) = three()
    builder.compiled = {second, third}
    assert choose(registry) == (second, best)
    assert choose(registry) == (second, best)
    builder.go.set()
    assert background.wait(10)
    assert choose(registry) == (best, None)
    assert builder.asked == [best]


def test_what_is_compiled_needs_no_worker(builder: Compiler) -> None:
    registry, (best, second, _) = three()
    builder.compiled = {best, second}
    assert choose(registry) == (best, None)
    assert background.wait(0)


def test_where_nothing_is_compiled_the_call_compiles_the_best(builder: Compiler) -> None:
    registry, (best, *_) = three()
    chosen = select(PROBLEM, registry=registry, arch=ARCH, strategy="tiered", functions=RELU)
    assert (chosen.key, chosen.awaited) == (best, None)
    assert "no other kernel is compiled either" in chosen.reason


def test_a_kernel_that_cannot_be_built_leaves_the_other(
    builder: Compiler, caplog: pytest.LogCaptureFixture
) -> None:
    registry, (best, second, _) = three()
    builder.compiled, builder.fails = {second}, True
    builder.go.set()
    assert choose(registry) == (second, best)
    assert background.wait(10)
    assert choose(registry) == (second, best)
    registry.forget_choices()
    assert choose(registry) == (second, best)
    assert background.wait(10)
    assert builder.asked == [best], "it is asked for once"


def test_it_is_off_by_default(builder: Compiler) -> None:
    registry, (best, second, _) = three()
    builder.compiled = {second}
    chosen = select(PROBLEM, registry=registry, arch=ARCH, functions=RELU)
    assert (chosen.key, chosen.awaited) == (best, None)
    assert background.wait(0)


M, N, K = ck.dims("M N K")


@pytest.mark.usefixtures("compiler")
def test_calls_run_with_one_and_then_with_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    factor = 1.0 + random.SystemRandom().random()

    @ck.op
    def scaled(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
        return (x @ w.T) * factor

    # Stencils of the catalogue are compiled; here a kernel counts as compiled with its function,
    # which no other run has.
    monkeypatch.setattr(
        Builder, "is_compiled", lambda self, kernel, functions: self.find(kernel, functions)
    )
    x, w = half(256, 64), half(192, 64)
    registry, declared = Registry("two"), Registry("declared")
    with ck.using(arch=ARCH):
        (problem,) = scaled.problems(x, w)
        scaled.declare(x, w, registry=declared)
    functions = next(iter(declared)).functions
    for algorithm in (NARROW, WIDE):
        registry.add(GemmKey(problem.signature, algorithm, ARCH), functions)
    best = select(problem, registry=registry, arch=ARCH).key
    (other,) = (kernel for kernel in registry if kernel.key != best)
    shared_builder().build_all([(other.key, other.functions)])
    op = scaled.using(registry=registry, strategy="tiered")
    check(op, (x, w), ARCH)
    assert (launches(op)[0].key, launches(op)[0].awaited) == (other.key, best)
    assert background.wait(120)
    check(op, (x, w), ARCH)
    assert (launches(op)[0].key, launches(op)[0].awaited) == (best, None)
