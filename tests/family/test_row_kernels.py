# SPDX-License-Identifier: MIT
"""Kernels of rows: norms, softmax, quantisation and pointwise ops on emulated GPUs.

Each op runs as it is chosen and with algorithms that keep a row in registers, read it again for
each reduction, or share it among the waves of a workgroup.
"""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cklang as ck
from cklang import emulator
from cklang.device.device import open_device
from cklang.runtime.op import Op
from tests.support.arrays import drawn
from tests.support.checks import check, launches
from tests.support.coverage import Covered
from tests.support.typed import instance

pytestmark = pytest.mark.usefixtures("compiler")

B, H, M, K = ck.dims("B H M K")


@ck.op
def softmax(x: ck.f16[M, K]) -> ck.f16[M, K]:
    return ck.softmax(x, axis=-1)


@ck.op
def columns(x: ck.bf16[M, K]) -> ck.f32[M, K]:
    return ck.log_softmax(x, axis=0)


@ck.op
def residual_norm(
    x: ck.f16[M, K], residual: ck.f16[M, K], gain: ck.f16[K], bias: ck.f32[K]
) -> tuple[ck.f16[M, K], ck.f16[M, K]]:
    h = (x + residual).to(ck.f16)
    return h, ck.layer_norm(h, gain, bias)


@ck.op
def group_norm(x: ck.f16[B, H, M, K], gain: ck.f32[H, M]) -> ck.f16[B, H, M, K]:
    centred = x - ck.mean(x, axis=(2, 3), keepdims=True)
    spread = ck.mean(centred * centred, axis=(2, 3), keepdims=True)
    return ck.silu(centred * ck.rsqrt(spread + 1e-5) * gain[None, :, :, None])


@ck.op
def quantised(x: ck.bf16[M, K], gain: ck.bf16[K]) -> tuple[ck.i8[M, K], ck.f32[M, 1]]:
    y = ck.rms_norm(x, gain)
    scale = ck.max(ck.abs(y), axis=-1, keepdims=True) / 127.0
    return ck.round(y / (scale + 1e-6)).to(ck.i8), scale


@ck.op
def statistics(x: ck.f32[B, M, K]) -> tuple[ck.f32[B, M], ck.f32[B, M], ck.f32[B, M]]:
    return ck.var(x, axis=-1), ck.logsumexp(x, axis=-1), ck.norm(x, axis=-1)


@ck.op
def counted(x: ck.f16[M, K], limit: ck.f32) -> tuple[ck.i32[M], ck.i32[M]]:
    above = x > limit
    return above.to(ck.i32).sum(-1), ck.all(above, axis=-1).to(ck.i32)


@ck.op
def pointwise(x: ck.f16[B, M, K], y: ck.f32[M, B], bias: ck.bf16[K]) -> ck.bf16[B, M, K]:
    return ck.gelu(x + bias) * y.T[:, :, None]


OPS = (softmax, columns, residual_norm, group_norm, quantised, statistics, counted, pointwise)
ALGORITHMS = {
    "chosen": None,
    "again": ck.dispatch.RowwiseAlgorithm(threads=16, vector=1),
    "workgroup": ck.dispatch.RowwiseAlgorithm(threads=512, vector=1, chunks=4),
}
"""``again`` reads a row for each reduction; ``workgroup`` keeps up to 2048 elements of one."""

NOTHING_KEPT = (counted, pointwise)
"""Ops that need each element once."""


def with_algorithm(op: Op, algorithm: ck.dispatch.RowwiseAlgorithm | None) -> Op:
    if algorithm is None:
        return op
    return op.using(replace(algorithm, chunks=0) if op in NOTHING_KEPT else algorithm)


UNCHECKED = {quantised: 1.0}
"""The share of elements without a bound: what rounds an inexact value jumps."""


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.program.name)
@settings(max_examples=6, deadline=None)
@given(
    length=st.sampled_from([1, 7, 8, 64, 200, 513, 1024, 2048]),
    rows=st.integers(1, 9),
    seed=st.integers(0, 99),
)
def test_any_length(op: Op, algorithm: str, length: int, rows: int, seed: int) -> None:
    if op is residual_norm:  # the reference cannot bound the norm of one element
        length = max(length, 7)
    if op is group_norm:  # a row is all of [M, K]
        length = min(length, 200)
    args = drawn(op, {"B": 2, "H": 3, "M": rows, "K": length}, seed=seed)
    check(with_algorithm(op, ALGORITHMS[algorithm]), args, unchecked=UNCHECKED.get(op, 0.05))


