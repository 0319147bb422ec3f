# SPDX-License-Identifier: MIT
"""A block of Mamba-2 (arXiv 2405.21060), in chunks of tokens: python examples/28_mamba2.py."""

import importlib.util
from typing import Any

import numpy as np

import cklang as ck

B, T, E, H, W, D, F = ck.dims("B T E H W D F")


@ck.fn
def decays(upto: Any, since: Any, least: Any) -> Any:
    """Return exp(upto[i] - since[j]) where i - j >= least, else 0."""
    i, j = ck.arange(upto.shape[-1])[:, None], ck.arange(upto.shape[-1])
    return ck.where(i - j >= least, ck.exp(upto[..., :, None] - since[..., None, :]), 0.0)


@ck.op
def mamba2(
    u: ck.f16[B, T, E], gain: ck.f32[E], w_in: ck.f16[F, E], w_conv: ck.f16[D, 4, 1],
    b_conv: ck.f32[D], b_dt: ck.f32[H], a_log: ck.f32[H], skip: ck.f32[H], norm: ck.f32[W],
    w_out: ck.f16[E, W], chunk: ck.const[int] = 64,
) -> ck.f16[B, T, E]:  # fmt: skip
    """Return u and what the layer makes of it; F = W + D + H, and D = W and twice the state."""
    z, xbc, dt = ck.split((ck.rms_norm(u, gain).to(ck.f16) @ w_in.T).to(ck.f16), (W, D, H), -1)
    xbc = ck.silu(ck.conv(xbc, w_conv, padding=((3, 0),), groups=D) + b_conv).to(ck.f16)
    x, b, c = ck.split(xbc.reshape(B, T // chunk, chunk, D), (W, (D - W) // 2, (D - W) // 2), -1)
    x = x.reshape(B, T // chunk, chunk, H, W // H)
    dt = ck.softplus(dt + b_dt).reshape(B, T // chunk, chunk, H)
    a = ck.cumsum((dt * -ck.exp(a_log)).permute(0, 3, 1, 2), -1)
    v = (x * dt[..., None]).to(ck.f16)
    weights = ck.einsum("bcin,bcjn->bcij", c, b)[:, None] * decays(a, a, 0)
    y = ck.einsum("bhcij,bcjhp->bcihp", weights.to(ck.f16), v) + x * skip[:, None]
    v = (v * ck.exp(a[..., -1:] - a).permute(0, 2, 3, 1)[..., None]).to(ck.f16)
    states = ck.einsum("bcjn,bcjhp->bchpn", b, v).to(ck.f16)
    ends = ck.cumsum(a[..., -1], -1)
    before = decays(ends - a[..., -1], ends, 1).to(ck.f16)
    states = ck.einsum("bhik,bkhpn->bihpn", before, states).to(ck.f16)
    y += ck.einsum("bcin,bchpn->bcihp", c, states) * ck.exp(a).permute(0, 2, 3, 1)[..., None]
    y = ck.rms_norm(y.reshape(B, T, W) * ck.silu(z), norm).to(ck.f16)
    return y @ w_out.T + u


def arguments(b: int, t: int, e: int, h: int, p: int, n: int) -> list[Any]:
    """Return drawn arguments: h heads of p elements, and n states of each."""
    draw, w, d = np.random.default_rng(0).standard_normal, h * p, h * p + 2 * n
    shapes = (b, t, e), (w + d + h, e), (d, 4, 1), (e, w)
    u, w_in, w_conv, w_out = ((draw(s) / s[-1] ** 0.5).astype("e") for s in shapes)
    a_log, b_dt, ones = np.log(np.arange(1, h + 1, dtype="f")), np.full(h, -2, "f"), np.ones(d, "f")
    return [u, np.ones(e, "f"), w_in, w_conv, 0 * ones, b_dt, a_log, ones[:h], ones[:w], w_out]


if __name__ == "__main__":
    y = mamba2(*(args := arguments(2, 256, 128, 4, 64, 64)))
    if importlib.util.find_spec("torch"):
        assert np.abs(y - importlib.import_module("torch_layers").mamba2(*args)).max() < 1e-2
    print(mamba2.summary(*arguments(1, 2048, 1536, 48, 64, 128), device="emu:gfx942"), "\nPASS")
