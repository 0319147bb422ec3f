# SPDX-License-Identifier: MIT
"""Registries compare by identity, and nothing that is cached keeps one alive."""

import gc
import weakref

import numpy as np
import pytest

import cklang as ck
from cklang.selection.registry import Registry
from tests.support.gemm_keys import RELU, key
from tests.support.gemm_ops import linear


def filled() -> Registry:
    registry = Registry("mine")
    registry.add(key(), RELU)
    return registry


def test_equal_registries_have_equal_hashes() -> None:
    one, other = filled(), filled()
    assert one == one
    assert one != other
    assert len({one, other}) == 2
    assert one.same_as(other)


def test_a_selection_keeps_no_registry() -> None:
    registry = filled()
    problem = ck.dispatch.problem(64, 64, 64)
    chosen = ck.dispatch.select(problem, registry=registry, arch="gfx942")
    watched = weakref.ref(registry)
    del registry
    gc.collect()
    assert watched() is None
    assert chosen.key.arch == "gfx942"


@pytest.mark.usefixtures("emulator")
def test_a_call_that_is_remembered_keeps_no_registry() -> None:
    registry = filled()
    with ck.using(registry=registry, arch="gfx942"):
        result = linear(np.zeros((0, 8), np.float16), np.zeros((4, 8), np.float16))
    assert result.shape == (0, 4)
    watched = weakref.ref(registry)
    del registry
    gc.collect()
    assert watched() is None


def test_what_is_derived_is_kept_until_a_kernel_changes() -> None:
    registry, calls = filled(), []

    def count() -> int:
        calls.append(len(registry))
        return len(registry)

    assert [registry.derived("count", count) for _ in range(3)] == [1, 1, 1]
    assert calls == [1]
    registry.add(key("gfx950"), RELU)
    assert registry.derived("count", count) == 2
    registry.remove(key("gfx950"))
    assert registry.derived("count", count) == 1
    assert calls == [1, 2, 1]
    for number in range(5000):
        registry.derived(number, count)
    registry.derived("count", count)
    assert len(calls) == 5004, "what was asked for long ago is forgotten"