@pytest.mark.parametrize("gpu", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"])
def test_every_gpu(gpu: str, covered: Covered) -> None:
    sizes = {"B": 2, "H": 2, "M": 3, "K": 96}
    for op in (softmax, residual_norm, quantised, pointwise):
        check(op, drawn(op, sizes), gpu, unchecked=UNCHECKED.get(op, 0.05))
        assert [each.key.family for each in launches(op)] == ["rowwise"]
    covered("softmax, norms, quantisation, pointwise alone", "f16", gpu)


def test_rows_longer_than_registers_are_read_again() -> None:
    (x,) = drawn(softmax, {"M": 2, "K": 70_000})
    check(softmax, [x])
    (launch,) = launches(softmax)
    assert instance(ck.dispatch.RowwiseAlgorithm, launch.key.algorithm).chunks == 0


@ck.op
def residual_quantised(
    x: ck.f16[M, K], residual: ck.f16[M, K], gain: ck.f16[K]
) -> tuple[ck.f16[M, K], ck.fp8_fnuz[M, K], ck.f32[M, 1]]:
    h = (x + residual).to(ck.f16)
    y = ck.rms_norm(h, gain)
    scale = ck.max(ck.abs(y), axis=-1, keepdims=True) / 240.0
    return h, (y / scale).to(ck.fp8_fnuz), scale


def test_a_kernel_that_keeps_all_it_may_is_one_function() -> None:
    op = residual_quantised.using(ck.dispatch.RowwiseAlgorithm(threads=256, vector=8, chunks=4))
    check(op, drawn(residual_quantised, {"M": 2, "K": 4097}), unchecked=0.05)
    (launch,) = launches(op)
    assert launch.resources.spills == 0


def test_idle_lanes_are_part_of_the_prediction() -> None:
    (problem,) = softmax.problems(*drawn(softmax, {"M": 64, "K": 4096}))
    algorithm = ck.dispatch.select(problem, arch="gfx942").key.algorithm
    assert (algorithm.threads, algorithm.vector, algorithm.chunks) == (256, 8, 2)


@pytest.mark.parametrize("length", [8, 13, 200, 509])
def test_rows_do_not_depend_on_their_number(length: int) -> None:
    args = drawn(residual_norm, {"M": 9, "K": length})
    op = residual_norm.using(ck.dispatch.RowwiseAlgorithm(threads=64, vector=8, chunks=1))
    together = op(*args, device="emu:gfx942")
    alone = op(*[each[4:5] if each.ndim > 1 else each for each in args], device="emu:gfx942")
    for all_rows, one in zip(together, alone, strict=True):
        assert all_rows[4:5].tobytes() == one.tobytes()


VECTORS = ck.dispatch.RowwiseAlgorithm(threads=64, vector=8)
"""Vectors of 8, of which the last two of a row overlap, for rows of any length."""


@pytest.mark.parametrize("op", [residual_norm, quantised, counted, pointwise])
@settings(max_examples=8, deadline=None)
@given(
    length=st.sampled_from([8, 9, 13, 15, 511, 513, 1027]),
    rows=st.integers(1, 5),
    offset=st.integers(0, 3),
    seed=st.integers(0, 99),
)
def test_vectors_of_any_row(op: Op, length: int, rows: int, offset: int, seed: int) -> None:
    args = drawn(op, {"B": 2, "M": rows, "K": length + offset}, seed=seed)
    padded = length + offset
    args = [
        each[..., offset:] if each.shape and each.shape[-1] == padded else each for each in args
    ]
    check(op.using(VECTORS), args, unchecked=UNCHECKED.get(op, 0.05))


@ck.op
def gained(x: ck.f16[M, K], gain: ck.f16[K], bias: ck.f16[K]) -> ck.f16[M, K]:
    return ck.rms_norm(x + bias, gain)


MANY_ROWS = ck.dispatch.RowwiseAlgorithm(threads=1024, vector=8, chunks=1)
"""A workgroup for a row, of which a compute unit has one at once."""


@ck.op
def gained_and_kept(
    x: ck.f16[M, K], gain: ck.f16[K], bias: ck.f16[K]
) -> tuple[ck.f16[M, K], ck.f16[M, K]]:
    h = (x + bias).to(ck.f16)
    return ck.rms_norm(h, gain), h


@pytest.mark.parametrize("op", [gained_and_kept, quantised], ids=lambda op: op.program.name)
@pytest.mark.parametrize("rows", [304, 305, 700])
def test_workgroups_go_on_with_other_rows(op: Op, rows: int) -> None:
    args = drawn(op, {"M": rows, "K": 77})
    several = op.using(MANY_ROWS)
    check(several, args, unchecked=UNCHECKED.get(op, 0.05))
    results = several(*args, device="emu:gfx942")
    alone = several(args[0][-1:], *args[1:], device="emu:gfx942")
    for all_rows, one in zip(results, alone, strict=True):
        assert all_rows[-1:].tobytes() == one.tobytes()


def test_what_rows_have_in_common_is_read_once_a_workgroup() -> None:
    args = drawn(gained, {"M": 8 * 304, "K": 1024})
    op = gained.using(ck.dispatch.RowwiseAlgorithm(threads=256, vector=4, chunks=1))
    op(*args, device="emu:gfx942")
    (launch,) = launches(op)
    stats = emulator.stats(open_device("emu:gfx942").index, 1)
    least = op.summary(*args, device="emu:gfx942").least_bytes
    assert stats.bytes_loaded + stats.bytes_stored < 1.6 * least  # 2, if each row read them
    assert launch.resources.spills == 0


@pytest.mark.parametrize("gpu", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"])
def test_nothing_spills_with_as_many_registers_as_the_rules_allow(gpu: str) -> None:
    for threads, vector, chunks in ((1024, 4, 4), (256, 8, 4)):
        op = gained.using(
            ck.dispatch.RowwiseAlgorithm(threads=threads, vector=vector, chunks=chunks)
        )
        op(*drawn(op, {"M": 2, "K": 8191}), device=f"emu:{gpu}")
        assert [each.resources.spills for each in launches(op)] == [0]
