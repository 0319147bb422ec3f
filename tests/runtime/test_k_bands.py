# SPDX-License-Identifier: MIT
"""Products that are cut along K: chains of launches over partial sums, with a limit of kilobytes.

The cut itself is tested with the real limit too, without memory.
"""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cklang as ck
from cklang.device.preshuffle import Arrangement
from cklang.families.gemm import bands
from cklang.families.gemm.bands import Band, bands_of
from cklang.families.gemm.k_bands import Link, fitted, kernel_of, link_of
from cklang.families.gemm.key import DKind, EpilogueKind, Pipeline, Scale
from cklang.families.gemm.launch_operands import launch_operands_of
from cklang.families.gemm.plan import FusedGemm
from cklang.families.gemm.problem import Matrix, Problem
from cklang.families.gemm.synthetic import problem
from cklang.fusion.plan import Plan
from cklang.runtime.op import Op
from cklang.testing.strategies import Layout, arrays, strided
from cklang.tune.measure import measure
from cklang.tune.task import TuningTask, problem_text, tasks_of
from cklang.types import DType
from tests.support.algorithms import DEEP, narrow, pipelined, wide
from tests.support.arrays import drawn
from tests.support.checks import check, compare, launches
from tests.support.typed import instance, only

M, N, K, G = ck.dims("M N K G")


@ck.op
def weight_gradient(
    dy: ck.bf16[K, M], x: ck.bf16[K, N], bias: ck.f32[N], res: ck.bf16[M, N]
) -> ck.bf16[M, N]:
    return ck.relu(dy.T @ x + bias) + res


@ck.op
def plain(dy: ck.f16[K, M], x: ck.f16[K, N]) -> ck.f32[M, N]:
    return dy.T @ x


@ck.op
def integers(a: ck.i8[K, M], b: ck.i8[K, N]) -> ck.i32[M, N]:
    return a.T @ b


@ck.op
def batch(a: ck.f16[G, K, M], b: ck.f16[G, K, N]) -> ck.f32[G, M, N]:
    return a.mT @ b


@ck.op
def computed(x: ck.f16[K, M], y: ck.f16[K, N], column: ck.f32[K]) -> ck.f32[M, N]:
    return (ck.relu(x) * column[:, None]).to(ck.f16).T @ y


@ck.op
def scaled(
    x: ck.fp8_fnuz[M, K], w: ck.fp8_fnuz[N, K], sx: ck.f32[M, K / 128], sw: ck.f32[N / 128, K / 128]
) -> ck.f32[M, N]:
    return ck.gemm(x, w.T, scale_a=sx, scale_b=sw.T)


SINGLE = narrow(2, warp_tile=DEEP)
PREPARED = pipelined(
    narrow(2, tile=(32, 64, 64), warps=(1, 4, 1), warp_tile=DEEP, vector_b=8),
    Pipeline.PRESHUFFLE_V2,
)


def limit(patch: pytest.MonkeyPatch, most: int) -> None:
    """Let operands span fewer bytes than this."""
    patch.setattr(bands, "MOST_BYTES", most)


def far(rows: int, columns: int) -> Any:
    """An array of bf16 that nobody may read: it has the strides of a matrix and no memory."""
    return np.lib.stride_tricks.as_strided(
        np.zeros(1, ck.bf16.numpy), (rows, columns), (2 * columns, 2)
    )


# --- the cut


@pytest.mark.parametrize(
    ("extents", "layouts", "counts", "largest"),
    [
        # The gradient of a language model's last weight: dlogits.T @ x, then x.T @ dlogits.
        ((128256, 4096, 16384), "crr", (1, 1, 2), (128256, 4096, 8192)),
        ((4096, 128256, 16384), "crr", (1, 1, 2), (4096, 128256, 8192)),
        # Partial sums in f32 span 2 GiB where a result in bf16 does not.
        ((131072, 4096, 16384), "crr", (2, 1, 3), (65536, 4096, 6144)),
        # A row alone spans 4 GiB.
        ((1, 1, 1 << 31), "rcr", (1, 1, 3), (1, 1, 715828224)),
        # Two bands of rows do, and make no partial sums.
        ((8192, 4096, 1 << 17), "crr", (2, 1, 1), (4096, 4096, 1 << 17)),
    ],
)
def test_k_is_cut_where_rows_and_columns_do_not_help(
    extents: tuple[int, ...], layouts: str, counts: tuple[int, ...], largest: tuple[int, ...]
) -> None:
    whole = problem(*extents, a=ck.bf16, layouts=layouts)
    parts = list(bands_of(whole))
    assert {band.counts for _, band in parts} == {counts}
    assert parts[0][1].largest == largest
    assert all(each.span * each.dtype.bytes < 1 << 31 for part, _ in parts for each in part.inputs)


