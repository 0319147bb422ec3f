# SPDX-License-Identifier: MIT
"""Ops that are called apart: kernels of their own, with memory between them and the caller."""

from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.errors import CkError
from cklang.families import plan_of
from cklang.ir.parser import parse
from cklang.reference.evaluate import evaluate
from cklang.runtime.op import Op
from cklang.testing import report
from tests.support.errors import expect_error
from tests.support.gemm_ops import linear

M, N, K, V = ck.dims("M N K V")


@ck.op
def norm(x: ck.f16[M, K]) -> ck.f16[M, K]:
    return ck.rms_norm(x)


@ck.op
def doubled(x: ck.f16[M, K]) -> ck.f16[M, K]:
    return x * 2.0


@ck.op
def embed(tokens: ck.i32[M], table: ck.f16[V, K]) -> ck.f16[M, K]:
    return ck.take(table, tokens, axis=0)


def families(op: Op) -> list[str]:
    return [kernel.family for kernel in plan_of(op.program.specialise()).kernels]


def test_neither_prologue_nor_epilogue_reaches_into_it() -> None:
    @ck.op
    def inlined(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
        return ck.gelu(linear(ck.relu(x), w))

    @ck.op
    def apart(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
        return ck.gelu(linear.apart(ck.relu(x), w))

    assert families(inlined) == ["gemm"]
    assert families(apart) == ["rowwise", "gemm", "rowwise"]
    decisions = plan_of(apart.program.specialise()).decisions
    reasons = [each.reason for each in decisions if each.rule == "apart"]
    assert len(reasons) == 3
    assert all("an op that is called apart has kernels of its own" in each for each in reasons)


def test_kernels_of_rows_are_not_joined_by_what_both_read() -> None:
    @ck.op
    def inlined(x: ck.f16[M, K]) -> tuple[ck.f16[M, K], ck.f16[M, K]]:
        return norm(x), doubled(x)

    @ck.op
    def one(x: ck.f16[M, K]) -> tuple[ck.f16[M, K], ck.f16[M, K]]:
        return norm.apart(x), doubled(x)

    @ck.op
    def both(x: ck.f16[M, K]) -> tuple[ck.f16[M, K], ck.f16[M, K]]:
        return norm.apart(x), doubled.apart(x)

    assert [len(families(each)) for each in (inlined, one, both)] == [1, 2, 2]


def test_products_of_one_operand_are_no_pair() -> None:
    @ck.op
    def inlined(x: ck.f16[M, K], w: ck.f16[N, K], v: ck.f16[N, K]) -> ck.f16[M, N]:
        return ck.silu(linear(x, w)) * linear(x, v)

    @ck.op
    def apart(x: ck.f16[M, K], w: ck.f16[N, K], v: ck.f16[N, K]) -> ck.f16[M, N]:
        return ck.silu(linear.apart(x, w)) * linear.apart(x, v)

    assert families(inlined) == ["gemm"]
    assert families(apart) == ["gemm", "gemm", "rowwise"]


@ck.op
def returned(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
    return linear.apart(x, w)


@ck.op
def joined(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N + K]:
    return ck.concat([linear.apart(x, w), doubled(x)], axis=-1)


@ck.op
def reshaped(x: ck.f16[M, K], w: ck.f16[N * 4, K], v: ck.f16[N]) -> ck.f16[M, N, 4]:
    return linear.apart(x, w).reshape(M, N, 4)


@pytest.mark.parametrize(
    ("op", "kernels"),
    [(returned, ["gemm"]), (joined, ["gemm", "rowwise"]), (reshaped, ["gemm"])],
    ids=lambda each: each.program.name if isinstance(each, Op) else "",
)
def test_results_that_are_stored_anyway_are_not_copied(op: Op, kernels: list[str]) -> None:
    assert families(op) == kernels


def test_what_two_results_need_is_copied_once() -> None:
    @ck.op
    def twice(x: ck.f16[M, K]) -> tuple[ck.f16[M, K], ck.f16[M, K]]:
        y = norm.apart(x)
        return y, doubled(y)

    assert families(twice) == ["rowwise", "rowwise"]


def test_index_arrays_are_checked_as_in_any_call() -> None:
    @ck.op
    def scaled(tokens: ck.i32[M], table: ck.f16[V, K]) -> ck.f16[M, K]:
        return embed.apart(tokens, table) * 2.0

    table = np.ones((4, 8), np.float16)
    with expect_error("A056"):
        scaled(np.array([0, 4], np.int32), table)


def test_it_means_the_same_and_is_text() -> None:
    @ck.op
    def caller(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
        return norm.apart(linear.apart(doubled.apart(x), w)) + 1.0

    @ck.op
    def plain(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
        return norm(linear(doubled(x), w)) + 1.0

    random = np.random.default_rng(0)
    args = [random.standard_normal(shape).astype(np.float16) for shape in ((3, 8), (5, 8))]
    function = caller.program.specialise()
    (got,), (want,) = (evaluate(op.program.specialise(), args) for op in (caller, plain))
    np.testing.assert_array_equal(got, want)
    (again,) = parse(str(function)).functions
    assert again == function


def test_from_plain_python_it_is_a_call() -> None:
    @ck.op
    def caller(x: ck.f16[M, K]) -> ck.f16[M, K]:
        return norm.apart(x)

    with pytest.raises(CkError) as caught:
        norm.apart(np.ones((2, 2), np.float32))
    assert caught.value.code.startswith("A")
    assert callable(caller.apart)


def test_an_argument_is_named_in_a_mistake() -> None:
    def wrong() -> Any:
        @ck.op
        def caller(x: ck.f32[M, K]) -> ck.f16[M, K]:
            return norm.apart(x.to(ck.i32))

        return caller.program.specialise()

    with expect_error("F086"):
        wrong()


@ck.op
def block(x: ck.f16[M, K]) -> ck.f16[M, K]:
    """Two norms with a function between, in three kernels."""
    return norm.apart(ck.gelu(norm.apart(x)))


@pytest.mark.usefixtures("emulator", "compiler")
def test_its_kernels_run() -> None:
    x = np.random.default_rng(1).standard_normal((5, 72)).astype(np.float16)
    y = block(x)
    assert block.last is not None
    assert len(block.last.launches) == 3
    report(block, (x,), y).check()
