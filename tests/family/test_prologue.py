# SPDX-License-Identifier: MIT
"""Products of matrices that functions compute as they are loaded, against the reference."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cklang as ck
from cklang.arch import arch
from cklang.errors import CkUnsupportedError
from cklang.families.gemm.key import DKind, Pipeline, Reduction, Signature
from cklang.families.gemm.key import Layout as MatrixLayout
from cklang.families.gemm.lower import HOLES, lower
from cklang.families.gemm.problem import ComputedMatrix, Problem
from cklang.fusion.plan import Plan
from cklang.ir.nodes import Function
from cklang.runtime.ir_text import op_from_ir
from cklang.selection.rules import violations
from cklang.testing.strategies import Layout, arrays, extents, strided
from tests.support.algorithms import NARROW, WIDE, narrow, pipelined
from tests.support.arrays import drawn, mnk, normal
from tests.support.checks import check, check_group, launches
from tests.support.coverage import Covered
from tests.support.errors import expect_error
from tests.support.programs import computed_products
from tests.support.typed import instance, only

G, M, N, K = ck.dims("G M N K")
DAG = narrow(tile=(64, 64, 64))
STENCILS: set[Signature] = set()


@ck.op
def dequantised(x: ck.f16[M, K], w: ck.i8[N, K], scale: ck.f16[N]) -> ck.f16[M, N]:
    return x @ (w.to(ck.f32) * scale[:, None]).to(ck.f16).T


@ck.op
def normalised(
    x: ck.f16[M, K], mean: ck.f32[M], s: ck.f16[K], t: ck.f32[K], w: ck.f16[N, K], g: ck.f32
) -> ck.f16[M, N]:
    return ck.gelu((x - mean[:, None]) * s + t + g).to(ck.f16) @ w.T


def weights(m: int, n: int, k: int) -> tuple[Any, ...]:
    x, w, scale = drawn(dequantised, mnk(m, n, k))
    return x, w, scale / np.float16(64)


def features(m: int, n: int, k: int) -> tuple[Any, ...]:
    *rest, _ = drawn(normalised, mnk(m, n, k))
    return (*rest, 1.5)


SHAPES = ((1, 1, 1), (70, 50, 40), (33, 129, 0), (130, 66, 31), (64, 200, 96))
"""Also tiles beyond K, whose zeros the function would turn into something else."""


class TestProblems:
    """What strides make of the operands."""

    def test_operands_are_read_by_kind(self) -> None:
        problem = only(Problem, normalised.problems(*features(70, 50, 40)))
        assert isinstance(problem.a, ComputedMatrix)
        kinds = [read.kind for read in problem.a.reads]
        assert kinds == [DKind.FULL, DKind.COLUMN, DKind.ROW, DKind.ROW, DKind.SCALAR]
        assert [str(read.dtype) for read in problem.a.reads] == ["f16", "f32", "f16", "f32", "f32"]
        assert problem.signature.a != ()
        assert problem.signature.b == ()
        assert len(problem.inputs) == 5 + 1 + 1

    def test_most_matrices_decide_the_layout(self) -> None:
        @ck.op
        def both(
            x: ck.f16[M, K], y: ck.f16[M, K], z: ck.f16[M, K], w: ck.f16[K, N]
        ) -> ck.f32[M, N]:
            return (x * y + z).to(ck.f16) @ w

        def matrix(turned: bool) -> Any:
            ones = np.ones((8, 16) if turned else (16, 8), np.float16)
            return ones.T if turned else ones

        w = np.ones((8, 24), np.float16)
        problem = only(Problem, both.problems(matrix(True), matrix(False), matrix(True), w))
        assert isinstance(problem.a, ComputedMatrix)
        assert problem.a.layout is MatrixLayout.COL
        kinds = [read.kind for read in problem.a.reads]
        assert kinds == [DKind.FULL, DKind.STRIDED, DKind.FULL]

    def test_vectors_must_fit_every_operand(self) -> None:
        x, w, scale = weights(64, 64, 64)
        spoiled = np.zeros((64, 66), np.int8)[:, 1:65]
        for given_w, width, legal in ((w, 8, True), (spoiled, 8, False), (spoiled, 1, True)):
            (problem,) = dequantised.problems(x, given_w, scale)
            algorithm = replace(NARROW, vector_b=width)
            rejections = violations(algorithm, problem.signature, arch("gfx942"), problem)
            assert ("vector-b" not in {each.rule for each in rejections}) == legal

    @pytest.mark.usefixtures("emulator")
    def test_loads_straight_into_lds_are_refused_by_name(self) -> None:
        (problem,) = dequantised.problems(*weights(64, 64, 64))
        wanted = pipelined(NARROW, Pipeline.COMP_ASYNC)
        rejections = {r.rule: str(r) for r in violations(wanted, problem.signature, arch("gfx950"))}
        assert "straight into LDS" in rejections["computed"]
        with expect_error("K101", kind=CkUnsupportedError):
            dequantised.using(wanted)(*weights(64, 64, 64), device="emu:gfx950")

    def test_rows_of_a_batch_are_rows_of_one_product(self) -> None:
        @ck.op
        def heads(x: ck.f16[G, M, K], s: ck.f16[K], w: ck.f16[N, K]) -> ck.f16[G, M, N]:
            return (x * s).to(ck.f16) @ w.T

        x, s, w = np.ones((3, 5, 8)), np.ones(8), np.ones((7, 8))
        args = [each.astype(np.float16) for each in (x, s, w)]
        problem = only(Problem, heads.problems(*args))
        assert (problem.batch, problem.m) == ((), 15)

    def test_the_source_leaves_a_hole_for_each_function(self) -> None:
        args = weights(64, 64, 64)
        (kernel,) = instance(Plan, dequantised.fusion(*args)).kernels
        problem = only(Problem, dequantised.problems(*args))
        key = ck.dispatch.select(problem, arch="gfx942").key
        source = lower(key, kernel.functions)
        assert source.stencil.count(f"float {HOLES['prologue_b']}(int, float);") == 1
        assert HOLES["prologue_a"] not in source.stencil
        assert f"CK_FUNCTION float {HOLES['prologue_b']}(int b0, float b1)" in source.fill


GPUS = (
    "gfx942",
    "gfx1100",
    # A source is the same on all GPUs with one wave size.
    pytest.param("gfx90a", marks=pytest.mark.full),
    pytest.param("gfx950", marks=pytest.mark.full),
)


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("gpu", GPUS)
def test_int8_weights_are_dequantised_as_they_are_loaded(gpu: str, covered: Covered) -> None:
    warps = (2, 4, 1) if gpu == "gfx1100" else NARROW.warps
    narrow = dequantised.using(replace(NARROW, warps=warps))
    for shape in SHAPES if gpu == "gfx942" else SHAPES[:3]:
        check(narrow, weights(*shape), gpu)
    covered("prologue: int8 dequantised", "f16 i8 f16", gpu)


class TestOnOneGpu:
    @pytest.mark.usefixtures("compiler")
    def test_every_kind_of_operand_in_vectors(self, covered: Covered) -> None:
        wide = normalised.using(WIDE)
        for shape in ((64, 64, 32), (70, 56, 40), (129, 8, 8), (33, 128, 0)):
            check(wide, features(*shape))
        covered("prologue: several operands", "f16", "gfx942")

    @pytest.mark.usefixtures("stencils")
    @settings(max_examples=20)
    @given(function=computed_products(), data=st.data())
    def test_any_dag_of_a_fills_one_stencil(self, function: Function, data: st.DataObject) -> None:
        op = op_from_ir(function).using(DAG)
        m, n, k = (data.draw(extents(most)) for most in (150, 70, 70))
        sizes = ((m, k), (k,), (m,), (), (n, k))
        dtypes = (ck.f16, ck.f32, ck.f16, ck.f32, ck.f16)
        args = [data.draw(arrays(t, shape)) for t, shape in zip(dtypes, sizes, strict=True)]
        args[0] = data.draw(strided(args[0], (Layout.ROW, Layout.PADDED_ROW, Layout.OFFSET)))
        # The draw has infinities and huge numbers, beside which a sum may be anything.
        check(op, args, unchecked=1)
        # An extent of 1 makes another kind, and so another stencil, of an operand; or two kernels.
        if min(m, n, k) > 1:
            problem = only(Problem, op.problems(*args))
            STENCILS.add(replace(problem.signature, functions=""))
            assert len(STENCILS) == 1


@ck.op
def both(
    x: ck.bf16[M, K], s: ck.bf16[K], w: ck.f16[K, N], shift: ck.f32[N], bias: ck.bf16[N]
) -> ck.bf16[M, N]:
    left = ck.silu(x * s + 1.0).to(ck.bf16)
    return left @ ck.tanh(w - shift).to(ck.bf16) + bias


@ck.op
def scores(q: ck.f16[G, M, K], k: ck.f16[G, N, K], s: ck.f16[G, M, 1]) -> ck.f32[G, M, N]:
    return (q * s + 0.5).to(ck.f16) @ k.mT


@ck.op
def contraction(x: ck.f16[M, G, K], s: ck.f32[G], w: ck.f16[N, G, K]) -> ck.f16[G, M, N]:
    return ck.einsum("mgk,ngk->gmn", (x * s[:, None]).to(ck.f16), w)


def both_sides(m: int, n: int, k: int, turned: bool = False) -> tuple[Any, ...]:
    """A row-major and B row-major, or both column-major."""
    x, w = normal(m, k, dtype=ck.bf16), normal(k, n)
    if turned:
        x, w = normal(k, m, dtype=ck.bf16).T, normal(n, k).T
    s, bias = normal(k, dtype=ck.bf16), normal(n, dtype=ck.bf16)
    return x, s, w, normal(n, dtype=ck.f32), bias


class TestPipelinesAndFamilies:
    @pytest.mark.usefixtures("compiler")
    def test_split_k_in_compv4_reads_rows(self, covered: Covered) -> None:
        algorithm = pipelined(narrow(1, split_k=3, reduction=Reduction.WORKSPACE), Pipeline.COMPV4)
        op = both.using(algorithm)
        for shape in ((70, 50, 200), (5, 66, 31), (1, 1, 0)):
            check(op, both_sides(*shape))
        covered("prologue of A and B: split-K, layouts rrr, compv4", "bf16", "gfx942")

    @pytest.mark.usefixtures("compiler")
    def test_stream_k_in_compv6_reads_columns(self, covered: Covered) -> None:
        shared = narrow(1, stream_k=True, reduction=Reduction.WORKSPACE, vector_a=2, vector_b=2)
        algorithm = pipelined(shared, Pipeline.COMPV6)
        op = both.using(algorithm)
        for shape in ((200, 130, 100), (64, 66, 32)):
            check(op, both_sides(*shape, turned=True))
        covered("prologue of A and B: stream-K, layouts ccr, compv6", "bf16", "gfx942")

    @pytest.mark.usefixtures("compiler")
    def test_a_batch_in_mem(self, covered: Covered) -> None:
        op = scores.using(pipelined(NARROW, Pipeline.MEM))
        for g, m, n, k in ((3, 70, 50, 40), (2, 5, 66, 31), (1, 1, 1, 1)):
            check(op, (normal(g, m, k), normal(g, n, k), normal(g, m, 1)))
        covered("prologue: batched, mem", "f16 f16 f32", "gfx942")

    @pytest.mark.usefixtures("compiler")
    def test_a_contraction_in_basic_v1(self, covered: Covered) -> None:
        op = contraction.using(pipelined(NARROW, Pipeline.BASIC_V1))
        for g, m, n, k in ((3, 70, 50, 40), (2, 5, 66, 31)):
            check(op, (normal(m, g, k), normal(g, dtype=ck.f32), normal(n, g, k)))
        covered("prologue: contraction, basic_v1", "f16", "gfx942")

    @pytest.mark.usefixtures("compiler")
    def test_two_wave_groups_in_compv5(self, covered: Covered) -> None:
        op = dequantised.using(pipelined(NARROW, Pipeline.COMPV5, warps=(1, 1, 2)))
        for shape in ((70, 50, 40), (5, 130, 31), (64, 64, 0)):
            check(op, weights(*shape))
        covered("prologue: compv5", "f16 i8 f16", "gfx942")

    @pytest.mark.usefixtures("compiler")
    def test_a_group(self, covered: Covered) -> None:
        op = dequantised.using(pipelined(NARROW, Pipeline.COMPV5, warps=(1, 1, 2)))
        calls = [weights(*shape) for shape in ((70, 50, 40), (5, 130, 31), (64, 64, 96))]
        check_group(op, calls)
        assert len(launches(op)) == 1
        covered("prologue: grouped", "f16 i8 f16", "gfx942")
