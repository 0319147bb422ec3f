# SPDX-License-Identifier: MIT
"""Attention and its gradients by their formulas in torch: where kernels cannot compute them."""

import math

import torch


def per_head(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """Return keys or values with a head for each head of q."""
    return k.repeat_interleave(q.shape[1] // k.shape[1], 1) if q.shape[1] != k.shape[1] else k


def scores(
    q: torch.Tensor, k: torch.Tensor, mask: torch.Tensor | None, is_causal: bool, scale: float
) -> torch.Tensor:
    """Return the scores in f32, -inf where they are masked."""
    products = q.float().matmul(per_head(q, k).float().transpose(-1, -2)) * scale
    if is_causal:
        rows, keys = products.shape[-2:]
        later = torch.arange(keys, device=q.device) > torch.arange(rows, device=q.device)[:, None]
        products = products.masked_fill(later, -math.inf)
    if mask is None:
        return products
    if mask.dtype == torch.bool:
        return products.masked_fill(~mask, -math.inf)
    return products + mask


def attended(q: torch.Tensor, v: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
    """Return attention for its scores."""
    weights = torch.nan_to_num(torch.softmax(logits, -1))
    return weights.matmul(per_head(q, v).float()).to(q.dtype)


def log_sums(logits: torch.Tensor) -> torch.Tensor:
    """Return the log-sum-exp of each row of scores."""
    return torch.logsumexp(logits, -1)


def gradients(
    do: torch.Tensor,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    logits: torch.Tensor,
    scale: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the gradients by q, k, v and the scores; the last in f32."""
    weights = torch.nan_to_num(torch.softmax(logits, -1))
    do = do.float()
    dv = weights.transpose(-1, -2).matmul(do)
    dp = do.matmul(per_head(q, v).float().transpose(-1, -2))
    ds = weights * (dp - (dp * weights).sum(-1, keepdim=True))
    dq = ds.matmul(per_head(q, k).float()) * scale
    dk = ds.transpose(-1, -2).matmul(q.float()) * scale
    return dq.to(q.dtype), joined(dk, k).to(k.dtype), joined(dv, v).to(v.dtype), ds


def joined(gradient: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Add up the gradients of the heads that share a head of keys."""
    if gradient.shape[1] == like.shape[1]:
        return gradient
    b, g, t, d = like.shape
    return gradient.reshape(b, g, -1, t, d).sum(2)
