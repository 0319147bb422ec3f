# SPDX-License-Identifier: MIT
"""Attention in one kernel, compared with the reference, with NumPy and with torch.

python examples/attention/basic.py
"""

from __future__ import annotations

import numpy as np
import torch

import cklang as ck
from cklang.testing import report

B, H, G, S, T, D, E = ck.dims("B H G S T D E")


@ck.op
def attend(
    q: ck.f16[B, H, S, D], k: ck.f16[B, G, T, D], v: ck.f16[B, G, T, E]
) -> ck.f16[B, H, S, E]:
    """Return softmax(q k^T / sqrt(D)) v for each head."""
    return ck.attention(q, k, v)


def heads(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Return numbers from -1 to 1."""
    return rng.uniform(-1, 1, shape).astype(np.float16)


def main() -> None:
    """Run once; the arrays are NumPy's, and torch's CPU tensors work as well."""
    rng = np.random.default_rng(0)
    q, k, v = (heads(rng, 2, 4, rows, 64) for rows in (70, 90, 90))
    o = attend(q, k, v)
    result = report(attend, (q, k, v), o)
    result.check()
    print(f"reference: {result}")

    scores = np.einsum("bhsd,bhtd->bhst", *(x.astype(np.float64) for x in (q, k))) / 8
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    by_numpy = weights @ v.astype(np.float64)

    tq, tk, tv = (torch.from_numpy(x) for x in (q, k, v))
    by_torch = torch.nn.functional.scaled_dot_product_attention(tq.float(), tk.float(), tv.float())
    ours = attend(tq, tk, tv)
    assert isinstance(ours, torch.Tensor), "tensors in, tensor out"

    print("o against  largest difference")
    for name, other in (("NumPy", by_numpy), ("torch", by_torch.numpy())):
        far = np.abs(o - other).max()
        print(f"{name:9}  {far:.3g}")
        assert far < 2e-3
    np.testing.assert_array_equal(ours.numpy(), o)
    print(attend.last)


if __name__ == "__main__":
    main()
