# SPDX-License-Identifier: MIT
"""Products of groups of rows, whose ends the kernel reads in device memory."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import cklang as ck
from cklang.arch import arch
from cklang.families import plan_of
from cklang.families.gemm.key import Algorithm, Layout, Pipeline, ProductKind
from cklang.families.gemm.pairs import widened as widened_problem
from cklang.families.gemm.problem import ComputedMatrix, PairProblem, Problem
from cklang.families.gemm.rules.problem import tiles_of
from cklang.fusion.explain import explain
from cklang.reference.bounds import evaluate_with_bound
from cklang.reference.evaluate import evaluate
from cklang.runtime.op import Op
from cklang.selection.rules import violations
from tests.support.algorithms import DEEP, EIGHT_BITS, NARROW, WIDE, on_gpu, pipelined
from tests.support.arrays import random_array
from tests.support.checks import check, launches
from tests.support.coverage import Covered
from tests.support.errors import expect_error
from tests.support.plan_evaluation import evaluate_plan
from tests.support.typed import instance, only

S, T, K, N, G = ck.dims("S T K N G")
Array = np.ndarray[Any, Any]
SIZES = {"S": 40, "T": 67, "K": 40, "N": 24, "G": 5}


@ck.op
def plain(x: ck.f16[T, K], w: ck.f16[G, N, K], ends: ck.i32[G]) -> ck.f16[T, N]:
    return ck.grouped_gemm(x, w.mT, ends)


@ck.op
def residual(
    x: ck.bf16[T, K], w: ck.bf16[G, K, N], ends: ck.i32[G], bias: ck.f32[N], y: ck.bf16[T, N]
) -> ck.bf16[T, N]:
    return ck.relu(ck.grouped_gemm(x, w, ends) + bias) + y


@ck.op
def gated(
    x: ck.f16[S, K], rows: ck.i32[T], w: ck.f16[G, 2 * N, K], ends: ck.i32[G], like: ck.f16[N]
) -> ck.f16[T, N]:
    """The first half of experts: a pair of products of rows that are read at indices."""
    y = ck.grouped_gemm(x[rows], w.mT, ends)
    return ck.silu(y[:, :N]) * y[:, N:]


@ck.op
def combined(
    h: ck.f16[T, K],
    w: ck.f16[G, N, K],
    ends: ck.i32[G],
    rows: ck.i32[T],
    by: ck.f32[T],
    like: ck.f16[S],
) -> ck.f32[S, N]:
    """The second half: rows are weighed and added to those of their tokens."""
    return ck.segment_sum(ck.grouped_gemm(h, w.mT, ends) * by[:, None], rows, S, ordered=False)


@ck.op
def widened(x: ck.f16[T, K], w: ck.i8[G, N, K], by: ck.f32[G, N], ends: ck.i32[G]) -> ck.f16[T, N]:
    """Weights of 8 bits, which the kernel multiplies by their scales as it loads them."""
    return ck.grouped_gemm(x, (w.to(ck.f32) * by[..., None]).to(ck.f16).mT, ends)


@ck.op
def several(
    x: ck.f16[T, K], w: ck.f16[G, K, N], ends: ck.i32[G], c: ck.f32[T], m: ck.f16[N, T]
) -> tuple[ck.f16[T, N], ck.f32[T, N], ck.bf16[N, T]]:
    """A computed left operand, columns and a transposed matrix that are read, and three results."""
    y = ck.grouped_gemm(ck.silu(x * 1.5).to(ck.f16), w, ends) * c[:, None] + m.T
    return y.to(ck.f16), ck.gelu(y), y.T.to(ck.bf16)


@ck.op
def scaled(
    x: ck.fp8_fnuz[T, K], w: ck.fp8_fnuz[G, N, K], by: ck.f32[T, K / 32],
    b: ck.f32[G, N / 16, K / 32], ends: ck.i32[G],
) -> ck.bf16[T, N]:  # fmt: skip
    """Blocks along K have scales: of a row, and of 16 columns of each matrix."""
    return ck.grouped_gemm(x, w.mT, ends, scale_a=by, scale_b=b.mT)


@ck.op
def integers(
    x: ck.f16[T, K], w: ck.i4[G, N, K], b: ck.f32[G, N, K / 64], ends: ck.i32[G]
) -> ck.f16[T, N]:
    """Weights as they are mostly quantised, in tiles of one block along K."""
    return ck.grouped_gemm(x, w.mT, ends, scale_b=b.mT)


@ck.op
def powers(
    x: ck.fp4[T, K], w: ck.fp4[G, N, K], by: ck.e8m0[T, K / 32], b: ck.e8m0[G, N, K / 32],
    ends: ck.i32[G], bias: ck.f32[N],
) -> ck.bf16[T, N]:  # fmt: skip
    """MXFP4: matrix instructions multiply by powers of two."""
    return ck.grouped_gemm(x, w.mT, ends, scale_a=by, scale_b=b.mT) + bias


@ck.op
def summed(
    x: ck.f16[T, K], dy: ck.f16[T, N], ends: ck.i32[G], by: ck.f32[G], y: ck.f16[G, N, K]
) -> ck.f32[G, K, N]:
    """Groups along K: the gradient of each matrix, with an epilogue that knows the group."""
    return ck.grouped_gemm(x.T, dy, ends) * by[:, None, None] + y.mT


@ck.op
def contiguous(
    x: ck.bf16[N, T], y: ck.f32[K, T], ends: ck.i32[G]
) -> tuple[ck.bf16[K, G, N], ck.f32[G, K, N]]:
    """Groups along the axis along which both are contiguous, and results in other orders."""
    sums = ck.grouped_gemm((y * 0.5).to(ck.bf16), x.T, ends)
    return ck.tanh(sums).to(ck.bf16).transpose(1, 0, 2), sums


OPS = (plain, residual, gated, combined, widened, several, scaled, powers, integers)
SCALED = (scaled, powers, integers)
ALONG_K = (summed, contiguous)


def drawn(op: Op, seed: int = 0, *, ends: Any = None, **sizes: int) -> list[Any]:
    """Return arrays for an op, rows of random groups unless ``ends`` say."""
    random, sizes = np.random.default_rng(seed), {**SIZES, **sizes}
    args = list[Any]()
    for param in op.program.specialise().params:
        shape, dtype = param.type.extents(sizes), param.type.dtype.numpy
        if param.name == "ends":
            cuts = np.sort(random.integers(0, sizes["T"] + 1, shape)) if ends is None else ends
            args.append(np.array(cuts, np.int32))
        elif param.name == "rows":
            args.append(random.integers(0, sizes["S"], shape).astype(np.int32))
        elif param.type.dtype is ck.i8:
            args.append(random.integers(-9, 10, shape).astype(np.int8))
        elif param.type.dtype in (ck.e8m0, ck.fp4, ck.i4):
            array = random_array(random, shape, param.type.dtype)
            args.append(ck.pack(array) if param.type.dtype.packed else array)
        else:
            args.append((random.standard_normal(shape) / 2).astype(dtype))
    return args


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.program.name)
def test_one_kernel_reads_where_groups_end(op: Op) -> None:
    plan = plan_of(op.program.specialise())
    assert [kernel.family for kernel in plan.kernels] == ["gemm"]
    assert "b0 is the first for which m < %ends[b0]; acc = 0 if there is none" in explain(plan)


@pytest.mark.parametrize("op", ALONG_K, ids=lambda op: op.program.name)
def test_one_kernel_reads_where_groups_along_k_end(op: Op) -> None:
    plan = plan_of(op.program.specialise())
    assert [kernel.family for kernel in plan.kernels] == ["gemm"]
    assert "k is summed from %ends[b0 - 1] up to %ends[b0]" in explain(plan)


@pytest.mark.parametrize("op", [*OPS, *ALONG_K], ids=lambda op: op.program.name)
def test_the_kernel_computes_what_the_program_says(op: Op) -> None:
    function, args = op.program.specialise(), drawn(op)
    pairs = zip(evaluate_plan(plan_of(function), args), evaluate(function, args), strict=True)
    for got, want in pairs:
        np.testing.assert_array_equal(got, want)


def test_the_meaning_is_that_of_a_loop_over_groups() -> None:
    x, w, _ = drawn(plain)
    for ends in ([0, 3, 3, 20, 67], [67] * 5, [0, 0, 0, 0, 1], [-5, 3, 90, 90, 90]):
        want, begin = np.zeros((67, 24)), 0
        for matrix, end in zip(w.astype(np.float64), np.clip(ends, 0, 67), strict=True):
            want[begin:end] = x[begin:end] @ matrix.T
            begin = end
        own = ck.grouped_gemm(x.astype(np.float64), np.swapaxes(w, 1, 2), np.array(ends))
        np.testing.assert_allclose(own, want)
    assert ck.grouped_gemm(x, np.swapaxes(w, 1, 2)[:0], np.array([], np.int32)).shape == (67, 24)


def test_problem_and_key() -> None:
    problem = only(Problem, plain.problems(*drawn(plain)))
    assert (problem.kind, problem.segments, problem.batch) == (ProductKind.SEGMENTED, 5, ())
    assert (problem.a.arrays[0].batch, problem.b.arrays[0].batch) == ((40, 0), (0, 24 * 40))
    assert [each.value for each in problem.inputs] == ["x", "w", problem.e.value, "ends"]
    assert tiles_of(problem, WIDE) == 67 // 64 + 5 + 1
    assert str(problem).startswith("groups=5 M=67 N=24 K=40 rcr")
    computed = instance(ComputedMatrix, only(Problem, widened.problems(*drawn(widened))).b)
    assert [read.batch for read in computed.reads] == [(0, 24 * 40), (0, 24)]
    pair = instance(PairProblem, only(Problem, gated.problems(*drawn(gated))))
    assert (pair.kind, pair.signature.sums) == (ProductKind.SEGMENTED_PAIR, 2)
    assert (pair.b2.batch, pair.inputs[-1].value) == ((0, 48 * 40), "ends")


def test_problem_and_key_along_k() -> None:
    args = drawn(summed)
    problem = only(Problem, summed.problems(*args))
    assert (problem.kind, problem.segments) == (ProductKind.SEGMENTED_K, 5)
    assert (problem.batch, problem.m, problem.n, problem.k) == ((5,), 40, 24, 67)
    assert (problem.a.arrays[0].batch, problem.b.arrays[0].batch) == ((40, 0), (24, 0))
    assert problem.e.batch == (0, 40 * 24)
    assert [operand.batch for operand in problem.d] == [(0, 1), (0, 40 * 24)]
    assert tiles_of(problem, WIDE) == 5
    small = widened_problem(problem)
    assert (small.k, small.products) == (14, 5)
    unpadded = replace(on_gpu("gfx942", NARROW), pad_k=False, tile=(64, 64, 67))
    refused = violations(unpadded, problem.signature, arch("gfx942"), problem)
    assert "pad-k" in [violation.rule for violation in refused]
    with expect_error("A030", match="ends has no contiguous axis"):
        summed.problems(*args[:2], np.repeat(args[2], 2)[::2], *args[3:])


def test_a_kernel_behind_stores_sums_of_groups_at_indices() -> None:
    def added(
        z: ck.f32[S, K, N], to: ck.i32[G], x: ck.f16[T, K], y: ck.f16[T, N], ends: ck.i32[G]
    ) -> ck.f32[S, K, N]:
        return ck.scatter_add(z, to, ck.grouped_gemm(x.T, y, ends))

    plan = plan_of(ck.op(added).program.specialise())
    assert [kernel.family for kernel in plan.kernels] == ["gemm", "scatter"]


def test_the_cost_model_sees_groups_of_equal_sizes() -> None:
    """Few rows of many experts choose small tiles, and take as long as reading their weights."""
    w = np.empty((64, 2048, 1024), np.float16)
    x, ends = np.empty((64, 1024), np.float16), np.zeros(64, np.int32)
    text = str(plain.summary(x, w, ends, device="emu:gfx942"))
    (line,) = (each for each in text.splitlines() if each.startswith("gemm"))
    assert float(line.split("µs")[0].split()[-1]) > 2**28 / 6e6  # µs at 6 TB/s


def test_rows_that_are_columns_of_memory_are_copied() -> None:
    x, w, ends = drawn(plain)
    text = str(plain.summary(np.asfortranarray(x), w, ends, device="emu:gfx942"))
    assert re.search(r"^gemm +2 ", text, re.MULTILINE)
    turned, *others = drawn(several)
    problem = only(Problem, several.problems(np.asfortranarray(turned), *others))
    assert problem.a.layout is Layout.ROW


def test_refusals() -> None:
    x, w, ends = drawn(plain)
    with expect_error("A030", match="ends has no contiguous axis"):
        plain.problems(x, w, np.repeat(ends, 2)[::2])

    def turned(x: ck.f16[T, K], w: ck.f16[G, K, N], ends: ck.i32[G]) -> ck.f16[N, T]:
        return ck.grouped_gemm(x, w, ends).T

    with expect_error("X010"):
        plan_of(ck.op(turned).program.specialise())

    def unlike(x: ck.f16[T, K], w: ck.f16[G, N, K], ends: ck.i32[G]) -> ck.f16[T, N]:
        return ck.grouped_gemm(x, w, ends)

    with expect_error("F067", match=r"the K of .* differ: K, N"):
        ck.op(unlike).program.specialise()

    def floats(x: ck.f16[T, K], w: ck.f16[G, K, N], ends: ck.f32[G]) -> ck.f16[T, N]:
        return ck.grouped_gemm(x, w, ends)

    with expect_error("F048", match="ends of f32"):
        ck.op(floats).program.specialise()

    def of_rows(
        x: ck.fp8[T, K], w: ck.fp8[G, K, N], by: ck.f32[T / 2, K / 128], ends: ck.i32[G]
    ) -> ck.bf16[T, N]:
        return ck.grouped_gemm(x, w, ends, scale_a=by)

    with expect_error("F067", match="blocks of x have 2 rows, and groups begin at any row"):
        ck.op(of_rows).program.specialise()

    def along_k(
        x: ck.fp8[T, K], w: ck.fp8[K, N], by: ck.f32[T, K / 128], ends: ck.i32[G]
    ) -> ck.f32[G, T, N]:
        return ck.grouped_gemm(x, w, ends, scale_a=by)

    with expect_error("F067", match="there are scales of blocks"):
        ck.op(along_k).program.specialise()


def groups_of_every_size(op: Op, algorithm: Algorithm, gpu: str, unit: int = 1) -> None:
    """Check groups of random sizes on a GPU."""
    own = op.using(on_gpu(gpu, algorithm))

    @settings(max_examples=10, deadline=None)
    @given(
        t=st.integers(0, 200),
        k=st.integers(1, 9).map(lambda each: 8 * each),
        n=st.integers(1, 20),
        g=st.integers(1, 9),
        seed=st.integers(0, 99),
    )
    @example(t=1, k=8, n=1, g=9, seed=0)
    @example(t=191, k=72, n=17, g=1, seed=1)
    def drawn_shapes(t: int, k: int, n: int, g: int, seed: int) -> None:
        check(own, drawn(op, seed, T=t, K=k, N=unit * n, G=g), gpu)

    drawn_shapes()
    for ends in ([0] * 5, [67] * 5, [0, 0, 67, 67, 67], [-3, -1, 64, 64, 2**31 - 1]):
        check(own, drawn(op, ends=ends), gpu)
    (launch,) = (each for each in launches(own) if each.key.family == "gemm")
    assert launch.resources.vgpr_spills == 0


_FIRST = {op: op.program.specialise().params[0].type.dtype.name for op in (*OPS, *ALONG_K)}
"""The dtype of the first operand."""

CASES = {
    "plain": (plain, NARROW, 1),
    "residual": (residual, replace(NARROW, vector_d=(1, 1), persistent=True), 1),
    "gated": (gated, replace(WIDE, tile=(64, 128, 32), vector_e=1), 1),
    "combined": (combined, replace(WIDE, vector_e=4, vector_d=(1,)), 4),
    "widened": (widened, replace(NARROW, vector_a=8), 1),
    "several": (several, replace(NARROW, vector_d=(1,) * 4), 1),
    "scaled": (
        scaled,
        replace(EIGHT_BITS, tile=(64, 64, 32), vector_a=8, vector_b=8, vector_e=1),
        1,
    ),
    "integers": (
        integers,
        replace(WIDE, tile=(64, 128, 64), warp_tile=DEEP, vector_b=32, vector_e=1),
        1,
    ),
    "powers": (
        powers,
        replace(EIGHT_BITS, tile=(64, 64, 128), warp_tile=(16, 16, 128), vector_e=1, vector_d=(1,)),
        1,
    ),
    "summed": (summed, replace(NARROW, vector_a=8, vector_d=(1, 1)), 1),
    "contiguous": (contiguous, replace(NARROW, vector_d=(1,), persistent=True), 1),
}


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(
    ("name", "gpu"),
    [
        ("plain", "gfx942"),
        ("residual", "gfx950"),
        ("gated", "gfx942"),
        ("combined", "gfx90a"),
        ("scaled", "gfx942"),
        ("powers", "gfx950"),
        ("integers", "gfx942"),
        ("summed", "gfx942"),
        ("contiguous", "gfx950"),
    ],
)
def test_groups_of_every_size_within_their_bound(name: str, gpu: str, covered: Covered) -> None:
    op, algorithm, unit = CASES[name]
    groups_of_every_size(op, algorithm, gpu, unit)
    covered(f"groups of rows: {name}", _FIRST[op], gpu)


@pytest.mark.usefixtures("compiler")
def test_ends_that_fall_read_and_write_within_the_arrays() -> None:
    """What they give is not said; the emulator reports an access beyond an array."""
    x, w, _ = drawn(plain)
    ends = np.array([50, 10, 2**31 - 1, -7, 20], np.int32)
    assert plain.using(NARROW)(x, w, ends).shape == (67, 24)
    assert np.isinf(evaluate_with_bound(plain.program.specialise(), [x, w, ends])[1][0]).all()


@pytest.mark.full
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("gpu", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"])
@pytest.mark.parametrize("name", [name for name, row in CASES.items() if row[0] not in SCALED])
def test_every_gpu(name: str, gpu: str, covered: Covered) -> None:
    op, algorithm, unit = CASES[name]
    groups_of_every_size(op, algorithm, gpu, unit)
    covered(f"groups of rows: {name}", _FIRST[op], gpu)


@pytest.mark.full
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("op", [plain, summed], ids=lambda op: op.program.name)
@pytest.mark.parametrize("pipeline", [*Pipeline], ids=lambda each: each.value)
def test_every_pipeline(pipeline: Pipeline, op: Op, covered: Covered) -> None:
    wide = replace(WIDE, vector_e=1)
    if op is summed:
        wide = replace(wide, vector_b=1, vector_d=(1, 1))
    algorithm = on_gpu("gfx950", pipelined(wide, pipeline))
    problem = only(Problem, op.problems(*drawn(op)))
    if ck.dispatch.advise(algorithm, problem.signature, "gfx950"):
        pytest.skip("a rule refuses it")
    groups_of_every_size(op, algorithm, "gfx950")
    covered(f"groups of rows: {pipeline.value}", "f16", "gfx950")
