# SPDX-License-Identifier: MIT
"""Gradients of attention: grouped heads, head sizes, f16 and bf16, work, against torch.

python examples/attention/gradients.py
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch

import cklang as ck

B, H, G, S, T, D = ck.dims("B H G S T D")
F: Any = ck.dtype_var("F", ck.f16, ck.bf16)


@ck.op
def attend(q: F[B, H, S, D], k: F[B, G, T, D], v: F[B, G, T, D]) -> F[B, H, S, D]:
    """Return softmax(q k^T / sqrt(D)) v."""
    return ck.attention(q, k, v)


CASES = (  # dtype, query heads, key heads, head size
    (ck.f16, 2, 2, 64),
    (ck.f16, 4, 2, 64),
    (ck.f16, 4, 1, 64),
    (ck.f16, 2, 2, 40),
    (ck.f16, 2, 2, 56),
    (ck.bf16, 2, 2, 64),
)


def by_torch(args: list[np.ndarray], grad: np.ndarray) -> list[np.ndarray]:
    """Return the gradients of torch's attention in float64, heads repeated for groups."""
    q, k, v = (torch.from_numpy(x.astype(np.float64)).requires_grad_() for x in args)
    each = q.shape[1] // k.shape[1]
    keys, values = (x.repeat_interleave(each, dim=1) for x in (k, v))
    o = torch.nn.functional.scaled_dot_product_attention(q, keys, values)
    gradients = torch.autograd.grad(o, (q, k, v), torch.from_numpy(grad.astype(np.float64)))
    return [x.numpy() for x in gradients]


def main() -> None:
    """Print the largest error of each gradient, as a share of its largest element."""
    rng = np.random.default_rng(0)
    print("type  heads  size  ms, emulated  of dq   of dk   of dv")
    for dtype, many, few, size in CASES:
        shapes = [(1, many, 40, size), (1, few, 72, size), (1, few, 72, size), (1, many, 40, size)]
        *args, grad = (rng.uniform(-1, 1, shape).astype(dtype.numpy) for shape in shapes)
        ck.attention_grad(attend, *args, grad=grad)  # plans and builds
        start = time.perf_counter()
        gradients = ck.attention_grad(attend, *args, grad=grad)
        seconds = time.perf_counter() - start
        far = [
            np.abs(mine.astype(np.float64) - want).max() / np.abs(want).max()
            for mine, want in zip(gradients[:3], by_torch(args, grad), strict=True)
        ]
        words = "  ".join(f"{each:.4f}" for each in far)
        print(f"{dtype.name:4}  {many}/{few}    {size:4}  {seconds * 1e3:12.1f}  {words}")
        assert max(far) < (0.005 if dtype is ck.f16 else 0.04)


if __name__ == "__main__":
    main()
