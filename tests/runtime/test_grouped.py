# SPDX-License-Identifier: MIT
"""Calls of different sizes in one launch, against the reference within its bound."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cklang as ck
from cklang.device.device import open_device
from cklang.errors import CkError
from cklang.families.gemm.key import ProductKind, Reduction
from cklang.runtime.op import Op
from cklang.testing.strategies import Layout, arrays, extents, strided
from tests.support.algorithms import DEEP, narrow
from tests.support.arrays import drawn, mnk
from tests.support.checks import check_group, check_read_back, compare, launches
from tests.support.coverage import Covered
from tests.support.errors import expect_error
from tests.support.streams import OnDevice, held_up
from tests.support.typed import last

B, M, N, K = ck.dims("B M N K")
DENSE = (Layout.ROW, Layout.PADDED_ROW, Layout.OFFSET)

SINGLE = narrow(2, warp_tile=DEEP)


@ck.op
def expert(x: ck.f16[M, K], w: ck.f16[N, K], bias: ck.f16[N], res: ck.f16[M, N]) -> ck.f16[M, N]:
    return ck.silu(x @ w.T + bias) + res


@ck.op
def scaled(x: ck.f16[M, K], w: ck.f16[N, K], scale: ck.f32) -> ck.f16[M, N]:
    return (x @ w.T) * scale


EXPERT = expert.using(SINGLE)
Shape = tuple[int, int, int]


def call(shape: Shape) -> tuple[Any, ...]:
    return tuple(drawn(expert, mnk(*shape)))


class TestOnAGpu:
    @pytest.mark.usefixtures("stencils")
    @settings(max_examples=10)
    @given(
        data=st.data(),
        shapes=st.lists(st.tuples(extents(150), extents(150), extents(70)), min_size=1, max_size=5),
    )
    def test_every_size_with_epilogue_operands(
        self, data: st.DataObject, shapes: list[Shape]
    ) -> None:
        calls = []
        for m, n, k in shapes:
            dense = [data.draw(arrays(ck.f16, s)) for s in ((m, k), (n, k), (n,), (m, n))]
            # A single column without gaps is column-major, which takes another stencil.
            lies = DENSE if k > 1 else DENSE[1:]
            calls.append(tuple(data.draw(strided(array, lies)) for array in dense))
        # The draw has infinities and huge numbers, beside which a sum may be anything.
        check_group(EXPERT, calls, unchecked=1)

    @pytest.mark.usefixtures("stencils")
    def test_one_launch(self, covered: Covered) -> None:
        check_group(EXPERT, [call((5, 70, 40)), call((130, 65, 33)), call((64, 64, 0))])
        (launch,) = launches(EXPERT)
        assert launch.artifact.key.signature.kind is ProductKind.GROUPED
        assert launch.grid == (2 + 3 * 2 + 1, 1, 1)
        check_read_back(EXPERT)
        covered("grouped", "f16", "gfx942")

    @pytest.mark.usefixtures("stencils")
    def test_a_repeated_group_is_not_planned_again(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Addresses and numbers are those of each call, which need not come from one place."""
        shapes = [(5, 70, 40), (64, 64, 0), (130, 65, 33)]
        op = scaled.using(replace(SINGLE, vector_d=(1,)))

        def calls(seed: float) -> list[tuple[Any, ...]]:
            arguments = [call(shape) for shape in shapes]
            return [(x + seed, w, seed * (i + 1)) for i, (x, w, *_) in enumerate(arguments)]

        check_group(op, calls(0.5))
        assert not last(op).memoised
        monkeypatch.setattr("cklang.ops.grouped.prepare_group", None)
        check_group(op, calls(2.0))
        assert last(op).memoised
        (launch,) = launches(op)
        assert launch.grid == (2 + 1 + 3 * 2, 1, 1)
        monkeypatch.undo()
        check_group(op, calls(1.0)[:2])
        assert not last(op).memoised

    @pytest.mark.usefixtures("stencils")
    def test_an_empty_result_takes_no_part(self) -> None:
        check_group(EXPERT, [call((5, 70, 40)), call((0, 65, 33))])
        assert EXPERT.grouped([]) == []

    @pytest.mark.usefixtures("compiler")
    def test_persistent(self, covered: Covered) -> None:
        lasting = expert.using(replace(SINGLE, persistent=True))
        check_group(lasting, [call((640, 1280, 8)), call((1300, 640, 8))])
        (launch,) = launches(lasting)
        assert launch.grid[0] == 304 < 10 * 20 + 21 * 10
        covered("grouped, persistent", "f16", "gfx942")