@pytest.mark.usefixtures("emulator")
def test_a_chain_of_16384_by_128256_logits() -> None:
    args = [far(16384, 128256), far(16384, 4096), np.zeros(4096, np.float32), far(128256, 4096)]
    first, last = (instance(Problem, each) for each in weight_gradient.problems(*args))
    assert (first.e.dtype, last.e.dtype) == (ck.f32, ck.bf16)
    assert (first.m, first.n, first.k) == (last.m, last.n, last.k) == (128256, 4096, 8192)
    assert (first.d, last.d[-1].value) == ((), first.e.value)
    text = weight_gradient.explain(*args, device="emu:gfx942")
    assert "2 bands of up to 128256 rows, 4096 columns and 8192 of K" in text
    assert "(1 along the rows, 1 along the columns, 2 along K" in text


def test_bands_of_k_hold_whole_blocks_and_groups() -> None:
    scale = Scale(dtype=ck.f32, block=(1, 96))
    blocks = problem(64, 1 << 20, 3000, a=ck.fp8, e=ck.f32, layouts="rrr", scale_a=scale)
    depths = {part.k for part, _ in bands_of(blocks)}
    assert [depth % 96 for depth in sorted(depths)[1:]] == [0]
    sparse = problem(64, 1 << 20, 3001, layouts="rrr", sparse=True)
    assert all(part.k % 4 == 0 for part, band in bands_of(sparse) if link_of(band) is Link.FIRST)


def test_packed_and_prepared_matrices_are_cut_along_every_axis() -> None:
    packed = problem(64, 1 << 20, 8192, b=ck.i4)
    assert len(list(bands_of(packed))) > 4
    for part, band in bands_of(packed):
        _, columns, depth = band.place
        begin = columns * band.largest[1] * 8192 + depth * band.largest[2]
        assert band.moves[1] == begin // 2
        assert instance(Matrix, part.b).span < 1 << 31
    order = Arrangement(n=16, k=32, lanes=4)
    prepared = problem(64, 1 << 20, 8192, a=ck.f16, layouts="rpr", prepared=order)
    parts = list(bands_of(prepared))
    assert len(parts) > 8
    for part, band in parts:
        begin = band.place[1] * band.largest[1]
        assert begin % order.n == 0
        assert band.moves[1] == begin * 8192 * 2
        assert instance(Matrix, part.b).span * 2 < 1 << 31


@pytest.mark.usefixtures("emulator")
def test_k_is_not_cut_under_an_epilogue_of_eight_operands_or_in_a_group() -> None:
    eight = [(ck.f32, DKind.ROW)] * 8
    huge = problem(128256, 4096, 16384, a=ck.bf16, layouts="crr", d=eight)
    assert [band.count for _, band in bands_of(huge)] == [1]
    with pytest.raises(ck.CkError, match="partial sums would be one more"):
        ck.dispatch.select(huge, arch="gfx942")
    fewer = replace(huge, d=huge.d[:7])
    assert [band.count for _, band in bands_of(fewer)] == [2, 2]
    assert [band.count for _, band in bands_of(replace(fewer, grouped=True))] == [1]


def test_the_epilogue_of_each_launch() -> None:
    args = [np.zeros((4, 3), ck.bf16.numpy), np.zeros((4, 5), ck.bf16.numpy)]
    args += [np.zeros(5, np.float32), np.zeros((3, 5), ck.bf16.numpy)]
    kernel = only(FusedGemm, instance(Plan, weight_gradient.fusion(*args)).kernels)
    first, middle, last = (kernel_of(kernel, stage) for stage in Link)
    assert [str(each.result.type) for each in (first, middle, last)] == [
        "f32[M, N]",
        "f32[M, N]",
        "bf16[M, N]",
    ]
    assert [len(each.reads) for each in (first, middle, last)] == [0, 1, 3]
    assert [operation.op for operation in last.epilogue.body] == ["add", "add", "relu", "add"]
    assert [value.name for value in last.epilogue.params] == ["acc", "d0", "d1", "d2"]
    assert [value.name for value in last.epilogue.body[0].operands] == ["acc", "d2"]


