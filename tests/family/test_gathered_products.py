# SPDX-License-Identifier: MIT
"""Products whose kernels read the rows of A at indices as they load them."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import cklang as ck
from cklang.errors import CkError
from cklang.families import plan_of
from cklang.families.gemm import bands
from cklang.families.gemm.bands import bands_of
from cklang.families.gemm.gathering import GAIN, obstacle
from cklang.families.gemm.key import Algorithm, Pipeline
from cklang.families.gemm.plan import FusedGemm
from cklang.families.gemm.problem import GatheredMatrix, Problem
from cklang.families.gemm.unfuse import product_function
from cklang.fusion.explain import explain
from cklang.reference.evaluate import evaluate
from cklang.runtime.op import Op
from cklang.tune.database import Status
from cklang.tune.measure import measure
from cklang.tune.task import tasks_of
from tests.support.algorithms import EIGHT_BITS, NARROW, WIDE, on_gpu, pipelined
from tests.support.checks import check, check_group, check_read_back, launches
from tests.support.coverage import Covered
from tests.support.errors import expect_error
from tests.support.instructions import instructions, loads_in_loop
from tests.support.typed import instance, only

T, M, N, K, E, C = ck.dims("T M N K E C")
GPUS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")

Array = np.ndarray[Any, Any]


@ck.op
def plain(x: ck.f16[M, K], w: ck.f16[N, K], bias: ck.f16[N]) -> ck.f16[M, N]:
    return ck.gelu(x @ w.T + bias)


@ck.op
def expert(x: ck.f16[T, K], rows: ck.i32[M], w: ck.f16[N, K], bias: ck.f16[N]) -> ck.f16[M, N]:
    return ck.gelu(x[rows] @ w.T + bias)


@ck.op
def long_indices(x: ck.f16[T, K], rows: ck.i64[M], w: ck.f16[N, K]) -> ck.f16[M, N]:
    return x[rows] @ w.T


@ck.op
def gated(x: ck.f16[T, K], rows: ck.i32[M], g: ck.f16[N, K], u: ck.f16[N, K]) -> ck.f16[M, N]:
    tokens = x[rows]
    return ck.silu(tokens @ g.T) * (tokens @ u.T)


@ck.op
def experts(x: ck.f16[T, K], rows: ck.i32[E, C], w: ck.f16[E, N, K]) -> ck.f16[E, C, N]:
    """Each expert has room for as many tokens."""
    return x[rows] @ w.mT


@ck.op
def sequences(x: ck.f16[E, T, K], rows: ck.i32[C], w: ck.f16[N, K]) -> ck.f16[E, C, N]:
    """The same rows of each sequence: the table moves with the batch."""
    return ck.take(x, rows, axis=1) @ w.T


@ck.op
def quantised(
    x: ck.fp8_fnuz[T, K],
    sx: ck.f32[T, K / 128],
    rows: ck.i32[M],
    w: ck.fp8_fnuz[N, K],
    sw: ck.f32[N / 128, K / 128],
) -> ck.bf16[M, N]:
    """An expert in fp8 with scales for 128 elements along K."""
    return ck.gemm(x[rows], w.T, scale_a=sx[rows], scale_b=sw.T)


@ck.op
def quantised_ocp(
    x: ck.fp8[T, K],
    sx: ck.f32[T, K / 128],
    rows: ck.i32[M],
    w: ck.fp8[N, K],
    sw: ck.f32[N / 128, K / 128],
) -> ck.bf16[M, N]:
    """The same in the fp8 of OCP."""
    return ck.gemm(x[rows], w.T, scale_a=sx[rows], scale_b=sw.T)


@ck.op
def limited(x: ck.f16[T, K], rows: ck.i32[M], w: ck.f16[N, K], bias: ck.f16[N]) -> ck.f16[M, N]:
    return ck.gelu(x[rows * 1] @ w.T + bias)


@ck.op
def turned(x: ck.f16[T, K], rows: ck.i32[M], w: ck.f16[N, K]) -> ck.f16[N, M]:
    return (x[rows] @ w.T).T


@ck.op
def both(x: ck.f16[T, K], rows: ck.i32[M], w: ck.f16[N, K]) -> tuple[ck.f16[M, N], ck.f16[M, K]]:
    """The rows are a result too, so they are stored."""
    tokens = x[rows]
    return tokens @ w.T, tokens


OPS = (expert, long_indices, gated, experts, sequences)


def drawn(op: Op, seed: int = 0, **sizes: int) -> list[Array]:
    """Return arrays for an op: ``rows`` are any of the table's, some of them several times."""
    random = np.random.default_rng(seed)
    args: list[Array] = []
    for param in op.program.specialise().params:
        shape = param.type.extents(sizes)
        if param.name == "rows":
            args.append(random.integers(0, sizes["T"], shape).astype(param.type.dtype.numpy))
        else:
            args.append((random.standard_normal(shape) / 2).astype(param.type.dtype.numpy))
    return args


