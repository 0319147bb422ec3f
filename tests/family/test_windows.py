# SPDX-License-Identifier: MIT
"""Windows over images: depthwise convolutions and pooling, in any layout, beside the reference."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cklang as ck
from cklang.arch import arch
from cklang.families import key_from_json
from cklang.families.windows.key import (
    Windowed,
    WindowKey,
    WindowSignature,
    block_of,
    read_places,
)
from cklang.families.windows.problem import WindowProblem
from cklang.families.windows.rules import RULES
from cklang.runtime.op import Op
from cklang.types import f16, f32
from tests.support.algorithms import narrow
from tests.support.checks import check, launches
from tests.support.coverage import Covered
from tests.support.typed import instance

N, C, D, H, W, K, P, Q = ck.dims("N C D H W K P Q")
T: Any = ck.dtype_var("T")
SMALL = ck.dispatch.WindowAlgorithm(vector=2, columns=2, rows=4)
PIXELS = ck.dispatch.WindowAlgorithm(vector=1, columns=1, rows=4, threads=64)
GPUS = ("gfx942", "gfx950", "gfx90a", "gfx1100", "gfx1201")


@ck.op
def depthwise(
    x: ck.f16[N, H, W, C], w: ck.f16[C, 3, 3, 1], bias: ck.f16[C], res: ck.f16[N, H, W, C]
) -> ck.f16[N, H, W, C]:
    """A depthwise convolution with all that may follow."""
    return ck.gelu(ck.conv(x, w, padding=1, groups=C) + bias) + res


@ck.op
def of_planes(
    x: ck.f32[N, C, H, W], w: ck.f32[C, 1, 3, 3], scale: ck.f32[N, C]
) -> ck.f32[N, C, (H - 1) // 2 + 1, (W - 1) // 2 + 1]:
    """Pixels contiguous, with a stride."""
    return ck.conv(x, w, stride=2, padding=1, groups=C, layout="nchw") * scale[:, :, None, None]


@ck.op
def in_space(x: ck.bf16[N, D, H, W, C], w: ck.bf16[C, 2, 3, 2, 1]) -> ck.f32[N, D - 1, H - 4, W, C]:
    """Three axes, with holes and one-sided padding."""
    pads = ((0, 0), (0, 0), (1, 0))
    return ck.conv(x, w, padding=pads, dilation=(1, 2, 1), groups=C)


@ck.op
def pairs(x: ck.f16[N, H, W, 8], w: ck.f16[K, 3, 3, 2]) -> ck.f16[N, H - 2, W - 2, K]:
    """Groups of two channels and three features."""
    return ck.conv(x, w, groups=4)


@ck.op
def first_layer(x: ck.f16[N, 3, H, W], w: ck.f16[K, 3, 3, 3], b: ck.f16[K]) -> ck.f16[N, K, H, W]:
    """Three channels and many features."""
    return ck.relu(ck.conv(x, w, padding=1, layout="nchw") + b[:, None, None])


@ck.op
def along(x: ck.f32[N, W, C], w: ck.f32[C, 5, 1]) -> ck.f32[N, W, C]:
    """One axis in space."""
    return ck.conv(x, w, padding=2, groups=C)


def image(seed: int, dtype: Any, *shape: int) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def arguments(n: int, h: int, w: int, c: int) -> tuple[Any, ...]:
    half = np.float16
    return (
        image(0, half, n, h, w, c),
        image(1, half, c, 3, 3, 1),
        image(2, half, c),
        image(3, half, n, h, w, c),
    )


def key_of_last(op: Op) -> WindowKey:
    (launch,) = launches(op)
    instance(WindowSignature, launch.key.signature)
    assert launch.artifact.resources.spills == 0
    return launch.key


@pytest.mark.usefixtures("compiler")
@settings(max_examples=25, deadline=None)
@given(n=st.integers(1, 3), h=st.integers(1, 11), w=st.integers(1, 14), c=st.integers(2, 70))
def test_channels_of_any_number(n: int, h: int, w: int, c: int) -> None:
    """Vectors of channels, blocks of them, and tiles at every edge."""
    op = depthwise.using(SMALL if c % 2 == 0 else replace(SMALL, vector=1))
    check(op, arguments(n, h, w, c))
    assert key_of_last(op).signature.neighbours


@ck.op
def volumes(
    x: ck.f16[N, 6, D, H, W],
    w: ck.f16[K, 3, 2, 3, 2],
    b: ck.f32[K],
    res: ck.f16[N, K, D - 1, H - 2, W],
) -> ck.f16[N, K, D - 1, H - 2, W]:
    """Two groups of three channels, whose features share pixels."""
    pads = ((0, 0), (1, 1), (1, 0))
    y = ck.conv(x, w, padding=pads, dilation=(1, 2, 1), groups=2, layout="ncdhw")
    return y + b[:, None, None, None] + res


@pytest.mark.usefixtures("compiler")
@settings(max_examples=25, deadline=None)
@given(
    space=st.tuples(st.integers(2, 4), st.integers(3, 12), st.integers(1, 70)),
    tile=st.sampled_from([(2, 1), (4, 2), (8, 4)]),
    blocks=st.integers(1, 3),
)
def test_features_share_pixels(
    space: tuple[int, int, int], tile: tuple[int, int], blocks: int
) -> None:
    vector, rows = tile
    (d, h, w), k = space, 2 * vector * blocks
    arrays = (
        image(0, "f2", 2, 6, d, h, w),
        image(1, "f2", k, 3, 2, 3, 2),
        image(2, "f4", k),
        image(3, "f2", 2, k, d - 1, h - 2, w),
    )
    op = volumes.using(replace(PIXELS, vector=vector, rows=rows))
    check(op, arrays)
    assert key_of_last(op).algorithm.vector == vector


@pytest.mark.usefixtures("compiler")
@settings(max_examples=15, deadline=None)
@given(n=st.integers(1, 3), h=st.integers(1, 12), w=st.integers(3, 140), c=st.integers(2, 5))
def test_planes_of_any_size(n: int, h: int, w: int, c: int) -> None:
    op = of_planes.using(PIXELS)
    check(op, (image(0, "f4", n, c, h, w), image(1, "f4", c, 1, 3, 3), image(2, "f4", n, c)))
    assert not key_of_last(op).signature.neighbours


def everywhere(gpu: str) -> None:
    """Check what is chosen without a name."""
    check(depthwise, arguments(2, 7, 9, 16), gpu)
    key_of_last(depthwise)
    planes = (image(0, "f4", 2, 3, 9, 33), image(1, "f4", 3, 1, 3, 3), image(2, "f4", 2, 3))
    check(of_planes, planes, gpu)
    key_of_last(of_planes)
    bf16 = ck.bf16.numpy
    check(in_space, (image(0, bf16, 2, 4, 7, 6, 8), image(1, bf16, 8, 2, 3, 2, 1)), gpu)
    key_of_last(in_space)
    check(pairs, (image(0, "f2", 2, 5, 6, 8), image(1, "f2", 12, 3, 3, 2)), gpu)
    key_of_last(pairs)
    check(
        first_layer,
        (image(0, "f2", 2, 3, 5, 9), image(1, "f2", 20, 3, 3, 3), image(2, "f2", 20)),
        gpu,
    )
    key_of_last(first_layer)
    check(along, (image(0, "f4", 2, 9, 12), image(1, "f4", 12, 5, 1)), gpu)
    key_of_last(along)


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("gpu", GPUS)
def test_other_gpus(gpu: str, covered: Covered) -> None:
    everywhere(gpu)
    covered("windows of depthwise convolutions", "f16", gpu)
    covered("windows of depthwise convolutions", "f32", gpu)


@ck.op
def gradient(
    dy: ck.f32[N, P, W, 6], w: ck.f32[6, 3, 2, 1], like: ck.f32[N, H, W, 6]
) -> ck.f32[N, H, W, 6]:
    dx = ck.conv_grad_input(dy, w, padding=((1, 0), (0, 1)), dilation=(2, 1), groups=6)
    return ck.where(like > 0.0, dx, 0.0)


@pytest.mark.usefixtures("compiler")
def test_the_gradient_of_an_image_is_a_window() -> None:
    x = image(0, "f4", 2, 9, 8, 6)
    check(gradient, (image(1, "f4", 2, 6, 8, 6), image(2, "f4", 6, 3, 2, 1), x))
    assert key_of_last(gradient).signature.how is Windowed.PRODUCTS


@ck.op
def strided_gradient(dy: ck.f32[N, P, Q, 8], w: ck.f32[8, 3, 3, 1]) -> ck.f32[N, 8, 8, 8]:
    return ck.conv_grad_input(dy, w, stride=2, padding=((1, 0), (1, 0)), groups=8, size=(8, 8))


def test_the_gradient_at_a_stride_is_a_product() -> None:
    arrays = (image(0, "f4", 2, 4, 4, 8), image(1, "f4", 8, 3, 3, 1))
    ((key, _),) = strided_gradient.kernels(*arrays, device="emu:gfx942")
    assert key.family == "conv"


@pytest.mark.usefixtures("compiler")
def test_views_are_read_where_they_lie() -> None:
    """Of an image with channels first, a part; strides are those of the whole."""
    x = image(0, "f4", 2, 5, 12, 40)[:, 1:4, 2:11, 3:36]
    check(of_planes, (x, image(1, "f4", 3, 1, 3, 3), image(2, "f4", 2, 3)))
    assert len(launches(of_planes)) == 1


# --- pooling


@ck.op
def stem(x: ck.f16[N, H, W, C], b: ck.f16[C]) -> ck.f16[N, (H - 1) // 2 + 1, (W - 1) // 2 + 1, C]:
    return ck.relu(ck.max_pool(x, 3, stride=2, padding=1) + b)


@ck.op
def means(x: T[N, C, H, W]) -> ck.f32[N, C, H // 2 + 1, W // 2 + 1]:
    return ck.avg_pool(x, 2, padding=1, layout="nchw", count_include_pad=False)


@ck.op
def with_zeros(x: ck.f32[N, H, W, C]) -> ck.f32[N, H, W, C]:
    return ck.avg_pool(x, (3, 5), stride=1, padding=(1, 2))


@ck.op
def of_volumes(x: ck.f32[N, C, D, H, W]) -> ck.f32[N, C, D // 2, H - 1, W // 3]:
    return ck.avg_pool(x, (2, 2, 3), stride=(2, 1, 3), layout="ncdhw")


@ck.op
def apart(x: ck.f32[N, C, H, W]) -> ck.f32[N, C, H - 2, W - 3]:
    return ck.max_pool(x, (3, 2), stride=1, padding=1, dilation=(2, 5), layout="nchw")


@pytest.mark.usefixtures("compiler")
@settings(max_examples=15, deadline=None)
@given(n=st.integers(1, 2), h=st.integers(1, 9), w=st.integers(1, 9), c=st.integers(2, 40))
def test_pooling_of_any_size(n: int, h: int, w: int, c: int) -> None:
    op = stem.using(replace(SMALL, vector=2 if c % 2 == 0 else 1))
    check(op, (image(0, "f2", n, h, w, c), image(1, "f2", c)))
    key_of_last(op)


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("gpu", GPUS)
def test_pooling_on_gpus(gpu: str, covered: Covered) -> None:
    check(means, (image(0, "f4", 2, 3, 9, 8),), gpu)
    check(means, (image(0, "f2", 2, 3, 1, 8),), gpu)
    check(with_zeros, (image(1, "f4", 2, 5, 6, 12),), gpu)
    check(of_volumes, (image(2, "f4", 2, 3, 5, 4, 7),), gpu)
    key_of_last(of_volumes)
    check(apart, (image(3, "f4", 2, 3, 7, 9),), gpu)
    key_of_last(apart)
    covered("windows that are pooled", "f32", gpu)


@pytest.mark.usefixtures("compiler")
def test_nan_and_infinity_are_pooled_as_numpy_does() -> None:
    x = image(0, "f2", 1, 6, 6, 8)
    x[0, 2, 3, 0], x[0, 0, 0, 1], x[0, 5, 5, 2] = np.nan, -np.inf, np.inf
    check(stem, (x, np.zeros(8, np.float16)))


@pytest.mark.usefixtures("compiler")
def test_what_no_window_kernel_takes_is_pooled_along_each_axis() -> None:
    check(with_zeros, (image(0, "f4", 2, 6, 4, 8)[:, ::-1],))
    assert [launch.key.family for launch in launches(with_zeros)] == ["rowwise", "rowwise"]


@ck.op
def deep(x: ck.f32[N, C, D, H, W]) -> ck.f32[N, C, D // 2 + 1, H, W - 1]:
    return ck.avg_pool(x, (4, 1, 2), (2, 1, 1), (2, 0, 0), layout="ncdhw", count_include_pad=False)


@ck.op
def largest(x: ck.f16[N, D, H, W, C], b: ck.f16[C, D - 2]) -> ck.f16[N, D - 2, H - 1, W, C]:
    y = ck.max_pool(x, (3, 2, 1), stride=1, padding=(1, 0, 0), dilation=(2, 1, 1))
    return y + b.T[:, None, None, :]


@ck.op
def dilated(x: ck.f32[N, D, H, W, 6], w: ck.f32[6, 3, 2, 1, 1]) -> ck.f32[N, D, H - 1, W, 6]:
    return ck.conv(x, w, padding=(2, 0, 0), dilation=(2, 1, 1), groups=6)


@pytest.mark.usefixtures("compiler")
@settings(max_examples=25, deadline=None)
@given(
    space=st.tuples(st.integers(4, 9), st.integers(2, 6), st.integers(2, 40)),
    sizes=st.sampled_from([(2, 2), (4, 1)]),
)
def test_planes_share_what_they_read(space: tuple[int, int, int], sizes: tuple[int, int]) -> None:
    planes, rows = sizes
    tile = replace(PIXELS, planes=planes, rows=rows, threads=256)
    calls = [
        (deep, [image(0, "f4", 2, 3, *space)]),
        (largest, [image(0, "f2", 2, *space, 5), image(1, "f2", 5, space[0] - 2)]),
        (dilated, [image(0, "f4", 2, *space, 6), image(1, "f4", 6, 3, 2, 1, 1)]),
    ]
    for op, arrays in calls:
        own = op.using(tile)
        check(own, tuple(arrays))
        assert key_of_last(own).algorithm.planes == planes


# --- choices


def key(algorithm: ck.dispatch.WindowAlgorithm = SMALL, **changes: Any) -> WindowKey:
    signature = WindowSignature(
        how=Windowed.PRODUCTS, dtype_a=f16, dtype_b=f16, dtype_e=f16, window=(1, 3, 3)
    )
    return WindowKey(replace(signature, **changes), algorithm, "gfx942")


def test_keys_read_back() -> None:
    assert key_from_json(key().to_json()) == key()
    assert key().label.startswith("windows_products_f16_f16_1x3x3_d0_2x2x4_gfx942")


def rejected(algorithm: ck.dispatch.WindowAlgorithm, **changes: Any) -> list[str]:
    rejections = RULES.rejections(algorithm, key(**changes).signature, arch("gfx942"))
    return [rejection.rule for rejection in rejections]


def test_rules_of_algorithms() -> None:
    assert rejected(SMALL) == rejected(PIXELS, neighbours=False) == []
    assert rejected(PIXELS) == ["window-threads"]
    assert rejected(SMALL, neighbours=False) == ["window-vector", "window-columns"]
    assert rejected(SMALL, channels=2) == ["window-vector"]
    assert rejected(SMALL, dtype_e=ck.i8) == ["window-types"]
    assert rejected(SMALL, window=(1, 16, 9)) == ["window-weights"]
    features = replace(PIXELS, vector=8)
    assert rejected(features, neighbours=False, channels=3, features=24) == []
    assert rejected(features, neighbours=False, features=12) == ["window-vector"]
    assert rejected(features, neighbours=False, features=8, window=(3, 5, 7)) == ["window-weights"]
    assert rejected(replace(SMALL, planes=2)) == ["window-planes"]
    assert rejected(replace(features, rows=8), neighbours=False, features=8) == ["window-code"]
    assert rejected(replace(SMALL, vector=8), dtype_a=f32, dtype_e=f32) == ["window-vector"]
    assert rejected(replace(SMALL, rows=16, columns=8)) == ["window-code"]


def problem(op: Op, *arrays: Any) -> WindowProblem:
    with ck.using(arch="gfx942"):
        (chosen,) = op.using(replace(PIXELS, rows=1, threads=256)).problems(*arrays)
    return instance(WindowProblem, chosen)


def test_rules_of_problems() -> None:
    odd = problem(depthwise, *arguments(1, 4, 4, 6))
    words = "".join(
        map(str, RULES.rejections(replace(SMALL, vector=4), odd.signature, arch("gfx942"), odd))
    )
    assert "the channels is 6, must be a multiple of 4" in words
    large = replace(odd, a=replace(odd.a, span=1 << 29))
    words = "".join(map(str, RULES.rejections(SMALL, large.signature, arch("gfx942"), large)))
    assert "window-reach" in words


def test_a_workgroup_has_blocks_of_like_size() -> None:
    signature = key().signature
    assert [block_of(signature, SMALL, vectors) for vectors in (1, 32, 33, 48, 65)] == [
        *(1, 32, 17, 24, 22)
    ]
    assert read_places(4, 2, 3, 1) == 9


def test_explain_says_both_times() -> None:
    arrays = arguments(8, 56, 56, 64)
    text = str(depthwise.explain(*arrays, device="emu:gfx942"))
    assert "as a window: " in text
    assert "µs predicted as a product with its copies" in text
    assert "pixels of" in text


def test_named_products_stay_products() -> None:
    op = depthwise.using(narrow(2))
    assert [k.family for k, _ in op.kernels(*arguments(2, 5, 6, 8), device="emu:gfx942")] == [
        "conv"
    ]
