# SPDX-License-Identifier: MIT
"""How long kernels of rows wait: loads that overlap, and lanes that exchange what they have."""

import re

import numpy as np
import pytest

import cklang as ck
from cklang import emulator
from cklang.runtime.op import Op
from tests.support.arrays import drawn
from tests.support.checks import check, launches

pytestmark = pytest.mark.usefixtures("compiler")

M, K = ck.dims("M K")

OWN = ck.dispatch.RowwiseAlgorithm(threads=256, vector=8, chunks=2)
UPSTREAM = ck.dispatch.CkTileRows(threads=256, vector=8, repeats=2)

_WAIT = re.compile(r"s_waitcnt .*vmcnt|s_wait_loadcnt")


@ck.op
def rms_norm(x: ck.f16[M, K], gain: ck.f16[K]) -> ck.f16[M, K]:
    return ck.rms_norm(x, gain, eps=1e-5)


@ck.op
def layer_norm(x: ck.bf16[M, K], gain: ck.bf16[K], bias: ck.bf16[K]) -> ck.bf16[M, K]:
    return ck.layer_norm(x, gain, bias, eps=1e-6)


@ck.op
def row_sum(x: ck.f32[M, K]) -> ck.f32[M]:
    return ck.sum(x, axis=-1)


@ck.op
def distances(x: ck.f16[M, K]) -> ck.f32[M]:
    """Needs each element twice, so registers may hold it."""
    return ck.sum(x - ck.max(x, axis=-1, keepdims=True), axis=-1)


@pytest.mark.parametrize("op", [rms_norm, layer_norm], ids=lambda op: op.program.name)
@pytest.mark.parametrize("rows", [1, 64, 256])
def test_few_rows_take_no_longer_than_by_ck_tile(op: Op, rows: int) -> None:
    args = drawn(op, {"M": rows, "K": 4096})
    ours, theirs = (
        ck.predict(op.using(each), *args, device="emu:gfx942").us for each in (OWN, UPSTREAM)
    )
    assert ours <= 1.1 * theirs


@pytest.mark.parametrize("gpu", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"])
def test_all_loads_are_issued_before_the_first_wait(gpu: str) -> None:
    op = rms_norm.using(OWN)
    check(op, drawn(op, {"M": 3, "K": 4096}), gpu)
    (launch,) = launches(op)
    assert launch.resources.spills == 0
    code = launch.artifact.code_object.read_bytes()
    lines = emulator.disassemble(gpu, code).splitlines()
    loads = [place for place, line in enumerate(lines) if "global_load" in line]
    # Two vectors of the gain and two of the row; other code follows.
    assert not any(_WAIT.search(line) for line in lines[loads[0] : loads[3]])


@pytest.mark.parametrize(
    ("gpu", "threads"),
    [
        ("gfx942", 32),
        ("gfx942", 128),
        ("gfx1201", 8),
        ("gfx1201", 1024),
        *(pytest.param("gfx942", each, marks=pytest.mark.full) for each in (2, 4, 16, 1024)),
        *(pytest.param("gfx1201", each, marks=pytest.mark.full) for each in (32, 64, 512)),
    ],
)
def test_lanes_and_waves_of_a_row_join_each_element_once(gpu: str, threads: int) -> None:
    x = np.random.default_rng(0).integers(-9, 9, (5, 3000)).astype(np.float32)
    op = row_sum.using(ck.dispatch.RowwiseAlgorithm(threads=threads, vector=1))
    np.testing.assert_array_equal(op(x, device=f"emu:{gpu}"), x.sum(axis=-1))


def test_lanes_without_an_element_load_nothing() -> None:
    op = distances.using(ck.dispatch.RowwiseAlgorithm(threads=64, vector=8, chunks=1))
    for length in (8, 13, 512):
        check(op, [drawn(op, {"M": 5, "K": length})[0]], unchecked=1.0)
