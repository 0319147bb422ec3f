# SPDX-License-Identifier: MIT
"""Extents as numbers in functions of kernels: a dim in an expression, and ``x.shape[i]``."""

from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.frontend.program import Program
from cklang.ir.nodes import Function
from cklang.reference.evaluate import evaluate
from cklang.runtime.op import Op
from tests.support.algorithms import narrow
from tests.support.attention_ops import within
from tests.support.checks import check, check_group, launches
from tests.support.plans import plan

M, N, K, B, H, G, S, T, D, L = ck.dims("M N K B H G S T D L")


@ck.op
def mean(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
    return x @ w.T / K + (w.shape[0] - x.shape[0] // 2) * 0.125


@ck.op
def blocks(
    q: ck.f16[B, H, S, D], k: ck.f16[B, G, T, D], v: ck.f16[B, G, T, D], slots: ck.f32[L]
) -> tuple[ck.f16[B, H, S, D], ck.f32[B, H, S]]:
    return ck.attention(
        q,
        k,
        v,
        score=lambda s, i, j: s / H - (i % L - j % slots.shape[0]) / T,
        mask=lambda i, j: i // L == j // L,
        return_lse=True,
    )


def function_of(op: Op) -> Function:
    assert isinstance(op.program, Program)
    return op.program.specialise()


def matrices(m: int, n: int, k: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(m)
    x, w = (rng.uniform(-1, 1, (rows, k)).astype(np.float16) for rows in (m, n))
    return x, w


def test_a_dim_is_the_extent_of_the_first_axis_that_has_it() -> None:
    operations = function_of(mean).body
    extents = [
        (each.operands[0].name, each.attr("axis")) for each in operations if each.op == "extent"
    ]
    assert extents == [("x", 1), ("w", 0), ("x", 0)]


def test_the_reference_computes_with_extents() -> None:
    x, w = matrices(6, 5, 8)
    (got,) = evaluate(function_of(mean), (x, w))
    want = x.astype(np.float32) @ w.T.astype(np.float32) / 8 + (5 - 6 // 2) * 0.125
    np.testing.assert_allclose(got, want, atol=2e-3)


def test_an_extent_is_read_as_a_scalar_and_needs_no_other_kernel() -> None:
    made = plan(function_of(mean))
    (kernel,) = made.kernels
    assert {each.name for each in kernel.inputs} - {"x", "w"} <= {
        each.result.name for each in made.function.body if each.op == "extent"
    }
    reasons = [each.reason for each in made.decisions if each.rule == "extent"]
    assert len(reasons) == 3
    assert "is an extent of the call" in reasons[0]


def test_a_static_extent_is_a_constant() -> None:
    @ck.op
    def fixed(x: ck.f16[M, 32], w: ck.f16[N, 32]) -> ck.f16[M, N]:
        rows, columns = x.shape
        return x @ w.T / columns + rows

    operations = function_of(fixed).body
    assert [each.attr("axis") for each in operations if each.op == "extent"] == [0]
    assert 32.0 in [each.attr("value") for each in operations if each.op == "constant"]


@pytest.mark.usefixtures("compiler")
def test_an_epilogue_divides_by_the_extent_of_each_call() -> None:
    op = mean.using(narrow(3))
    for shape in ((20, 17, 24), (33, 40, 8), (20, 17, 24)):
        check(op, matrices(*shape))
    assert len(launches(op)) == 1


@pytest.mark.usefixtures("compiler")
def test_each_call_of_a_group_has_its_extents() -> None:
    check_group(mean.using(narrow(3)), [matrices(20, 17, 24), matrices(33, 40, 8)])


@pytest.mark.usefixtures("stencils")
def test_scores_and_masks_read_extents() -> None:
    rng = np.random.default_rng(0)
    for slots in (7, 16):
        q = rng.uniform(-1, 1, (1, 2, 40, 64)).astype(np.float16)
        k, v = (rng.uniform(-1, 1, (1, 1, 50, 64)).astype(np.float16) for _ in "kv")
        check(blocks, (q, k, v, np.zeros(slots, np.float32)))


@ck.op
def distant(
    q: ck.f16[B, H, S, D], k: ck.f16[B, G, T, D], v: ck.f16[B, G, T, D], slots: ck.f32[L]
) -> ck.f16[B, H, S, D]:
    return ck.attention(
        q,
        k,
        v,
        score=lambda s, i, j: s - (i % L) / T * 0.5,
        mask=lambda h, i, j: (j <= i + L) | (h == H - 1),
        dropout=0.25,
        seed=77,
        offset=3,
    )


@pytest.mark.usefixtures("stencils")
def test_gradients_of_a_score_that_reads_extents() -> None:
    rng = np.random.default_rng(0)
    q, grad = (rng.uniform(-1, 1, (1, 2, 40, 64)).astype(np.float16) for _ in "qg")
    k, v = (rng.uniform(-1, 1, (1, 1, 50, 64)).astype(np.float16) for _ in "kv")
    args = (q, k, v, np.zeros(7, np.float32))
    within(distant, args, grad, ck.attention_grad(distant, *args, grad=grad, device="emu:gfx942"))
