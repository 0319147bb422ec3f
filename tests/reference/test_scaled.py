# SPDX-License-Identifier: MIT
"""Scaled products: the meaning against scaled elements, the bound against sums in f32."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cklang as ck
from cklang.families import plan_of
from cklang.fusion.explain import explain
from cklang.ir.builder import Builder
from cklang.ir.nodes import Function
from cklang.ir.parser import parse_function
from cklang.reference.bounds import evaluate_with_bound
from cklang.reference.evaluate import evaluate
from cklang.testing import assert_close, strategies
from cklang.testing.strategies import Values, extents
from cklang.types import Dim, DType, TensorType, e8m0, f32, i8
from tests.support.errors import expect_error
from tests.support.plans import kernel_function, plan, product_kernels
from tests.support.written_ops import expression_op

BLOCKS = {"a": (((1, 4), ())), "b": (((), (4, 3))), "both": (((2, 4), (4, 1)))}


def counts(shape: tuple[int, int], block: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(-(-extent // size) for extent, size in zip(shape, block, strict=True))


def function(
    sizes: tuple[int, ...], blocks: tuple[tuple[int, ...], ...], dtype: DType, scale: DType
) -> Function:
    m, n, k = sizes
    builder = Builder("f")
    operands = [
        builder.param(name, TensorType(dtype=dtype, shape=shape))
        for name, shape in (("a", (m, k)), ("b", (k, n)))
    ]
    for name, shape, block in zip("st", ((m, k), (k, n)), blocks, strict=True):
        if block:
            type_ = TensorType(dtype=scale, shape=counts(shape, block))
            operands.append(builder.param(name, type_))
    attrs = {"block_a": blocks[0], "block_b": blocks[1]}
    return builder.finish(builder.apply("scaled_gemm", operands, attrs))


def numbers(shape: tuple[Dim | int, ...]) -> tuple[int, ...]:
    """Extents of a type that has no dim."""
    return tuple(extent for extent in shape if isinstance(extent, int))


def arrays(dtype: DType, shape: tuple[Dim | int, ...], *values: Any) -> st.SearchStrategy[Any]:
    return strategies.arrays(dtype, numbers(shape), *values)


def spread(scale: Any, block: tuple[int, ...], shape: tuple[int, int]) -> Any:
    """One scale for each element."""
    whole = np.kron(scale.astype(np.float64), np.ones(block))
    return whole[: shape[0], : shape[1]]


@given(st.data(), st.sampled_from(sorted(BLOCKS)))
def test_it_is_the_product_of_scaled_elements(data: st.DataObject, side: str) -> None:
    sizes = tuple(data.draw(extents(19)) for _ in range(3))
    m, n, k = sizes
    blocks = BLOCKS[side]
    f = function(sizes, blocks, ck.f16, f32)
    given_ = [data.draw(arrays(p.type.dtype, p.type.shape, [Values.SMALL])) for p in f.params]
    wide = [each.astype(np.float64) for each in given_]
    a, b = wide[:2]
    if blocks[0]:
        a = a * spread(wide[2], blocks[0], (m, k))
    if blocks[1]:
        b = b * spread(wide[-1], blocks[1], (k, n))
    (got,) = evaluate(f, given_)
    np.testing.assert_array_equal(got, a @ b)
    assert parse_function(str(f)) == f


def in_f32(given_: list[Any], blocks: tuple[tuple[int, ...], ...], parts: int) -> Any:
    """Sums as a kernel makes them: each block in ``parts``, scaled and added in f32.

    A workgroup without products of a block does not scale it (``block_scale_loop.hpp``).
    """
    a, b = (each.astype(np.float32) for each in given_[:2])
    size = blocks[0][1] if blocks[0] else blocks[1][0]
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for k in range(0, a.shape[1], size):
        scale = np.ones((1, 1), np.float32)
        if blocks[0]:
            rows = np.repeat(given_[2][:, k // size], blocks[0][0])[: a.shape[0]]
            scale = scale * rows.astype(np.float32)[:, None]
        if blocks[1]:
            columns = np.repeat(given_[-1][k // size], blocks[1][1])[: b.shape[1]]
            scale = scale * columns.astype(np.float32)
        for part in range(parts):
            piece = range(k + part, min(k + size, a.shape[1]), parts)
            if not piece:
                continue
            total = total + scale * (a[:, piece] @ b[piece])
    return total


@given(st.data(), st.sampled_from(sorted(BLOCKS)), st.integers(1, 3))
def test_sums_in_f32_are_within_the_bound(data: st.DataObject, side: str, parts: int) -> None:
    sizes = tuple(data.draw(extents(19)) for _ in range(3))
    blocks = BLOCKS[side]
    f = function(sizes, blocks, ck.bf16, f32)
    given_ = [data.draw(arrays(p.type.dtype, p.type.shape)) for p in f.params]
    (want,), (bound,) = evaluate_with_bound(f, given_)
    with np.errstate(all="ignore"):
        # The draw has infinities and huge numbers, beside which an f32 sum may be anything.
        assert_close(in_f32(given_, blocks, parts), want, bound, unchecked=1)


def in_i32(given_: list[Any], parts: int) -> Any:
    """Sums of int8 as a kernel makes them: each block in ``parts``, exact, made f32, scaled."""
    a, b, scales = given_[0].astype(np.int64), given_[1].astype(np.int64), given_[2]
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for block in range(scales.shape[1]):
        for part in range(parts):
            piece = range(block * 4 + part, min(block * 4 + 4, a.shape[1]), parts)
            if piece:
                sums = (a[:, piece] @ b[piece]).astype(np.float32)
                total = total + scales[:, block : block + 1] * sums
    return total


@given(st.data(), st.integers(1, 3))
def test_sums_of_integers_are_within_the_bound(data: st.DataObject, parts: int) -> None:
    sizes = tuple(data.draw(extents(19)) for _ in range(3))
    f = function(sizes, BLOCKS["a"], i8, f32)
    given_ = [data.draw(arrays(p.type.dtype, p.type.shape)) for p in f.params]
    (want,), (bound,) = evaluate_with_bound(f, given_)
    with np.errstate(all="ignore"):
        assert_close(in_i32(given_, parts), want, bound, unchecked=1)


def test_the_bound_of_integers_knows_that_blocks_are_exact() -> None:
    """Sums below 2**24 are converted without rounding; those beyond 32 bits may be anything."""
    ones = np.ones((1, 1), np.float32)
    for k, value, off in ((64, 127, 0.0), (4096, 127, 4.0), (140_000, 127, np.inf)):
        blocks: tuple[tuple[int, ...], ...] = ((1, k), ())
        f = function((1, 1, k), blocks, i8, f32)
        row = np.full((1, k), value, np.int8)
        (got,), (bound,) = evaluate_with_bound(f, [row, row.T, ones])
        assert got.item() == np.float32(k * value**2)
        # Scaling and adding may round too, as in products of floats.
        assert bound.item() <= off + 16 * 2.0**-24 * got.item()
        assert np.isinf(bound).item() == np.isinf(off)


INFINITE = [
    # The second of two workgroups has nothing but zeros, so 0 times infinity.
    ([1, 0, 1, 0], "nan inf", False),
    ([1, 2.0**-100, 1, 2.0**-100], "nan inf", False),
    ([1, 1, 1, -1], "nan inf", False),
    ([1, 2, 3, 4], "inf", True),
    ([-1, -2, -3, -4], "-inf", True),
    ([0, 0, 0, 0], "nan", True),
    ([1, np.nan, 3, 0], "nan", True),
    # The last block has one product: the second workgroup has none of it, and scales nothing.
    ([1, 2, 3, 4, 5], "inf", True),
]


@pytest.mark.parametrize(("row", "results", "is_sure"), INFINITE)
def test_an_infinite_scale_meets_the_products_of_each_workgroup(
    row: list[float], results: str, is_sure: bool
) -> None:
    f = function((1, 1, len(row)), BLOCKS["a"], ck.bf16, f32)
    a = np.array([row], np.float32).astype(ml_dtypes.bfloat16)
    b = np.full((len(row), 1), 2.0**-40, np.float32).astype(ml_dtypes.bfloat16)
    given_ = [a, b, np.full((1, -(-len(row) // 4)), np.inf, np.float32)]
    (want,), (bound,) = evaluate_with_bound(f, given_)
    assert np.isfinite(bound).item() is is_sure
    with np.errstate(all="ignore"):
        for parts in (1, 2, 3):
            got = in_f32(given_, BLOCKS["a"], parts)
            assert str(got.item()) in results.split()
            assert_close(got, want, bound, unchecked=0 if is_sure else 1)


def test_the_bound_tells_a_wrong_scale() -> None:
    rng = np.random.default_rng(0)
    f = function((8, 6, 32), BLOCKS["both"], ck.f16, f32)
    given_ = [
        (rng.random(numbers(p.type.shape)) + 0.5).astype(p.type.dtype.numpy) for p in f.params
    ]
    (want,), (bound,) = evaluate_with_bound(f, given_)
    assert (bound < 1e-4 * np.abs(want)).all()
    given_[2][3, 7] *= 1.01
    with pytest.raises(AssertionError):
        assert_close(in_f32(given_, BLOCKS["both"], 1), want, bound)


def test_nan_infinite_and_zero_scales_meet_the_sum_of_their_block() -> None:
    f = function((2, 1, 8), BLOCKS["a"], ck.f32, f32)
    a = np.array([[1, 1, 1, 1, 2, 2, 2, 2], [1, -1, 0, 0, 0, 0, 0, 0]], np.float32)
    b = np.ones((8, 1), np.float32)
    for scales, want, sure in (
        ([[np.nan, 1], [0, 0]], [np.nan, 0], [True, True]),
        ([[np.inf, 1], [np.inf, 1]], [np.inf, np.nan], [True, False]),
        ([[0, 2], [1, -np.inf]], [16, np.nan], [True, True]),
    ):
        (got,), (bound,) = evaluate_with_bound(f, [a, b, np.array(scales, np.float32)])
        np.testing.assert_array_equal(got[:, 0], want)
        np.testing.assert_array_equal(np.isfinite(bound[:, 0]), sure)


@pytest.mark.parametrize(
    ("element", "factor", "exponent", "want"),
    [
        pytest.param(2.0**-30, 2.0**-30, 65, 2.0**72, id="may overflow"),
        pytest.param(np.inf, 1.0, -80, np.inf, id="may be zero beside an infinite sum"),
    ],
)
@pytest.mark.parametrize(("scale", "is_sure"), [(f32, False), (e8m0, True)])
def test_the_f32_product_of_scales_is_unsure_and_that_of_exponents_is_not(
    scale: DType, is_sure: bool, element: float, factor: float, exponent: int, want: float
) -> None:
    f = function((1, 1, 4), BLOCKS["both"], ck.f32, scale)
    a, b = np.full((1, 4), element, np.float32), np.full((4, 1), factor, np.float32)
    scales = np.full((1, 1), 2.0**exponent, np.float32).astype(scale.numpy)
    (got,), (bound,) = evaluate_with_bound(f, [a, b, scales, scales])
    assert got.item() == want
    assert np.isfinite(bound).item() is is_sure


def test_e8m0_is_a_power_of_two_or_nan() -> None:
    f = function((3, 1, 4), BLOCKS["a"], ck.f32, e8m0)
    scales = np.array([[0], [254], [255]], np.uint8).view(ml_dtypes.float8_e8m0fnu)
    a, b = np.ones((3, 4), np.float32), np.ones((4, 1), np.float32)
    (got,) = evaluate(f, [a * np.array([[2], [0.25], [1]], np.float32), b, scales])
    np.testing.assert_array_equal(got[:, 0], [2.0**-124, 2.0**127, np.nan])


M, N, K, G = ck.dims("M N K G")


@ck.op
def straight(
    x: ck.f16[G, M, K], w: ck.f16[N, K], s: ck.f32[M, K / 4], t: ck.f32[N / 2, K / 4]
) -> ck.f32[G, M, N]:
    return ck.gemm(x, w.T, scale_a=s, scale_b=t.T)


@ck.op
def turned(x: ck.f16[M, K], w: ck.f16[N, K], s: ck.f32[M / 3, K / 4]) -> ck.f32[N, M]:
    return ck.gemm(x, w.T, scale_a=s).T + 1.0


@ck.op
def chained(x: ck.f16[M, K], w: ck.f16[K, N], v: ck.f16[N, N], t: ck.f32[N / 2, N]) -> ck.f32[M, N]:
    return ck.gemm((x @ w).to(ck.f16), v, scale_b=t)


@pytest.mark.parametrize("op", [straight, turned, chained])
def test_kernels_compute_the_function(op: Any) -> None:
    sizes = {G: 2, M: 5, N: 7, K: 10}
    rng = np.random.default_rng(1)
    f = op.program.specialise()
    known = {}
    for param in f.params:
        shape = [
            extent.count(sizes[extent.of]) if hasattr(extent, "of") else sizes[extent]
            for extent in param.type.shape
        ]
        known[param.name] = rng.integers(-3, 4, shape).astype(param.type.dtype.numpy)
    (want,) = evaluate(f, [known[param.name] for param in f.params])
    fusion_plan = plan(f)
    for kernel in product_kernels(fusion_plan):
        inputs = [known[value.name] for value in kernel.inputs]
        (known[kernel.result.name],) = evaluate(kernel_function(kernel), inputs)
    np.testing.assert_array_equal(known[product_kernels(fusion_plan)[-1].result.name], want)
    assert "scaled by" in explain(fusion_plan)


def test_outside_an_op_it_computes_with_numpy() -> None:
    rng = np.random.default_rng(2)
    a, b = rng.random((6, 8)), rng.random((8, 4))
    s, t = rng.random((6, 2)), rng.random((2, 4))
    want = (a * np.repeat(s, 4, 1)) @ (b * np.repeat(t, 4, 0))
    np.testing.assert_allclose(ck.gemm(a, b, scale_a=s, scale_b=t), want)
    short = ck.gemm(a[:, :7], b[:7], scale_a=s, block_a=(1, 4))
    np.testing.assert_allclose(short, (a[:, :7] * np.repeat(s, 4, 1)[:, :7]) @ b[:7])
    with pytest.raises(ck.CkError, match="F035"):
        ck.gemm(a[:, :7], b[:7], scale_a=s)


COMPUTED = {
    "blocks of a reshape": "x.reshape(M, K // 4, 4)",
    "blocks of what is left": "x.reshape(M, -1, 4)",
}


@pytest.mark.parametrize("blocks", COMPUTED)
def test_scales_that_the_op_computes(blocks: str) -> None:
    op = expression_op(
        "x: ck.f32[M, K], w: ck.fp8[N, K]",
        "ck.f32[M, N]",
        "ck.gemm(q, w.T, scale_a=s)",
        before=[
            f"b = {COMPUTED[blocks]}",
            "s = ck.max(ck.abs(b), axis=-1) / 448.0",
            "q = (b / s[..., None]).to(ck.fp8).reshape(M, K)",
        ],
    )
    kernels = plan_of(op.program.specialise()).kernels
    assert [kernel.family for kernel in kernels] == ["rowwise", "gemm"]
    rng = np.random.default_rng(0)
    x = rng.standard_normal((3, 8)).astype(np.float32)
    w = rng.standard_normal((5, 8)).astype(ml_dtypes.float8_e4m3fn)
    (got,) = evaluate(op.program.specialise(), [x, w])
    largest = np.repeat(np.abs(x.reshape(3, 2, 4)).max(-1) / 448, 4, axis=1)
    rounded = (x / largest).astype(ml_dtypes.float8_e4m3fn).astype(np.float32)
    np.testing.assert_allclose(got, (rounded * largest) @ w.astype(np.float32).T, rtol=1e-5)


def test_computed_scales_are_one_for_each_block() -> None:
    params = "x: ck.fp8[M, K], w: ck.fp8[N, K], s: ck.f32[M, K // 4]"
    op = expression_op(params, "ck.f32[M, N]", "ck.gemm(x, w.T, scale_a=s * 2.0)")
    x, w = (np.ones((rows, 10), ml_dtypes.float8_e4m3fn) for rows in (3, 5))
    with expect_error("I049", match="scale of a has 2 elements, and 3 blocks of 4"):
        evaluate(op.program.specialise(), [x, w, np.ones((3, 2), np.float32)])
