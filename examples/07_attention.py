# SPDX-License-Identifier: MIT
"""Attention: masks, grouped heads, biases and scores of your own, each in one kernel.

python examples/07_attention.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

import cklang as ck
from cklang.testing import report

B, H, G, S, T, D, E = ck.dims("B H G S T D E")


@ck.op
def basic(
    q: ck.f16[B, H, S, D], k: ck.f16[B, G, T, D], v: ck.f16[B, G, T, E]
) -> ck.f16[B, H, S, E]:
    """Return softmax(q k^T / sqrt(D)) v; H / G query heads share a key head."""
    return ck.attention(q, k, v)


@ck.op
def causal(
    q: ck.f16[B, H, S, D], k: ck.f16[B, G, T, D], v: ck.f16[B, G, T, E]
) -> ck.f16[B, H, S, E]:
    """Hide later keys; the last query sees all of them."""
    return ck.attention(q, k, v, mask=ck.causal("bottom_right"))


@ck.op
def window(
    q: ck.f16[B, H, S, D], k: ck.f16[B, G, T, D], v: ck.f16[B, G, T, E]
) -> ck.f16[B, H, S, E]:
    """Show the 16 keys before each query, and the first four always."""
    return ck.attention(q, k, v, mask=ck.sliding_window(16, 0, sink=4))


@ck.op
def biased(
    q: ck.f16[B, H, S, D],
    k: ck.f16[B, G, T, D],
    v: ck.f16[B, G, T, E],
    bias: ck.f16[1, H, S, T],
) -> ck.f16[B, H, S, E]:
    """Add a learned bias to every score, the same for all of the batch."""
    return ck.attention(q, k, v, score=lambda s, b, h, i, j: s + bias[b, h, i, j])


@ck.op
def alibi(
    q: ck.f16[B, H, S, D], k: ck.f16[B, G, T, D], v: ck.f16[B, G, T, E], slopes: ck.f32[H]
) -> ck.f16[B, H, S, E]:
    """Lower each score by the distance of query and key."""
    return ck.attention(
        q, k, v, score=lambda s, h, i, j: s - slopes[h] * ck.abs((i - j).to(ck.f32))
    )


@ck.op
def soft_cap(
    q: ck.f16[B, H, S, D],
    k: ck.f16[B, G, T, D],
    v: ck.f16[B, G, T, E],
    cap: ck.const[float] = 2.0,
) -> ck.f16[B, H, S, E]:
    """Keep scores between -cap and cap."""
    return ck.attention(q, k, v, score=lambda s: cap * ck.tanh(s / cap))


@ck.op
def documents(
    q: ck.f16[B, H, S, D],
    k: ck.f16[B, G, S, D],
    v: ck.f16[B, G, S, E],
    document: ck.i32[B, S],
    relative: ck.f32[H, 64],
) -> ck.f16[B, H, S, E]:
    """Attend within a document, with a learned bias by distance."""
    return ck.attention(
        q,
        k,
        v,
        mask=lambda b, i, j: (document[b, i] == document[b, j]) & (j <= i),
        score=lambda s, h, i, j: s + relative[h, i - j],
    )


def main() -> None:
    """Run them and check every result against the reference."""
    rng = np.random.default_rng(0)

    def numbers(*shape: int, dtype: Any = np.float16) -> Any:
        return rng.uniform(-1, 1, shape).astype(dtype)

    # Rows before heads in memory: the kernel reads any strides.
    q, k, v = (numbers(2, rows, heads, 64).transpose(0, 2, 1, 3) for rows, heads in SIZES)
    slopes = 2.0 ** -np.arange(1, 5, dtype=np.float32)
    document = np.sort(rng.integers(0, 4, (2, 70), np.int32))
    calls = [
        (basic, (q, k, v)),
        (causal, (q, k, v)),
        (window, (q, k, v)),
        (biased, (q, k, v, numbers(1, 4, 70, 90))),
        (alibi, (q, k, v, slopes)),
        (soft_cap, (q, k, v)),
        (documents, (q, *numbers(2, 2, 2, 70, 64), document, numbers(4, 64, dtype=np.float32))),
    ]
    for op, args in calls:
        comparison = report(op, args, op(*args))
        print(f"{op.program.name}: {comparison}")
        assert comparison.passed
    print(soft_cap.explain(q, k, v))


SIZES = ((70, 4), (90, 2), (90, 2))

if __name__ == "__main__":
    main()
