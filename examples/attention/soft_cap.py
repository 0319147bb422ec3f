# SPDX-License-Identifier: MIT
"""A soft cap of the scores: recognised where CK Tile has it, computed as written elsewhere.

python examples/attention/soft_cap.py
"""

from __future__ import annotations

import numpy as np

import cklang as ck
from cklang.testing import report

B, H, G, S, T, D, E = ck.dims("B H G S T D E")


@ck.op
def soft_cap(
    q: ck.f16[B, H, S, D],
    k: ck.f16[B, G, T, D],
    v: ck.f16[B, G, T, E],
    cap: ck.const[float] = 2.0,
) -> ck.f16[B, H, S, E]:
    """Keep scores between -cap and cap."""
    return ck.attention(q, k, v, score=lambda s: cap * ck.tanh(s / cap))


def main() -> None:
    """The caps are constants: each is a kernel of its own, linked from the same stencil."""
    rng = np.random.default_rng(0)
    q, k, v = (rng.uniform(-4, 4, (1, 2, rows, 64)).astype(np.float16) for rows in (70, 90, 90))
    uncapped = ck.attention(*(x.astype(np.float64) for x in (q, k, v)))
    print(" cap  computed as  error / bound  distance from no cap")
    before = np.inf
    for cap in (2.0, 8.0, 50.0):
        o = soft_cap(q, k, v, cap=cap)
        result = report(soft_cap, (q, k, v), o, cap=cap)
        result.check()
        assert soft_cap.last is not None
        kind = soft_cap.last.launches[0].key.signature.score
        far = float(np.abs(o - uncapped).max())
        print(f"{cap:4g}  {kind.value:11}  {result.ratio:13.2f}  {far:.3g}")
        assert far < before, "a larger cap bends less"
        before = far


if __name__ == "__main__":
    main()
