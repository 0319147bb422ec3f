# SPDX-License-Identifier: MIT
"""Convolution kernels against sums in double precision.

Elements are small integers, whose sums every type here holds exactly: results must be equal.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cklang import emulator
from cklang.families.conv.host import ConvRequest
from cklang.families.conv.problem import ConvProblem, conv_problem
from cklang.families.gemm.cost.model import estimate
from cklang.families.gemm.key import (
    Algorithm,
    ConvSpecial,
    EpilogueKind,
    Pipeline,
    ProductKind,
    Reduction,
    Scheduler,
)
from cklang.types import DType, bf16, f16, f32, fp8, fp8_fnuz, i8
from tests.support.algorithms import NARROW, WIDE, pipelined
from tests.support.conv_kernels import Conv, Kernel, kernel
from tests.support.coverage import Covered

FAMILIES = (ProductKind.CONV, ProductKind.CONV_GRAD_INPUT, ProductKind.CONV_GRAD_WEIGHT)


def whole(shape: tuple[int, ...], seed: int, most: int = 2) -> np.ndarray:
    """Whole numbers as float16."""
    return np.random.default_rng(seed).integers(-most, most + 1, shape).astype(np.float16)


def operands(conv: Conv, family: ProductKind, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A and B of a direction."""
    x, w, dy = (
        whole(s, seed + i) for i, s in enumerate((conv.x_shape, conv.w_shape, conv.y_shape))
    )
    pairs = {
        ProductKind.CONV: (x, w),
        ProductKind.CONV_GRAD_INPUT: (dy, w),
        ProductKind.CONV_GRAD_WEIGHT: (dy, x),
    }
    return pairs[family]


def wanted(conv: Conv, family: ProductKind, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    directions = {
        ProductKind.CONV: conv.forward,
        ProductKind.CONV_GRAD_INPUT: conv.grad_input,
        ProductKind.CONV_GRAD_WEIGHT: conv.grad_weight,
    }
    return directions[family](a, b)


def check(kernel: Kernel, conv: Conv, *ds: np.ndarray, **more: int) -> np.ndarray:
    """Run it; the epilogue adds ``ds``, which broadcast to the result."""
    signature = kernel.key.signature
    a, b = (x.astype(signature.dtype_a.numpy) for x in operands(conv, signature.kind))
    want = sum((d.astype(np.float64) for d in ds), wanted(conv, signature.kind, a, b))
    got = kernel.run(conv, a, b, *(np.broadcast_to(d, want.shape) for d in ds), **more)
    np.testing.assert_array_equal(got, want.astype(got.dtype))
    if is_counted(kernel, conv) and not more:
        counted = emulator.stats(kernel.device.index)
        predicted = estimate(kernel.key, problem_of(conv, signature.kind))
        assert counted.workgroups == predicted.workgroups
        assert counted.mfma_flops == predicted.padded_flops
    return got


def is_counted(kernel: Kernel, conv: Conv) -> bool:
    """Whether the cost model counts exactly: phases of a stride count as their mean."""
    a, family = kernel.key.algorithm, kernel.key.signature.kind
    alone = a.split_k == 1 and not a.stream_k
    phases = family is ProductKind.CONV_GRAD_INPUT and set(conv.stride) != {1}
    return kernel.key.arch == "gfx942" and alone and not phases


def problem_of(conv: Conv, family: ProductKind) -> ConvProblem:
    return conv_problem(
        conv.x_shape,
        conv.w_shape,
        direction=family.value,
        stride=conv.stride,
        padding=tuple(zip(conv.before, conv.after, strict=True)),
        dilation=conv.dilation,
        spatial=len(conv.size),
    )


@st.composite
def convs(draw: st.DrawFn, spatial: int = 2) -> Conv:
    """Any legal convolution of a few thousand products."""

    def axes(low: int, high: int) -> tuple[int, ...]:
        return tuple(draw(st.integers(low, high)) for _ in range(spatial))

    window, dilation = axes(1, 4), axes(1, 3)
    before, after = axes(0, 4), axes(0, 4)
    covered = zip(window, dilation, before, after, strict=True)
    size = tuple(max(draw(st.integers(1, 9)), (w - 1) * d + 1 - b - a) for w, d, b, a in covered)
    return Conv(
        draw(st.integers(1, 3)),
        draw(st.integers(1, 4)),
        draw(st.integers(1, 9)),
        draw(st.integers(1, 9)),
        size,
        window,
        stride=axes(1, 5),
        dilation=dilation,
        before=before,
        after=after,
    )


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.value)
@given(conv=convs())
@settings(max_examples=12)
def test_any_convolution_in_the_plane(family: ProductKind, conv: Conv) -> None:
    check(kernel(family, 2), conv)


