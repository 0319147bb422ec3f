# SPDX-License-Identifier: MIT
"""Every direction on the sizes of the examples of CK Tile's dispatcher, as near as it asks for."""

import numpy as np
import pytest

from cklang.frontend.program import Program
from cklang.runtime.op import Op
from tests.support.conv_ops import forward, input_gradient, weight_gradient
from tests.support.typed import instance

pytestmark = pytest.mark.usefixtures("compiler")

MOST = 0.002
"""Largest difference that those examples let pass."""


@pytest.mark.parametrize(
    ("images", "channels", "size"),
    [(1, 64, 14), (2, 128, 14), pytest.param(2, 64, 28, marks=pytest.mark.full)],
    ids=str,
)
@pytest.mark.parametrize(
    "op", [forward, input_gradient, weight_gradient], ids=lambda op: op.program.name
)
def test_distance_on_the_sizes_of_upstreams_examples(
    op: Op, images: int, channels: int, size: int
) -> None:
    """Sums stay below 4, where f16 is within 0.001 of any number; the reference is f64."""
    rng = np.random.default_rng(images + channels + size)
    pixels, taps = (images, size, size, channels), (channels, 3, 3, channels)
    shapes = {forward: (pixels, taps), input_gradient: (pixels, taps)}.get(op, (pixels, pixels))
    args = [rng.uniform(-0.2, 0.2, shape).astype(np.float16) for shape in shapes]
    got = op(*args, device="emu:gfx942").astype(np.float64)
    want = instance(Program, op.program).function(*(array.astype(np.float64) for array in args))
    assert 0.5 < np.abs(want).max() < 4
    assert np.abs(got - want).max() < MOST
