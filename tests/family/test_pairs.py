# SPDX-License-Identifier: MIT
"""Two products of one left operand in one kernel, held against the reference."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang import emulator
from cklang.arch import arch
from cklang.device.device import open_device
from cklang.families.gemm.cost.traits import traits_of
from cklang.families.gemm.family import GEMM
from cklang.families.gemm.key import EpilogueKind, Pipeline
from cklang.families.gemm.launch_operands import launch_operands_of
from cklang.families.gemm.plan import FusedGemm
from cklang.families.gemm.problem import PairProblem
from cklang.runtime.op import Op
from cklang.selection.rules import violations
from cklang.tune.task import tasks_of
from tests.support.algorithms import EIGHT_BITS, NARROW, WIDE, narrow, pipelined
from tests.support.arrays import drawn, mnk
from tests.support.checks import check, launches
from tests.support.coverage import Covered
from tests.support.instructions import instructions
from tests.support.typed import instance, last, only

B, M, N, K = ck.dims("B M N K")


@ck.op
def plain(x: ck.f16[M, K], u: ck.f16[N, K]) -> ck.f16[M, N]:
    return ck.silu(x @ u.T)


@ck.op
def plain_rows(x: ck.f16[M, K], u: ck.f16[K, N]) -> ck.f16[M, N]:
    return ck.silu(x @ u)


@ck.op
def swiglu(x: ck.f16[M, K], g: ck.f16[N, K], u: ck.f16[N, K]) -> ck.f16[M, N]:
    return ck.silu(x @ g.T) * (x @ u.T)


@ck.op
def geglu(
    x: ck.f16[M, K], g: ck.f16[N, K], u: ck.f16[N, K], bias: ck.f16[N], res: ck.f16[M, N]
) -> tuple[ck.f16[M, N], ck.bf16[M, N]]:
    up = x @ u.T + bias
    return ck.gelu(x @ g.T) * up + res, up.to(ck.bf16)


@ck.op
def integers(x: ck.i8[M, K], g: ck.i8[N, K], u: ck.i8[N, K]) -> tuple[ck.i32[M, N], ck.f32[M, N]]:
    gate = ck.maximum(x @ g.T, 0)
    return gate * (x @ u.T), (x @ u.T) * 0.5


@ck.op
def of_one_weight(x: ck.f16[M, K], w: ck.f16[N, K], bias: ck.f16[N]) -> ck.f16[M, N // 2]:
    y = x @ w.T + bias
    return ck.silu(y[:, : N // 2]) * y[:, N // 2 :]


@ck.op
def interleaved(x: ck.f16[M, K], w: ck.f16[N, K], bias: ck.f16[N]) -> ck.f16[M, N // 2]:
    y = x @ w.T + bias
    return ck.silu(y[:, ::2]) * y[:, 1::2]


@ck.op
def rows_of_b(x: ck.f16[B, M, K], g: ck.f16[K, N], u: ck.f16[K, N]) -> ck.f16[B, M, N]:
    return ck.silu(x @ g) * (x @ u)


@ck.op
def batched(x: ck.f16[B, M, K], g: ck.f16[B, N, K], u: ck.f16[B, N, K]) -> ck.f32[B, M, N]:
    return ck.tanh(x @ g.mT) - x @ u.mT


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("op", [of_one_weight, interleaved], ids=str)
def test_parts_of_the_columns_of_one_product(op: Op) -> None:
    for shape in ((70, 256, 128), (64, 200, 96)):
        check(op, drawn(op, mnk(*shape)))
        assert [launch.key.family for launch in launches(op)] == ["gemm"]


SHAPES = ((1, 1, 1), (70, 50, 40), (64, 32, 0), (65, 129, 33))


def pair(m: int = 70, n: int = 50, k: int = 40) -> PairProblem:
    return only(PairProblem, swiglu.problems(*drawn(swiglu, mnk(m, n, k))))


def refusing(**changes: Any) -> set[str]:
    """Return the rules that reject an algorithm for a pair on gfx942."""
    algorithm = replace(NARROW, **changes)
    rejections = violations(algorithm, pair().signature, arch("gfx942"), pair())
    return {each.rule for each in rejections}


class TestChoices:
    """Problems, rules and the cost model."""

    def test_both_weights_are_inputs(self) -> None:
        problem = pair()
        assert [each.value for each in problem.inputs][:3] == ["x", "u", "g"]
        assert (problem.b.columns, problem.b2.columns, problem.e.columns) == (50, 50, 50)
        assert problem.signature.kind.value == "pair"
        assert str(problem).startswith("a pair of M=70 N=50 K=40")

    def test_halves_of_waves_and_warp_tiles(self) -> None:
        assert refusing() == set()
        assert refusing(tile=(64, 96, 32), warps=(2, 2, 1)) & {"pair", "load-b"}
        assert "pair" in refusing(tile=(64, 32, 32))
        assert "pair" in refusing(tile=(16, 32, 32), warps=(1, 1, 1))
        assert "generated" in refusing(split_k=2)

    def test_a_tile_without_padding_has_half_its_columns(self) -> None:
        algorithm = replace(NARROW, pad_n=False)
        for n, legal in ((64, True), (32, True), (48, False)):
            problem = pair(64, n, 32)
            rejections = violations(algorithm, problem.signature, arch("gfx942"), problem)
            assert ("pad-n" not in {each.rule for each in rejections}) == legal

    def test_vectors_must_fit_either_weight(self) -> None:
        x, g, u = drawn(swiglu, mnk(64, 64, 64))
        spoiled = np.zeros((64, 66), np.float16)[:, 1:65]
        for args, legal in (((x, g, u), True), ((x, spoiled, u), False), ((x, g, spoiled), False)):
            problem = only(PairProblem, swiglu.problems(*args))
            rejections = violations(WIDE, problem.signature, arch("gfx942"), problem)
            assert ("vector-b" not in {each.rule for each in rejections}) == legal

    def test_the_cost_model_sees_the_columns_of_both(self) -> None:
        key = ck.dispatch.select(pair(), arch="gfx942").key
        assert traits_of(key, arch("gfx942")).bytes_out == 2 / 2
        text = {}
        for op, n in ((plain, 2048), (swiglu, 1024)):
            args = drawn(op, mnk(1024, n, 512))
            lines = op.explain(*args).split("\n")
            (text[op],) = (line.split()[1] for line in lines if "workgroups" in line)
        assert text[plain] == text[swiglu]

    @pytest.mark.usefixtures("emulator")
    def test_a_prepared_weight_is_a_product_of_its_own(self) -> None:
        x, g, u = drawn(swiglu, mnk(64, 64, 64))
        prepared = ck.prepare(g, swiglu, "g", device="emu:gfx942")
        text = ways(swiglu, x, prepared, u)
        assert "two products: g is prepared" in text
        assert text.count("rpr strides") == 1

    def test_tuning_compares_pairs(self) -> None:
        (task,) = tasks_of(swiglu, mnk(70, 50, 40))
        rng = np.random.default_rng(1)
        x, g, u = (rng.uniform(-1, 1, s).astype(np.float16) for s in ((70, 40), (50, 40), (50, 40)))
        kernel = instance(FusedGemm, task.fused)
        by_name = {"x": x, "g": g, "u": u}
        gate, up = (x.astype(np.float32) @ w.astype(np.float32).T for w in (g, u))
        result = (gate / (1 + np.exp(-gate)) * up).astype(np.float16)
        inputs = [by_name[value.name] for value in kernel.inputs]
        assert GEMM.tuning.error_ratio(kernel, inputs, [result]) <= 1
        assert GEMM.tuning.error_ratio(kernel, inputs, [result + np.float16(1)]) > 1
        operands = launch_operands_of(kernel, pair(), lambda t, n: np.zeros(n, t.numpy))
        assert (len(operands.memory), operands.place) == (4, 3)


def ways(op: Any, *args: Any) -> str:
    return str(op.explain(*args, device="emu:gfx942"))


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("gpu", ["gfx942", "gfx1201"])
def test_pairs_with_operands_and_results(gpu: str, covered: Covered) -> None:
    algorithm = narrow(3, warps=(4, 2, 1)) if gpu == "gfx1201" else narrow(3)
    op = geglu.using(algorithm)
    for shape in SHAPES:
        check(op, drawn(geglu, mnk(*shape)), gpu)
        assert [launch.key.signature.kind.value for launch in launches(op)] == ["pair"]
        assert last(op).workspace_bytes == 0
    covered("pair: two products of one A", "f16", gpu)


@pytest.mark.usefixtures("compiler")
def test_pairs_of_integers(covered: Covered) -> None:
    op = integers.using(replace(EIGHT_BITS, vector_a=1, vector_b=1, vector_e=1, vector_d=(1,)))
    for shape in SHAPES[1:]:
        check(op, drawn(integers, mnk(*shape)))
    covered("pair: two products of one A", "i8", "gfx942")


class TestOnOneGpu:
    @pytest.mark.usefixtures("compiler")
    @pytest.mark.parametrize("ops", [(plain, swiglu), (plain_rows, rows_of_b)])
    def test_the_main_loop_is_that_of_one_product(self, ops: tuple[Op, Op]) -> None:
        counted = []
        for op in (each.using(WIDE) for each in ops):
            check(op, drawn(op, {**mnk(256, 128, 128), "B": 1}))
            (launch,) = launches(op)
            facts = launch.resources
            assert facts.spills == 0
            counted.append((instructions(launch), facts.lds_bytes, facts.agprs))
        assert counted[0] == counted[1]

    @pytest.mark.usefixtures("compiler")
    def test_bytes_moved_are_those_of_a_product_of_both(self) -> None:
        m, n, k = 64, 64, 128
        stats = []
        for op, columns in ((plain.using(WIDE), 2 * n), (swiglu.using(WIDE), n)):
            check(op, drawn(op, mnk(m, columns, k)))
            stats.append(emulator.stats(open_device("emu:gfx942").index))
        one, both = stats
        assert both.bytes_stored == one.bytes_stored // 2 == 2 * m * n
        assert 0 <= both.bytes_loaded - one.bytes_loaded <= 256 * both.workgroups
        assert both.mfma == one.mfma

    @pytest.mark.usefixtures("compiler")
    def test_weights_that_are_parts_of_one_array(self) -> None:
        op = swiglu.using(WIDE)
        weights = drawn(plain, mnk(1, 240, 64))[1]
        x = drawn(plain, mnk(70, 1, 64))[0]
        check(op, (x, weights[:120], weights[120:]))
        check(op, (x, weights[::2], weights[1::2]))
        assert len(launches(op)) == 1

    @pytest.mark.usefixtures("compiler")
    def test_from_registers_and_two_buffers(self) -> None:
        direct = narrow(epilogue=EpilogueKind.DEFAULT)
        for algorithm in (direct, pipelined(NARROW, Pipeline.COMPV4)):
            op = swiglu.using(algorithm)
            for shape in SHAPES:
                check(op, drawn(swiglu, mnk(*shape)))

    @pytest.mark.usefixtures("compiler")
    def test_weights_whose_columns_are_contiguous(self) -> None:
        for algorithm in (WIDE, NARROW):
            op = rows_of_b.using(algorithm)
            for m, n, k in ((24, 48, 40), (70, 200, 64), (1, 8, 8)):
                check(op, drawn(rows_of_b, {**mnk(m, n, k), "B": 2}))
                assert len(launches(op)) == 1
                assert launches(op)[0].key.signature.layouts == "rrr"

    @pytest.mark.usefixtures("compiler")
    def test_what_no_kernel_serves_is_two_products(self) -> None:
        x, g, u = drawn(rows_of_b, {**mnk(24, 48, 40), "B": 2})
        columns = np.ascontiguousarray(u.T).T
        check(rows_of_b, (x, g, columns))
        assert len(launches(rows_of_b)) == 2
        assert "two products: u is contiguous along K, and g contiguous along N" in ways(
            rows_of_b, x, g, columns
        )
        args = drawn(batched, {**mnk(24, 48, 40), "B": 2})
        check(batched, args)
        assert len(launches(batched)) == 2
        assert "two products: a batch is left" in ways(batched, *args)
        assert last(batched).workspace_bytes == 2 * 24 * 48 * 4
