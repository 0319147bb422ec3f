# SPDX-License-Identifier: MIT
"""Registries built by threads and by processes, failures in the summary, autotune on a device."""

from __future__ import annotations

import json
import multiprocessing
from concurrent.futures import Future, ProcessPoolExecutor
from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.build import parallel
from cklang.families.attention.helper_keys import reduce_key
from cklang.fusion.functions import NO_FUNCTIONS
from cklang.selection.registry import Registry
from cklang.selection.select import select
from cklang.testing import plain_key, self_test
from cklang.types import f16
from tests.support.gemm_keys import RELU, key, shape

NARROW: dict[str, Any] = {
    "tile": (64, 64, 32),
    "warp_tile": (16, 16, 32),
    "vector_a": 1,
    "vector_b": 1,
    "vector_e": 1,
}


class Here:
    """An executor that is no thread pool: pickles nothing, runs at once, and remembers."""

    def __init__(self) -> None:
        self.tasks: list[tuple[Any, ...]] = []

    def submit(self, call: Any, *arguments: Any) -> Future[Any]:
        json.dumps(arguments)
        self.tasks.append(arguments)
        done: Future[Any] = Future()
        done.set_result(call(*arguments))
        return done


@pytest.mark.usefixtures("compiler")
def test_what_cannot_be_generated_is_a_failure_of_its_kernel() -> None:
    registry = Registry("mine")
    registry.add(key(num_wave_groups=2), RELU)
    summary = registry.build(max_workers=1)
    (why,) = summary.failures.values()
    assert why.code == "L003"
    assert summary.artifacts == ()
    assert "0 of 1 kernels" in str(summary)
    assert "failed: " in str(summary)


@pytest.mark.usefixtures("compiler")
def test_other_executors_get_plain_data_a_task_for_each_stencil() -> None:
    registry = Registry("mine")
    registry.add(key(num_wave_groups=2), RELU)
    registry.add(key(num_wave_groups=2, tile=(64, 64, 32)), RELU)
    here = Here()
    summary = registry.build(executor=here)  # type: ignore[arg-type]
    assert len(here.tasks) == 2
    assert [result.key for result in summary.results] == [kernel.key for kernel in registry]
    assert len(summary.failures) == 2


def test_workers_build_in_the_same_place() -> None:
    settings = parallel.settings()
    assert settings["CKLANG_JOBS"] == "1"
    assert "CKLANG_CACHE_DIR" in settings


@pytest.mark.usefixtures("compiler")
def test_processes_build_what_threads_find() -> None:
    registry = Registry("mine")
    registry.add(key(**NARROW), RELU)
    registry.add(reduce_key("gfx942", f16, dot=True), NO_FUNCTIONS)
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as pool:
        summary = registry.build(executor=pool)
    assert not summary.failures
    again = registry.build(max_workers=1)
    assert all(artifact.cached for artifact in again.artifacts)
    assert [a.folder for a in again.artifacts] == [a.folder for a in summary.artifacts]
    imported = Registry.from_json(json.loads(json.dumps(registry.to_json())))
    assert imported.same_as(registry)
    assert imported.build().artifacts[0].folder == summary.artifacts[0].folder


@pytest.mark.usefixtures("compiler")
def test_autotune_asks_the_clock_on_an_emulated_gpu() -> None:
    registry = Registry("mine")
    registry.add(key(**NARROW), RELU)
    selection = select(shape(70, 40, 33), registry=registry, arch="gfx942", strategy="autotune")
    assert "µs by the clock (the GPU is emulated)" in selection.reason
    assert "emulated gfx942" in selection.reason


@pytest.mark.usefixtures("compiler")
def test_a_call_is_served_by_its_registry() -> None:
    m, n, k = ck.dims("M N K")

    @ck.op
    def relu(x: ck.f16[m, k], w: ck.f16[n, k]) -> ck.f16[m, n]:
        return ck.relu(x @ w.T)

    registry = Registry("mine")
    x, w = (np.ones((size, 33), np.float16) for size in (70, 40))
    some = ck.dispatch.pattern(warps=(2, 2, 1), **NARROW)
    assert relu.declare(x, w, among=some, registry=registry, device="emu:gfx942") == 1
    with ck.using(registry=registry, arch="gfx942"):
        assert np.array_equal(relu(x, w), np.full((70, 40), 33, np.float16))
        assert relu.last is not None
        assert relu.last.device == "emulated gfx942"
        assert relu.last.launches[0].key in registry
        assert "registry 'mine'" in relu.explain(x, w)


@pytest.mark.usefixtures("compiler")
def test_a_self_test_counts_wrong_elements() -> None:
    from dataclasses import replace

    from tests.support.algorithms import BASE

    kernel_key = plain_key(replace(BASE, **NARROW), f16, "gfx942")
    outcome = self_test(kernel_key, (70, 40, 33), "emu:gfx942")
    assert (outcome.wrong, outcome.elements) == (0, 2800)
    assert str(outcome) == "right: all 2800 elements exact"
