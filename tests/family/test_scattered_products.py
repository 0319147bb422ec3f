# SPDX-License-Identifier: MIT
"""Products whose epilogues store the rows of E at indices: written, or added in any order."""

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import cklang as ck
from cklang.families import plan_of
from cklang.families.gemm import bands
from cklang.families.gemm.bands import bands_of
from cklang.families.gemm.key import Algorithm, Layout, Pipeline
from cklang.families.gemm.problem import GatheredMatrix, Problem
from cklang.fusion.explain import explain
from cklang.runtime.op import Op
from tests.support.algorithms import NARROW, WIDE, on_gpu, pipelined
from tests.support.checks import check, launches
from tests.support.coverage import Covered
from tests.support.errors import expect_error
from tests.support.instructions import instructions, loads_in_loop
from tests.support.typed import instance, only

T, M, N, K, E, C = ck.dims("T M N K E C")
GPUS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")
SUMS = replace(WIDE, vector_e=4, vector_d=(1,))

Array = np.ndarray[Any, Any]


@ck.op
def plain(h: ck.f16[M, K], w: ck.f16[N, K], by: ck.f32[M]) -> ck.f32[M, N]:
    return (h @ w.T) * by[:, None]


@ck.op
def combined(
    y: ck.f32[T, N], h: ck.f16[M, K], w: ck.f16[N, K], rows: ck.i32[M], by: ck.f32[M]
) -> ck.f32[T, N]:
    """What experts end with: the rows of their tokens, weighed and added."""
    return ck.scatter_add(y, rows, (h @ w.T) * by[:, None], ordered=False)


@ck.op
def computed(
    y: ck.f32[T, N], h: ck.f16[M, K], w: ck.f16[N, K], rows: ck.i32[M], by: ck.f32[M]
) -> ck.f32[T, N]:
    """Indices that no host has seen."""
    return ck.scatter_add(y, rows * 1, (h @ w.T) * by[:, None], ordered=False)


@ck.op
def updated(
    y: ck.inout[ck.f32[T, N]], h: ck.f16[M, K], w: ck.f16[N, K], rows: ck.i32[M], by: ck.f32[M]
) -> ck.f32[T, N]:
    return ck.scatter_add(y, rows, (h @ w.T) * by[:, None], ordered=False)


@ck.op
def placed(x: ck.f16[T, N], h: ck.f16[M, K], w: ck.f16[K, N], rows: ck.i64[M]) -> ck.f16[T, N]:
    """Slots that are all different."""
    return ck.scatter(x, rows, (h @ w).to(ck.f16), ordered=False)


@ck.op
def experts(
    h: ck.f16[E, C, K], w: ck.f16[E, N, K], rows: ck.i32[E, C], by: ck.f32[E, C], like: ck.f32[T]
) -> ck.f32[T, N]:
    """Each expert has room for as many tokens."""
    return ck.segment_sum((h @ w.mT) * by[..., None], rows, T, ordered=False)


@ck.op
def in_order(h: ck.f16[M, K], w: ck.f16[N, K], rows: ck.i32[M], x: ck.f32[T, N]) -> ck.f32[T, N]:
    return ck.scatter_add(x, rows, h @ w.T)


@ck.op
def rounded(h: ck.f16[M, K], w: ck.f16[N, K], rows: ck.i32[M], x: ck.f16[T, N]) -> ck.f16[T, N]:
    """Sums of f16: no instruction adds them as f32."""
    return ck.scatter_add(x, rows, h @ w.T, ordered=False).to(ck.f16)


@ck.op
def kept(
    h: ck.f16[M, K], w: ck.f16[N, K], rows: ck.i32[M], x: ck.f32[T, N]
) -> tuple[ck.f32[T, N], ck.f32[M, N]]:
    """The rows are a result too."""
    y = h @ w.T
    return ck.scatter_add(x, rows, y, ordered=False), y


@ck.op
def columns(h: ck.f16[M, K], w: ck.f16[N, K], rows: ck.i32[N], x: ck.f32[M, T]) -> ck.f32[M, T]:
    return ck.scatter_add(x, rows, h @ w.T, axis=1, ordered=False)


OPS = (combined, updated, placed, experts)
SIZES = {"T": 50, "M": 70, "N": 72, "K": 96, "E": 3, "C": 21}


def drawn(op: Op, seed: int = 0, **sizes: int) -> list[Array]:
    """Return arrays for an op; indices that are written differ if the table has room."""
    random = np.random.default_rng(seed)
    args: list[Array] = []
    for param in op.program.specialise().params:
        shape = param.type.extents(sizes)
        if param.name == "rows":
            table = sizes["T"]
            distinct = op is placed
            own = random.permutation(table)[: shape[0]] if distinct else None
            rows = random.integers(0, table, shape) if own is None else own
            args.append(rows.astype(param.type.dtype.numpy))
        else:
            args.append((random.standard_normal(shape) / 2).astype(param.type.dtype.numpy))
    return args


