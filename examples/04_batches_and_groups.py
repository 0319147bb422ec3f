# SPDX-License-Identifier: MIT
"""Many products in one launch: attention scores by einsum, and experts of different sizes.

python examples/04_batches_and_groups.py
"""

from __future__ import annotations

import numpy as np

import cklang as ck
from cklang.testing import report

B, H, M, N, K = ck.dims("B H M N K")


@ck.op
def scores(
    q: ck.f16[B, M, H, K], k: ck.f16[B, N, H, K], bias: ck.f32[H, N], scale: ck.f32
) -> ck.f16[B, H, M, N]:
    """Return q k^T of every head, scaled, with a bias for each head and key."""
    return ck.einsum("bmhk,bnhk->bhmn", q, k) * scale + bias[:, None]


@ck.op
def expert(x: ck.f16[M, K], w: ck.f16[N, K], gate: ck.f32[M]) -> ck.f16[M, N]:
    """Return silu(x @ w.T), each row weighed by its gate."""
    return ck.silu(x @ w.T) * gate[:, None]


def main() -> None:
    """Run both and check every result against the reference."""
    rng = np.random.default_rng(0)

    def half(*shape: int) -> np.ndarray:
        return rng.uniform(-1, 1, shape).astype(np.float16)

    args = (half(2, 48, 3, 64), half(2, 80, 3, 64), rng.uniform(-1, 1, (3, 80)), 0.125)
    args = (*args[:2], args[2].astype(np.float32), args[3])
    y = scores(*args)
    print("== scores: the heads lie between other axes, and nothing is copied")
    print(scores.last)
    result = report(scores, args, y)
    print(result)
    result.check()

    # Each expert has as many rows as tokens were sent to it.
    calls = [(half(m, 64), half(96, 64), np.ones(m, np.float32)) for m in (5, 130, 33)]
    print("\n== experts: three sizes, one launch")
    for call, y in zip(calls, expert.grouped(calls), strict=True):
        result = report(expert, call, y)
        print(result)
        result.check()
    print(expert.last)
    print("PASS")


if __name__ == "__main__":
    main()