SUM = """func @epilogue(%acc: f32[], %d0: f32[], %d1: f32[], %d2: f32[]) -> f32[] {
  %0: f32[] = add(%acc, %d0)
  %1: f32[] = add(%0, %d1)
  %2: f32[] = add(%1, %d2)
  return %2
}
"""
OPERANDS = ((f16, "row", 8), (f16, "full", 8), (f32, "strided", 1))
PADDED = Conv(
    2, 2, 72, 40, (9, 11), (3, 3), stride=(2, 1), dilation=(1, 2), before=(1, 0), after=(1, 3)
)
DEEP = Conv(3, 2, 24, 8, (21, 17), (3, 3), stride=(2, 1), before=(1, 1), after=(1, 1))
DEPTHWISE = Conv(2, 16, 1, 1, (9, 10), (3, 3), stride=(2, 1), before=(1, 0), after=(1, 3))
SLIM_GROUPS = replace(DEPTHWISE, g=8, k=4, c=8, window=(3, 2), stride=(2, 3), dilation=(2, 1))


def of_image(conv: Conv) -> list[np.ndarray]:
    """A bias, a residual, and a number for each pixel and group of the output."""
    shape = conv.y_shape
    return [whole(shape[-2:], 5), whole(shape, 6), whole((*shape[:-1], 1), 7).astype(np.float32)]


@pytest.mark.usefixtures("stencils")
def test_wide_loads_at_padded_corners_with_operands(covered: Covered) -> None:
    """Here tiles of K begin in the middle of a tap, and the first offsets of a row are negative."""
    algorithm = pipelined(WIDE, Pipeline.COMPV4)
    compiled = kernel(ProductKind.CONV, 2, algorithm=algorithm, d=OPERANDS, epilogue=SUM)
    for conv in (PADDED, replace(PADDED, n=1, g=1), replace(PADDED, before=(0, 2))):
        check(compiled, conv, *of_image(conv))
    covered("conv, pipeline compv4", "f16", "gfx942")


@pytest.mark.usefixtures("compiler")
def test_groups_of_a_depthwise_convolution_share_a_tile(covered: Covered) -> None:
    algorithm = replace(DEPTHWISE_TILE, tile=(64, 16, 32), warps=(4, 1, 1), vector_e=8)
    compiled = kernel(ProductKind.CONV, 2, algorithm=algorithm)
    check(compiled, DEPTHWISE)
    check(compiled, replace(DEPTHWISE, g=48, stride=(1, 1), dilation=(2, 1), size=(12, 9)))
    covered("conv, depthwise", "f16", "gfx942")
    refused = compiled.face.describe(request(compiled, replace(DEPTHWISE, g=24)))
    assert refused == ("the groups are not a multiple of those that the kernel merges in a tile")


def request(compiled: Kernel, conv: Conv) -> ConvRequest:
    a, b = operands(conv, compiled.key.signature.kind)
    shapes = {ProductKind.CONV: conv.y_shape, ProductKind.CONV_GRAD_INPUT: conv.x_shape}
    e = np.empty(shapes.get(compiled.key.signature.kind, conv.w_shape), np.float16)
    return compiled.ask(conv, (a, b, e))


