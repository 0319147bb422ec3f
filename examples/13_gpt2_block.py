# SPDX-License-Identifier: MIT
"""A block of GPT-2 as one op: norms, attention with several heads, the MLP, both residuals.

The planner makes nine kernels of it: two norms, six products whose epilogues add biases, apply GELU
and add the residuals, and the attention. No head is copied. ``summary`` says what is launched.

python examples/13_gpt2_block.py
"""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np

import cklang as ck
from cklang.testing import report

B, S, E, H, D, F = ck.dims("B S E H D F")


@ck.op
def gpt2_block(
    x: ck.f16[B, S, E],
    gain1: ck.f32[E],
    bias1: ck.f32[E],
    gain2: ck.f32[E],
    bias2: ck.f32[E],
    wq: ck.f16[H, D, E],
    wk: ck.f16[H, D, E],
    wv: ck.f16[H, D, E],
    bq: ck.f16[H, 1, D],
    wo: ck.f16[E, H, D],
    bo: ck.f16[E],
    up: ck.f16[F, E],
    b_up: ck.f16[F],
    down: ck.f16[E, F],
    b_down: ck.f16[E],
) -> ck.f16[B, S, E]:
    """Return x after attention and MLP."""
    h = ck.layer_norm(x, gain1, bias1).to(ck.f16)
    q = (ck.einsum("bse,hde->bhsd", h, wq) + bq).to(ck.f16)
    k = ck.einsum("bse,hde->bhsd", h, wk).to(ck.f16)
    v = ck.einsum("bse,hde->bhsd", h, wv).to(ck.f16)
    o = ck.attention(q, k, v, mask=ck.causal()).to(ck.f16)
    y = (ck.einsum("bhsd,ehd->bse", o, wo) + bo + x).to(ck.f16)
    hidden = ck.gelu_tanh(ck.layer_norm(y, gain2, bias2).to(ck.f16) @ up.T + b_up)
    return hidden.to(ck.f16) @ down.T + b_down + y


def arrays(b: int, s: int, h: int, d: int) -> list[np.ndarray]:
    """Make random operands for ``b`` sequences of ``s`` tokens."""
    rng, e, f = np.random.default_rng(0), h * d, 4 * h * d
    shapes = [(b, s, e), *[(e,)] * 4, *[(h, d, e)] * 3, (h, 1, d), (e, h, d), (e,)]
    shapes += [(f, e), (f,), (e, f), (e,)]
    scale = [1.0] * 5 + [0.1] * 10
    types = [np.float16, *[np.float32] * 4, *[np.float16] * 10]
    return [
        (rng.standard_normal(shape) * factor).astype(dtype)
        for shape, factor, dtype in zip(shapes, scale, types, strict=True)
    ]


def in_torch(*tensors: Any) -> Any:
    """Return the same block of torch's tensors."""
    from torch.nn.functional import gelu, layer_norm, linear, scaled_dot_product_attention

    x, g1, b1, g2, b2, wq, wk, wv, bq, wo, bo, up, b_up, down, b_down = tensors
    (b, s, e), (h, d, _) = x.shape, wq.shape
    n = layer_norm(x, (e,), g1, b1)
    q, k, v = (linear(n, w.reshape(e, e)).view(b, s, h, d).transpose(1, 2) for w in (wq, wk, wv))
    o = scaled_dot_product_attention(q + bq, k, v, is_causal=True).transpose(1, 2).reshape(b, s, e)
    y = linear(o, wo.reshape(e, e), bo) + x
    hidden = gelu(linear(layer_norm(y, (e,), g2, b2), up, b_up), approximate="tanh")
    return linear(hidden, down, b_down) + y


def main() -> None:
    """Run a small block, check it, and price the one of GPT-2 small."""
    args = arrays(2, 40, 2, 64)
    y = gpt2_block(*args)
    # Worst-case bounds grow with every kernel: of so long a chain they say little.
    distance = np.abs(y.astype(np.float64) - report(gpt2_block, args, y).expected).max()
    print(f"largest difference to the reference: {distance:.3g}")
    assert distance < 0.03
    assert gpt2_block.last is not None
    families = [launch.key.family for launch in gpt2_block.last.launches]
    assert sorted(families) == ["attention", *["gemm"] * 6, *["rowwise"] * 2], families
    if importlib.util.find_spec("torch") is not None:
        import torch

        exact = in_torch(*(torch.tensor(each.astype(np.float64)) for each in args)).numpy()
        distance = np.abs(y.astype(np.float64) - exact).max()
        print(f"largest difference to torch: {distance:.3g}")
        assert distance < 0.03
    print("GPT-2 small, a sequence of 1024 tokens:")
    print(gpt2_block.summary(*arrays(1, 1024, 12, 64), device="emu:gfx942"))
    print("PASS")


if __name__ == "__main__":
    main()
