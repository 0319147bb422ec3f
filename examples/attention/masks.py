# SPDX-License-Identifier: MIT
"""Masks: causal from either corner, windows, sinks, and any function of the indices.

python examples/attention/masks.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

import cklang as ck
from cklang.testing import report

B, H, G, S, T, D, E = ck.dims("B H G S T D E")


@ck.op
def causal(
    q: ck.f16[B, H, S, D],
    k: ck.f16[B, G, T, D],
    v: ck.f16[B, G, T, E],
    corner: ck.const[str] = "bottom_right",
) -> ck.f16[B, H, S, E]:
    """Hide later keys; from the bottom right the last query sees all keys."""
    return ck.attention(q, k, v, mask=ck.causal(corner))


@ck.op
def window(
    q: ck.f16[B, H, S, D],
    k: ck.f16[B, G, T, D],
    v: ck.f16[B, G, T, E],
    left: ck.const[int] = 16,
    sink: ck.const[int] = 0,
) -> ck.f16[B, H, S, E]:
    """Show the keys in a window before each query, and the first ``sink`` keys always."""
    return ck.attention(q, k, v, mask=ck.sliding_window(left, 0, sink=sink))


@ck.op
def general(
    q: ck.f16[B, H, S, D], k: ck.f16[B, G, T, D], v: ck.f16[B, G, T, E]
) -> ck.f16[B, H, S, E]:
    """Show keys in blocks of 32, and every eighth key: any function of b, h, i and j."""
    return ck.attention(q, k, v, mask=lambda i, j: (i // 32 == j // 32) | (j % 8 == 0))


CALLS: tuple[tuple[str, Any, dict[str, Any]], ...] = (
    ("causal, bottom right", causal, {}),
    ("causal, top left", causal, {"corner": "top_left"}),
    ("window of 16", window, {}),
    ("window with 4 sinks", window, {"sink": 4}),
    ("any function", general, {}),
)


def heads(*shape: int) -> np.ndarray:
    """Return numbers from -1 to 1."""
    return np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float16)


def main() -> None:
    """Run every mask; tiles that a causal mask or a window hides are skipped."""
    q, k, v = (heads(1, 2, rows, 64) for rows in (130, 200, 200))
    print("mask                  computed as  instructions  error / bound")
    for name, op, options in CALLS:
        o = op(q, k, v, **options)
        result = report(op, (q, k, v), o, **options)
        result.check()
        assert op.last is not None
        kind, count = op.last.launches[0].key.signature.mask, op.last.instructions
        print(f"{name:20}  {kind.value:11}  {count!s:>12}  {result.ratio:13.2f}")


if __name__ == "__main__":
    main()
