# SPDX-License-Identifier: MIT
"""Block scales of A, of B and of both: every extent, layout and sharing of K, and hard values."""

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cklang as ck
from cklang.families.gemm.key import Algorithm, Reduction
from cklang.runtime.op import Op
from cklang.testing.strategies import Layout, arrays, extents, strided
from cklang.types import DTYPES, e8m0
from tests.support.algorithms import EIGHT_BITS
from tests.support.arrays import drawn, mnk
from tests.support.checks import check, check_group, compare
from tests.support.coverage import Covered

M, N, K, G = ck.dims("M N K G")
X: Any = ck.dtype_var("X", ck.fp8, ck.bf8, ck.fp8_fnuz, ck.bf8_fnuz, ck.f16)

DENSE = (Layout.ROW, Layout.PADDED_ROW, Layout.OFFSET)
EVEN = ((64, 64, 128), (80, 208, 336), (144, 48, 400))
"""All fit the widest loads, so that one kernel serves them; K ends inside a block and a tile."""
LONG = (80, 208, 1104)
"""K has nine blocks; gfx950 loads the scales of four at a time, and none are beyond the ninth."""
ODD = ((70, 201, 301), (1, 1, 1), (129, 3, 127))


@ck.op
def both(
    x: X[M, K], w: X[N, K], sx: ck.f32[M, K / 128], sw: ck.f32[N / 128, K / 128], bias: ck.f32[N]
) -> ck.bf16[M, N]:
    return ck.relu(ck.gemm(x, w.T, scale_a=sx, scale_b=sw.T) + bias)


@ck.op
def activations(x: X[M, K], w: X[N, K], sx: ck.f32[M, K / 128]) -> ck.bf16[M, N]:
    return ck.gemm(x, w.T, scale_a=sx)