SIZES = {"T": 50, "M": 70, "N": 72, "K": 96, "E": 3, "C": 21}


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.program.name)
def test_one_kernel_reads_at_indices_and_means_the_same(op: Op) -> None:
    function = op.program.specialise()
    plan = plan_of(function)
    (kernel,) = (instance(FusedGemm, each) for each in plan.kernels)
    assert "as it is loaded" in explain(plan)
    assert "its rows where they lie" in explain(plan)
    args = drawn(op, T=5, M=7, N=3, K=4, E=2, C=3)
    values = dict(zip((value.name for value in function.params), args, strict=True))
    own = evaluate(product_function(kernel), [values[each.name] for each in kernel.inputs])
    for got, want in zip(own, evaluate(function, args), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3)


def test_rows_that_are_a_result_are_stored_once() -> None:
    families = [kernel.family for kernel in plan_of(both.program.specialise()).kernels]
    assert families == ["rowwise", "gemm"]


def words(op: Op, *args: Any) -> str:
    """Return what is said of the gather of a call."""
    (line,) = (each for each in op.explain(*args).splitlines() if each.startswith("  gather"))
    return line


def test_what_no_kernel_reads_is_copied_and_said_so() -> None:
    x, rows, w, bias = drawn(expert, **SIZES)
    assert "loads the rows of %x at %rows" in words(expert, x, rows, w, bias)
    assert "more with a copy" in words(expert, x, rows, w, bias)
    columns = words(expert, np.asfortranarray(x), rows, w, bias)
    assert "copies the rows of %x at %rows: rows of %x are not contiguous" in columns
    assert "transpose, where they are columns" in words(turned, x, rows, w)
    wide = expert.using(replace(WIDE, vector_d=(8,)))
    odd = np.zeros((50, 97), np.float16)[:, :96]
    assert "no kernel serves it (K101)" in words(wide, odd, rows, w, bias)


def huge(rows: int, columns: int, step: int) -> Array:
    """Return a matrix of f16 that is not there, for calls that are only explained."""
    return np.lib.stride_tricks.as_strided(np.zeros(1, np.float16), (rows, columns), (2 * step, 2))


def test_the_cost_model_decides_between_narrow_loads_and_a_copy() -> None:
    # Rows of an odd stride are read element by element; a copy of them in vectors.
    w, few, table = huge(16384, 4096, 4096), huge(16, 4096, 4096), huge(1024, 4096, 4097)
    rows = np.zeros(1024, np.int64)
    with ck.using(preset="catalogue"):
        many, once = (words(long_indices, table, rows, each) for each in (w, few))
    assert "loads the rows" in once
    for line in (many, once):
        (first, second) = (float(each) for each in re.findall(r"([\d.]+) (?:µs|with)", line))
        copied, loaded = (first, second) if "copies" in line else (second, first)
        assert ("copies" in line) == (copied < GAIN * loaded)
    assert "copies the rows" in many


def test_problem_key_and_rule() -> None:
    problem = only(Problem, expert.problems(*drawn(expert, **SIZES)))
    a = instance(GatheredMatrix, problem.a)
    assert (a.table, a.span, a.indices.span) == (50, 50 * 96, 70)
    assert [each.value for each in problem.inputs[:3]] == ["x", "rows", "w"]
    signature = problem.signature
    assert signature.gather == ck.i32
    assert "rows of A at indices of i32" in signature.words
    assert not ck.dispatch.advise(replace(WIDE, vector_d=(8,)), signature, "gfx942")
    changes: tuple[dict[str, Any], ...] = ({"layouts": "ccr"}, {"sparse": True})
    for change in changes:
        wrong = ck.dispatch.problem(8, 8, 8, gather=ck.i32, **change)
        rules = {each.rule for each in ck.dispatch.advise(WIDE, wrong.signature, "gfx942")}
        assert "gathered" in rules
    assert ck.dispatch.select(
        ck.dispatch.problem(64, 64, 64, gather=ck.i64), arch="gfx942"
    ).predicted
    # A batch along which the table does not move is more rows.
    (folded,) = sequences.problems(*drawn(sequences, **{**SIZES, "C": 1}))
    assert folded.batch == (3,)


