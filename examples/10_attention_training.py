# SPDX-License-Identifier: MIT
"""Attention in training: dropout, a learned bias, and gradients that are the same each time.

python examples/10_attention_training.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

import cklang as ck
from cklang.testing import report

B, H, G, S, T, D = ck.dims("B H G S T D")


@ck.op
def attend(
    q: ck.f16[B, H, S, D],
    k: ck.f16[B, G, T, D],
    v: ck.f16[B, G, T, D],
    bias: ck.f16[B, H, S, T],
    prefix: ck.i32[B],
    seed: ck.i32,
) -> ck.f16[B, H, S, D]:
    """See a prefix and what came before, with a bias; drop an eighth of the weights."""
    return ck.attention(
        q,
        k,
        v,
        mask=lambda b, i, j: (j < prefix[b]) | (j <= i),
        score=lambda s, b, h, i, j: s + bias[b, h, i, j],
        dropout=0.125,
        seed=seed,
    )


def weighed(args: list[Any], grad: Any) -> float:
    """Return the sum of ``grad * o`` in float64, by the reference."""
    q, k, v, bias, prefix, seed = args
    o = ck.attention(
        *(x.astype(np.float64) for x in (q, k, v)),
        mask=lambda b, i, j: (j < prefix[b]) | (j <= i),
        score=lambda s, b, h, i, j: s + bias[b, h, i, j],
        dropout=0.125,
        seed=seed,
    )
    return float((grad * o).sum())


def slope(args: list[Any], place: int, step: Any, grad: Any) -> float:
    """Return how fast :func:`weighed` grows along ``step`` of an argument."""
    ends = []
    for size in (1e-4, -1e-4):
        moved = args[place].astype(np.float64) + size * step
        ends.append(weighed([*args[:place], moved, *args[place + 1 :]], grad))
    return (ends[0] - ends[1]) / 2e-4


def main() -> None:
    """Run forward and backward; compare the gradients with the reference's slopes."""
    rng = np.random.default_rng(0)

    def numbers(*shape: int) -> Any:
        return rng.uniform(-1, 1, shape).astype(np.float16)

    q, grad = numbers(1, 4, 40, 64), numbers(1, 4, 40, 64)
    k, v = numbers(1, 2, 70, 64), numbers(1, 2, 70, 64)
    args = [q, k, v, numbers(1, 4, 40, 70), np.array([50], np.int32), 7]
    comparison = report(attend, args, attend(*args))
    print(f"forward: {comparison}")
    assert comparison.passed

    once, twice = (
        ck.attention_grad(attend, *args, grad=grad, bias=True, deterministic=True) for _ in range(2)
    )
    assert all((x == y).all() for x, y in zip(once, twice, strict=True))
    for place, (name, gradient) in enumerate(zip(("dq", "dk", "dv", "dbias"), once, strict=True)):
        step = rng.normal(size=gradient.shape)
        reference = slope(args, place, step, grad.astype(np.float64))
        mine = float((gradient * step).sum())
        # Weights and their gradients are rounded to f16 before they are summed.
        room = 2.0**-9 * np.sqrt((step**2).sum())
        print(f"{name}: slope {mine:.4f}, reference {reference:.4f}")
        assert abs(mine - reference) < room


if __name__ == "__main__":
    main()
