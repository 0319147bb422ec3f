# SPDX-License-Identifier: MIT
"""A block of Llama 3 as one op: norms, rotary embedding, grouped-query attention, SwiGLU MLP.

Nine kernels: a norm, one product for q, k and v, the rotary embeddings of q and of k, the
attention, the output product with the residual, a norm, the pair of products of SwiGLU, and the
last product with the residual. The heads of q, k and v are views of the first product's result.

python examples/15_llama_block.py
"""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np

import cklang as ck
from cklang.testing import report

B, S, E, P, H, D, F = ck.dims("B S E P H D F")


@ck.fn
def rotary(x: Any, cos: Any, sin: Any) -> Any:
    """Rotate the halves of each head, as Llama does."""
    a, b = ck.split(x, 2, axis=-1)
    return ck.concat([a * cos - b * sin, b * cos + a * sin], axis=-1).to(ck.f16)


@ck.op
def llama_block(
    x: ck.f16[B, S, E],
    gain1: ck.f32[E],
    qkv: ck.f16[P, D, E],
    cos: ck.f32[S, D // 2],
    sin: ck.f32[S, D // 2],
    wo: ck.f16[E, H, D],
    gain2: ck.f32[E],
    gate: ck.f16[F, E],
    up: ck.f16[F, E],
    down: ck.f16[E, F],
    *,
    kv: ck.const[int],
) -> ck.f16[B, S, E]:
    """Return x after attention, with ``kv`` heads of keys and values, and the MLP."""
    h = ck.rms_norm(x, gain1, eps=1e-5).to(ck.f16)
    q, k, v = ck.split(ck.einsum("bse,pde->bpsd", h, qkv).to(ck.f16), (H, kv, kv), axis=1)
    q, k = rotary(q, cos, sin), rotary(k, cos, sin)
    o = ck.attention(q, k, v, mask=ck.causal()).to(ck.f16)
    y = (ck.einsum("bhsd,ehd->bse", o, wo) + x).to(ck.f16)
    h = ck.rms_norm(y, gain2, eps=1e-5).to(ck.f16)
    return (ck.silu(h @ gate.T) * (h @ up.T)).to(ck.f16) @ down.T + y


def empty(b: int, s: int, e: int, h: int, kv: int, d: int, f: int) -> list[np.ndarray]:
    """Return operands for ``b`` sequences of ``s`` tokens, whatever is in them."""
    angles, gain = ((s, d // 2), np.float32), ((e,), np.float32)
    weights = [(shape, np.float16) for shape in ((f, e), (f, e), (e, f))]
    attention = [((h + 2 * kv, d, e), np.float16), angles, angles, ((e, h, d), np.float16)]
    operands = [((b, s, e), np.float16), gain, *attention, gain, *weights]
    return [np.empty(shape, dtype) for shape, dtype in operands]


def arrays(*sizes: int) -> list[np.ndarray]:
    """Return random operands, and the cosines and sines of Llama 3."""
    rng = np.random.default_rng(0)
    args = [(rng.standard_normal(x.shape) / 10).astype(x.dtype) for x in empty(*sizes)]
    s, d = args[3].shape[0], 2 * args[3].shape[1]
    angles = np.arange(s)[:, None] / 500_000.0 ** (np.arange(0, d, 2) / d)
    args[0] *= 10
    args[1] += 1
    args[3:5] = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    args[6] += 1
    return args


def by_torch(args: list[np.ndarray], kv: int) -> Any:
    """Return the same block by torch on the CPU, in f64."""
    import torch
    from torch.nn.functional import linear, rms_norm, scaled_dot_product_attention, silu

    x, gain1, qkv, cos, sin, wo, gain2, gate, up, down = (
        torch.tensor(each.astype(np.float64)) for each in args
    )
    (e, h, d), (b, s, _) = wo.shape, x.shape
    heads: Any = linear(rms_norm(x, (e,), gain1, 1e-5), qkv.reshape(-1, e)).view(b, s, -1, d)
    q, k, v = heads.transpose(1, 2).split((h, kv, kv), dim=1)

    def rotated(t: Any) -> Any:
        first, second = t.chunk(2, dim=-1)
        return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)

    o = scaled_dot_product_attention(rotated(q), rotated(k), v, is_causal=True, enable_gqa=True)
    y = linear(o.transpose(1, 2).reshape(b, s, -1), wo.reshape(e, -1)) + x
    n = rms_norm(y, (e,), gain2, 1e-5)
    return (linear(silu(linear(n, gate)) * linear(n, up), down) + y).numpy()


def main() -> None:
    """Run a small block, check it, and price the one of Llama 3 8B."""
    args = arrays(2, 40, 128, 4, 2, 64, 192)
    y = llama_block(*args, kv=2)
    # Worst-case bounds grow with every kernel: of so long a chain they say little.
    reference = report(llama_block, args, y, kv=2).expected
    distance = np.abs(y.astype(np.float64) - reference).max()
    print(f"largest difference to the reference: {distance:.3g}")
    assert distance < 0.02
    assert llama_block.last is not None
    families = [launch.key.family for launch in llama_block.last.launches]
    expected = ["rowwise", "gemm", "rowwise", "rowwise", "attention", "gemm", "rowwise"]
    assert families == [*expected, "gemm", "gemm"], families
    if importlib.util.find_spec("torch") is not None:
        distance = np.abs(y.astype(np.float64) - by_torch(args, 2)).max()
        print(f"largest difference to torch: {distance:.3g}")
        assert distance < 0.02
    print("Llama 3 8B, a sequence of 512 tokens:")
    print(llama_block.summary(*empty(1, 512, 4096, 32, 8, 128, 14336), kv=8, device="emu:gfx942"))
    print("PASS")


if __name__ == "__main__":
    main()
