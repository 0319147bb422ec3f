# SPDX-License-Identifier: MIT
"""Compiled kernels on emulated GPUs against the NumPy reference, within the stated bound.

A stencil takes about ten seconds to compile, a shape none: a few stencils serve many shapes.
``SINGLE`` moves single elements, so one stencil of it serves every extent, stride and alignment.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cklang as ck
from cklang.families.gemm.key import Algorithm
from cklang.ir.nodes import Function
from cklang.runtime.ir_text import op_from_ir, read_op
from cklang.runtime.op import Op
from cklang.testing.compare import UNCHECKED
from cklang.testing.strategies import Layout, Values, arrays, extents, laid_out, strided
from cklang.types import DType
from tests.support import checks
from tests.support.algorithms import DEEP, narrow
from tests.support.arrays import drawn, mnk
from tests.support.checks import check_read_back, compare, launches
from tests.support.errors import expect_error
from tests.support.gemm_ops import fused, linear, many_reads
from tests.support.programs import gemm_functions

M, N, K, P = ck.dims("M N K P")
EXAMPLES = Path(__file__).parents[2] / "examples"

DENSE = (Layout.ROW, Layout.PADDED_ROW, Layout.OFFSET)
LAYOUTS = {"r": Layout.PADDED_ROW, "c": Layout.PADDED_COLUMN}


def single(operands: int) -> Algorithm:
    return narrow(operands, warp_tile=DEEP)


@ck.op
def chain(x: ck.f16[M, K], w: ck.f16[N, K], v: ck.f16[P, N]) -> ck.f16[M, P]:
    h = ck.relu(x @ w.T).to(ck.f16)
    return ck.silu(h @ v.T)


FUSED, FUSED_F32 = fused.using(single(2)), fused.using(narrow(2, tile=(64, 64, 16)))
LINEAR, MANY_READS = linear.using(single(0)), many_reads.using(single(6))
CHAIN = chain.using(single(0))


def check(
    op: Op, *args: Any, gpu: str = "gfx942", out: Any = None, unchecked: float = UNCHECKED
) -> Any:
    """Run ``op`` and compare with its reference; read its kernels back.

    Drawn numbers may be infinite or huge, beside which a sum may be anything: then all elements may
    be ``unchecked``.
    """
    got = checks.check(op, args, gpu, out=out, unchecked=unchecked)
    check_read_back(op)
    return got


def draw_fused(data: st.DataObject, dtype: DType, shape: tuple[int, int, int]) -> list[Any]:
    m, n, k = shape
    dense = [data.draw(arrays(dtype, s)) for s in ((m, k), (n, k), (n,), (m, n))]
    return [data.draw(strided(array, DENSE)) for array in dense]


def simple(m: int, n: int, k: int) -> list[Any]:
    return drawn(fused, mnk(m, n, k), T=ck.f16)


@pytest.mark.usefixtures("stencils")
@settings(max_examples=25)
@given(data=st.data(), shape=st.tuples(extents(), extents(), extents()))
def test_every_shape_in_f16(data: st.DataObject, shape: tuple[int, int, int]) -> None:
    check(FUSED, *draw_fused(data, ck.f16, shape), unchecked=1)


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(
    ("op", "dtype"), [(FUSED, ck.bf16), (FUSED_F32, ck.f32)], ids=["bf16", "f32"]
)
@settings(max_examples=10)
@given(data=st.data(), shape=st.tuples(extents(160), extents(160), extents(160)))
def test_every_shape_in_other_types(
    op: Op, dtype: DType, data: st.DataObject, shape: tuple[int, int, int]
) -> None:
    check(op, *draw_fused(data, dtype, shape), unchecked=1)


@pytest.mark.usefixtures("compiler")
@settings(max_examples=12)
@given(data=st.data(), tiles=st.tuples(*[st.integers(1, 36)] * 3))
def test_wide_vectors_are_chosen_and_right(
    data: st.DataObject, tiles: tuple[int, int, int]
) -> None:
    m, n, k = tiles[0] * 7, tiles[1] * 8, tiles[2] * 8
    values = [data.draw(arrays(ck.f16, s)) for s in ((m, k), (n, k), (n,), (m, n))]
    check(fused, *(laid_out(value, Layout.PADDED_ROW) for value in values), unchecked=1)
    (launch,) = launches(fused)
    assert launch.artifact.key.algorithm.vector_a == 8
    assert launch.resources.spills == 0


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("layouts", ["rr", "cc", "cr"])
@settings(max_examples=6)
@given(data=st.data(), shape=st.tuples(extents(150), extents(150), extents(150)))
def test_every_layout(layouts: str, data: st.DataObject, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    x = laid_out(data.draw(arrays(ck.f16, (m, k))), LAYOUTS[layouts[0]], pad=3)
    # w is [N, K] and B its transpose: a row-major B is a column-major w.
    w = laid_out(data.draw(arrays(ck.f16, (n, k))), LAYOUTS["rc"["cr".index(layouts[1])]], pad=3)
    check(LINEAR, x, w, unchecked=1)


@pytest.mark.usefixtures("compiler")
@settings(max_examples=10)
@given(data=st.data(), shape=st.tuples(extents(150), extents(150), extents(150)))
def test_every_kind_of_read(data: st.DataObject, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    shapes = {
        "x": (ck.f16, (m, k)),
        "w": (ck.f16, (n, k)),
        "row": (ck.f32, (n,)),
        "column": (ck.bf16, (m,)),
        "mask": (ck.bool_, (m, n)),
        "turned": (ck.f16, (n, m)),
        "res": (ck.bf16, (m, n)),
    }
    drawn = {name: data.draw(arrays(dtype, s)) for name, (dtype, s) in shapes.items()}
    alpha = data.draw(st.sampled_from([1.5, -0.0, 1e-3, float("inf")]))
    args = [drawn["x"], drawn["w"], drawn["row"], drawn["column"], alpha]
    check(MANY_READS, *args, drawn["mask"], drawn["turned"], drawn["res"], unchecked=1)


# Nothing says which sign a nan has: inf - inf is -nan here and nan there.
FUNCTIONS = gemm_functions(depth=8, dtypes=(ck.f16,), result=(ck.f16,), reads=0).filter(
    lambda function: all(operation.op != "signbit" for operation in function.body)
)


def as_rcr(function: Function, data: st.DataObject, shape: tuple[int, int, int]) -> list[Any]:
    """Arrays whose strides make A row-major and B column-major, however they are declared."""
    sizes = dict(zip("MNK", shape, strict=True))
    args = []
    for param in function.params:
        names = [str(extent) for extent in param.type.shape]
        array = data.draw(arrays(ck.f16, [sizes[name] for name in names]))
        inner = names.index("K")
        args.append(laid_out(array, Layout.PADDED_ROW if inner == 1 else Layout.PADDED_COLUMN))
    return args


@pytest.mark.usefixtures("stencils")
def test_a_file_of_ir_runs() -> None:
    op = read_op(EXAMPLES / "linear_gelu.ckir").using(single(2))
    check(op, *drawn(op, {"M": 48, "N": 24, "K": 40}))


@pytest.mark.usefixtures("compiler")
@settings(max_examples=8, derandomize=True)
@given(function=FUNCTIONS, data=st.data())
def test_random_epilogues(function: Function, data: st.DataObject) -> None:
    op = op_from_ir(function).using(single(0))
    for _ in range(4):
        shape = data.draw(st.tuples(extents(130), extents(130), extents(130)))
        check(op, *as_rcr(function, data, shape), unchecked=1)


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(
    ("gpu", "algorithm"),
    [("gfx90a", narrow(2)), ("gfx950", narrow(2, warp_tile=DEEP))],
    ids=["gfx90a", "gfx950"],
)
def test_other_gpus(gpu: str, algorithm: Algorithm) -> None:
    op = fused.using(algorithm)
    for shape in ((64, 64, 64), (37, 101, 53), (1, 1, 1), (130, 70, 300)):
        check(op, *simple(*shape), gpu=gpu)
    record = op.last
    assert record is not None
    assert record.device == f"emulated {gpu}"


@pytest.mark.usefixtures("stencils")
@settings(max_examples=6)
@given(shape=st.tuples(extents(100), extents(100), extents(100)), p=extents(100))
def test_two_gemms_in_a_row(shape: tuple[int, int, int], p: int) -> None:
    check(CHAIN, *drawn(chain, mnk(*shape) | {"P": p}))
    assert len(launches(CHAIN)) == 2


class TestOneOp:
    """What a call does around its kernel; all on the stencil of the f16 test above."""

    op = FUSED

    @pytest.mark.usefixtures("emulator")
    @pytest.mark.parametrize("shape", [(0, 5, 3), (5, 0, 3), (0, 0, 0), (4, 0, 0)])
    def test_no_element_no_launch(self, shape: tuple[int, int, int]) -> None:
        got = self.op(*simple(*shape))
        assert got.shape == shape[:2]
        assert launches(self.op) == ()

    @pytest.mark.usefixtures("stencils")
    def test_an_empty_sum_is_zero(self) -> None:
        x, w, bias, res = simple(5, 7, 0)
        check(self.op, x, w, bias, res)
        check(self.op, x, w, np.zeros_like(bias), np.zeros_like(res))

    @pytest.mark.usefixtures("stencils")
    def test_the_result_goes_where_it_is_asked_to(self) -> None:
        room = np.full((20, 40), 7, np.float16)
        args = simple(10, 30, 20)
        got = check(self.op, *args, out=room[5:15, 5:35])
        assert got.base is room
        frame = room.copy()
        frame[5:15, 5:35] = 7
        assert (frame == 7).all(), "the kernel wrote outside of out"

    def test_out_may_not_be_an_input(self) -> None:
        x, w, bias, res = simple(10, 30, 20)
        for _ in range(2):
            with expect_error("A043"):
                self.op(x, w, bias, res, out=res)

    @pytest.mark.usefixtures("stencils")
    def test_out_is_checked_on_the_memoised_path_too(self) -> None:
        room = np.zeros((2, 10, 30), np.float16)
        x, w, bias, _ = simple(10, 30, 20)
        self.op(x, w, bias, room[0], out=room[1])
        self.op(x, w, bias, room[0], out=room[1])
        assert self.op.last is not None
        assert self.op.last.memoised
        with expect_error("A043"):
            self.op(x, w, bias, room[0], out=room[0])

    @pytest.mark.usefixtures("stencils")
    def test_arguments_are_not_written(self) -> None:
        args = simple(33, 44, 55)
        before = [array.copy() for array in args]
        self.op(*args)
        for array, copy in zip(args, before, strict=True):
            assert np.array_equal(array, copy)

    @pytest.mark.usefixtures("compiler")
    def test_broadcast_inputs(self) -> None:
        x, w, bias, res = simple(33, 44, 55)
        check(self.op, np.broadcast_to(x[:1], x.shape), w, bias, np.broadcast_to(bias, res.shape))

    @pytest.mark.usefixtures("stencils")
    def test_a_repeated_call_touches_nothing_else(self, monkeypatch: pytest.MonkeyPatch) -> None:
        args = simple(33, 44, 55)
        first = self.op(*args)

        def forbidden(*args: Any, **kwargs: Any) -> Any:
            raise AssertionError("a repeated call must go straight to the launch")

        for name in ("planned_op.bind", "planned_op.assign", "results.check_out"):
            monkeypatch.setattr(f"cklang.runtime.{name}", forbidden)
        monkeypatch.setattr("cklang.runtime.planner.prepare", forbidden)
        monkeypatch.setattr("cklang.build.builder.shared_builder", forbidden)
        monkeypatch.setattr("pathlib.Path.open", forbidden)
        again = self.op(*args)
        assert np.array_equal(first, again)
        other = [array + np.float16(1) for array in args]
        assert not np.array_equal(self.op(*other), first), "only the problem is memoised"

    @pytest.mark.usefixtures("stencils")
    def test_results_do_not_depend_on_what_ran_before(self) -> None:
        args = simple(65, 66, 67)
        first = self.op(*args)
        self.op(*simple(20, 300, 9))
        assert np.array_equal(self.op(*args), first)

    @pytest.mark.usefixtures("stencils")
    def test_the_record_of_a_call(self) -> None:
        self.op(*simple(65, 66, 67))
        record = self.op.last
        assert record is not None
        (launch,) = record.launches
        assert record.emulated
        assert record.instructions is not None
        assert record.instructions > 1000
        assert record.engine_ns is not None
        assert record.engine_ns > 0
        assert launch.grid[0] * launch.grid[1] >= 4
        assert launch.block == (256, 1, 1)
        assert launch.resources.spills == 0
        assert launch.artifact.code_object.is_file()

    def test_explain_names_everything(self) -> None:
        text = fused.explain(*simple(65, 67, 66))
        for words in ("gemm(", "fused", "key ", "vector-e", "emulated gfx942", "MI300X"):
            assert words in text
        assert text.count("emulated") == 1

    def test_inspect_shows_stencil_and_fill_as_one(self) -> None:
        text = fused.inspect(*simple(65, 67, 66))
        assert "ck_tile" in text
        assert "ck_epilogue" in text
        assert "#line" in text

    @pytest.mark.usefixtures("stencils")
    def test_from_several_threads(self) -> None:
        from concurrent.futures import ThreadPoolExecutor

        cases = [simple(20 + i, 30 + i, 40 + i) for i in range(6)] * 3
        with ThreadPoolExecutor(6) as pool:
            results = list(pool.map(lambda args: self.op(*args), cases))
        for args, got in zip(cases, results, strict=True):
            compare(self.op, args, got)


@pytest.mark.usefixtures("stencils")
def test_arrays_on_a_device_with_its_own_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The path of a real GPU, on an emulated device that is taken for one."""
    from dataclasses import replace

    from cklang.device import device

    emulated = device.open_device("emu:gfx942")
    discrete = replace(emulated, host_memory=False)
    monkeypatch.setattr(device, "open_device", lambda *args: discrete)
    copies: list[int] = []
    original = device.Device.allocate

    def allocate(self: device.Device, size: int) -> int:
        copies.append(size)
        return original(self, size)

    monkeypatch.setattr(device.Device, "allocate", allocate)
    op = fused.using(single(2))
    check(op, *simple(65, 66, 67))
    assert len(copies) == 5
    room = np.full((20, 40), 7, np.float16)
    check(op, *simple(10, 30, 20), out=room[5:15, 5:35])
    frame = room.copy()
    frame[5:15, 5:35] = 7
    assert (frame == 7).all()


@pytest.mark.usefixtures("stencils")
@settings(max_examples=10)
@given(data=st.data(), shape=st.tuples(extents(90), extents(90), extents(90)))
def test_infinities_and_nan(data: st.DataObject, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    args = [data.draw(arrays(ck.f16, s, [Values.SPECIAL])) for s in ((m, k), (n, k), (n,), (m, n))]
    check(FUSED, *args)


@ck.op
def product(x: ck.f32[M, K], w: ck.f32[K, N]) -> ck.f32[M, N]:
    return x @ w


@pytest.mark.usefixtures("compiler")
def test_f32_with_row_major_b_on_gfx950() -> None:
    """gfx950 transposes 16-bit operands while it reads LDS; 32-bit ones must go the other way."""
    check(product, *drawn(product, mnk(96, 136, 72)), gpu="gfx950")
