# SPDX-License-Identifier: MIT
"""A decoding step of a Llama-3 block: one new token of each sequence, KV cache in pages.

Two ops around ``ck.append_kv``, which turns q and k by the positions and stores k and v in the
pages. ``op.captured`` would replay each on a GPU as a graph: python examples/22_llama_decode.py
"""

from __future__ import annotations

import importlib.util

import numpy as np

import cklang as ck

B, E, P, H, G, D, F, N, T = ck.dims("B E P H G D F N T")


@ck.op
def project(x: ck.f16[B, E], gain: ck.f32[E], qkv: ck.f16[P, D, E]) -> ck.f16[B, P, D]:
    """Return q, k and v of each head."""
    return ck.einsum("be,pde->bpd", ck.rms_norm(x, gain, eps=1e-5).to(ck.f16), qkv)


@ck.op
def attend(
    x: ck.f16[B, E], q: ck.f16[B, H, 1, D], k: ck.f16[N, G, 16, D], v: ck.f16[N, G, 16, D],
    lengths: ck.i32[B], table: ck.i32[B, T], wo: ck.f16[E, H, D], gain: ck.f32[E],
    gate: ck.f16[F, E], up: ck.f16[F, E], down: ck.f16[E, F],
) -> ck.f16[B, E]:  # fmt: skip
    """Return x after attention to the cache and the MLP."""
    o = ck.attention(q, k, v, seqlens_k=lengths, block_table=table).to(ck.f16)
    y = (ck.einsum("bhd,ehd->be", o[:, :, 0], wo) + x).to(ck.f16)
    h = ck.rms_norm(y, gain, eps=1e-5).to(ck.f16)
    return (ck.silu(h @ gate.T) * (h @ up.T)).to(ck.f16) @ down.T + y


if __name__ == "__main__":
    random, (b, e, h, g, d, f) = np.random.default_rng(0), (3, 128, 4, 2, 64, 192)
    shapes = (b, e), (h + 2 * g, d, e), (e, h, d), (f, e), (f, e), (e, f)
    x, qkv, wo, *mlp = ((random.standard_normal(s) / 10).astype(np.float16) for s in shapes)
    k_cache, v_cache = random.standard_normal((2, 9, g, 16, d)).astype(np.float16)
    lengths, table = np.array([0, 21, 32], np.int32), np.arange(9, dtype=np.int32).reshape(3, 3)
    angles = np.arange(48)[:, None] / 500_000.0 ** (np.arange(0, d, 2) / d)
    cos, sin = np.cos(angles).astype(np.float16), np.sin(angles).astype(np.float16)
    past = [each[table].swapaxes(1, 2).reshape(b, g, -1, d) for each in (k_cache, v_cache)]

    heads = project(x, np.ones(e, np.float32), qkv)
    q, k, v = (each[:, :, None] for each in np.split(heads, (h, h + g), axis=1))  # views
    q = ck.append_kv(k_cache, v_cache, k, v, seqlens_k=lengths, block_table=table, q=q,
                     cos=cos, sin=sin, rotary="half")  # fmt: skip
    rest = (lengths + 1, table, wo, np.ones(e, np.float32), *mlp)
    y = attend(x, q, k_cache, v_cache, *rest)
    for i, n in enumerate(lengths if importlib.util.find_spec("torch") else ()):
        step = importlib.import_module("torch_layers").decode_step
        want = step([each[i, :, :n] for each in past], x[i], qkv, cos[n], sin[n], wo, *mlp)
        print(f"{n} tokens before: largest difference to torch: {np.abs(y[i] - want).max():.3g}")
        assert np.abs(y[i] - want).max() < 5e-3
    x, qkv = (np.empty(shape, np.float16) for shape in ((64, 4096), (48, 128, 4096)))
    print(project.summary(x, np.empty(4096, np.float32), qkv, device="emu:gfx942"), "\nPASS")