@ck.op
def quantised(x: ck.f16[M, K], w: ck.fp8_fnuz[N, K], sw: ck.f32[N / 128, K / 128]) -> ck.bf16[M, N]:
    blocks = x.reshape(M, K // 128, 128)
    scale = ck.max(ck.abs(blocks), axis=-1) / 240.0
    rounded = (blocks / scale[..., None]).to(ck.fp8_fnuz).reshape(M, K)
    return ck.gemm(rounded, w.T, scale_a=scale, scale_b=sw.T)


@ck.op
def weights(x: X[M, K], w: X[N, K], sw: ck.f32[N / 16, K / 64], r: ck.f32[M, N]) -> ck.f32[M, N]:
    return ck.gemm(x, w.T, scale_b=sw.T) * r


@ck.op
def exponents(
    x: X[M, K], w: X[N, K], sx: ck.e8m0[M, K / 32], sw: ck.e8m0[N, K / 32]
) -> ck.f32[M, N]:
    return ck.gemm(x, w.T, scale_a=sx, scale_b=sw.T)


@pytest.mark.usefixtures("compiler")
def test_scales_that_the_op_computes() -> None:
    check(quantised, drawn(quantised, {"M": 64, "N": 128, "K": 256}))


@ck.op
def integers_in_f16(
    x: ck.i8[M, K], w: ck.i8[N, K], sx: ck.f32[M, K / 128], sw: ck.f32[N / 128, K / 128]
) -> ck.f32[M, N]:
    a, b = x.to(ck.f32).to(ck.f16), w.to(ck.f32).to(ck.f16)
    return ck.gemm(a, b.T, scale_a=sx, scale_b=sw.T)


@ck.op
def integers(
    x: ck.i8[M, K],
    w: ck.i8[N, K],
    sx: ck.f32[M, K / 128],
    sw: ck.f32[N / 128, K / 128],
    bias: ck.f32[N],
) -> ck.bf16[M, N]:
    return ck.relu(ck.gemm(x, w.T, scale_a=sx, scale_b=sw.T) + bias)


@ck.op
def batch(
    x: X[G, M, K], w: X[G, N, K], sx: ck.f32[G, M, K / 128], sw: ck.f32[N / 128, K / 128]
) -> ck.bf16[G, M, N]:
    return ck.gemm(x, w.mT, scale_a=sx, scale_b=sw.T)


@ck.op
def shared_weights(
    x: X[G, M, K],
    w: X[N, K],
    sx: ck.f32[G, M, K / 128],
    sw: ck.f32[N / 128, K / 128],
    bias: ck.f32[N],
) -> ck.bf16[G, M, N]:
    return ck.relu(ck.gemm(x, w.T, scale_a=sx, scale_b=sw.T) + bias)


def algorithm(tile_k: int = 64, vector: int = 16, **more: Any) -> Algorithm:
    widths = {"vector_a": vector, "vector_b": vector, "vector_e": 8 if vector > 1 else 1}
    return replace(EIGHT_BITS, tile=(64, 64, tile_k), **(widths | more))


def arguments(op: Op, dtype: str, sizes: dict[str, int]) -> list[Any]:
    return drawn(op, sizes, X=DTYPES[dtype])


def over(op: Op, arch: str, dtype: str, shapes: Any, chosen: Algorithm, **more: int) -> None:
    narrowed = op.using(chosen)
    for shape in shapes:
        args = arguments(op, dtype, mnk(*shape) | more)
        result = narrowed(*args, device=f"emu:{arch}")
        (compared,) = compare(narrowed, args, result)
        # The bound is no blank cheque.
        assert np.isfinite(compared.bound).all() or not np.isfinite(compared.expected).all()


@pytest.mark.usefixtures("compiler")
def test_both(covered: Covered) -> None:
    chosen = algorithm(vector_d=(4,))
    over(both, "gfx942", "fp8_fnuz", (*EVEN, LONG), chosen)
    # One weight matrix for a batch is more rows of one product: the same kernel.
    args = arguments(shared_weights, "fp8_fnuz", {"G": 3, "M": 16, "N": 64, "K": 160})
    check(shared_weights.using(chosen), args)
    # A scale that is nan, infinite or zero stays in its rows and columns.
    args = arguments(both, "fp8_fnuz", mnk(144, 208, 336))
    tame = check(both.using(chosen), args)
    args[2][0, 1], args[2][1, 2], args[2][2, 0] = np.nan, np.inf, 0
    args[3][1, 0] = np.nan
    wild = check(both.using(chosen), args)
    np.testing.assert_array_equal(wild[3:, :128], tame[3:, :128])
    assert np.isnan(wild[:, 128:]).all()
    assert np.isnan(wild[0]).all()
    covered("block scales of A and B", "fp8_fnuz fp8_fnuz bf16", "gfx942")


@pytest.mark.usefixtures("stencils")
def test_every_extent() -> None:
    over(both, "gfx942", "fp8_fnuz", ODD, algorithm(vector=1, vector_d=(1,)))


@pytest.mark.usefixtures("compiler")
def test_one_element_along_k() -> None:
    """It has another layout, whose stencil no other test needs."""
    args = arguments(both, "fp8_fnuz", mnk(33, 65, 1))
    check(both.using(algorithm(vector=1, vector_d=(1,))), args)


@pytest.mark.usefixtures("stencils")
@settings(max_examples=25)
@given(st.data(), extents(140), extents(140), extents(300).filter(lambda k: k > 1))
def test_every_extent_stride_and_value(data: st.DataObject, m: int, n: int, k: int) -> None:
    shapes = ((m, k), (n, k), (m, -(-k // 128)), (-(-n // 128), -(-k // 128)))
    dtypes = (ck.fp8_fnuz, ck.fp8_fnuz, ck.f32, ck.f32)
    # Any strides of scales are one kernel's; A and B keep K contiguous.
    lies = (DENSE, DENSE, tuple(Layout), tuple(Layout))
    args = [
        data.draw(strided(data.draw(arrays(dtype, shape)), layouts))
        for dtype, shape, layouts in zip(dtypes, shapes, lies, strict=True)
    ]
    args.append(data.draw(arrays(ck.f32, (n,))))
    # The draw has infinities and huge numbers, beside which a sum may be anything.
    check(both.using(algorithm(vector=1, vector_d=(1,))), args, unchecked=1)


@pytest.mark.usefixtures("compiler")
def test_tiles_of_one_block_of_k() -> None:
    """The products of each warp tile are scaled while the next one is multiplied."""
    wide: dict[str, Any] = {"tile": (128, 128, 128), "warp_tile": (32, 32, 16), "block_per_cu": 2}
    chosen = algorithm(tile_k=128, vector_d=(4,))
    over(both, "gfx942", "fp8_fnuz", (EVEN[1], LONG), replace(chosen, **wide))
    over(integers, "gfx942", "i8", EVEN[1:], chosen)
    shares = replace(chosen, stream_k=True, reduction=Reduction.ATOMIC)
    over(both, "gfx942", "fp8_fnuz", EVEN[1:], shares)


@pytest.mark.usefixtures("compiler")
def test_shares_of_k_begin_inside_blocks(covered: Covered) -> None:
    kinds: tuple[dict[str, Any], ...] = (
        {"split_k": 4, "reduction": Reduction.WORKSPACE},
        {"stream_k": True, "reduction": Reduction.ATOMIC},
    )
    for kind in kinds:
        over(both, "gfx942", "fp8_fnuz", EVEN, algorithm(vector_d=(4,), **kind))
    covered("block scales, split-K and stream-K", "fp8_fnuz fp8_fnuz bf16", "gfx942")


@pytest.mark.usefixtures("compiler")
def test_batches_and_groups(covered: Covered) -> None:
    over(batch, "gfx942", "fp8_fnuz", EVEN[:2], algorithm(), G=3)
    covered("block scales, batched", "fp8_fnuz fp8_fnuz bf16", "gfx942")
    calls = [tuple(arguments(activations, "fp8_fnuz", mnk(*shape))) for shape in EVEN]
    check_group(activations.using(algorithm()), calls)
    covered("block scales, grouped", "fp8_fnuz fp8_fnuz bf16", "gfx942")


@pytest.mark.usefixtures("compiler")
def test_a_and_b_alone(covered: Covered) -> None:
    over(activations, "gfx950", "fp8", (*EVEN, LONG), algorithm(tile_k=128))
    # Lanes side by side have sums in one column then, not in one row; or in rows of four columns.
    over(activations, "gfx950", "fp8", EVEN[:1], algorithm(tile_k=128, transpose_c=True))
    four: dict[str, Any] = {"tile": (64, 16, 16), "warps": (1, 1, 1), "warp_tile": (64, 4, 16)}
    chosen = replace(algorithm(vector=1), **four)
    over(activations, "gfx942", "f16", EVEN[:1], chosen)
    covered("block scales of A", "fp8 fp8 bf16", "gfx950")
    wmma: dict[str, Any] = {"warps": (4, 2, 1), "warp_tile": (16, 16, 16), "vector_d": (4,)}
    chosen = replace(algorithm(tile_k=32, vector=4, vector_e=4), **wmma)
    over(weights, "gfx1201", "bf8", EVEN, chosen)
    covered("block scales of B", "bf8 bf8 f32", "gfx1201")


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(
    ("arch", "dtype"), [pytest.param("gfx942", "f16", marks=pytest.mark.full), ("gfx950", "fp8")]
)
def test_other_layouts(arch: str, dtype: str, covered: Covered) -> None:
    vector = 128 // DTYPES[dtype].bits
    chosen = algorithm(tile_k=32 if dtype == "f16" else 64, vector=vector, vector_e=8)
    for shape in EVEN[1:]:
        args = arguments(activations, dtype, mnk(*shape))
        check(activations.using(chosen), [np.asfortranarray(each) for each in args], arch)
    covered("block scales of A, layouts crr", f"{dtype} {dtype} bf16", arch)


def with_hard_exponents(chosen: Algorithm, arch: str, dtype: str) -> None:
    over(exponents, arch, dtype, EVEN, chosen)
    args = arguments(exponents, dtype, mnk(*EVEN[1]))
    args[2].view(np.uint8)[:4, 2] = (0, 1, 254, 255)
    args[3].view(np.uint8)[:4, 2] = (254, 0, 0, 127)
    wild = check(exponents.using(chosen), args, arch)
    assert np.isnan(wild[3]).all()
    # The first column of w is multiplied by 2**127: some of its sums are beyond f32.
    assert np.isfinite(wild[4:, 1:]).all()


@pytest.mark.usefixtures("compiler")
def test_exponents(covered: Covered) -> None:
    chosen = algorithm(tile_k=32, vector=8, vector_e=4)
    with_hard_exponents(chosen, "gfx942", "bf8_fnuz")
    covered("block scales of A and B, e8m0", "bf8_fnuz bf8_fnuz f32", "gfx942")


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(("dtype", "warp_tile"), [("fp8", (16, 16, 128)), ("bf8", (32, 32, 64))])
def test_matrix_instructions_take_exponents(
    dtype: str, warp_tile: tuple[int, int, int], covered: Covered
) -> None:
    chosen = replace(algorithm(tile_k=128, vector_e=4), warp_tile=warp_tile)
    with_hard_exponents(chosen, "gfx950", dtype)
    # From K = 512 on exponents side by side are loaded sixteen at a time, others one by one.
    over(exponents, "gfx950", dtype, ((64, 64, 512), (80, 208, 1104)), chosen)
    args = arguments(exponents, dtype, mnk(80, 208, 656))
    args[2:] = map(np.asfortranarray, args[2:])
    check(exponents.using(chosen), args, "gfx950")
    covered("MX: block scales in the matrix instructions", f"{dtype} {dtype} f32", "gfx950")


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(
    "arch",
    [
        "gfx942",
        *(pytest.param(each, marks=pytest.mark.full) for each in ("gfx950", "gfx1100", "gfx1201")),
    ],
)
def test_integers(arch: str, covered: Covered) -> None:
    """The sums of a block are exact in i32; a scale that is nan or infinite stays in its row."""
    over(integers, arch, "i8", EVEN, integers_on(arch))
    args = arguments(integers, "i8", mnk(144, 208, 336))
    tame = check(integers.using(integers_on(arch)), args, arch)
    args[2][0, 1], args[2][1, 2], args[2][2, 0] = np.nan, np.inf, 0
    wild = check(integers.using(integers_on(arch)), args, arch)
    np.testing.assert_array_equal(wild[3:], tame[3:])
    assert np.isnan(wild[0]).all()
    covered("block scales of A and B", "i8 i8 bf16", arch)


def integers_on(arch: str) -> Algorithm:
    """An algorithm for products of int8 with an epilogue that reads a row."""
    if arch in ("gfx1100", "gfx1201"):
        wmma: dict[str, Any] = {"warps": (4, 2, 1), "warp_tile": (16, 16, 16), "vector_d": (4,)}
        return replace(algorithm(tile_k=32, vector=4, vector_e=4), **wmma)
    return algorithm(vector_d=(4,))


@pytest.mark.full
def test_integers_of_any_extent() -> None:
    chosen = algorithm(vector=1, vector_d=(1,))
    over(integers, "gfx942", "i8", ODD, chosen)


@pytest.mark.full
def test_integers_are_made_f16(covered: Covered) -> None:
    """The same sums with instructions of f16, which holds each of 256 integers."""
    over(integers_in_f16, "gfx942", "i8", EVEN, algorithm(tile_k=32, vector=8, vector_e=4))
    covered("block scales of A and B, int8 made f16", "f16 f16 f32", "gfx942")


@pytest.mark.usefixtures("stencils")
def test_what_the_rules_say() -> None:
    args = arguments(exponents, "fp8_fnuz", mnk(64, 64, 64))
    with pytest.raises(ck.CkError, match="scale-k") as refusal:
        exponents.using(algorithm(tile_k=64, vector_e=4))(*args, device="emu:gfx942")
    assert "a divisor of the block, 32" in str(refusal.value)
    named = algorithm(tile_k=32, vector=8, vector_e=4, pipeline="mem")
    with pytest.raises(ck.CkError, match="pipeline"):
        exponents.using(named)(*args, device="emu:gfx942")
    short = [args[0], args[1], args[2], args[3][:, :1]]
    with pytest.raises(ck.CkError, match="A046") as refusal:
        exponents(*short, device="emu:gfx942")
    assert "K/32 is 2" in str(refusal.value)
    assert ml_dtypes.float8_e8m0fnu == e8m0.numpy
