# SPDX-License-Identifier: MIT
"""Batches of products and contractions on emulated GPUs, against the reference within its bound."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cklang as ck
from cklang.families.gemm.key import ProductKind
from cklang.families.gemm.problem import Problem
from cklang.runtime.op import Op
from cklang.testing.compare import UNCHECKED
from cklang.testing.strategies import Layout, arrays, extents, laid_out, strided
from tests.support import checks
from tests.support.algorithms import DEEP, narrow
from tests.support.arrays import normal
from tests.support.checks import check_read_back, launches
from tests.support.coverage import Covered
from tests.support.typed import only

pytestmark = pytest.mark.usefixtures("stencils")

B, G, H, M, N, K = ck.dims("B G H M N K")
DENSE = (Layout.ROW, Layout.PADDED_ROW, Layout.OFFSET)


@ck.op
def fused(
    x: ck.f16[B, M, K],
    w: ck.f16[B, N, K],
    row: ck.f16[B, N],
    column: ck.f32[B, M],
    scale: ck.f32[B],
    res: ck.f16[B, M, N],
) -> ck.f16[B, M, N]:
    return ck.gelu((x @ w.mT) * scale[:, None, None] + row[:, None] + column[:, :, None]) + res


@ck.op
def product(x: ck.f16[B, M, K], w: ck.f16[B, N, K]) -> ck.f16[B, M, N]:
    return ck.einsum("gmk,gnk->gmn", x, w)


@ck.op
def shared(x: ck.f16[B, M, K], w: ck.f16[N, K]) -> ck.f16[B, M, N]:
    return x @ w.T


@ck.op
def heads(x: ck.f16[B, M, H, K], w: ck.f16[H, N, K]) -> ck.f16[B, H, M, N]:
    return ck.einsum("bmhk,hnk->bhmn", x, w)


@ck.op
def outer(x: ck.f16[G, M, K], w: ck.f16[H, N, K]) -> ck.f16[G, M, H, N]:
    return ck.einsum("gmk,hnk->gmhn", x, w)


FUSED = fused.using(narrow(4, warp_tile=DEEP))
PRODUCT, SHARED, HEADS, OUTER = (
    op.using(narrow(warp_tile=DEEP)) for op in (product, shared, heads, outer)
)


def check(op: Op, *args: Any, out: Any = None, unchecked: float = UNCHECKED) -> Any:
    """Run ``op`` and compare with its reference; read its kernels back."""
    got = checks.check(op, args, out=out, unchecked=unchecked)
    check_read_back(op)
    return got


def family(op: Op) -> ProductKind:
    return launches(op)[0].artifact.key.signature.kind


def launched(op: Op) -> Problem:
    return only(Problem, (launch.problem for launch in launches(op)))


SIZES = st.tuples(st.integers(1, 4), extents(100), extents(100), extents(70))


@pytest.mark.usefixtures("compiler")
@settings(max_examples=15)
@given(data=st.data(), shape=SIZES)
def test_every_kind_of_batched_operand(data: st.DataObject, shape: tuple[int, ...]) -> None:
    b, m, n, k = shape
    kinds = [(b, m, k), (b, n, k), (b, n)]
    args = [data.draw(strided(data.draw(arrays(ck.f16, s)), DENSE)) for s in kinds]
    column, scale = (data.draw(arrays(ck.f32, s)) for s in ((b, m), (b,)))
    res = data.draw(strided(data.draw(arrays(ck.f16, (b, m, n))), DENSE))
    # The draw has infinities and huge numbers, beside which a sum may be anything.
    check(FUSED, *args, column, scale, res, unchecked=1)


def test_einsum_is_a_batched_product(covered: Covered) -> None:
    check(PRODUCT, normal(3, 70, 40), normal(3, 65, 40))
    assert family(PRODUCT) is ProductKind.BATCHED
    covered("batched", "f16", "gfx942")
    covered("contraction (einsum)", "f16", "gfx942")


def test_a_shared_matrix_makes_one_product_of_the_batch() -> None:
    check(SHARED, normal(3, 70, 40), normal(65, 40))
    assert family(SHARED) is ProductKind.GEMM
    assert launched(SHARED).m == 210
    rows = normal(3, 71, 40)[:, :70]
    check(SHARED, rows, normal(65, 40))
    assert family(SHARED) is ProductKind.BATCHED


def test_axes_between_others_are_strides() -> None:
    check(HEADS, normal(2, 33, 3, 40), normal(3, 50, 40))
    assert launched(HEADS).batch == (2, 3)


def test_labels_of_one_operand_alone() -> None:
    check(OUTER, normal(3, 20, 40), normal(2, 50, 40))
    # Rows fold into rows; columns into columns.
    assert family(OUTER) is ProductKind.GEMM
    assert (launched(OUTER).m, launched(OUTER).n) == (60, 100)
    check(OUTER, laid_out(normal(3, 20, 40), Layout.OFFSET), normal(2, 50, 40))
    assert family(OUTER) is ProductKind.BATCHED


def test_out_with_gaps_and_an_empty_batch() -> None:
    x, w = normal(2, 40, 24), normal(2, 30, 24)
    room = np.full((2, 50, 40), 7, np.float16)
    check(PRODUCT, x, w, out=room[:, :40, :30])
    assert (room[:, 40:] == 7).all()
    assert (room[:, :, 30:] == 7).all()
    assert PRODUCT(x[:0], w[:0]).shape == (0, 40, 30)
    assert (PRODUCT(x[..., :0], w[..., :0]) == 0).all()


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("arch", ["gfx90a", "gfx950"])
def test_other_gpus(arch: str, covered: Covered) -> None:
    checks.check(PRODUCT, (normal(3, 40, 40), normal(3, 65, 40)), arch)
    covered("batched", "f16", arch)
    covered("contraction (einsum)", "f16", arch)
