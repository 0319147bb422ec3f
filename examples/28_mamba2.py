# SPDX-License-Identifier: MIT
"""A block of Mamba-2: a state space layer in chunks of tokens (arXiv 2405.21060), in one op.

Within a chunk it is attention whose weights decay with distance; between chunks states do:
python examples/28_mamba2.py
"""

from typing import Any

import numpy as np

import cklang as ck

B, T, E, H, W, D, F = ck.dims("B T E H W D F")
Array = np.ndarray[Any, Any]


@ck.fn
def decays(upto, since, least):
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
    xbc = xbc.reshape(B, T // chunk, chunk, D)
    x, b, c = ck.split(xbc, (W, (D - W) // 2, (D - W) // 2), -1)
    x = x.reshape(B, T // chunk, chunk, H, W // H)
    dt = ck.softplus(dt + b_dt).reshape(B, T // chunk, chunk, H)
    a = ck.cumsum((dt * -ck.exp(a_log)).permute(0, 3, 1, 2), -1)
    v = (x * dt[..., None]).to(ck.f16)
    weights = ck.einsum("bcin,bcjn->bcij", c, b)[:, None] * decays(a, a, 0)
    y = ck.einsum("bhcij,bcjhp->bcihp", weights.to(ck.f16), v) + x * skip[:, None]
    left = ck.exp(a[..., -1:] - a).permute(0, 2, 3, 1)[..., None]
    states = ck.einsum("bcjn,bcjhp->bchpn", b, (v * left).to(ck.f16)).to(ck.f16)
    ends = ck.cumsum(a[..., -1], -1)
    carried = decays(ends - a[..., -1], ends, 1).to(ck.f16)
    states = ck.einsum("bhik,bkhpn->bihpn", carried, states).to(ck.f16)
    y += ck.einsum("bcin,bchpn->bcihp", c, states) * ck.exp(a).permute(0, 2, 3, 1)[..., None]
    y = ck.rms_norm(y.reshape(B, T, W) * ck.silu(z), norm).to(ck.f16)
    return y @ w_out.T + u


def in_float64(
    u: Array, gain: Array, w_in: Array, w_conv: Array, b_conv: Array, b_dt: Array, a_log: Array,
    skip: Array, norm: Array, w_out: Array,
) -> Array:  # fmt: skip
    """Return the same token by token."""
    heads, inner, channels = len(a_log), len(norm), len(w_conv)
    silu = lambda x: x / (1 + np.exp(-x))  # noqa: E731
    rms = lambda x: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)  # noqa: E731
    z, xbc, dt = np.split(rms(u) * gain @ w_in.T, (inner, inner + channels), -1)
    past = np.pad(xbc, ((0, 0), (3, 0), (0, 0)))
    xbc = silu(sum(past[:, n : n + u.shape[1]] * w_conv[:, n, 0] for n in range(4)) + b_conv)
    x, b, c = np.split(xbc, (inner, (inner + channels) // 2), -1)
    x = x.reshape(*x.shape[:2], heads, -1)
    dt, y = np.log1p(np.exp(dt + b_dt)), x * skip[:, None]
    state = np.zeros((len(u), *x.shape[2:], b.shape[-1]))
    for t in range(u.shape[1]):
        state *= np.exp(-dt[:, t] * np.exp(a_log))[:, :, None, None]
        state += (x[:, t] * dt[:, t, :, None])[..., None] * b[:, t, None, None]
        y[:, t] += (state @ c[:, t, None, :, None])[..., 0]
    return rms(y.reshape(*z.shape) * silu(z)) * norm @ w_out.T + u


def arguments(b: int, t: int, e: int, h: int, p: int, n: int) -> list[Array]:
    """Return drawn arguments."""
    random, inner, channels = np.random.default_rng(0), h * p, h * p + 2 * n
    shapes = (b, t, e), (inner + channels + h, e), (channels, 4, 1), (e, inner)
    drawn = (random.standard_normal(s, np.float32) / s[-1] ** 0.5 for s in shapes)
    u, w_in, w_conv, w_out = (array.astype(np.float16) for array in drawn)
    ones = np.ones(max(e, channels), np.float32)
    a_log, b_dt = np.log(np.arange(1, h + 1, dtype=np.float32)), np.full(h, -2, np.float32)
    vectors = ones[:channels] * 0, b_dt, a_log, ones[:h], ones[:inner]
    return [u, ones[:e], w_in, w_conv / 2, *vectors, w_out]


if __name__ == "__main__":
    args = arguments(2, 256, 128, 4, 64, 64)
    error = np.abs(mamba2(*args) - in_float64(*(array.astype(np.float64) for array in args))).max()
    assert error < 2e-2, error
    print(mamba2.summary(*arguments(1, 2048, 1536, 48, 64, 128), device="emu:gfx942"))
    print(f"largest error {error:.1e}\nPASS")
