# SPDX-License-Identifier: MIT
"""Gradients under a mask, a score function and dropout, within the reference's bounds.

python examples/attention/gradient_masks.py
"""

from __future__ import annotations

import numpy as np

import cklang as ck
from cklang.reference.attention_grad import gradients_with_bound
from cklang.testing import Report, report

B, H, G, S, T, D = ck.dims("B H G S T D")


@ck.op
def distant(
    q: ck.f16[B, H, S, D], k: ck.f16[B, G, T, D], v: ck.f16[B, G, T, D], far: ck.f32[H]
) -> ck.f16[B, H, S, D]:
    """Hide keys far behind, except from head 1; lower scores by distance; drop a quarter."""
    return ck.attention(
        q,
        k,
        v,
        mask=lambda h, i, j: (j <= i + 60) | (h == 1),
        score=lambda s, h, i, j: s - far[h] * ck.abs((i - j).to(ck.f32)),
        dropout=0.25,
        seed=77,
        offset=3,
    )


def main() -> None:
    """The forward kernel and those of the gradients draw the same random numbers."""
    rng = np.random.default_rng(0)
    q, k, v, grad = (
        rng.uniform(-1, 1, (1, heads, rows, 64)).astype(np.float16)
        for heads, rows in ((4, 40), (2, 120), (2, 120), (4, 40))
    )
    far = rng.uniform(0, 0.05, 4).astype(np.float32)
    args = [q, k, v, far]
    forward = report(distant, args, distant(*args))
    forward.check()
    print(f"of   error / bound\no    {forward.ratio:13.2f}")
    gradients = ck.attention_grad(distant, *args, grad=grad)
    wanted, bounds = gradients_with_bound(distant.ir(*args), args, grad)
    for name, mine, want, bound in zip(("dq", "dk", "dv"), gradients, wanted, bounds, strict=False):
        result = Report(got=mine, expected=want, bound=bound)
        print(f"{name}   {result.ratio:13.2f}")
        result.check()

    # A query that sees no key has no gradient; a key that nobody sees has none either.
    alone = [q, k, v, np.full(4, 1e4, np.float32)]  # each query sees the key at its own place
    assert not np.any(ck.attention_grad(distant, *alone, grad=grad).k[:, :, 40:])


if __name__ == "__main__":
    main()
