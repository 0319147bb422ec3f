# SPDX-License-Identifier: MIT
"""2:4 structured sparsity: what the kernels compute, what is checked, and what is refused."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cklang as ck
from cklang.errors import CkError
from cklang.families.gemm.key import Algorithm, Pipeline, Scheduler
from cklang.families.gemm.problem import Problem
from cklang.ir.numeric import Array, kept24
from cklang.reference.bounds import evaluate_with_bound
from cklang.testing import assert_close
from tests.support.algorithms import pipelined, wide
from tests.support.arrays import drawn, mnk
from tests.support.checks import check, launches
from tests.support.coverage import Covered
from tests.support.typed import only

M, N, K, L = ck.dims("M N K L")


@ck.op
def fused(x: ck.f16[M, K], w: ck.f16[N, K], bias: ck.f16[N], res: ck.f16[M, N]) -> ck.f16[M, N]:
    return ck.gelu(ck.gemm(x, w.T, sparse="a") + bias) + res


@ck.op
def plain(x: ck.f16[M, K], w: ck.f16[K, N]) -> ck.f32[M, N]:
    return ck.gemm(x, w, sparse="a")


@ck.op
def chained(x: ck.f16[M, L], v: ck.f16[L, K], w: ck.f16[K, N]) -> ck.f32[M, N]:
    return ck.gemm(ck.relu(x @ v).to(ck.f16), w, sparse="a")


SHAPES = ((64, 64, 64), (128, 136, 200), (72, 64, 0), (8, 96, 40))
"""All fit the widest loads, so that one kernel serves them."""

INTERWAVE = pipelined(wide(2, warp_tile=(32, 32, 16)), Pipeline.MEM, scheduler=Scheduler.INTERWAVE)


def operands(m: int, n: int, k: int, density: float) -> list[Any]:
    x, *rest = drawn(fused, mnk(m, n, k))
    return [x * (np.random.default_rng(m + k).random((m, k)) < density), *rest]


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(("arch", "algorithm"), [("gfx942", INTERWAVE), ("gfx950", None)])
def test_products(arch: str, algorithm: Algorithm | None, covered: Covered) -> None:
    op = fused.using(algorithm) if algorithm else fused
    for shape in SHAPES:
        for density in (0.3, 1.0):  # at 1.0 every four has more than two
            check(op, operands(*shape, density), arch)
    x, w, *rest = operands(64, 64, 64, 0.3)
    x[0, :4], x[1, 5], w[3, 7], w[4, 8] = (0, np.nan, 2, 1), np.inf, np.nan, np.inf
    check(op, [x, w, *rest], arch)
    assert launches(op)[0].resources.spills == 0
    covered("sparse 2:4", "f16", arch)


def test_an_uncertain_sparse_operand_has_a_bound() -> None:
    """Which two of four are kept depends on numbers that a kernel has only nearly."""
    args = drawn(chained, mnk(8, 8, 8) | {"L": 8})
    function = chained.ir(*args)
    (want,), (bound,) = evaluate_with_bound(function, args)
    left = np.maximum(args[0].astype(np.float64) @ args[1].astype(np.float64), 0)
    kept = kept24(left.astype(np.float16)).astype(np.float64)
    assert_close((kept @ args[2].astype(np.float64)).astype(want.dtype), want, bound)
    assert np.isfinite(bound).all()
    assert (bound > 0).all()


@st.composite
def matrices(draw: st.DrawFn) -> Array:
    shape = draw(st.tuples(st.integers(1, 5), st.integers(0, 13)))
    numbers = st.sampled_from([0.0, -0.0, 1.0, -2.0, 3.5, np.nan, np.inf])
    size = shape[0] * shape[1]
    cells = draw(st.lists(numbers, min_size=size, max_size=size))
    return np.array(cells, np.float16).reshape(shape)


@given(matrices())
def test_the_first_two_of_four_are_kept(x: Array) -> None:
    want = np.zeros_like(x)
    for row in range(x.shape[0]):
        for start in range(0, x.shape[1], 4):
            four = range(start, min(start + 4, x.shape[1]))
            for place in [k for k in four if x[row, k] != 0][:2]:
                want[row, place] = x[row, place]
    np.testing.assert_array_equal(kept24(x), want)


@given(matrices(), st.sampled_from([0, 1]))
def test_pruned_matrices_pass_the_check(x: Array, axis: int) -> None:
    turned = x if axis else x.T
    pruned = ck.sparse24.prune(turned, axis=axis)
    ck.sparse24.check(pruned, axis=axis)
    oriented = pruned if axis else pruned.T
    np.testing.assert_array_equal(kept24(oriented), oriented)
    crowded = any(
        np.count_nonzero(x[row, start : start + 4]) > 2
        for row in range(x.shape[0])
        for start in range(0, x.shape[1], 4)
    )
    if not crowded:
        np.testing.assert_array_equal(pruned, turned)
        return
    with pytest.raises(CkError, match="CK-A050"):
        ck.sparse24.check(turned, axis=axis)


def test_the_two_largest_are_kept_and_the_place_is_named() -> None:
    x = np.array([[1, 2, 0, 0, 3, -5, 4, 1]], np.float16)
    np.testing.assert_array_equal(ck.sparse24.prune(x), [[1, 2, 0, 0, 0, -5, 4, 0]])
    with pytest.raises(CkError, match=r"number 1 at \[0\]"):
        ck.sparse24.check(x, name="w")


def test_outside_a_program_it_computes_the_same() -> None:
    x, w, *_ = operands(5, 6, 11, 0.8)
    want = kept24(x).astype(np.float32) @ w.T.astype(np.float32)
    np.testing.assert_allclose(ck.gemm(x, w.T, sparse="a"), want, rtol=1e-6)
    with pytest.raises(CkError, match="CK-F059"):
        ck.gemm(x, w.T, sparse="b")


def test_what_is_refused() -> None:
    args = operands(16, 16, 16, 0.5)
    none = r"[\s\S]*multiplied-types: A by B on gfx90a is sparse f16 by f16, must be not sparse"
    with pytest.raises(CkError, match=f"CK-K102{none}"):
        fused.explain(*args, device="emu:gfx90a")
    with pytest.raises(CkError, match=f"CK-K101{none}"):
        fused.using(INTERWAVE).explain(*args, device="emu:gfx90a")

    @ck.op
    def second(x: ck.f16[M, K], w: ck.f16[K, N]) -> ck.f32[M, N]:
        return ck.gemm(x, w, sparse="b")

    @ck.op
    def turned(x: ck.f16[M, K], w: ck.f16[K, N]) -> ck.f32[N, M]:
        return ck.gemm(x, w, sparse="a").T

    @ck.op
    def other(x: ck.bf16[M, K], w: ck.bf16[K, N]) -> ck.f32[M, N]:
        return ck.gemm(x, w, sparse="a")

    x, w = args[0], args[1].T
    with pytest.raises(CkError, match="CK-F059"):
        second.ir(x, w)
    with pytest.raises(CkError, match="CK-X010"):
        turned.fusion(x, w)
    with pytest.raises(CkError, match="CK-F048"):
        other.ir(x.astype(ck.bf16.numpy), w.astype(ck.bf16.numpy))


def test_the_key_and_the_source_say_so() -> None:
    args = operands(16, 16, 16, 0.5)[:2]
    x, w = args[0], np.ascontiguousarray(args[1].T)
    problem = only(Problem, plain.problems(x, w))
    assert problem.sparse
    assert problem.signature.sparse
    source = plain.inspect(x, w, device="emu:gfx942")
    assert "SparsePolicy" in source
    assert "true, // structured sparsity" in source