def test_a_named_algorithm_is_fitted_to_each_launch() -> None:
    named = wide(1)
    widths = [
        (each.vector_e, each.vector_d)
        for each in (fitted(named, Band(index=i, counts=(1, 1, 3))) for i in range(3))
    ]
    assert widths == [(4, ()), (4, (4,)), (8, (8, 4))]
    assert fitted(named, Band()) is named
    assert fitted(None, Band(counts=(1, 1, 2))) is None


# --- calls


@pytest.mark.usefixtures("compiler")
@settings(max_examples=15)
@given(data=st.data())
def test_every_shape_and_stride_with_bias_and_residual(data: st.DataObject) -> None:
    m, n, k = (data.draw(st.integers(1, most)) for most in (90, 90, 250))
    dense = (Layout.ROW, Layout.PADDED_ROW, Layout.OFFSET)
    shapes = ((k, m), (k, n), (n,), (m, n))
    types = (ck.bf16, ck.bf16, ck.f32, ck.bf16)
    args = [
        data.draw(strided(data.draw(arrays(dtype, shape)), dense))
        for dtype, shape in zip(types, shapes, strict=True)
    ]
    with pytest.MonkeyPatch.context() as patch:
        limit(patch, data.draw(st.integers(2500, 9000)))
        check(weight_gradient.using(SINGLE), args, unchecked=1)


def chain(op: Op, args: list[Any], most: int, patch: pytest.MonkeyPatch) -> list[DType]:
    """Check a call under a limit, twice; return what each of its launches stores."""
    limit(patch, most)
    check(op, args)
    check(op, args)
    return [instance(Problem, launch.problem).e.dtype for launch in launches(op)]


@pytest.mark.usefixtures("compiler")
def test_integers_are_added_up_as_integers(monkeypatch: pytest.MonkeyPatch) -> None:
    op = integers.using(narrow(warp_tile=DEEP))
    args = drawn(integers, {"M": 33, "N": 40, "K": 300})
    assert chain(op, args, 5500, monkeypatch) == [ck.i32] * 3


@pytest.mark.usefixtures("compiler")
def test_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    op = batch.using(narrow(warp_tile=DEEP))
    args = drawn(batch, {"G": 3, "M": 33, "N": 40, "K": 150})
    assert len(chain(op, args, 5500, monkeypatch)) > 2


@pytest.mark.usefixtures("compiler")
def test_a_matrix_that_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    op = computed.using(narrow(warp_tile=DEEP))
    args = drawn(computed, {"M": 33, "N": 40, "K": 150})
    assert len(chain(op, args, 5500, monkeypatch)) > 2


@pytest.mark.usefixtures("emulator")
def test_every_launch_of_a_call_is_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    limit(monkeypatch, 5500)
    registry = ck.dispatch.Registry("bands")
    args = drawn(weight_gradient, {"M": 33, "N": 40, "K": 150})
    op = weight_gradient.using(SINGLE)
    op.declare(*args, device="emu:gfx942", registry=registry)
    keys = [kernel.key for kernel in registry]
    assert {len(key.signature.d) for key in keys} == {0, 1, 3}


