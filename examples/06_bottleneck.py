# SPDX-License-Identifier: MIT
"""A ResNet bottleneck as three fused launches: 1x1, 3x3 and 1x1 with the residual.

Where torch is installed its convolutions on the CPU are a second opinion.

python examples/06_bottleneck.py
"""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np

import cklang as ck
from cklang.testing import report

N, H, W, C, B = ck.dims("N H W C B")


@ck.fn
def unit(x: Any, w: Any, bias: Any, padding: Any) -> Any:
    """Return relu(conv(x, w) + bias) as f16, as the next convolution reads it."""
    return ck.relu(ck.conv(x, w, padding=padding) + bias).to(ck.f16)


@ck.op
def bottleneck(
    x: ck.f16[N, H, W, C],
    reduce: ck.f16[B, 1, 1, C],
    reduce_bias: ck.f16[B],
    spatial: ck.f16[B, 3, 3, B],
    spatial_bias: ck.f16[B],
    expand: ck.f16[C, 1, 1, B],
    expand_bias: ck.f16[C],
) -> ck.f16[N, H, W, C]:
    """Return the bottleneck block with batch normalisation folded into weights and biases."""
    y = unit(x, reduce, reduce_bias, 0)
    y = unit(y, spatial, spatial_bias, 1)
    return ck.relu(ck.conv(y, expand) + expand_bias + x)


def arrays(n: int, size: int, c: int, b: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Make the operands: images of ``size`` by ``size``, ``c`` channels, ``b`` in the middle."""
    rng = np.random.default_rng(seed)
    shapes = ((n, size, size, c), (b, 1, 1, c), (b,), (b, 3, 3, b), (b,), (c, 1, 1, b), (c,))
    return tuple(rng.uniform(-0.25, 0.25, shape).astype(np.float16) for shape in shapes)


def by_torch(args: tuple[np.ndarray, ...]) -> np.ndarray:
    """Return the same block by torch on the CPU, in f64, rounded where the op rounds."""
    import torch
    from torch.nn.functional import conv2d

    x, *rest = (torch.tensor(each.astype(np.float64)) for each in args)
    x = x.permute(0, 3, 1, 2)
    weights = [w.permute(0, 3, 1, 2) for w in rest[::2]]
    y = x
    for w, bias, padding in zip(weights[:2], rest[1:4:2], (0, 1), strict=True):
        y = torch.relu(conv2d(y, w, bias, padding=padding)).half().double()
    y = torch.relu(conv2d(y, weights[2], rest[5]) + x)
    return y.permute(0, 2, 3, 1).numpy()


def main() -> None:
    """Run the block and check it against the reference and, if it is there, torch."""
    args = arrays(1, 14, 64, 32)
    y = bottleneck(*args)
    assert bottleneck.last is not None
    for launch in bottleneck.last.launches:
        print(f"{launch.key.algorithm.special.value:16} {launch.problem}")
    result = report(bottleneck, args, y)
    print(result)
    result.check()
    if importlib.util.find_spec("torch") is not None:
        distance = np.abs(y.astype(np.float64) - by_torch(args)).max()
        print(f"largest difference to torch: {distance:.3g}")
        assert distance < 0.002
    print("PASS")


if __name__ == "__main__":
    main()
