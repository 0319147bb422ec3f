# SPDX-License-Identifier: MIT
"""A block of a vision transformer on patches of images: attention over all, GELU MLP, biases.

Seven kernels: a norm, one product for q, k and v, the attention on views of its result, the output
product with the residual, a norm and the two products of the MLP.

python examples/23_vit_block.py
"""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np

import cklang as ck
from cklang.testing import report

B, S, E, H, D, F = ck.dims("B S E H D F")


@ck.op
def vit_block(
    x: ck.f16[B, S, E], gain1: ck.f32[E], bias1: ck.f32[E], qkv: ck.f16[3, H, D, E],
    b_qkv: ck.f16[3, H, 1, D], wo: ck.f16[E, H, D], bo: ck.f16[E], gain2: ck.f32[E],
    bias2: ck.f32[E], up: ck.f16[F, E], b_up: ck.f16[F], down: ck.f16[E, F], b_down: ck.f16[E],
) -> ck.f16[B, S, E]:  # fmt: skip
    """Return x after attention and MLP."""
    h = ck.layer_norm(x, gain1, bias1).to(ck.f16)
    heads = (ck.einsum("bse,phde->bphsd", h, qkv) + b_qkv).to(ck.f16)
    o = ck.attention(heads[:, 0], heads[:, 1], heads[:, 2]).to(ck.f16)
    y = (ck.einsum("bhsd,ehd->bse", o, wo) + bo + x).to(ck.f16)
    h = ck.layer_norm(y, gain2, bias2).to(ck.f16)
    return ck.gelu(h @ up.T + b_up).to(ck.f16) @ down.T + b_down + y


def arrays(b: int, s: int, h: int, d: int) -> list[np.ndarray]:
    """Return operands for ``b`` images of ``s`` patches."""
    rng, e, f = np.random.default_rng(0), h * d, 4 * h * d
    half = [(3, h, d, e), (3, h, 1, d), (e, h, d), (e,), (f, e), (f,), (e, f), (e,)]
    values = [(rng.standard_normal(shape, np.float32) / 20).astype(np.float16) for shape in half]
    gain, bias = rng.uniform(0.5, 1.5, (2, e)).astype(np.float32)
    x = rng.standard_normal((b, s, e), np.float32).astype(np.float16)
    return [x, gain, bias, *values[:4], gain, bias, *values[4:]]


def by_torch(args: list[np.ndarray]) -> Any:
    """Return the same block by torch on the CPU, in f64."""
    import torch
    from torch.nn.functional import gelu, layer_norm, linear, scaled_dot_product_attention

    x, g1, b1, qkv, b_qkv, wo, bo, g2, b2, up, b_up, down, b_down = (
        torch.tensor(each.astype(np.float64)) for each in args
    )
    (e, h, d), (b, s, _) = wo.shape, x.shape
    heads = linear(layer_norm(x, (e,), g1, b1, 1e-6), qkv.reshape(-1, e), b_qkv.flatten())
    q, k, v = heads.view(b, s, 3, h, d).permute(2, 0, 3, 1, 4)
    o = scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, s, e)
    y = x + linear(o, wo.reshape(e, e), bo)
    hidden = gelu(linear(layer_norm(y, (e,), g2, b2, 1e-6), up, b_up))
    return (y + linear(hidden, down, b_down)).numpy()


def main() -> None:
    """Run a small block, check it, and price one of ViT-L/16."""
    args = arrays(2, 50, 2, 64)
    y = vit_block(*args)
    distance = np.abs(y.astype(np.float64) - report(vit_block, args, y).expected).max()
    print(f"largest difference to the reference: {distance:.3g}")
    assert distance < 0.02
    if importlib.util.find_spec("torch") is not None:
        distance = np.abs(y.astype(np.float64) - by_torch(args)).max()
        print(f"largest difference to torch: {distance:.3g}")
        assert distance < 0.02
    assert vit_block.last is not None
    assert len(vit_block.last.launches) == 7
    print("ViT-L/16, 32 images of 224 x 224 pixels:")
    print(vit_block.summary(*arrays(32, 197, 16, 64), device="emu:gfx942"))
    print("PASS")


if __name__ == "__main__":
    main()
