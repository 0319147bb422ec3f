# SPDX-License-Identifier: MIT
"""Log-sum-exps of products: the kernel of the product stores those of blocks, not its result."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.families import plan_of
from cklang.families.gemm.bands import bands_of, why_k_is_whole
from cklang.families.gemm.fuse.log_sums import with_log_sums
from cklang.families.gemm.fuse.picked import with_picked
from cklang.families.gemm.key import Layout
from cklang.ir.log_sums import log_sums
from cklang.ir.verifier import verify
from cklang.reference.evaluate import evaluate
from cklang.runtime.op import Op
from cklang.testing import report
from cklang.tune.task import tasks_of
from tests.support.algorithms import NARROW, narrow
from tests.support.errors import expect_error

Array = np.ndarray[Any, Any]
B, M, N, K = ck.dims("B M N K")


@ck.op
def lse(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f32[M]:
    return ck.logsumexp(x @ w.T, axis=-1)


@ck.op
def capped(x: ck.f16[B, M, K], w: ck.f16[N, K], bias: ck.f32[N]) -> ck.f32[B, M]:
    return ck.logsumexp(30.0 * ck.tanh((x @ w.T + bias) / 30.0), axis=-1)


def operands(m: int, n: int, k: int, seed: int = 0) -> tuple[Array, Array]:
    random = np.random.default_rng(seed)
    x, w = (random.standard_normal(shape).astype(np.float16) for shape in ((m, k), (n, k)))
    return x, w


def half(*shape: int) -> Array:
    return np.empty(shape, np.float16)


def kernels(op: Op) -> list[tuple[str, bool]]:
    return [
        (kernel.family, getattr(kernel, "log_sums", False))
        for kernel in plan_of(op.program.specialise()).kernels
    ]


@pytest.mark.parametrize("op", [lse, capped], ids=["plain", "capped"])
def test_the_product_is_not_stored(op: Op) -> None:
    assert kernels(op) == [("gemm", True), ("rowwise", False)]
    plan = plan_of(op.program.specialise())
    (reason,) = [each.reason for each in plan.decisions if each.rule == "reduced"]
    assert "is never stored" in reason


@ck.op
def loss(x: ck.f16[M, K], w: ck.f16[N, K], targets: ck.i32[M]) -> ck.f32[M]:
    return ck.cross_entropy(x @ w.T, targets)


@ck.op
def capped_loss(
    x: ck.f16[B, M, K], w: ck.f16[K, N], bias: ck.f32[N], targets: ck.i32[B, M]
) -> ck.f32[B, M]:
    return ck.cross_entropy(30.0 * ck.tanh((x @ w + bias) / 30.0), targets)


def test_a_cross_entropy_reads_no_logits() -> None:
    for op in (loss, capped_loss):
        families = kernels(op)
        assert families.count(("gemm", True)) == 1
        assert {family for family, _ in families} == {"gemm", "rowwise"}
        (reduced, *others) = plan_of(op.program.specialise()).kernels
        logits = reduced.results[0]
        assert all(logits not in each.inputs and logits not in each.results for each in others)


def test_no_temporary_has_the_size_of_the_logits() -> None:
    tokens, words, width = 2048, 128_256, 4096
    args = (half(tokens, width), half(words, width), np.empty(tokens, np.int32))
    dims = {"M": tokens, "N": words, "K": width}
    plan = loss.fusion(*args)
    temporaries = {
        value: value.type.bytes(dims)
        for kernel in plan.kernels
        for value in kernel.inputs
        if value not in plan.function.params
    }
    assert max(temporaries.values()) == 4 * tokens * (words // 64)
    assert loss.summary(*args, device="emu:gfx942").bytes < 2.1 * args[1].nbytes


def test_few_classes_are_stored() -> None:
    few = (half(4096, 4096), half(10, 4096), np.empty(4096, np.int32))
    assert not any(getattr(each, "log_sums", False) for each in loss.fusion(*few).kernels)
    (note,) = [each for each in loss.fusion(*few).notes if "predicted" in each]
    assert note.endswith("it is stored")
    more = (half(4096, 64), half(1000, 64), np.empty(4096, np.int32))
    assert any(getattr(each, "log_sums", False) for each in loss.fusion(*more).kernels)


@pytest.mark.parametrize("op", [loss, capped_loss], ids=["plain", "capped"])
def test_a_cross_entropy_means_the_same(op: Op) -> None:
    random = np.random.default_rng(3)
    x, w = operands(6, 70, 8)
    targets = np.array([0, 69, 5, -1, 70, -100], np.int32)
    args: list[Array] = [x, w, targets]
    if op is capped_loss:
        bias = random.standard_normal(70).astype(np.float32)
        args = [x.reshape(2, 3, 8), w.T.copy(), bias, targets.reshape(2, 3)]
    function = op.program.specialise()
    rewritten = with_picked(function)
    assert rewritten != function
    assert with_picked(rewritten) == rewritten
    verify(rewritten)
    got, want = evaluate(rewritten, args), evaluate(function, args)
    np.testing.assert_allclose(got[0], want[0], rtol=1e-5)


def test_other_sums_of_selected_elements_stay() -> None:
    @ck.op
    def picked(x: ck.f16[M, K], w: ck.f16[N, K], targets: ck.i32[M]) -> ck.f32[M]:
        y = x @ w.T
        return ck.sum(ck.where(ck.arange(y.shape[1]) == targets[:, None], y, 0.0), axis=-1)

    @ck.op
    def returned(
        x: ck.f16[M, K], w: ck.f16[N, K], targets: ck.i32[M]
    ) -> tuple[ck.f32[M], ck.f32[M, N]]:
        y = x @ w.T
        return ck.cross_entropy(y, targets), y

    @ck.op
    def other_bias(
        x: ck.f16[M, K], w: ck.f16[N, K], b: ck.f32[M, N], targets: ck.i32[M]
    ) -> ck.f32[M]:
        return ck.cross_entropy(x @ w.T + b, targets)

    for op in (picked, returned, other_bias):
        function = op.program.specialise()
        assert with_picked(function) == function


def test_a_product_that_something_else_reads_is_stored() -> None:
    @ck.op
    def both(x: ck.f16[M, K], w: ck.f16[N, K]) -> tuple[ck.f32[M, N], ck.f32[M]]:
        y = x @ w.T
        return y, ck.logsumexp(y, axis=-1)

    @ck.op
    def softmax(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f32[M, N]:
        return ck.log_softmax(x @ w.T, axis=-1)

    @ck.op
    def other_axis(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f32[N]:
        return ck.logsumexp(x @ w.T, axis=0)

    @ck.op
    def batches(x: ck.f16[B, M, K], w: ck.f16[B, N, K]) -> ck.f32[B, M]:
        return ck.logsumexp(x @ w.mT, axis=-1)

    @ck.op
    def two(x: ck.f16[M, K], w: ck.f16[N, K], v: ck.f16[N, K]) -> ck.f32[M]:
        return ck.logsumexp(x @ w.T + x @ v.T, axis=-1)

    @ck.op
    def no_product(x: ck.f16[M, K]) -> ck.f32[M]:
        return ck.logsumexp(x, axis=-1)

    for op in (both, softmax, other_axis, batches, two, no_product):
        assert not any(reduced for _, reduced in kernels(op)), op


@pytest.mark.parametrize("n", [1, 63, 64, 65, 200])
def test_the_rewritten_program_means_the_same(n: int) -> None:
    x, w = operands(3, n, 8)
    function = lse.program.specialise()
    rewritten = with_log_sums(function)
    assert [each.op for each in rewritten.body].count("log_sums") == 1
    got, want = evaluate(rewritten, [x, w]), evaluate(function, [x, w])
    np.testing.assert_allclose(got[0], want[0], rtol=1e-6)
    assert with_log_sums(rewritten) == rewritten


@pytest.mark.parametrize(
    "bias", [[np.inf, 0.0], [-np.inf, -np.inf], [np.nan, 0.0], [-np.inf, -300.0]], ids=str
)
def test_infinities_of_blocks(bias: list[float]) -> None:
    row = np.repeat(np.array(bias, np.float64), 64)[None]
    with np.errstate(all="ignore"):
        blocks = log_sums(row)
        want = np.logaddexp.reduce(row, axis=-1)
        got = np.logaddexp.reduce(blocks, axis=-1)
    np.testing.assert_allclose(got, want)


def problem_of(m: int, n: int) -> Any:
    x, w = np.empty((m, 64), np.float16), np.empty((n, 64), np.float16)
    (problem, _) = lse.problems(x, w)
    return problem


def test_the_problem_stores_a_number_a_block() -> None:
    problem = problem_of(10, 130)
    assert problem.e.layout is Layout.LOG_SUMS
    assert problem.e.stride == 3
    assert problem.e.span == 30
    assert str(problem).startswith("M=10 N=130 K=64 rcl ")


def test_bytes_are_those_of_blocks() -> None:
    x, w = np.empty((4096, 512), np.float16), np.empty((128_256, 512), np.float16)
    summary = lse.summary(x, w, device="emu:gfx942")
    sums = 4096 * (128_256 // 64) * 4
    assert summary.bytes == x.nbytes + w.nbytes + 2 * sums + 4096 * 4
    assert summary.bytes == summary.partition_bytes


def test_bands_of_columns_move_by_blocks() -> None:
    problem = problem_of(10, 130)
    far = replace(
        problem,
        m=64,
        n=1 << 24,
        a=replace(problem.a, rows=64),
        b=replace(problem.b, columns=1 << 24),
        e=replace(problem.e, rows=64, columns=1 << 24, stride=1 << 18),
    )
    bands = list(bands_of(far))
    assert len(bands) > 1
    for part, band in bands:
        rows, columns, _ = band.place
        first = columns * band.largest[1]
        assert first % 64 == 0
        assert band.moves[2] == (rows * band.largest[0] * far.e.stride + first // 64) * 4
        assert part.m * part.n * 4 < 1 << 31


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"epilogue": "default"}, "log-sums"),
        ({"tile": (64, 96, 32), "warps": (2, 1, 1), "warp_tile": (16, 16, 16)}, "log-sums"),
    ],
    ids=["direct", "columns"],
)
def test_algorithms_without_whole_blocks_are_refused(change: dict[str, Any], rule: str) -> None:
    x, w = operands(70, 200, 96)
    with expect_error("K101", rule):
        lse.using(narrow(0, **change)).problems(x, w)


def test_only_fusion_makes_such_problems() -> None:
    with expect_error("K031"):
        ck.dispatch.problem(64, 64, 64, e=ck.f32, layouts="rcl")


def test_the_source_says_what_is_stored() -> None:
    x, w = operands(70, 200, 96)
    source = lse.inspect(x, w, device="emu:gfx942")
    assert "Of E, the log-sum-exp of each row and 64 columns is stored." in source
    assert "cklang::LogSumsEpilogue<EpilogueProblem, 64, Function>" in source


def test_k_is_not_cut_into_launches() -> None:
    assert "log-sum-exps" in str(why_k_is_whole(problem_of(10, 130)))


def test_autotune_has_no_task_for_it() -> None:
    x, w = operands(70, 200, 96)
    families = [task.problem.signature.family for task in tasks_of(lse, (x, w))]
    assert families == ["rowwise"]


SHAPES = [(70, 200, 96), (1, 1, 1), (129, 64, 40), (5, 65, 64), (64, 640, 8)]


@pytest.mark.usefixtures("emulator", "compiler")
@pytest.mark.parametrize("algorithm", [NARROW, narrow(0, split_k=2, reduction="workspace")])
def test_rows_and_columns_of_any_number(algorithm: Any) -> None:
    for m, n, k in SHAPES:
        x, w = operands(m, n, k, seed=m)
        y = lse.using(algorithm)(x, w)
        report(lse, (x, w), y).check()


@pytest.mark.usefixtures("emulator", "compiler")
def test_the_default_choice_and_axes_before_the_rows() -> None:
    random = np.random.default_rng(2)
    x = random.standard_normal((2, 3, 33, 64)).astype(np.float16)[:, 1]
    w = random.standard_normal((300, 64)).astype(np.float16)
    bias = random.standard_normal(300).astype(np.float32)
    bias[[0, 100, 299]] = -np.inf, np.inf, np.nan
    bias[:2] = -np.inf
    for special in (bias, np.full(300, -np.inf, np.float32), np.where(bias < 9, bias, -400.0)):
        y = capped(x, w, special.astype(np.float32))
        report(capped, (x, w, special.astype(np.float32)), y).check()
    assert capped.last is not None
    assert [each.key.family for each in capped.last.launches] == ["gemm", "rowwise"]
    assert capped.last.launches[0].resources.spills == 0


@pytest.mark.usefixtures("emulator", "compiler")
def test_the_kernels_of_a_cross_entropy() -> None:
    x, w = operands(70, 200, 96, seed=5)
    targets = np.random.default_rng(5).integers(-2, 203, 70).astype(np.int32)
    y = loss.using(NARROW)(x, w, targets)
    report(loss, (x, w, targets), y).check()
    assert loss.using(NARROW).fusion(x, w, targets) == loss.fusion(x, w, targets)
