# SPDX-License-Identifier: MIT
"""Biases and scores: a matrix, ALiBi slopes, relative positions.

python examples/attention/biases.py
"""

from __future__ import annotations

import numpy as np

import cklang as ck
from cklang.testing import report

B, H, G, S, T, D, E = ck.dims("B H G S T D E")


@ck.op
def biased(
    q: ck.f16[B, H, S, D],
    k: ck.f16[B, G, T, D],
    v: ck.f16[B, G, T, E],
    bias: ck.f16[1, H, S, T],
) -> ck.f16[B, H, S, E]:
    """Add a learned bias, the same for all of the batch."""
    return ck.attention(q, k, v, score=lambda s, h, i, j: s + bias[0, h, i, j])


@ck.op
def alibi(
    q: ck.f16[B, H, S, D],
    k: ck.f16[B, G, T, D],
    v: ck.f16[B, G, T, E],
    slopes: ck.f32[H],
) -> ck.f16[B, H, S, E]:
    """Lower each score by the distance of query and key."""
    return ck.attention(
        q, k, v, score=lambda s, h, i, j: s - slopes[h] * ck.abs((i - j).to(ck.f32))
    )


@ck.op
def relative(
    q: ck.f16[B, H, S, D],
    k: ck.f16[B, G, T, D],
    v: ck.f16[B, G, T, E],
    table: ck.f32[H, 256],
) -> ck.f16[B, H, S, E]:
    """Add a number that is learned for each distance."""
    return ck.attention(q, k, v, score=lambda s, h, i, j: s + table[h, 128 + i - j])


def heads(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Return numbers from -1 to 1."""
    return rng.uniform(-1, 1, shape).astype(np.float16)


def main() -> None:
    """Run each; all are one stencil with another function in it."""
    rng = np.random.default_rng(0)
    q, k, v = heads(rng, 2, 4, 70, 64), heads(rng, 2, 2, 90, 64), heads(rng, 2, 2, 90, 64)
    slopes = (2.0 ** -np.arange(1, 5)).astype(np.float32)
    table = rng.uniform(-1, 1, (4, 256)).astype(np.float32)
    calls = (
        (biased, (heads(rng, 1, 4, 70, 90),)),
        (alibi, (slopes,)),
        (relative, (table,)),
    )
    print("score     computed as  error / bound")
    for op, more in calls:
        args = (q, k, v, *more)
        o = op(*args)
        result = report(op, args, o)
        result.check()
        assert op.last is not None
        kind = op.last.launches[0].key.signature.score
        print(f"{op.program.name:8}  {kind.value:11}  {result.ratio:13.2f}")


if __name__ == "__main__":
    main()