@pytest.mark.usefixtures("compiler")
def test_stream_k_in_a_tree_after_whole_tiles(covered: Covered) -> None:
    algorithm = replace(WIDE, stream_k=True, reduction=Reduction.TREE, persistent=True)
    compiled = kernel(ProductKind.CONV_GRAD_WEIGHT, 2, algorithm=algorithm)
    # 4 tiles of 19 steps: none, one or all of them are whole, and up to five blocks share one.
    for blocks in (1, 3, 4, 7, 19):
        first = check(compiled, DEEP, blocks=blocks)
        np.testing.assert_array_equal(check(compiled, DEEP, blocks=blocks), first)
    check(compiled, replace(DEEP, g=3, size=(9, 5)), blocks=4)
    covered("conv_grad_weight, stream-K after whole tiles tree", "f16", "gfx942")


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(("most_bytes", "bands"), [(1300, 1), (800, 2), (600, 3), (350, 6)])
def test_batches_and_images_in_pieces(most_bytes: int, bands: int) -> None:
    """Tensors of one product may span few bytes: each image is its own, then each band of one."""
    conv = Conv(
        3, 2, 3, 4, (11, 7), (3, 2), stride=(2, 1), dilation=(1, 2), before=(2, 1), after=(1, 0)
    )
    compiled = kernel(ProductKind.CONV, 2)
    whole_launch, launch = (
        compiled.face.describe(replace(request(compiled, conv), most_bytes=most))
        for most in (1 << 31, most_bytes)
    )
    assert not isinstance(whole_launch, str)
    assert not isinstance(launch, str)
    assert (whole_launch.grid[0], launch.grid[0]) == (2 * 2, 2 * 3 * bands)
    check(compiled, conv, most_bytes=most_bytes)
    if bands == 1:
        check(kernel(ProductKind.CONV_GRAD_INPUT, 2), conv, most_bytes=most_bytes)
        wide = replace(conv, k=8, c=8)
        algorithm = pipelined(WIDE, Pipeline.COMPV4)
        fused = kernel(ProductKind.CONV, 2, algorithm=algorithm, d=OPERANDS, epilogue=SUM)
        check(fused, wide, *of_image(wide), most_bytes=1300)


@pytest.mark.usefixtures("compiler")
def test_batches_beyond_two_gigabytes_are_cut_in_pieces() -> None:
    """Nothing runs: 6 images of 805 MB are 3 products of 2 for each group."""
    compiled = kernel(ProductKind.CONV, 2)
    address, pixel, size = 1 << 40, 192, (2048, 1024)
    row, image = size[1] * pixel, size[0] * size[1] * pixel
    base = replace(
        request(compiled, Conv(1, 2, 8, 96, (1, 1), (1, 1))),
        in_=(1, *size),
        out=(1, *size),
        a=address,
        b=address,
        e=address,
        input_strides=(image, 0, row, pixel, 96, 1),
        output_strides=(1 << 25, 0, 1024 * 16, 16, 8, 1),
    )
    one, many = (compiled.face.describe(replace(base, n=n)) for n in (1, 6))
    assert not isinstance(one, str)
    assert not isinstance(many, str)
    assert many.grid[0] == 6 * one.grid[0]
    far = replace(base, input_strides=(0, 0, 1 << 20, pixel, 96, 1))
    bands = compiled.face.describe(far)
    assert not isinstance(bands, str)
    assert bands.grid == one.grid  # in two halves
    far = replace(far, input_strides=(0, 0, 1 << 31, pixel, 96, 1))
    assert compiled.face.describe(far) == "A spans more than 2^31 bytes"


