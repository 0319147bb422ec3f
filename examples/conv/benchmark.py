# SPDX-License-Identifier: MIT
"""Layers of a ResNet (reduced): predicted times on two GPUs, counted work, checked results.

python examples/conv/benchmark.py
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import cklang as ck
from cklang.testing import report

N, C, K, H, W, R, Ho, Wo = ck.dims("N C K H W R Ho Wo")


@ck.op
def layer(
    x: ck.f16[N, H, W, C],
    w: ck.f16[K, R, R, C],
    bias: ck.f16[K],
    res: ck.f16[N, Ho, Wo, K],
    stride: ck.const[int],
    padding: ck.const[int],
) -> ck.f16[N, Ho, Wo, K]:
    """Return relu(conv(x, w) + bias) + res."""
    return ck.relu(ck.conv(x, w, stride=stride, padding=padding) + bias) + res


LAYERS = (  # size, channels in and out, window, stride
    (56, 64, 64, 3, 1),
    (56, 64, 128, 3, 2),
    (28, 128, 512, 1, 1),
    (14, 256, 256, 3, 1),
)
WIDE = ck.dispatch.Algorithm(
    tile=(64, 64, 32), warps=(2, 2, 1), warp_tile=(16, 16, 32), vector_a=8, vector_b=8, vector_e=8
)
OP = layer.using(replace(WIDE, vector_d=(8, 8)))
SHARE = 8
"""What the emulated layers are reduced by, in size and in channels."""


def main() -> None:
    """Print a row for each layer: as published by the model, reduced on the emulator."""
    rng = np.random.default_rng(0)
    print("layer                    MI300X tile        MI355X tile        reduced: Gflop/s, error")
    for size, c, k, window, stride in LAYERS:
        padding = window // 2
        tiles = []
        for gpu in ("gfx942", "gfx950"):
            problem = ck.dispatch.conv_problem(
                (32, size, size, c), (k, window, window, c), stride=stride, padding=padding
            )
            algorithm = ck.dispatch.select(problem, arch=gpu).key.algorithm
            assert isinstance(algorithm, ck.dispatch.Algorithm)
            tiles.append("x".join(map(str, algorithm.tile)))
        small = max(size // SHARE, window)
        c, k, out = c // SHARE, k // SHARE, (small - 1) // stride + 1
        shapes = (1, small, small, c), (k, window, window, c), (k,), (1, out, out, k)
        args = [rng.uniform(-1, 1, shape).astype(np.float16) for shape in shapes]
        options: dict[str, Any] = {"stride": stride, "padding": padding}
        y = OP(*args, **options)
        result = report(layer, args, y, **options)
        result.check()
        assert OP.last is not None
        flops, time = 2 * y.size * window**2 * c, OP.last.engine_ns
        rate = "-" if not time else f"{flops / time:.2f}"
        name = f"{size:3} {SHARE * c:4} -> {SHARE * k:4}, {window}x{window} / {stride}"
        print(
            f"{name:23}  {tiles[0]:17}  {tiles[1]:17}  {rate:>8}, {result.ratio:.2f} of its bound"
        )


if __name__ == "__main__":
    main()
