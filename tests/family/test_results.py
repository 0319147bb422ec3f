# SPDX-License-Identifier: MIT
"""Products whose epilogue has several results: one kernel, held against the reference."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang import emulator
from cklang.arch import arch
from cklang.device.device import open_device
from cklang.errors import CkUnsupportedError
from cklang.families.gemm.bands import bands_of, why_k_is_whole
from cklang.families.gemm.cost.traits import traits_of
from cklang.families.gemm.family import GEMM
from cklang.families.gemm.key import DKind, DOperand, EpilogueKind, Reduction
from cklang.families.gemm.launch_operands import launch_operands_of
from cklang.families.gemm.lower import lower
from cklang.families.gemm.plan import FusedGemm
from cklang.families.gemm.problem import Problem
from cklang.tune.task import tasks_of
from tests.support.algorithms import WIDE, narrow, wide
from tests.support.arrays import drawn, mnk
from tests.support.checks import check, launches
from tests.support.coverage import Covered
from tests.support.errors import expect_error
from tests.support.instructions import instructions
from tests.support.typed import instance, only

G, M, N, K = ck.dims("G M N K")


@ck.op
def single(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.bf16[M, N]:
    return ck.gelu(x @ w.T)


@ck.op
def both(x: ck.f16[M, K], w: ck.f16[N, K]) -> tuple[ck.f16[M, N], ck.bf16[M, N]]:
    h = x @ w.T
    return h.to(ck.f16), ck.gelu(h).to(ck.bf16)


@ck.op
def many(
    x: ck.f16[M, K], w: ck.f16[N, K], bias: ck.f16[N], res: ck.f16[M, N]
) -> tuple[ck.f32[M, N], ck.f16[M, N], ck.i32[M, N], ck.f32[N, M]]:
    h = x @ w.T + bias
    y = ck.relu(h).to(ck.f16)
    return h - res, y, ck.floor(y.to(ck.f32)).to(ck.i32), ck.silu(h).T


@ck.op
def batched(x: ck.f16[G, M, K], w: ck.f16[G, N, K]) -> tuple[ck.f16[G, M, N], ck.f16[G, M, N]]:
    h = x @ w.mT
    return h.to(ck.f16), ck.tanh(h).to(ck.f16)


SHAPES = ((1, 1, 1), (70, 50, 40), (64, 64, 0), (65, 129, 33))


class TestProblems:
    """What strides make of the results."""

    def test_further_results_are_the_last_operands(self) -> None:
        problem = only(Problem, many.problems(*drawn(many, mnk(70, 50, 40))))
        kinds = [each.kind for each in problem.d]
        assert kinds == [DKind.ROW, DKind.FULL, DKind.RESULT, DKind.RESULT, DKind.STRIDED_RESULT]
        # The narrowest result is E.
        assert [str(each.dtype) for each in (problem.e, *problem.d[2:])] == [
            "f16",
            "f32",
            "i32",
            "f32",
        ]
        assert problem.written == {each.value for each in (problem.e, *problem.d[2:])}
        assert len(problem.signature.reads) == 2
        assert "further results f32 result, i32 result, f32 strided" in problem.signature.words

    def test_sums_over_k_are_not_cut(self) -> None:
        problem = only(Problem, both.problems(*drawn(both, mnk(70, 50, 40))))
        assert why_k_is_whole(problem) is not None
        assert len(list(bands_of(problem))) == 1

    def test_further_results_follow_what_is_read(self) -> None:
        s = only(Problem, many.problems(*drawn(many, mnk(70, 50, 40)))).signature
        with expect_error("K048"):
            replace(s, d=s.d[::-1])
        with pytest.raises(ck.CkError) as caught:
            replace(s, a=(DOperand(dtype=ck.f16, kind=DKind.RESULT),))
        assert "the function of A" in str(caught.value)

    def test_the_fill_returns_them_together(self) -> None:
        args = drawn(both, mnk(64, 64, 64))
        (kernel,) = both.fusion(*args).kernels
        key = ck.dispatch.select(only(Problem, both.problems(*args)), arch="gfx942").key
        source = lower(key, kernel.functions)
        for text in (source.stencil, source.fill):
            assert "struct ck_epilogue_results { float e0; float e1; };" in text
        assert "CK_FUNCTION struct ck_epilogue_results ck_epilogue(float acc)" in source.fill

    def test_a_group_has_one_result_a_call(self) -> None:
        with expect_error("G010", kind=CkUnsupportedError):
            both.grouped([drawn(both, mnk(8, 8, 8))])

    def test_the_cost_model_counts_what_is_written(self) -> None:
        bytes_out = []
        for op in (single, both, many):
            shapes = drawn(op, mnk(64, 64, 64))
            key = ck.dispatch.select(only(Problem, op.problems(*shapes)), arch="gfx942").key
            bytes_out.append(traits_of(key, arch("gfx942")).bytes_out)
        assert bytes_out == [2, 2 + 2, 2 + 4 + 4 + 4 + 2]


def test_tuning_compares_every_result() -> None:
    (task,) = tasks_of(both, {"M": 70, "N": 50, "K": 40})
    x, w = (np.random.default_rng(1).uniform(-1, 1, s).astype(np.float16) for s in SIZES)
    sums = x.astype(np.float32) @ w.astype(np.float32).T
    results = [sums.astype(np.float16), _gelu(sums).astype(ck.bf16.numpy)]
    assert GEMM.tuning.error_ratio(instance(FusedGemm, task.fused), [x, w], results) <= 1
    results[1][69, 49] += 1
    assert GEMM.tuning.error_ratio(instance(FusedGemm, task.fused), [x, w], results) > 1
    operands = launch_operands_of(instance(FusedGemm, task.fused), *_problem_and_values())
    assert operands.written == {2, 3}
    assert [each.dtype for each in operands.results] == [np.float16, ck.bf16.numpy]


SIZES = ((70, 40), (50, 40))


def _gelu(x: Any) -> Any:
    from math import erf, sqrt

    return np.vectorize(lambda each: each * (1 + erf(each / sqrt(2))) / 2)(x)


def _problem_and_values() -> tuple[Problem, Any]:
    problem = only(Problem, both.problems(*drawn(both, mnk(70, 50, 40))))
    return problem, lambda dtype, count: np.zeros(count, dtype.numpy)


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("gpu", ["gfx942", "gfx1201"])
def test_results_of_any_dtype_and_strides(gpu: str, covered: Covered) -> None:
    algorithm = narrow(5, warps=(2, 4, 1)) if gpu == "gfx1201" else narrow(5)
    op = many.using(algorithm)
    for shape in SHAPES:
        check(op, drawn(many, mnk(*shape)), gpu)
        assert len(launches(op)) == 1
    covered("several results", "f16", gpu)


class TestOnOneGpu:
    @pytest.mark.usefixtures("compiler")
    def test_the_main_loop_and_registers_are_those_of_one_result(self) -> None:
        args = drawn(both, mnk(256, 512, 128))
        ops = [op.using(each) for op, each in ((single, WIDE), (both, wide(1)))]
        counted = []
        for op in ops:
            check(op, args)
            (launch,) = launches(op)
            facts = launch.resources
            assert facts.spills == 0
            counted.append((instructions(launch), facts.lds_bytes))
        assert counted[0] == counted[1]

    @pytest.mark.usefixtures("compiler")
    def test_further_results_move_no_more_than_themselves(self) -> None:
        m, n, k = 64, 64, 128
        stats = []
        for op in (single.using(WIDE), both.using(wide(1))):
            check(op, drawn(op, mnk(m, n, k)))
            stats.append(emulator.stats(open_device("emu:gfx942").index))
        assert [each.bytes_stored for each in stats] == [2 * m * n, 4 * m * n]
        # The pointer and the strides of a result are arguments of the kernel.
        assert 0 <= stats[1].bytes_loaded - stats[0].bytes_loaded <= 256
        assert stats[0].mfma == stats[1].mfma

    @pytest.mark.usefixtures("compiler")
    def test_from_registers_and_from_shared_sums(self) -> None:
        direct = narrow(1, epilogue=EpilogueKind.DEFAULT)
        shared = narrow(1, split_k=3, reduction=Reduction.WORKSPACE)
        for algorithm in (direct, shared):
            op = both.using(algorithm)
            for shape in SHAPES[1:]:
                check(op, drawn(both, mnk(*shape)))

    @pytest.mark.usefixtures("compiler")
    def test_results_of_a_batch(self) -> None:
        op = batched.using(narrow(1))
        for shape in SHAPES[:3]:
            check(op, drawn(batched, {**mnk(*shape), "G": 3}))

    @pytest.mark.usefixtures("compiler")
    def test_places_that_the_caller_gives(self) -> None:
        op = both.using(narrow(1))
        columns = np.zeros((50, 70), ck.bf16.numpy).T
        rows = np.zeros((70, 64), np.float16)[:, 3:53]
        check(op, drawn(both, mnk(70, 50, 40)), out=(rows, columns))
        problem = only(Problem, [launches(op)[0].problem])
        assert problem.d[0].kind is DKind.STRIDED_RESULT
