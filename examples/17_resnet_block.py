# SPDX-License-Identifier: MIT
"""A residual block of Stable Diffusion's UNet as one op: group norms, SiLU, convolutions, time.

Each group norm with its SiLU is one kernel, and so is each convolution with what is added to it:
the time embedding, or the convolution of the input that the block skips to.

python examples/17_resnet_block.py
"""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np

import cklang as ck
from cklang.testing import report

N, H, W, C, K, T = ck.dims("N H W C K T")


@ck.op
def resnet_block(
    x: ck.f16[N, H, W, C],
    time: ck.f16[N, T],
    gain1: ck.f32[C],
    bias1: ck.f32[C],
    conv1: ck.f16[K, 3, 3, C],
    time_weight: ck.f16[K, T],
    gain2: ck.f32[K],
    bias2: ck.f32[K],
    conv2: ck.f16[K, 3, 3, K],
    skip: ck.f16[K, 1, 1, C],
    *,
    groups: ck.const[int] = 32,
) -> ck.f16[N, H, W, K]:
    """Return the block's images, channels last."""
    h = ck.silu(ck.group_norm(x, groups, gain1, bias1)).to(ck.f16)
    shift = (ck.silu(time).to(ck.f16) @ time_weight.T).to(ck.f16)
    h = (ck.conv(h, conv1, padding=1) + shift[:, None, None, :]).to(ck.f16)
    h = ck.silu(ck.group_norm(h, groups, gain2, bias2)).to(ck.f16)
    return ck.conv(h, conv2, padding=1) + ck.conv(x, skip).to(ck.f16)


def arrays(n: int, h: int, w: int, c: int, k: int, t: int) -> list[np.ndarray]:
    """Make random operands for ``n`` images."""
    rng = np.random.default_rng(0)
    shapes = [(n, h, w, c), (n, t), (c,), (c,), (k, 3, 3, c), (k, t), (k,), (k,)]
    shapes += [(k, 3, 3, k), (k, 1, 1, c)]
    types = [np.float32 if len(shape) == 1 else np.float16 for shape in shapes]
    scales = [1.0, 1.0, *[0.1] * 8]
    return [
        (rng.standard_normal(shape) * scale).astype(dtype)
        for shape, dtype, scale in zip(shapes, types, scales, strict=True)
    ]


def in_torch(*tensors: Any, groups: int) -> Any:
    """Return the same block of torch's tensors."""
    from torch.nn.functional import conv2d, group_norm, linear, silu

    x, time, g1, b1, w1, wt, g2, b2, w2, skip = tensors
    x, w1, w2, skip = (each.permute(0, 3, 1, 2).contiguous() for each in (x, w1, w2, skip))
    h = conv2d(silu(group_norm(x, groups, g1, b1)), w1, padding=1)
    h = silu(group_norm(h + linear(silu(time), wt)[:, :, None, None], groups, g2, b2))
    return (conv2d(h, w2, padding=1) + conv2d(x, skip)).permute(0, 2, 3, 1)


def main() -> None:
    """Run a small block, check it, and price one of Stable Diffusion."""
    args = arrays(2, 8, 8, 32, 64, 48)
    y = resnet_block(*args, groups=8)
    distance = np.abs(y - report(resnet_block, args, y, groups=8).expected).max()
    print(f"largest difference to the reference: {distance:.3g}")
    assert distance < 0.02
    if importlib.util.find_spec("torch") is not None:
        import torch

        wide = (torch.tensor(each.astype(np.float64)) for each in args)
        distance = np.abs(y.astype(np.float64) - in_torch(*wide, groups=8).numpy()).max()
        print(f"largest difference to torch: {distance:.3g}")
        assert distance < 0.02
    print("Stable Diffusion, 64x64 pixels, 320 to 640 channels:")
    print(resnet_block.summary(*arrays(2, 64, 64, 320, 640, 1280), device="emu:gfx942"))
    print("PASS")


if __name__ == "__main__":
    main()
