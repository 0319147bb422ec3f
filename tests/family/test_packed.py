# SPDX-License-Identifier: MIT
"""Matrices B of 4-bit integers: packing, products, and what is refused."""

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cklang as ck
from cklang.errors import CkError
from cklang.families.gemm.key import Pipeline, ProductKind
from cklang.families.gemm.problem import Matrix, Problem
from cklang.reference.bounds import evaluate_with_bound
from cklang.runtime.op import Op
from cklang.testing import assert_close
from cklang.types import DTYPES
from tests.support.algorithms import WIDE
from tests.support.arrays import drawn, mnk
from tests.support.checks import launches
from tests.support.coverage import Covered
from tests.support.typed import instance, only

G, M, N, K = ck.dims("G M N K")
T: Any = ck.dtype_var("T", ck.f16, ck.bf16, ck.fp8, ck.bf8, ck.fp8_fnuz, ck.bf8_fnuz)


@ck.op
def linear(x: T[M, K], w: ck.i4[N, K], scale: ck.f32[N], res: ck.f16[M, N]) -> ck.f16[M, N]:
    return ck.gelu((x @ w.T) * scale) + res


@ck.op
def upright(x: ck.f16[M, K], w: ck.i4[K, N]) -> ck.f32[M, N]:
    return x @ w


CASES = [
    ("gfx942", "f16"),
    ("gfx90a", "bf16"),
    ("gfx950", "fp8"),
    # The conversion differs from that of gfx950 in its encoding only.
    pytest.param("gfx942", "fp8_fnuz", marks=pytest.mark.full),
    ("gfx1201", "f16"),
    pytest.param("gfx1100", "bf16", marks=pytest.mark.full),
    pytest.param("gfx1201", "fp8", marks=pytest.mark.full),
]
PACKED = (ck.i4.numpy, ck.fp4.numpy)
SHAPES = ((64, 64, 64), (136, 136, 208), (72, 64, 0), (8, 8, 16))
"""All fit the widest loads of A and E, so that one kernel serves them."""


def operands(dtype: str, m: int, n: int, k: int) -> list[Any]:
    x, w, scale, res = drawn(linear, mnk(m, n, k), T=DTYPES[dtype])
    return [x, w, scale / np.float32(10), res]


def check(op: Op, arch: str, args: list[Any]) -> None:
    """Compare with the reference; matrices of 4-bit elements are packed for the kernel alone."""
    packed = [ck.pack(each) if each.dtype in PACKED else each for each in args]
    got = op(*packed, device=f"emu:{arch}")
    (want,), (bound,) = evaluate_with_bound(op.ir(*packed), args)
    assert_close(got, want, bound)


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(("arch", "dtype"), CASES)
def test_products(arch: str, dtype: str, covered: Covered) -> None:
    for shape in SHAPES:
        check(linear, arch, operands(dtype, *shape))
    assert launches(linear)[0].resources.spills == 0
    covered("packed B", f"{dtype} i4 f16", arch)


@ck.op
def floats(x: ck.fp4[M, K], w: ck.fp4[N, K], scale: ck.f32[N], res: ck.f16[M, N]) -> ck.f16[M, N]:
    return ck.gelu((x @ w.T) * scale) + res


@ck.op
def product(x: ck.fp4[M, K], w: ck.fp4[N, K]) -> ck.f32[M, N]:
    return x @ w.T


@ck.op
def exponents(
    x: ck.fp4[M, K],
    w: ck.fp4[N, K],
    sx: ck.e8m0[M, K / 32],
    sw: ck.e8m0[N, K / 32],
    res: ck.f16[M, N],
) -> ck.bf16[M, N]:
    return ck.relu(ck.gemm(x, w.T, scale_a=sx, scale_b=sw.T)) + res