def families(op: Op) -> list[str]:
    return [kernel.family for kernel in plan_of(op.program.specialise()).kernels]


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.program.name)
def test_one_kernel_stores_at_indices(op: Op) -> None:
    plan = plan_of(op.program.specialise())
    assert [kernel.family for kernel in plan.kernels] == ["gemm"]
    assert plan.kernels[0].name == op.program.name
    text = explain(plan)
    assert "its rows go to %rows of axis 0" in text
    assert "fused, scattered: " in text


def test_an_order_another_dtype_or_another_reader_takes_two_kernels() -> None:
    assert families(in_order) == families(kept) == ["gemm", "scatter"]
    assert families(rounded) == families(columns) == ["gemm", "scatter"]


def test_problem_key_and_rule() -> None:
    problem = only(Problem, combined.problems(*drawn(combined, **SIZES)))
    e = instance(GatheredMatrix, problem.e)
    assert (e.layout, e.table, e.span, e.indices.span) == (Layout.ADDED, 50, 50 * 72, 70)
    names = [each.value for each in problem.inputs]
    assert names == ["h", "w", e.value, "rows", "by"]
    assert problem.written == {e.value}
    signature = problem.signature
    assert signature.scatter == ck.i32
    assert "rows of E added at indices of i32" in signature.words
    assert not ck.dispatch.advise(SUMS, signature, "gfx942")
    other = ck.dispatch.problem(64, 64, 64, scatter=ck.i64)
    assert "rows of E written at indices of i64" in other.signature.words
    assert ck.dispatch.select(other, arch="gfx942").predicted
    narrow = ck.dispatch.problem(64, 64, 64, scatter=ck.i64, adds=True)
    assert "generated" in {
        each.rule for each in ck.dispatch.advise(WIDE, narrow.signature, "gfx942")
    }
    # Of tokens with room for as many in each expert, the batch goes through the indices alone.
    batched = only(Problem, experts.problems(*drawn(experts, **SIZES)))
    table = instance(GatheredMatrix, batched.e)
    assert (batched.batch, table.batch, table.indices.batch) == ((3,), (0,), (21,))


def words(op: Op, *args: Any, **more: Any) -> str:
    """Return what is said of the scatter of a call."""
    lines = op.explain(*args, **more).splitlines()
    (line,) = (each for each in lines if each.startswith("  scatter "))
    return line


def test_what_no_kernel_stores_is_said_so() -> None:
    y, *rest = drawn(updated, **SIZES)
    assert "stores the rows of %3 at %rows" in words(updated, y, *rest)
    turned = np.asfortranarray(y)
    assert "rows of %4 are not contiguous" in words(updated, turned, *rest)
    x, *others = drawn(placed, **{**SIZES, "M": 40})
    odd = np.zeros((50, 73), np.float16)[:, :72]
    refused = words(placed.using(WIDE), x, *others, out=odd)
    assert "a kernel after the product stores its rows: no kernel serves it (K101)" in refused


