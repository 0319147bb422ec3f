# SPDX-License-Identifier: MIT
"""Layers of examples 22 to 29 by torch on the CPU, in f64, from the same NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.nn.functional import (
    gelu,
    layer_norm,
    linear,
    rms_norm,
    scaled_dot_product_attention,
    silu,
)


def tensors(arrays: Any) -> list[torch.Tensor]:
    """Return arrays as tensors of f64."""
    return [torch.tensor(each.astype(np.float64)) for each in arrays]


def decode_step(past: Any, *arrays: Any) -> Any:
    """Return the step of Llama for one sequence, whose keys and values so far are ``past``."""
    (x, qkv, cos, sin, wo, gate, up, down), past = tensors(arrays), tensors(past)
    g, (e, h, d) = past[0].shape[0], wo.shape
    heads: Any = linear(rms_norm(x, (e,), eps=1e-5), qkv.reshape(-1, e)).view(-1, 1, d)
    q, k, v = heads.split((h, g, g))
    q, k = (
        torch.cat([a * cos - b * sin, b * cos + a * sin], -1)
        for a, b in (t.chunk(2, -1) for t in (q, k))
    )
    k, v = (torch.cat(pair, 1) for pair in zip(past, (k, v), strict=True))
    y = x + linear(scaled_dot_product_attention(q, k, v, enable_gqa=True).flatten(), wo.view(e, -1))
    n = rms_norm(y, (e,), eps=1e-5)
    return (y + linear(silu(linear(n, gate)) * linear(n, up), down)).numpy()


def vit_block(args: list[np.ndarray]) -> Any:
    """Return a block of a vision transformer."""
    x, g1, b1, qkv, b_qkv, wo, bo, g2, b2, up, b_up, down, b_down = tensors(args)
    (e, h, d), (b, s, _) = wo.shape, x.shape
    heads = linear(layer_norm(x, (e,), g1, b1, 1e-6), qkv.reshape(-1, e), b_qkv.flatten())
    q, k, v = heads.view(b, s, 3, h, d).permute(2, 0, 3, 1, 4)
    o = scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, s, e)
    y = x + linear(o, wo.reshape(e, e), bo)
    hidden = gelu(linear(layer_norm(y, (e,), g2, b2, 1e-6), up, b_up))
    return (y + linear(hidden, down, b_down)).numpy()


def mixture(*args: np.ndarray) -> Any:
    """Return a layer of experts, token by token."""
    x, router, ups, downs = tensors(args)
    best, chosen = torch.softmax(x @ router.T, -1).topk(2)
    best = best / best.sum(-1, keepdim=True)
    rows = [
        sum(b * (downs[c] @ gelu(ups[c] @ t)) for b, c in zip(*pair, strict=True)) + t
        for t, *pair in zip(x, best, chosen, strict=True)
    ]
    return torch.stack(rows).numpy()


def mamba2(*arrays: Any) -> Any:
    """Return the block of Mamba-2, token by token."""
    u, gain, w_in, w_conv, b_conv, b_dt, a_log, skip, norm, w_out = tensors(arrays)
    heads, inner, channels = len(a_log), len(norm), len(w_conv)
    states = (channels - inner) // 2
    projected: Any = linear(rms_norm(u, gain.shape, gain, 1e-6), w_in)
    z, xbc, dt = projected.split((inner, channels, heads), -1)
    past = torch.nn.functional.pad(xbc, (0, 0, 3, 0))
    mixed: Any = silu(sum(past[:, n : n + u.shape[1]] * w_conv[:, n, 0] for n in range(4)) + b_conv)
    x, b, c = mixed.split((inner, states, states), -1)
    x, dt = x.unflatten(-1, (heads, -1)), torch.nn.functional.softplus(dt + b_dt)
    state, tokens = torch.zeros(*x[:, 0].shape, states, dtype=torch.float64), list[torch.Tensor]()
    for t in range(u.shape[1]):
        state = state * torch.exp(-dt[:, t] * a_log.exp())[:, :, None, None]
        state = state + (x[:, t] * dt[:, t, :, None])[..., None] * b[:, t, None, None]
        tokens.append((state @ c[:, t, None, :, None])[..., 0] + x[:, t] * skip[:, None])
    y = torch.stack(tokens, 1).flatten(2) * silu(z)
    return (linear(rms_norm(y, norm.shape, norm, 1e-6), w_out) + u).numpy()


def deepseek_experts(*arrays: Any) -> Any:
    """Return the experts of DeepSeek-V3, of the numbers that weights and their scales stand for."""
    x, gain, router, bias, *pairs = tensors(arrays)
    up, down, own_up, own_down = (
        w * s.repeat_interleave(128, -1).repeat_interleave(128, -2)
        for w, s in zip(pairs[::2], pairs[1::2], strict=True)
    )
    h = rms_norm(x, gain.shape, gain, 1e-6)
    scores = torch.sigmoid(linear(h, router))
    groups = (scores + bias).view(len(x), 8, -1)
    best = groups.topk(2).values.sum(-1).topk(4).indices
    outside = torch.ones_like(groups[..., 0], dtype=torch.bool).scatter(1, best, False)
    ids = groups.masked_fill(outside[..., None], -torch.inf).flatten(1).topk(8).indices
    weights = scores.gather(1, ids)
    weights = 2.5 * weights / weights.sum(-1, keepdim=True)

    def mlp(row: torch.Tensor, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        gate, value = linear(row, first).chunk(2, -1)
        return linear(silu(gate) * value, second)

    rows = [
        torch.stack([by * mlp(row, up[e], down[e]) for e, by in zip(own, w, strict=True)]).sum(0)
        for row, own, w in zip(h, ids, weights, strict=True)
    ]
    return (torch.stack(rows) + mlp(h, own_up, own_down) + x).numpy()