@given(m=st.integers(1, 40), k=st.integers(1, 40), table=st.integers(1, 60))
@settings(max_examples=40, deadline=None)
def test_bands_read_what_the_product_reads(m: int, k: int, table: int) -> None:
    problem = only(Problem, long_indices.problems(*drawn(long_indices, T=table, M=m, N=9, K=k)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bands, "MOST_BYTES", 4 * max(table, 16) * 16)
        parts = list(bands_of(problem))
    read: list[tuple[int, int]] = []
    for part, band in parts:
        a = instance(GatheredMatrix, part.a)
        moves = band.moves or (0,) * len(problem.inputs)
        first, deep = moves[1] // 8, moves[0] // 2
        assert a.table == table
        assert deep + a.span <= problem.a.arrays[0].span
        read += [
            (row, column)
            for row in range(first, first + a.rows)
            for column in range(deep, deep + a.columns)
        ]
    assert set(read) == {(row, column) for row in range(m) for column in range(k)}


@pytest.mark.usefixtures("emulator")
def test_a_group_refuses_what_it_would_copy() -> None:
    args = drawn(turned, **SIZES)
    with expect_error("X040", match="call 0 of the group"):
        turned.grouped([args])
    kernel = instance(FusedGemm, plan_of(turned.program.specialise()).kernels[0])
    assert obstacle(kernel, {}) is not None


@pytest.mark.usefixtures("compiler")
def test_every_extent_within_its_bound(covered: Covered) -> None:
    op = expert.using(replace(WIDE, vector_d=(8,)))

    @settings(max_examples=12, deadline=None)
    @given(
        table=st.integers(1, 90),
        m=st.integers(1, 140),
        n=st.integers(1, 20).map(lambda each: 8 * each),
        k=st.integers(1, 20).map(lambda each: 8 * each),
        pad=st.sampled_from([0, 8, 2]),
        seed=st.integers(0, 99),
    )
    @example(table=1, m=1, n=8, k=8, pad=0, seed=0)
    @example(table=3, m=129, n=72, k=40, pad=2, seed=1)
    def drawn_shapes(table: int, m: int, n: int, k: int, pad: int, seed: int) -> None:
        x, rows, w, bias = drawn(expert, seed, T=table, M=m, N=n, K=k)
        room = np.full((table, k + pad), np.nan, np.float16)
        room[:, :k] = x
        every_second = np.repeat(rows, 2)[::2]
        check(op, (room[:, :k], every_second, w, bias))

    drawn_shapes()
    (launch,) = launches(op)
    assert launch.resources.spills == 0
    assert launch.key.signature.gather == ck.i32
    check_read_back(op)
    covered("rows of A at indices", "f16", "gfx942")


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("count", [3, 0])
def test_odd_extents_and_no_rows(count: int) -> None:
    op = long_indices.using(NARROW)
    check(op, drawn(long_indices, T=5, M=count, N=33, K=7))
    check(op, drawn(long_indices, T=9, M=count, N=1, K=0))


@pytest.mark.usefixtures("compiler")
def test_wrong_indices_are_an_error_on_the_host_and_limited_elsewhere() -> None:
    op = expert.using(replace(WIDE, vector_d=(8,)))
    x, rows, w, bias = drawn(expert, **SIZES)
    op(x, rows, w, bias)
    for wrong in (50, -1):
        rows[3] = wrong
        with expect_error("A056", match=rf"rows\[3\] is {wrong}.* from 0 to 49"):
            op(x, rows, w, bias)
        with pytest.raises(CkError, match=rf"rows\[3\] is {wrong}"):
            op.grouped([(x, np.zeros(2, np.int32), w, bias), (x, rows, w, bias)])
    computed = limited.using(replace(WIDE, vector_d=(8,)))
    rows[:3] = (-5, 50, 2**31 - 1)
    result = check(computed, (x, rows, w, bias))
    straight = op(x, np.clip(rows, 0, 49), w, bias)
    np.testing.assert_array_equal(result, straight)


@pytest.mark.usefixtures("compiler")
def test_the_main_loop_is_that_of_a_plain_product() -> None:
    x, rows, w, bias = drawn(expert, **SIZES)
    own, other = (op.using(replace(WIDE, vector_d=(8,))) for op in (expert, plain))
    np.testing.assert_array_equal(check(own, (x, rows, w, bias)), check(other, (x[rows], w, bias)))
    (gathered,), (straight,) = launches(own), launches(other)
    assert gathered.resources.spills == straight.resources.spills == 0
    assert gathered.resources.lds_bytes == straight.resources.lds_bytes
    kinds = ("matrix", "loads", "lds")
    counts, wanted = (instructions(each, kinds) for each in (gathered, straight))
    assert counts["matrix"] == wanted["matrix"] != Counter()
    assert counts["lds"] == wanted["lds"] != Counter()
    # A thread loads the index of its one row, once and before the loop.
    assert counts["loads"] - wanted["loads"] == Counter(global_load_dword=1)
    assert not wanted["loads"] - counts["loads"]
    assert not loads_in_loop(gathered)


def pair(gpu: str) -> None:
    op = gated.using(on_gpu(gpu, WIDE))
    check(op, drawn(gated, **SIZES), gpu)
    (launch,) = launches(op)
    assert launch.key.signature.sums == 2


def batch(gpu: str) -> None:
    for op in (experts, sequences):
        own = op.using(on_gpu(gpu, WIDE))
        for sizes in (SIZES, {**SIZES, "E": 1, "C": 1}, {**SIZES, "C": 130, "K": 40}):
            check(own, drawn(op, **sizes), gpu)
            assert len(launches(own)) == 1


def group(gpu: str) -> None:
    op = expert.using(on_gpu(gpu, replace(WIDE, vector_d=(8,))))
    table, _, _, _ = drawn(expert, **SIZES)
    calls = []
    for seed, count in enumerate((70, 0, 1, 33)):
        _, rows, w, bias = drawn(expert, seed, **{**SIZES, "M": count})
        calls.append((table, rows, w, bias))
    check_group(op, calls, gpu)


def block_scales(gpu: str) -> None:
    own = quantised if gpu == "gfx942" else quantised_ocp
    op = own.using(on_gpu(gpu, replace(EIGHT_BITS, vector_e=8)))
    for sizes in (SIZES, {**SIZES, "M": 1, "T": 3}, {**SIZES, "M": 131}):
        check(op, drawn(op, **{**sizes, "K": 256, "N": 128}), gpu)
    scales, product = launches(op)
    assert (scales.key.family, product.key.family) == ("rowwise", "gemm")
    assert product.key.signature.gather == ck.i32
    assert product.resources.spills == 0


@pytest.mark.usefixtures("compiler")
def test_pairs_batches_and_groups(covered: Covered) -> None:
    for check_on in (pair, batch, group):
        check_on("gfx942")
        covered(f"rows of A at indices: {check_on.__name__}", "f16", "gfx942")


@pytest.mark.usefixtures("compiler")
def test_scales_of_blocks(covered: Covered) -> None:
    block_scales("gfx942")
    covered("rows of A at indices: block scales", "fp8", "gfx942")


@pytest.mark.full
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("gpu", ["gfx90a", "gfx950", "gfx1100", "gfx1201"])
@pytest.mark.parametrize("check_on", [pair, batch, group], ids=lambda each: each.__name__)
def test_pairs_batches_and_groups_on_other_gpus(
    check_on: Callable[[str], None], gpu: str, covered: Covered
) -> None:
    check_on(gpu)
    covered(f"rows of A at indices: {check_on.__name__}", "f16", gpu)


@pytest.mark.full
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("gpu", ["gfx950", "gfx1201"])
def test_scales_of_blocks_on_other_gpus(gpu: str, covered: Covered) -> None:
    block_scales(gpu)
    covered("rows of A at indices: block scales", "fp8", gpu)


@pytest.mark.usefixtures("compiler")
def test_its_kernel_is_measured_by_itself() -> None:
    op = expert.using(replace(WIDE, vector_d=(8,)))
    args = tuple(drawn(expert, **SIZES))
    (task,) = tasks_of(expert, args)
    (choice,) = op._choices(args, {}, None, "emu:gfx942")
    answer = measure(task.to_json(), choice.main.key.to_json(), {})
    assert answer["status"] == Status.RIGHT.value, answer["note"]
    # Copied rows are no operand of a call, nor indices of each product of a batch.
    assert not any(tasks_of(each, tuple(drawn(each, **SIZES))) for each in (turned, experts))


@pytest.mark.full
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("pipeline", [*Pipeline], ids=lambda each: each.value)
def test_every_pipeline_on_every_gpu(gpu: str, pipeline: Pipeline, covered: Covered) -> None:
    algorithm: Algorithm = on_gpu(gpu, pipelined(replace(WIDE, vector_d=(8,)), pipeline))
    problem = only(Problem, expert.problems(*drawn(expert, **SIZES)))
    if ck.dispatch.advise(algorithm, problem.signature, gpu):
        pytest.skip("a rule refuses it")
    op = expert.using(algorithm)
    for sizes in (SIZES, {**SIZES, "M": 1, "K": 8}, {**SIZES, "M": 200, "K": 264}):
        check(op, drawn(expert, **sizes), gpu)
    (launch,) = launches(op)
    assert launch.resources.spills == 0
    assert launch.key.signature.gather == ck.i32
    covered(f"rows of A at indices: {pipeline.value}", "f16", gpu)
    if pipeline is WIDE.pipeline:
        covered("rows of A at indices", "f16", gpu)
