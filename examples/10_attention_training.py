# SPDX-License-Identifier: MIT
"""Attention in training: dropout, gradients, and gradients that are the same each time.

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
    q: ck.f16[B, H, S, D], k: ck.f16[B, G, T, D], v: ck.f16[B, G, T, D], seed: ck.i32
) -> ck.f16[B, H, S, D]:
    """Causal attention that drops an eighth of the weights, by CK Tile's random numbers."""
    return ck.attention(q, k, v, mask=ck.causal("bottom_right"), dropout=0.125, seed=seed)


def slope(op: Any, args: tuple[Any, ...], place: int, step: Any, grad: Any) -> float:
    """Return how fast ``(grad * o).sum()`` grows along ``step`` of an argument, in float64."""
    ends = []
    for sign in (1, -1):
        moved = [x.astype(np.float64) if isinstance(x, np.ndarray) else x for x in args]
        moved[place] = moved[place] + sign * 1e-4 * step
        o = ck.attention(*moved[:3], mask=ck.causal("bottom_right"), dropout=0.125, seed=args[3])
        ends.append(float((o * grad).sum()))
    return (ends[0] - ends[1]) / 2e-4


def main() -> None:
    """Run forward and backward; compare the gradients with the reference's slopes."""
    rng = np.random.default_rng(0)

    def numbers(*shape: int) -> Any:
        return rng.uniform(-1, 1, shape).astype(np.float16)

    args = (numbers(1, 4, 40, 64), numbers(1, 2, 70, 64), numbers(1, 2, 70, 64), 7)
    found = report(attend, args, attend(*args))
    print(f"forward: {found}")
    assert found.passed

    grad = numbers(1, 4, 40, 64)
    gradients = ck.attention_grad(attend, *args, grad=grad)
    for place, (name, got) in enumerate(zip(("dq", "dk", "dv"), gradients, strict=True)):
        step = rng.normal(size=got.shape)
        want = slope(attend, args, place, step, grad.astype(np.float64))
        mine = float((got * step).sum())
        # Weights are rounded to f16 before they are summed over queries or keys.
        room = 2.0**-9 * np.sqrt((step**2).sum())
        print(f"{name}: slope {mine:.4f}, reference {want:.4f}")
        assert abs(mine - want) < room

    once, twice = (
        ck.attention_grad(attend, *args, grad=grad, deterministic=True) for _ in range(2)
    )
    assert all((x == y).all() for x, y in zip(once, twice, strict=True))
    print("deterministic: both times the same")


if __name__ == "__main__":
    main()
