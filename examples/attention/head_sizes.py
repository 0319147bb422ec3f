# SPDX-License-Identifier: MIT
"""Head sizes: any from 1 to 256, and other sizes for v than for q and k.

Rows of a size that is no multiple of 8 are loaded fewer elements at a time.

python examples/attention/head_sizes.py
"""

from __future__ import annotations

import numpy as np

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


SIZES = ((64, 64), (40, 64), (64, 48), (8, 16), (32, 32), (96, 128), (60, 60))


def main() -> None:
    """Run each size, with the tile that its GPU has for it."""
    rng = np.random.default_rng(0)
    print("q, k  v    tile                     error / bound")
    for d, e in SIZES:
        q, k, v = (heads(rng, 1, 2, rows, size) for rows, size in ((70, d), (90, d), (90, e)))
        o = attend(q, k, v)
        result = report(attend, (q, k, v), o)
        result.check()
        assert attend.last is not None
        algorithm = attend.last.launches[0].key.algorithm
        assert isinstance(algorithm, ck.dispatch.AttentionAlgorithm)
        tile = "x".join(map(str, algorithm.tile))
        print(f"{d:4}  {e:3}  {tile:23}  {result.ratio:13.2f}")
        assert algorithm.tile[5] >= d


if __name__ == "__main__":
    main()