# As tests/family/test_shared.py has it: one stencil serves both.
SPLIT = narrow(2, split_k=5, reduction=Reduction.WORKSPACE)
SCALED = scaled.using(replace(SINGLE, vector_d=(1,)))


def on_device(args: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(OnDevice(a) if isinstance(a, np.ndarray) else a for a in args)


@pytest.mark.usefixtures("stencils")
@pytest.mark.parametrize("kind", ["table", "workspace", "numbers"])
def test_a_call_waits_for_no_launch(kind: str, callers_stream: int | None) -> None:
    """Calls with memory of their own, behind one another in a stream."""
    shapes = [(5, 70, 40), (64, 64, 0), (130, 65, 33)]
    op = SCALED if kind == "numbers" else EXPERT

    def run(calls: list[tuple[Any, ...]]) -> list[Any]:
        on_gpu = [on_device(args) for args in calls]
        if kind == "workspace":
            return [expert.using(SPLIT)(*args) for args in on_gpu]
        return op.grouped(on_gpu)

    def arguments(shape: Shape, seed: int) -> tuple[Any, ...]:
        x, w, *rest = call(shape)
        x = (x + seed).astype(np.float16)
        return (x, w, seed + sum(shape) / 64) if kind == "numbers" else (x, w, *rest)

    device = open_device("emu:gfx942")
    rounds = [[arguments(shape, seed) for shape in shapes] for seed in range(4)]
    first = run(rounds[0])
    device.synchronize(callers_stream)
    assert len(first) == len(shapes)
    with held_up(device, callers_stream) as still_held:
        results = [run(calls) for calls in rounds]
        assert still_held(), "the calls returned while the stream stood still"
    for calls, computed in zip(rounds, results, strict=True):
        for args, got in zip(calls, computed, strict=True):
            compare(op, args, got.array)


@pytest.mark.usefixtures("compiler")
def test_results_beside_arrays_of_other_libraries_lie_on_their_gpu() -> None:
    args = call((5, 70, 40))
    (result,) = EXPERT.grouped([tuple(map(OnDevice, args))], device="emu:gfx942")
    assert isinstance(result, ck.DeviceArray)
    compare(EXPERT, args, ck.to_host(result))


@ck.op
def chain(x: ck.f16[M, K], w: ck.f16[K, K]) -> ck.f16[M, K]:
    return ck.relu(x @ w).to(ck.f16) @ w


@ck.op
def batched(x: ck.f16[B, M, K], w: ck.f16[B, K, N]) -> ck.f16[B, M, N]:
    return x @ w


@ck.op
def swiglu(x: ck.f16[M, K], gate: ck.f16[N, K], up: ck.f16[N, K]) -> ck.f16[M, N]:
    return ck.silu(x @ gate.T) * (x @ up.T)


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(
    ("gpu", "persistent"), [("gfx942", False), ("gfx942", True), ("gfx1100", False)]
)
def test_a_gate_is_one_launch(gpu: str, persistent: bool) -> None:
    op = swiglu.using(replace(SINGLE, vector_d=(), persistent=True)) if persistent else swiglu
    check_group(op, [tuple(drawn(swiglu, mnk(*each))) for each in ((3, 96, 64), (70, 33, 40))], gpu)
    (launch,) = launches(op)
    assert launch.artifact.key.signature.kind is ProductKind.GROUPED_PAIR
    assert launch.artifact.key.arch == gpu


@pytest.mark.usefixtures("emulator")
def test_a_gate_that_no_kernel_computes() -> None:
    x, w = np.ones((4, 8), np.float16), np.ones((8, 8), np.float16)
    with pytest.raises(CkError, match=r"G012 call 1 .* up is contiguous along N, and gate"):
        swiglu.grouped([(x, w, w), (x, w, w.T)], device="emu:gfx942")


@pytest.mark.usefixtures("emulator")
@pytest.mark.parametrize(
    ("op", "args", "code"),
    [
        (chain, (np.ones((4, 8), np.float16), np.ones((8, 8), np.float16)), "G001"),
        (batched, (np.ones((2, 4, 8), np.float16), np.ones((2, 8, 4), np.float16)), "G002"),
        (EXPERT, (np.ones((4, 8), np.float16),) * 3, "A010"),
    ],
)
def test_what_cannot_be_grouped(op: Op, args: tuple[Any, ...], code: str) -> None:
    with expect_error(code):
        op.grouped([args])


@pytest.mark.usefixtures("emulator")
@pytest.mark.parametrize("gpu", ["gfx90a", "gfx950"])
def test_the_gpu_of_the_context_runs_it(gpu: str) -> None:
    with ck.using(arch=gpu):
        expert.grouped([call((0, 65, 33))])
    assert expert.last is not None
    assert gpu in expert.last.device
