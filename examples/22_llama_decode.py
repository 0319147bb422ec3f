# SPDX-License-Identifier: MIT
"""A decoding step of a Llama-3 block: one new token of each sequence, KV cache in pages.

Two ops around ``ck.append_kv``, which turns q and k by the positions and stores k and v in the
pages. ``op.captured`` would replay each of them on a GPU as a graph.

python examples/22_llama_decode.py
"""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np

import cklang as ck

B, E, P, H, G, D, F, N, T = ck.dims("B E P H G D F N T")
PAGE = 16


@ck.op
def project(x: ck.f16[B, E], gain: ck.f32[E], qkv: ck.f16[P, D, E]) -> ck.f16[B, P, D]:
    """Return q, k and v of each head."""
    return ck.einsum("be,pde->bpd", ck.rms_norm(x, gain, eps=1e-5).to(ck.f16), qkv)


@ck.op
def attend(
    x: ck.f16[B, E], q: ck.f16[B, H, 1, D], k: ck.f16[N, G, PAGE, D], v: ck.f16[N, G, PAGE, D],
    lengths: ck.i32[B], table: ck.i32[B, T], wo: ck.f16[E, H, D], gain: ck.f32[E],
    gate: ck.f16[F, E], up: ck.f16[F, E], down: ck.f16[E, F],
) -> ck.f16[B, E]:  # fmt: skip
    """Return x after attention to the cache and the MLP."""
    o = ck.attention(q, k, v, seqlens_k=lengths, block_table=table).to(ck.f16)
    y = (ck.einsum("bhd,ehd->be", o[:, :, 0], wo) + x).to(ck.f16)
    h = ck.rms_norm(y, gain, eps=1e-5).to(ck.f16)
    return (ck.silu(h @ gate.T) * (h @ up.T)).to(ck.f16) @ down.T + y


def by_torch(past: Any, *arrays: Any) -> Any:
    """Return the step for one sequence, whose keys and values so far are ``past``, in f64."""
    import torch
    from torch.nn.functional import linear, rms_norm, scaled_dot_product_attention, silu

    (x, qkv, cos, sin, wo, gate, up, down), past = (
        [torch.tensor(each.astype(np.float64)) for each in group] for group in (arrays, past)
    )
    g, (e, h, d) = past[0].shape[0], wo.shape
    heads: Any = linear(rms_norm(x, (e,), eps=1e-5), qkv.reshape(-1, e)).view(-1, 1, d)
    q, k, v = heads.split((h, g, g))
    q, k = (torch.cat([a * cos - b * sin, b * cos + a * sin], -1)
            for a, b in (t.chunk(2, -1) for t in (q, k)))  # fmt: skip
    k, v = (torch.cat(pair, 1) for pair in zip(past, (k, v), strict=True))
    y = x + linear(scaled_dot_product_attention(q, k, v, enable_gqa=True).flatten(), wo.view(e, -1))
    n = rms_norm(y, (e,), eps=1e-5)
    return (y + linear(silu(linear(n, gate)) * linear(n, up), down)).numpy()


def main() -> None:
    """Decode one token of three sequences and compare; price a batch of Llama 3 8B."""
    random = np.random.default_rng(0)
    b, e, h, g, d, f = 3, 128, 4, 2, 64, 192
    shapes = (b, e), (h + 2 * g, d, e), (e, h, d), (f, e), (f, e), (e, f)
    x, qkv, wo, *mlp = ((random.standard_normal(s) / 10).astype(np.float16) for s in shapes)
    k_cache, v_cache = random.standard_normal((2, 9, g, PAGE, d)).astype(np.float16)
    lengths, table = np.array([0, 21, 32], np.int32), np.arange(9, dtype=np.int32).reshape(3, 3)
    angles = np.arange(48)[:, None] / 500_000.0 ** (np.arange(0, d, 2) / d)
    cos, sin = np.cos(angles).astype(np.float16), np.sin(angles).astype(np.float16)
    gain = np.ones(e, np.float32)
    rows = [each[table].swapaxes(1, 2).reshape(b, g, -1, d) for each in (k_cache, v_cache)]

    heads = project(x, gain, qkv)
    q, k, v = (each[:, :, None] for each in np.split(heads, (h, h + g), axis=1))  # views
    cache: dict[str, Any] = {"seqlens_k": lengths, "block_table": table}
    q = ck.append_kv(k_cache, v_cache, k, v, **cache, q=q, cos=cos, sin=sin, rotary="half")
    y = attend(x, q, k_cache, v_cache, lengths + 1, table, wo, gain, *mlp)

    for i, n in enumerate(lengths if importlib.util.find_spec("torch") else ()):
        past = [each[i, :, :n] for each in rows]
        distance = np.abs(y[i] - by_torch(past, x[i], qkv, cos[n], sin[n], wo, *mlp)).max()
        print(f"sequence of {n} tokens: largest difference to torch: {distance:.3g}")
        assert distance < 5e-3
    print("Llama 3 8B, one token of 64 sequences of up to 4096 tokens:")
    half, i32, f32 = np.float16, np.int32, np.float32
    step = [((64, 4096), half), ((4096,), f32), ((48, 128, 4096), half)]
    print(project.summary(*(np.empty(*each) for each in step), device="emu:gfx942"))
    pages = ((16384, 8, PAGE, 128), half)
    rest = [((64, 4096), half), ((64, 32, 1, 128), half), pages, pages, ((64,), i32)]
    rest += [((64, 256), i32), ((4096, 32, 128), half), ((4096,), f32)]
    rest += [(shape, half) for shape in ((14336, 4096), (14336, 4096), (4096, 14336))]
    print(attend.summary(*(np.empty(*each) for each in rest), device="emu:gfx942"))
    print("PASS")


if __name__ == "__main__":
    main()
