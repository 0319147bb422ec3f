# SPDX-License-Identifier: MIT
"""Sums and maxima of the rows of products: kernels store those of blocks where that is quicker."""

from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.families import alternatives_of, plan_of
from cklang.families.gemm.fuse.log_sums import with_parts
from cklang.families.gemm.key import Layout
from cklang.ir.log_sums import block_maxima, block_sums
from cklang.ir.verifier import verify
from cklang.reference.evaluate import evaluate
from cklang.runtime.ir_program import IrProgram
from cklang.runtime.op import Op
from cklang.testing import report
from tests.support.algorithms import narrow

Array = np.ndarray[Any, Any]
M, N, K = ck.dims("M N K")
GPU = "emu:gfx942"


@ck.op
def largest(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f32[M]:
    return ck.max(ck.abs(x @ w.T), axis=-1)


@ck.op
def squares(x: ck.f16[M, K], w: ck.f16[N, K], bias: ck.f32[N]) -> ck.f32[M]:
    return ck.sum(ck.square(x @ w.T + bias), axis=-1)


def operands(m: int, n: int, k: int) -> tuple[Array, Array, Array]:
    random = np.random.default_rng(m)
    x, w = (random.standard_normal(shape).astype(np.float16) for shape in ((m, k), (n, k)))
    return x, w, random.standard_normal(n).astype(np.float32)


def by_blocks(op: Op) -> Op:
    """Return the op in which the product's kernel stores a number for each block."""
    function = op.program.specialise()
    (option,) = alternatives_of(function, plan_of(function))
    return Op(IrProgram(ir=with_parts(function, option.names)))


@pytest.mark.parametrize("op", [largest, squares], ids=["largest", "squares"])
def test_a_large_product_is_not_stored_and_a_small_one_is(op: Op) -> None:
    few, many = operands(70, 200, 8), operands(8192, 8192, 8)
    arguments = len(op.program.parameters)
    small, large = (op.fusion(*each[:arguments]) for each in (few, many))
    assert [getattr(each, "parts", "") for each in small.kernels] == ["", ""]
    assert [each.family for each in large.kernels] == ["gemm", "rowwise"]
    parts = getattr(large.kernels[0], "parts", "")
    assert parts == ("block_maxima" if op is largest else "block_sums")
    (note,) = [each for each in large.notes if "predicted" in each]
    assert note.endswith("it is not")
    moved = op.summary(*many[:arguments], device=GPU).bytes
    assert moved < 4 * 8192 * 8192


@pytest.mark.parametrize("op", [largest, squares], ids=["largest", "squares"])
@pytest.mark.parametrize("n", [1, 63, 64, 65, 200])
def test_the_program_by_blocks_means_the_same(op: Op, n: int) -> None:
    args = list(operands(3, n, 8))[: len(op.program.parameters)]
    function = by_blocks(op).program.specialise()
    verify(function)
    (got,), (want,) = evaluate(function, args), evaluate(op.program.specialise(), args)
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_blocks_of_nan_and_infinity() -> None:
    row = np.array([[1.0, np.nan, 2.0], [np.inf, -np.inf, 0.0], [-np.inf] * 3])
    maxima = block_maxima(np.pad(row, [(0, 0), (0, 67)], constant_values=-5.0))
    np.testing.assert_array_equal(maxima, [[np.nan, -5.0], [np.inf, -5.0], [-5.0, -5.0]])
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(block_sums(row), [[np.nan], [np.nan], [-np.inf]])


def test_products_that_something_else_reads_have_no_blocks() -> None:
    @ck.op
    def returned(x: ck.f16[M, K], w: ck.f16[N, K]) -> tuple[ck.f32[M, N], ck.f32[M]]:
        y = x @ w.T
        return y, ck.max(y, axis=-1)

    @ck.op
    def columns(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f32[N]:
        return ck.sum(x @ w.T, axis=0)

    @ck.op
    def stored(x: ck.f32[M, N]) -> ck.f32[M]:
        return ck.sum(x, axis=-1)

    for op in (returned, columns, stored):
        function = op.program.specialise()
        assert not alternatives_of(function, plan_of(function))


def test_the_layout_says_what_is_stored() -> None:
    x, w, bias = operands(10, 130, 8)
    for op, layout, args in (
        (largest, Layout.MAXIMA, (x, w)),
        (squares, Layout.SUMS, (x, w, bias)),
    ):
        problem = by_blocks(op).problems(*args)[0]
        assert problem.e.layout is layout
        assert problem.e.layout.of_blocks
        assert problem.e.span == 30


@pytest.mark.usefixtures("emulator", "compiler")
@pytest.mark.parametrize("op", [largest, squares], ids=["largest", "squares"])
def test_the_kernels(op: Op) -> None:
    own = by_blocks(op).using(narrow(len(op.program.parameters) - 2))
    for shape in ((70, 200, 96), (1, 1, 1), (129, 64, 40), (5, 65, 64)):
        args = operands(*shape)[: len(op.program.parameters)]
        y = own(*args)
        report(op, args, y).check()
        if op is largest and shape[0] == 70:
            x = args[0].copy()
            x[3] = np.nan
            assert np.isnan(own(x, args[1])).nonzero()[0].tolist() == [3]
    assert own.last is not None
    assert [each.key.family for each in own.last.launches] == ["gemm", "rowwise"]
    assert own.last.launches[0].resources.spills == 0
