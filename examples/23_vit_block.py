# SPDX-License-Identifier: MIT
"""A block of a vision transformer on patches of images: attention over all, GELU MLP, biases.

Seven kernels: a norm, one product for q, k and v, the attention on views of its result, the output
product with the residual, a norm and the two products of the MLP: python examples/23_vit_block.py
"""

from __future__ import annotations

import importlib.util

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


if __name__ == "__main__":
    args = arrays(2, 50, 2, 64)
    y = vit_block(*args)
    expected = {"the reference": report(vit_block, args, y).expected}
    if importlib.util.find_spec("torch") is not None:
        expected["torch"] = importlib.import_module("torch_layers").vit_block(args)
    for name, want in expected.items():
        print(f"largest difference to {name}: {np.abs(y - want).max():.3g}")
        assert np.abs(y - want).max() < 0.02
    assert vit_block.last is not None
    assert len(vit_block.last.launches) == 7
    print("ViT-L/16, 32 images of 224 x 224 pixels:")
    print(vit_block.summary(*arrays(32, 197, 16, 64), device="emu:gfx942"), "\nPASS")