@given(m=st.integers(1, 40), n=st.integers(1, 40), table=st.integers(1, 60))
@settings(max_examples=40, deadline=None)
def test_bands_store_what_the_product_stores(m: int, n: int, table: int) -> None:
    problem = only(Problem, combined.problems(*drawn(combined, T=table, M=m, N=n, K=9)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bands, "MOST_BYTES", 4 * max(table, 16) * 48)
        parts = list(bands_of(problem))
    stored: list[tuple[int, int]] = []
    for part, band in parts:
        e = instance(GatheredMatrix, part.e)
        _, _, column, row, _ = (each // 4 for each in band.moves or (0,) * 5)
        assert e.table == table
        assert column + e.span <= problem.e.span
        stored += [(row + i, column + j) for i in range(e.indices.span) for j in range(part.n)]
    assert sorted(stored) == [(i, j) for i in range(m) for j in range(n)]


def sums_at_every_extent(gpu: str) -> None:
    """Check rows that are added on a GPU."""
    op = combined.using(on_gpu(gpu, SUMS))

    @settings(max_examples=12, deadline=None)
    @given(
        table=st.integers(1, 90),
        m=st.integers(0, 140),
        n=st.integers(1, 20).map(lambda each: 4 * each),
        k=st.integers(1, 20).map(lambda each: 8 * each),
        seed=st.integers(0, 99),
    )
    @example(table=1, m=129, n=4, k=8, seed=0)
    @example(table=90, m=1, n=132, k=40, seed=1)
    def drawn_shapes(table: int, m: int, n: int, k: int, seed: int) -> None:
        y, h, w, rows, by = drawn(combined, seed, T=table, M=m, N=n, K=k)
        check(op, (y, h, w, np.repeat(rows, 2)[::2], by), gpu)

    drawn_shapes()
    (launch,) = (each for each in launches(op) if each.key.family == "gemm")
    assert launch.resources.spills == 0
    assert launch.key.signature.layout_e is Layout.ADDED


@pytest.mark.usefixtures("compiler")
def test_sums_at_every_extent_within_their_bound(covered: Covered) -> None:
    sums_at_every_extent("gfx942")
    covered("rows of E at indices: added", "f16", "gfx942")


@pytest.mark.usefixtures("compiler")
def test_sums_go_into_the_tensor_itself() -> None:
    op = updated.using(SUMS)
    y, h, w, rows, by = drawn(updated, **SIZES)
    want = combined.using(SUMS)(y, h, w, rows, by)
    room = np.zeros((50, 76), np.float32)
    room[:, :72] = y
    result = op(room[:, :72], h, w, rows, by)
    np.testing.assert_allclose(result, want, rtol=1e-5, atol=1e-5)
    assert [each.key.family for each in launches(op)] == ["gemm"]
    assert not room[:, 72:].any()


def rows_of_odd_extents(gpu: str) -> None:
    """Check rows that are written on a GPU."""
    op = placed.using(on_gpu(gpu, NARROW))
    for sizes in ({"M": 33, "T": 40, "N": 7, "K": 5}, {"M": 1, "T": 1, "N": 1, "K": 1}):
        check(op, drawn(placed, **sizes), gpu)
    check(op, drawn(placed, M=0, T=6, N=3, K=4), gpu)


@pytest.mark.usefixtures("compiler")
def test_written_rows_of_odd_extents(covered: Covered) -> None:
    rows_of_odd_extents("gfx942")
    covered("rows of E at indices: written", "f16", "gfx942")


@pytest.mark.usefixtures("compiler")
def test_wrong_indices_are_an_error_on_the_host_and_left_out_elsewhere() -> None:
    op = combined.using(SUMS)
    y, h, w, rows, by = drawn(combined, **SIZES)
    want = op(y, h[3:], w, rows[3:], by[3:])
    rows[:3] = (-1, 50, 2**31 - 1)
    with expect_error("A056", match=r"rows\[0\] is -1.* from 0 to 49"):
        op(y, h, w, rows, by)
    result = computed.using(SUMS)(y, h, w, rows, by)
    np.testing.assert_allclose(result, want, rtol=1e-5, atol=1e-5)


@pytest.mark.usefixtures("compiler")
def test_the_main_loop_is_that_of_a_plain_product() -> None:
    y, h, w, rows, by = drawn(combined, **SIZES)
    own, other = (op.using(SUMS) for op in (combined, plain))
    check(own, (y, h, w, rows, by))
    check(other, (h, w, by))
    (scattered,) = (each for each in launches(own) if each.key.family == "gemm")
    (straight,) = launches(other)
    assert scattered.resources.spills == straight.resources.spills == 0
    assert scattered.resources.lds_bytes == straight.resources.lds_bytes
    counts, wanted = (instructions(each, ("matrix", "lds")) for each in (scattered, straight))
    assert counts["matrix"] == wanted["matrix"] != Counter()
    assert counts["lds"] == wanted["lds"] != Counter()
    assert loads_in_loop(scattered) == loads_in_loop(straight)


def batches(gpu: str) -> None:
    """Check the rows of several products on a GPU."""
    op = experts.using(on_gpu(gpu, SUMS))
    for sizes in (SIZES, {**SIZES, "E": 1, "C": 1}, {**SIZES, "C": 130, "K": 40}):
        check(op, drawn(experts, **sizes), gpu)


@pytest.mark.usefixtures("compiler")
def test_batches(covered: Covered) -> None:
    batches("gfx942")
    covered("rows of E at indices: batch", "f16", "gfx942")


ELSEWHERE = {"added": sums_at_every_extent, "written": rows_of_odd_extents, "batch": batches}


@pytest.mark.full
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("gpu", ["gfx90a", "gfx950", "gfx1100", "gfx1201"])
@pytest.mark.parametrize("name", ELSEWHERE)
def test_other_gpus(name: str, gpu: str, covered: Covered) -> None:
    ELSEWHERE[name](gpu)
    covered(f"rows of E at indices: {name}", "f16", gpu)


@pytest.mark.full
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("pipeline", [*Pipeline], ids=lambda each: each.value)
def test_every_pipeline_on_every_gpu(gpu: str, pipeline: Pipeline, covered: Covered) -> None:
    algorithm: Algorithm = on_gpu(gpu, pipelined(SUMS, pipeline))
    problem = only(Problem, combined.problems(*drawn(combined, **SIZES)))
    if ck.dispatch.advise(algorithm, problem.signature, gpu):
        pytest.skip("a rule refuses it")
    op = combined.using(algorithm)
    for sizes in (SIZES, {**SIZES, "M": 1, "K": 8}, {**SIZES, "M": 200, "K": 264}):
        check(op, drawn(combined, **sizes), gpu)
    (launch,) = (each for each in launches(op) if each.key.family == "gemm")
    assert launch.resources.spills == 0
    assert launch.key.signature.scatter == ck.i32
    covered(f"rows of E at indices: {pipeline.value}", "f16", gpu)


@pytest.mark.usefixtures("emulator")
def test_a_group_refuses_results_that_something_fills_before() -> None:
    with expect_error("X050", match="call 0 of the group"):
        combined.grouped([drawn(combined, **SIZES)])


def test_its_gradient_takes_rows_of_the_gradient() -> None:
    function = ck.vjp(combined, wrt=("h", "by")).program.specialise()
    text = str(function)
    assert "take" in text
    assert "scatter" not in text
