# SPDX-License-Identifier: MIT
"""Kernels of a convolution declared, exported as JSON, imported, built and chosen from.

python examples/conv/registry.py
"""

from __future__ import annotations

import json

import numpy as np

import cklang as ck
from cklang.testing import report

N, C, K, H, W = ck.dims("N C K H W")


@ck.op
def layer(
    x: ck.f16[N, H, W, C], w: ck.f16[K, 3, 3, C], bias: ck.f16[K], res: ck.f16[N, H, W, K]
) -> ck.f16[N, H, W, K]:
    """Return relu(conv(x, w) + bias) + res."""
    return ck.relu(ck.conv(x, w, padding=1) + bias) + res


def arrays(size: int, c: int, k: int) -> list[np.ndarray]:
    """Make the operands."""
    rng = np.random.default_rng(size + c)
    shapes = (1, size, size, c), (k, 3, 3, c), (k,), (1, size, size, k)
    return [rng.uniform(-1, 1, shape).astype(np.float16) for shape in shapes]


def main() -> None:
    """Declare two widths of one tile; the first serves channels in eights, the second all."""
    mine, gpu = ck.dispatch.Registry("convolutions"), "gfx942"
    tile = {"tile": (64, 64, 32), "warps": (2, 2, 1), "warp_tile": (16, 16, 32)}
    for width in (8, 1):
        widths = {f"vector_{name}": width for name in "abe"}
        layer.declare(
            *arrays(8, 16, 32),
            registry=mine,
            device=f"emu:{gpu}",
            among=ck.dispatch.pattern(**tile, **widths, vector_d=(width, width)),
        )
    text = json.dumps(mine.to_json())
    again = ck.dispatch.Registry.from_json(json.loads(text))
    assert again.same_as(mine)
    print(f"{len(mine)} kernels are {len(text)} bytes of JSON")
    summary = again.build()
    assert not summary.failures
    print(summary)

    print("channels  loads of  rejected before it")
    with ck.using(registry=again, arch=gpu, strategy="first_fit"):
        for c, k in ((16, 32), (9, 15)):
            args = arrays(8, c, k)
            y = layer(*args)
            report(layer, args, y).check()
            (problem,) = layer.problems(*args)
            chosen = ck.dispatch.select(problem)
            assert isinstance(chosen.key.algorithm, ck.dispatch.Algorithm)
            assert layer.last is not None
            assert layer.last.launches[0].key == chosen.key
            reasons = "; ".join(str(each) for each in chosen.rejections)[:70]
            print(f"{c:3} {k:4}  {chosen.key.algorithm.vector_a:8}  {reasons}")


if __name__ == "__main__":
    main()