@ck.op
def blocks(
    x: ck.fp4[M, K], w: ck.fp4[N, K], sx: ck.f32[M, K / 128], sw: ck.f32[N / 128, K / 128]
) -> ck.f32[M, N]:
    return ck.gemm(x, w.T, scale_a=sx, scale_b=sw.T)


@ck.op
def groups(
    x: ck.f16[M, K], w: ck.i4[N, K], sw: ck.f32[N, K / 64], res: ck.f16[M, N]
) -> ck.f16[M, N]:
    return ck.silu(ck.gemm(x, w.T, scale_b=sw.T)) * res


def fp4_operands(m: int, n: int, k: int) -> list[Any]:
    x, w, scale, res = operands("f16", m, n, k)
    pair = [(2 * each.astype(np.float32)).astype(ck.fp4.numpy) for each in (x, w)]
    return [*pair, scale, res]


def exponents_of(m: int, n: int, k: int) -> list[Any]:
    """Scales of each row of x and of w and each 32 of K."""
    rng = np.random.default_rng(m * n + k)
    codes = [rng.integers(122, 132, (rows, -(-k // 32))).astype(np.uint8) for rows in (m, n)]
    return [each.view(ck.e8m0.numpy) for each in codes]


@pytest.mark.usefixtures("stencils")
def test_4_bit_floats(covered: Covered) -> None:
    for shape in SHAPES:
        check(floats, "gfx950", fp4_operands(*shape))
    assert launches(floats)[0].resources.spills == 0
    covered("packed A and B", "fp4 fp4 f16", "gfx950")


@pytest.mark.usefixtures("compiler")
def test_mx_operands_of_4_bits(covered: Covered) -> None:
    """Exponents of 32 elements, where K ends inside a block, a byte's run and a tile."""
    for shape in (*SHAPES, (40, 24, 301), (1, 8, 1)):
        x, w, _, res = fp4_operands(*shape)
        check(exponents, "gfx950", [x, w, *exponents_of(*shape), res])
    x, w, _, res = fp4_operands(136, 136, 208)
    sx, sw = exponents_of(136, 136, 208)
    sx.view(np.uint8)[3, 2] = 255
    args = [ck.pack(x), ck.pack(w), sx, sw, res]
    wild = exponents(*args, device="emu:gfx950")
    assert np.isnan(wild[3]).all(), "an exponent that is nan"
    assert np.isfinite(np.delete(wild, 3, axis=0)).all()
    covered("MX: block scales in the matrix instructions", "fp4 fp4 bf16", "gfx950")


@pytest.mark.full
def test_4_bit_floats_with_scales_that_are_numbers(covered: Covered) -> None:
    for shape in ((64, 64, 128), (80, 208, 336)):
        check(blocks, "gfx950", drawn(blocks, mnk(*shape)))
    covered("block scales of A and B", "fp4 fp4 f32", "gfx950")


@pytest.mark.usefixtures("compiler")
def test_integers_scaled_in_groups(covered: Covered) -> None:
    """Weights as they are mostly quantised: a scale for each row and each 64 of K."""
    for shape in SHAPES:
        check(groups, "gfx942", drawn(groups, mnk(*shape)))
    covered("block scales of B", "f16 i4 f16", "gfx942")


@ck.op
def experts(x: ck.f16[G, M, K], w: ck.i4[G, N, K], scale: ck.f32[G, N]) -> ck.f16[G, M, N]:
    return ck.silu(ck.einsum("gmk,gnk->gmn", x, w) * scale[:, None, :])


@ck.op
def shared(x: ck.f16[M, K], w: ck.i4[G, N, K]) -> ck.f32[M, G, N]:
    return ck.einsum("mk,gnk->mgn", x, w)


@ck.op
def mx_batch(x: ck.fp4[G, M, K], w: ck.fp4[G, N, K]) -> ck.f32[G, M, N]:
    return ck.einsum("gmk,gnk->gmn", x, w)


@pytest.mark.usefixtures("compiler")
def test_batches_of_integers(covered: Covered) -> None:
    for g, *shape in ((3, 64, 64, 64), (2, 136, 72, 208), (4, 1, 8, 40), (3, 8, 16, 0)):
        check(experts, "gfx942", drawn(experts, mnk(*shape) | {"G": g}))
    assert launches(experts)[0].key.signature.kind is ProductKind.BATCHED
    covered("packed B, batched", "f16 i4 f16", "gfx942")


@pytest.mark.full
def test_batches_of_floats(covered: Covered) -> None:
    for g, *shape in ((3, 64, 64, 128), (2, 80, 48, 336)):
        check(mx_batch, "gfx950", drawn(mx_batch, mnk(*shape) | {"G": g}))
    covered("packed A and B, batched", "fp4 fp4 f32", "gfx950")


@pytest.mark.parametrize(("n", "k"), [(48, 40), (1, 40), (1, 0)])
def test_batches_that_are_columns(n: int, k: int) -> None:
    """One x for all matrices: their rows are those of one product."""
    w = ck.pack(np.ones((5, n, k), int))
    problem = only(Problem, shared.problems(np.ones((16, k), np.float16), w))
    b = instance(Matrix, problem.b)
    room = -(-k // 32) * 32
    assert (problem.batch, problem.n, b.layout.value) == ((), 5 * n, "c")
    assert b.stride == room
    args = (np.ones((5, 16, k), np.float16), w, np.ones((5, n), np.float32))
    apart = only(Problem, experts.problems(*args))
    assert (apart.batch, apart.n, instance(Matrix, apart.b).batch) == ((5,), n, (n * room,))


@pytest.mark.usefixtures("compiler")
def test_each_number_at_each_place() -> None:
    """One row of A picks one element of B: every value, at every place of a group of eight."""
    k, n = 24, 16
    w = ((np.arange(k)[:, None] * 5 + np.arange(n)) % 16 - 8).astype(ml_dtypes.int4)
    got = upright(np.eye(k, dtype=np.float16), ck.pack(w, axis=0), device="emu:gfx942")
    np.testing.assert_array_equal(got, w.astype(np.float32))


@given(
    st.lists(st.integers(1, 4), max_size=2),
    st.integers(1, 9),
    st.integers(0, 70),
    st.sampled_from([-2, -1]),
    st.integers(0, 99),
)
def test_packing_is_undone(batch: list[int], rows: int, k: int, axis: int, seed: int) -> None:
    w = np.random.default_rng(seed).integers(-8, 8, (*batch, rows, k)).astype(ml_dtypes.int4)
    w = w if axis == -1 else w.swapaxes(-1, -2)
    packed = ck.pack(w, axis=axis)
    assert packed.shape == w.shape
    assert packed.data.nbytes == np.prod(batch, dtype=int) * rows * -(-k // 32) * 16
    assert packed.unpack().dtype == w.dtype
    np.testing.assert_array_equal(packed.unpack(), w)


def test_the_order_is_that_of_ck_tile() -> None:
    """Eights along K as CK Tile's host code permutes them: 0x75316420, with 8 added."""
    (row,) = ck.pack(np.arange(8)[None, :] - 8).data
    assert bytes(row[:4][::-1]).hex() == "75316420"
    assert set(row[4:]) == {0x88}, "filled up with zeros"


def test_floats_are_packed_in_order() -> None:
    x = np.array([[1, -6, 0.5, 3]]).astype(ml_dtypes.float4_e2m1fn)
    packed = ck.pack(x)
    assert packed.dtype is ck.fp4
    low, high = x.view(np.uint8)[0, ::2], x.view(np.uint8)[0, 1::2]
    np.testing.assert_array_equal(packed.data[0, :2], low | high << 4)
    np.testing.assert_array_equal(packed.unpack().view(np.uint8), x.view(np.uint8))
    args = [packed, packed, np.zeros(1, np.float32), np.zeros((1, 1), np.float16)]
    with pytest.raises(CkError, match=r"CK-K102[\s\S]*multiplied-types: .* is fp4 by fp4"):
        floats.explain(*args, device="emu:gfx942")
    turned = ck.pack(np.tile(x, (4, 1)), axis=0)
    with pytest.raises(CkError, match=r"CK-K102[\s\S]*packed-along-k: .* A is c, must be r"):
        product.explain(turned, turned, device="emu:gfx950")
    with pytest.raises(CkError, match=r"A020[\s\S]*ck.pack\(w.astype\(ml_dtypes.float4_e2m1fn\)\)"):
        product.ir(packed, x.astype(np.float16))


@pytest.mark.parametrize("shape", [(1, 8, 1), (8, 1, 33), (1, 1, 70), (3, 1, 0)])
def test_single_rows_are_packed_rows(shape: tuple[int, int, int]) -> None:
    """Whatever an axis of one element makes of the strides: one kernel serves them all."""
    m, n, k = shape
    x = np.ones((m, k)).astype(ck.fp4.numpy)
    w = np.ones((n, k)).astype(ck.fp4.numpy)
    with ck.using(arch="gfx950"):
        problem = only(Problem, product.problems(ck.pack(x), ck.pack(w)))
    assert problem.signature.layouts == "rcr"
    strides = [instance(Matrix, operand).stride for operand in (problem.a, problem.b)]
    assert strides == [-(-k // 32) * 32] * 2
    args = (np.ones((m, k), np.float16), ck.pack(np.ones((k, n), int), 0))
    b = instance(Matrix, only(Problem, upright.problems(*args)).b)
    assert (b.layout.value, b.stride) == ("c", -(-k // 32) * 32)


def test_what_is_refused() -> None:
    x, w, scale, res = operands("f16", 16, 16, 32)
    with pytest.raises(CkError, match=r"CK-A053 .*int4[\s\S]*ck.pack\(w\)"):
        linear(x, w, scale, res)
    with pytest.raises(CkError, match=r"CK-A055 .* from -9 to 3"):
        ck.pack(np.array([[3, -9]]))
    with pytest.raises(CkError, match="CK-A054"):
        ck.pack(np.array([[0.5]]))
    with pytest.raises(CkError, match="CK-A054"):
        ck.pack(np.zeros(4, np.int8))
    # Packed along N: B would be row-major.
    with pytest.raises(CkError, match=r"CK-K102[\s\S]*packed-along-k: .* B is r, must be c"):
        upright.explain(x, ck.pack(w.T, axis=1), device="emu:gfx942")

    @ck.op
    def first(x: ck.i4[M, K], w: ck.f16[K, N]) -> ck.f32[M, N]:
        return x @ w

    @ck.op
    def added(x: ck.f16[M, K], w: ck.f16[K, N], more: ck.i4[M, N]) -> ck.f32[M, N]:
        return x @ w + more

    with pytest.raises(CkError, match="CK-F048"):
        first.ir(ck.pack(w), x.T)
    with pytest.raises(CkError, match="CK-F041"):
        added.ir(x, x.T, ck.pack(w[:, :16]))


def test_rules_know_eights_and_pipelines() -> None:
    x, w, scale, res = operands("f16", 16, 16, 32)
    short = replace(WIDE, vector_d=(4, 8))
    packed = ck.pack(w)
    with pytest.raises(CkError, match="packed-run"):
        linear.using(short).explain(x, packed, scale, res, device="emu:gfx942")
    problem = only(Problem, linear.problems(x, packed, scale, res))
    assert problem.signature.dtype_b is ck.i4
    chosen = ck.dispatch.select(problem, arch="gfx942").key.algorithm
    assert chosen.pipeline is Pipeline.COMPV3
    assert "PackedRows" in linear.inspect(x, packed, scale, res, device="emu:gfx942")