@pytest.mark.usefixtures("compiler")
def test_block_scales(monkeypatch: pytest.MonkeyPatch) -> None:
    op = scaled.using(narrow(tile=(64, 64, 64), warp_tile=DEEP))
    args = drawn(scaled, {"M": 3, "N": 1, "K": 1000})
    assert len(chain(op, args, 600, monkeypatch)) == 3 * 2


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("epilogue", EpilogueKind)
def test_partial_sums_are_changed_in_place(
    epilogue: EpilogueKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    op = plain.using(
        wide(epilogue=epilogue, vector_e=4 if epilogue is EpilogueKind.CSHUFFLE else 1)
    )
    args = drawn(plain, {"M": 144, "N": 208, "K": 200})
    assert len(chain(op, args, 200_000 // 8, monkeypatch)) > 8


@ck.op
def linear(x: ck.f16[M, K], w: ck.f16[N, K], bias: ck.f32[N], res: ck.f16[M, N]) -> ck.f16[M, N]:
    return ck.gelu(x @ w.T + bias) + res


@pytest.mark.usefixtures("stencils")
def test_columns_of_a_prepared_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    x, w, *rest = drawn(linear, {"M": 33, "N": 200, "K": 100})
    weight = ck.prepare(w, linear, device="emu:gfx942")
    limit(monkeypatch, 16_000)
    op = linear.using(PREPARED)
    compare(linear, [x, w, *rest], op(x, weight, *rest, device="emu:gfx942"))
    assert len(launches(op)) > 2


# --- tuning


@pytest.mark.usefixtures("emulator")
def test_each_different_launch_is_a_case(monkeypatch: pytest.MonkeyPatch) -> None:
    limit(monkeypatch, 6000)
    args = drawn(weight_gradient, {"M": 33, "N": 90, "K": 250})
    launched = [problem_text(each) for each in weight_gradient.problems(*args)]
    tasks = tasks_of(weight_gradient, args)
    assert [problem_text(task.problem) for task in tasks] == list(dict.fromkeys(launched))
    assert len(launched) > len(tasks) > 3
    for task in tasks:
        assert TuningTask.from_json(json.loads(json.dumps(task.to_json()))) == task
    limit(monkeypatch, 1 << 31)
    (whole,) = tasks_of(weight_gradient, args)
    assert whole.launch is None


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(
    ("op", "sizes", "most"),
    [
        (weight_gradient.using(SINGLE), {"M": 33, "N": 90, "K": 250}, 6000),
        (batch.using(narrow(warp_tile=DEEP)), {"G": 3, "M": 33, "N": 40, "K": 150}, 5500),
        (scaled.using(narrow(tile=(64, 64, 64), warp_tile=DEEP)), {"M": 3, "N": 1, "K": 1000}, 600),
    ],
)
def test_launches_are_measured_and_right(
    op: Op, sizes: dict[str, int], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    args = drawn(op, sizes)
    limit(monkeypatch, most)
    check(op, args)
    ran = launches(op)
    keys = {problem_text(instance(Problem, each.problem)): each.artifact.key for each in ran}
    for task in tasks_of(op, args):
        key = keys[problem_text(task.problem)]
        measurement = measure(task.to_json(), key.to_json(), {"CKLANG_DEVICE": "emu:gfx942"})
        assert measurement["status"] == "right", measurement["note"]


def counting(dtype: DType, count: int) -> Any:
    return (np.arange(count) % 13 - 6).astype(dtype.numpy)


def test_what_is_measured_of_prepared_and_packed_weights() -> None:
    args = [np.zeros((4, 3), np.float16), np.zeros((4, 5), np.float16)]
    kernel = only(FusedGemm, instance(Plan, plain.fusion(*args)).kernels)
    order = Arrangement(n=16, k=32, lanes=4)
    with pytest.MonkeyPatch.context() as patch:
        limit(patch, 4000)
        prepared = problem(3, 100, 200, e=ck.f32, layouts="rpr", prepared=order)
        packed = problem(3, 100, 200, b=ck.i4, e=ck.f32)
        for whole in (prepared, packed):
            for part, _ in bands_of(whole):
                operands = launch_operands_of(kernel, part, counting)
                (_, data, _), (_, b) = operands.memory, operands.inputs
                matrix = instance(Matrix, part.b)
                assert (b.shape, operands.place) == ((part.k, part.n), 2)
                if whole is prepared:
                    row = order.extents(part.n, part.k)[1]
                    np.testing.assert_array_equal(
                        order.restore(np.ascontiguousarray(data[:, :row]), part.n, part.k), b
                    )
                else:
                    whole_rows = ck.pack(b, axis=0).data
                    np.testing.assert_array_equal(data[:, : whole_rows.shape[1]], whole_rows)
                assert data.strides[0] == matrix.stride * 2 // (1 if whole is prepared else 4)