@pytest.mark.usefixtures("compiler")
def test_an_image_beyond_two_gigabytes_is_cut_in_bands() -> None:
    """Nothing runs: 2^15 by 2^15 pixels of 4 channels are 8 GiB, and more pixels than count."""
    compiled = kernel(ProductKind.CONV, 2)
    address, side = 1 << 40, 1 << 15
    strides = (0, 0, 4 * side, 4, 0, 1)
    base = replace(
        request(compiled, Conv(1, 1, 4, 4, (1, 1), (1, 1))),
        in_=(1, side, side),
        out=(1, side, side),
        a=address,
        b=address,
        e=address,
        input_strides=strides,
        output_strides=strides,
    )
    launch = compiled.face.describe(base)
    assert not isinstance(launch, str)
    assert launch.grid == (side * side // 64, 1, 1)


D1 = Conv(3, 2, 8, 24, (37,), (5,), stride=(2,), dilation=(3,), before=(2,), after=(1,))
D3 = Conv(
    2,
    2,
    7,
    5,
    (5, 6, 7),
    (2, 3, 2),
    stride=(2, 3, 1),
    dilation=(1, 1, 2),
    before=(1, 0, 1),
    after=(1, 3, 0),
)
POINTS = Conv(2, 2, 16, 32, (7, 9), (1, 1), stride=(2, 3))
MATRIX = replace(POINTS, g=3, stride=(1, 1))
FORWARD, GRAD_INPUT, GRAD_WEIGHT = FAMILIES
Case = tuple[ProductKind, Algorithm, Conv, DType, str]


def case(
    kind: ProductKind,
    conv: Conv,
    algorithm: Algorithm = WIDE,
    dtype: DType = f16,
    arch: str = "gfx942",
    **fields: Any,
) -> Case:
    return kind, replace(algorithm, **fields), conv, dtype, arch


DIRECT = EpilogueKind.DEFAULT
POINTWISE, PACKED = ConvSpecial.POINTWISE, ConvSpecial.POINTWISE_PACKED
FLOATS = replace(NARROW, warp_tile=(16, 16, 4), vector_a=4, vector_b=4, vector_e=4)
BYTES = replace(WIDE, tile=(64, 64, 64), warp_tile=(16, 16, 32), vector_e=4)
ASYNC = pipelined(WIDE, Pipeline.COMP_ASYNC, tile=(64, 64, 64), warp_tile=(16, 16, 32))
INTERWAVE = replace(NARROW, pipeline=Pipeline.MEM, scheduler=Scheduler.INTERWAVE)
DEPTHWISE_TILE = replace(NARROW, special=ConvSpecial.DEPTHWISE, groups_merged=16, vector_a=8)
CASES: dict[str, Case] = {
    "conv, pipeline mem interwave, 3D": case(FORWARD, D3, INTERWAVE, epilogue=DIRECT),
    "conv, pipeline basic_v1, 1D": case(FORWARD, D1, pipelined(WIDE, Pipeline.BASIC_V1)),
    "conv, pipeline compv5": case(
        FORWARD, PADDED, pipelined(WIDE, Pipeline.COMPV5, warps=(1, 1, 2))
    ),
    "conv, pipeline compv6": case(FORWARD, PADDED, pipelined(WIDE, Pipeline.COMPV6)),
    "conv, pipeline comp_async": case(FORWARD, PADDED, ASYNC, arch="gfx950"),
    "conv, windows of one tap": case(FORWARD, POINTS, special=POINTWISE),
    "conv, a matrix product": case(FORWARD, MATRIX, special=PACKED, persistent=True),
    "conv, groups in a tile": case(FORWARD, SLIM_GROUPS, groups_merged=4),
    "conv, split-K workspace": case(FORWARD, PADDED, split_k=3, reduction=Reduction.WORKSPACE),
    "conv_grad_input 3D": case(
        GRAD_INPUT, D3, NARROW, pipeline=Pipeline.MEM, epilogue=DIRECT, persistent=True
    ),
    "conv_grad_input, groups in a tile": case(GRAD_INPUT, SLIM_GROUPS, groups_merged=4),
    "conv_grad_input, windows of one tap": case(GRAD_INPUT, POINTS, special=POINTWISE),
    "conv_grad_input, a matrix product": case(GRAD_INPUT, MATRIX, special=PACKED),
    "conv_grad_weight 3D": case(GRAD_WEIGHT, D3, NARROW),
    "conv_grad_weight, groups in a tile": case(GRAD_WEIGHT, SLIM_GROUPS, groups_merged=4),
    "conv_grad_weight, depthwise": case(GRAD_WEIGHT, DEPTHWISE, DEPTHWISE_TILE, vector_b=8),
    "conv 2D on gfx1100": case(FORWARD, PADDED, arch="gfx1100"),
    "conv 2D on gfx90a": case(FORWARD, PADDED, dtype=bf16, arch="gfx90a"),
    "conv 2D on gfx942, f32": case(FORWARD, PADDED, FLOATS, f32),
    "conv 2D on gfx942, i8": case(FORWARD, PADDED, BYTES, i8),
}


PIPELINES: dict[str, dict[str, Any]] = {
    "mem": {"pipeline": Pipeline.MEM, "epilogue": EpilogueKind.DEFAULT},
    "compv4": {"pipeline": Pipeline.COMPV4, "double_buffer": True},
    "compv6": {"pipeline": Pipeline.COMPV6},
}
"""Those that take the layouts of gradients, beside compv3."""
for _family in (GRAD_INPUT, GRAD_WEIGHT):
    for _name, _fields in PIPELINES.items():
        CASES[f"{_family.value}, pipeline {_name}"] = case(_family, PADDED, **_fields)
for _family in FAMILIES:
    _plane = f"{_family.value} 2D on"
    CASES |= {
        f"{_plane} gfx942, fp8": case(_family, PADDED, BYTES, fp8_fnuz),
        f"{_plane} gfx950, fp8": case(_family, PADDED, BYTES, fp8, "gfx950"),
        f"{_plane} gfx950, bf16": case(_family, PADDED, WIDE, bf16, "gfx950"),
        f"{_plane} gfx942, bf16": case(_family, PADDED, WIDE, bf16),
    }
for _family in (GRAD_INPUT, GRAD_WEIGHT):
    _plane = f"{_family.value} 2D on"
    CASES |= {
        f"{_plane} gfx942, f32": case(_family, PADDED, FLOATS, f32),
        f"{_plane} gfx942, i8": case(_family, PADDED, BYTES, i8),
        f"{_family.value} 1D": case(_family, D1),
    }
_KINDS = ((f16, WIDE), (f32, FLOATS), (i8, BYTES)), ((f16, WIDE), (bf16, WIDE), (f32, FLOATS))
CASES |= {
    f"{_family.value} 2D on {_arch}, {_dtype}": case(_family, PADDED, _algorithm, _dtype, _arch)
    for _family in FAMILIES
    for _arch, _kinds in zip(("gfx950", "gfx90a"), _KINDS, strict=True)
    for _dtype, _algorithm in _kinds
}


@pytest.mark.full
@pytest.mark.parametrize("spatial", [1, 3])
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.value)
def test_any_convolution_of_other_ranks(
    family: ProductKind, spatial: int, covered: Covered
) -> None:
    compiled = kernel(family, spatial)

    @given(conv=convs(spatial))
    @settings(max_examples=12)
    def run(conv: Conv) -> None:
        check(compiled, conv)

    run()
    covered(f"{family.value} {spatial}D", "f16", "gfx942")


