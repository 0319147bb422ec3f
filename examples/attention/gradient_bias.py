# SPDX-License-Identifier: MIT
"""The gradient of a bias, and gradients that are the same bits at each call.

python examples/attention/gradient_bias.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

import cklang as ck

B, H, G, S, T, D = ck.dims("B H G S T D")


@ck.op
def biased(
    q: ck.f16[B, H, S, D], k: ck.f16[B, G, T, D], v: ck.f16[B, G, T, D], bias: ck.f16[B, H, S, T]
) -> ck.f16[B, H, S, D]:
    """Add a bias to each score, hide keys far behind, drop a quarter of the weights."""
    return ck.attention(
        q,
        k,
        v,
        mask=lambda h, i, j: (j <= i + 60) | (h == 1),
        score=lambda s, b, h, i, j: s + bias[b, h, i, j],
        dropout=0.25,
        seed=77,
        offset=3,
    )


def main() -> None:
    """Compare the sum of the bias's gradient with a difference quotient of the reference."""
    rng = np.random.default_rng(0)
    shapes = (1, 4, 40, 64), (1, 2, 120, 64), (1, 2, 120, 64), (1, 4, 40, 120), (1, 4, 40, 64)
    *args, grad = (rng.uniform(-1, 1, shape).astype(np.float16) for shape in shapes)
    options: dict[str, Any] = {"grad": grad, "bias": True, "deterministic": True}
    first, second = (ck.attention_grad(biased, *args, **options) for _ in range(2))
    print("gradient  shape            the same bits twice")
    for name, mine, again in zip(("dq", "dk", "dv", "dbias"), first, second, strict=True):
        same = bool((mine == again).all())
        print(f"{name:8}  {mine.shape!s:15}  {same}")
        assert same

    def total(step: float) -> float:
        q, k, v, bias = (x.astype(np.float64) for x in args)
        o = ck.attention(
            q,
            k,
            v,
            mask=lambda h, i, j: (j <= i + 60) | (h == 1),
            score=lambda s, b, h, i, j: s + (bias + step * along)[b, h, i, j],
            dropout=0.25,
            seed=77,
            offset=3,
        )
        return float((grad * o).sum())

    along = rng.normal(size=args[3].shape)
    slope = (total(1e-4) - total(-1e-4)) / 2e-4
    mine = float((first.bias * along).sum())
    print(f"along a random step: {mine:.4f}, by differences {slope:.4f}")
    assert abs(mine - slope) < 2.0**-9 * np.sqrt((along**2).sum())


if __name__ == "__main__":
    main()
