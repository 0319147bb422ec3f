# SPDX-License-Identifier: MIT
"""Convolution kernels against sums in double precision.

Elements are small integers, whose sums every type here holds exactly: results must be equal.
"""

from __future__ import annotations

import numpy as np
import pytest
from conv_kernels import Conv, Kernel, kernel
from hypothesis import given, settings
from hypothesis import strategies as st

from cklang.keys import Family

FAMILIES = (Family.CONV, Family.CONV_GRAD_INPUT, Family.CONV_GRAD_WEIGHT)


def whole(shape: tuple[int, ...], seed: int, most: int = 2) -> np.ndarray:
    """Whole numbers as float16."""
    return np.random.default_rng(seed).integers(-most, most + 1, shape).astype(np.float16)


def operands(conv: Conv, family: Family, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A and B of a direction."""
    x, w, dy = (
        whole(s, seed + i) for i, s in enumerate((conv.x_shape, conv.w_shape, conv.y_shape))
    )
    pairs = {
        Family.CONV: (x, w),
        Family.CONV_GRAD_INPUT: (dy, w),
        Family.CONV_GRAD_WEIGHT: (dy, x),
    }
    return pairs[family]


def wanted(conv: Conv, family: Family, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    directions = {
        Family.CONV: conv.forward,
        Family.CONV_GRAD_INPUT: conv.grad_input,
        Family.CONV_GRAD_WEIGHT: conv.grad_weight,
    }
    return directions[family](a, b)


def check(kernel: Kernel, conv: Conv, blocks: int = 4) -> None:
    family = kernel.key.signature.family
    a, b = operands(conv, family)
    got = kernel.run(conv, a, b, blocks=blocks)
    np.testing.assert_array_equal(got, wanted(conv, family, a, b))


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
        n=draw(st.integers(1, 3)),
        g=draw(st.integers(1, 4)),
        k=draw(st.integers(1, 9)),
        c=draw(st.integers(1, 9)),
        size=size,
        window=window,
        stride=axes(1, 5),
        dilation=dilation,
        before=before,
        after=after,
    )


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.value)
@given(conv=convs())
@settings(max_examples=12)
def test_any_convolution_in_the_plane(family: Family, conv: Conv) -> None:
    check(kernel(family, 2), conv)