@pytest.mark.full
@pytest.mark.parametrize("case", CASES)
def test_a_kernel_of_each_kind(case: str, covered: Covered) -> None:
    family, algorithm, conv, dtype, arch = CASES[case]
    compiled = kernel(family, len(conv.size), arch=arch, dtype=dtype, algorithm=algorithm)
    check(compiled, conv)
    types = f"{dtype} {dtype} {compiled.key.signature.dtype_e}" if dtype.bits == 8 else dtype.name
    covered(case.partition(" on ")[0], types, arch)


SHARES: dict[str, dict[str, Any]] = {
    "split-K": {"split_k": 3},
    "stream-K": {"stream_k": True},
    "stream-K after whole tiles": {"stream_k": True, "persistent": True},
}


@pytest.mark.full
@pytest.mark.parametrize("reduction", [Reduction.WORKSPACE, Reduction.TREE, Reduction.ATOMIC])
@pytest.mark.parametrize("share", SHARES)
def test_sharing_the_sums_of_a_gradient_of_weights(
    share: str, reduction: Reduction, covered: Covered
) -> None:
    """All give the sums that one workgroup gives: with many workgroups a tile, one, and none whole.

    The integers are summed exactly, whatever the order.
    """
    algorithm = replace(WIDE, reduction=reduction, **SHARES[share])
    compiled = kernel(GRAD_WEIGHT, 2, algorithm=algorithm)
    for blocks in (1, 3, 4, 7, 19):
        check(compiled, DEEP, blocks=blocks)
    check(compiled, replace(DEEP, g=3, size=(9, 5)), blocks=4)
    check(compiled, replace(DEEP, n=1, g=1, size=(3, 3)), blocks=5)
    covered(f"conv_grad_weight, {share} {reduction.value}", "f16", "gfx942")


@pytest.mark.full
@pytest.mark.parametrize("family", [GRAD_INPUT, GRAD_WEIGHT], ids=lambda family: family.value)
def test_operands_of_gradients(family: ProductKind) -> None:
    compiled = kernel(family, 2, algorithm=WIDE, d=OPERANDS, epilogue=SUM)
    if family is GRAD_INPUT:
        shape = PADDED.x_shape
        ds = [whole(shape[-2:], 5), whole(shape, 6), whole((*shape[:-1], 1), 7)]
    else:
        g, k, *window, c = PADDED.w_shape
        ds = [whole((g, 1, *window, c), 5), whole(PADDED.w_shape, 6), whole((g, k, 1, 1, c), 7)]
    check(compiled, PADDED, *ds[:2], ds[2].astype(np.float32))
