# SPDX-License-Identifier: MIT
"""Every family of kernels predicts a time: those with choices, and those that only move memory."""

from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.arch import arch
from cklang.families import FAMILIES
from cklang.families.memory_cost import MemoryCost, memory_time
from cklang.families.scan.family import SCAN, ScanProblem
from cklang.families.scan.key import ScanKey
from cklang.runtime.op import Op
from tests.support.arrays import half
from tests.support.attention_keys import plain
from tests.support.gemm_ops import linear

M, N, K = ck.dims("M N K")
B, H, S, T, D = ck.dims("B H S T D")
GPU = "emu:gfx942"


@ck.op
def folded(x: ck.f16[M, 8, 8, 64], w: ck.f16[64, 3, 3, 64]) -> ck.f16[M, 6, 6, 64]:
    return ck.conv(x, w)


@ck.op
def normed(x: ck.f16[M, K]) -> ck.f16[M, K]:
    return ck.softmax(x)


@ck.op
def running(x: ck.f16[M, K]) -> ck.f16[M, K]:
    return ck.cumsum(x, 1)


@ck.op
def best(x: ck.f16[M, K]) -> tuple[ck.f16[M, 4], ck.i32[M, 4]]:
    return ck.topk(x, 4)


@ck.op
def routed(x: ck.f16[M, 64]) -> tuple[ck.f32[M, 4], ck.i32[M, 4]]:
    return ck.moe_gate(x, k=4)


@ck.op
def grouped(ids: ck.i32[M], like: ck.f16[K]) -> tuple[ck.i32[M], ck.i32[K]]:
    return ck.group_ids(ids, K)


@ck.op
def drawn(x: ck.f16[M, K]) -> ck.i32[M]:
    return ck.sample(x, 7)


@ck.op
def added(x: ck.f32[M, K], i: ck.i32[N], y: ck.f32[N, K]) -> ck.f32[M, K]:
    return ck.scatter_add(x, i, y)


@ck.op
def summed(x: ck.f16[M, K]) -> ck.f32[M]:
    return ck.sum(x, axis=-1)


@ck.op
def pooled(x: ck.f16[M, 8, 8, 64]) -> ck.f16[M, 4, 4, 64]:
    return ck.max_pool(x, 2)


HEADS = (half(1, 2, 64, 64), half(1, 2, 4096, 64), half(1, 2, 4096, 64))
CALLS: list[tuple[Op, tuple[Any, ...], str]] = [
    (linear, (half(64, 64), half(64, 64)), "gemm"),
    (folded, (half(2, 8, 8, 64), half(64, 3, 3, 64)), "conv"),
    (pooled, (half(2, 8, 8, 64),), "windows"),
    (plain, HEADS, "attention"),
    (normed, (half(64, 64),), "rowwise"),
    (summed.using(ck.dispatch.CkTileRows(threads=64)), (half(64, 64),), "ck_rows"),
    (running, (half(64, 64),), "scan"),
    (best, (half(64, 64),), "sort"),
    (routed, (half(64, 64),), "moe_gate"),
    (drawn, (half(64, 64),), "sample"),
    (grouped, (np.zeros(64, np.int32), half(8)), "group_ids"),
    (
        added,
        (np.zeros((64, 64), np.float32), np.zeros(9, np.int32), np.zeros((9, 64), np.float32)),
        "scatter",
    ),
    (plain.using(splits=4), HEADS, "combine"),
]


@pytest.mark.parametrize(("op", "args", "family"), CALLS, ids=[each[-1] for each in CALLS])
def test_a_family_predicts_a_time(op: Op, args: tuple[Any, ...], family: str) -> None:
    summary = op.summary(*args, device=GPU)
    (kernel,) = [each for each in summary.kernels if each.family == family]
    launch = memory_time(0, arch("gfx942"))
    assert kernel.microseconds is not None
    assert kernel.microseconds > 0.5 * launch * kernel.launches
    assert summary.microseconds is not None
    assert "unknown" not in str(summary)


def test_the_families_with_calls_of_their_own_are_tested() -> None:
    helpers = {"append", "attention_backward", "layout_copy", "reduce"}
    missing = set(FAMILIES) - helpers - {each[-1] for each in CALLS}
    assert not missing, "add a call to CALLS, or the family to those that others launch"


def test_kernels_that_move_memory_take_a_launch_and_their_bytes() -> None:
    (small,), (large,) = (running.problems(half(rows, 4096)) for rows in (64, 1 << 14))
    assert isinstance(large, ScanProblem)
    assert large.bytes == 2 * 2 * 4096 << 14
    spec = arch("gfx942")
    cost = SCAN.cost([ScanKey(large.signature, None, "gfx942")], spec, {})
    assert isinstance(cost, MemoryCost)
    assert cost.times(large) > 10 * cost.times(small)
    (line,) = cost.table([0], large)
    assert "launch" in line
    assert "memory" in line


def test_copies_around_a_kernel_are_part_of_its_time() -> None:
    i, y = np.zeros(9, np.int32), np.zeros((9, 4096), np.float32)
    small, large = (np.zeros((rows, 4096), np.float32) for rows in (16, 1 << 13))
    first, second = (added.summary(x, i, y, device=GPU) for x in (small, large))
    assert first.launches == second.launches == 2
    assert first.microseconds is not None
    assert second.microseconds is not None
    copied = memory_time(2 * large.nbytes, arch("gfx942"))
    assert second.microseconds - first.microseconds > 0.9 * copied
