# SPDX-License-Identifier: MIT
"""Dropout: a rate, a seed and an offset decide every number; the bytes can be read back.

python examples/attention/dropout.py
"""

from __future__ import annotations

import numpy as np

import cklang as ck
from cklang.testing import report

B, H, G, S, T, D, E = ck.dims("B H G S T D E")


@ck.op
def dropped(
    q: ck.f16[B, H, S, D],
    k: ck.f16[B, G, T, D],
    v: ck.f16[B, G, T, E],
    seed: ck.i32,
) -> ck.f16[B, H, S, E]:
    """Drop a quarter of the weights."""
    return ck.attention(q, k, v, dropout=0.25, seed=seed, offset=3)


def heads(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Return numbers from -1 to 1."""
    return rng.uniform(-1, 1, shape).astype(np.float16)


def main() -> None:
    """The same seed drops the same weights, here, in the reference and in the backward kernels."""
    rng = np.random.default_rng(0)
    q, k, v = (heads(rng, 1, 2, rows, 64) for rows in (70, 90, 90))
    results: dict[int, np.ndarray] = {}
    print("seed  dropped  error / bound")
    for seed in (1, 2, 1):
        o = dropped(q, k, v, seed)
        result = report(dropped, (q, k, v, seed), o)
        result.check()
        drawn = ck.dropout_bytes(dropped, q, k, v, seed)
        share = float((drawn > 255 * 0.75).mean())  # one byte for each weight
        print(f"{seed:4}  {share:7.3f}  {result.ratio:13.2f}")
        assert abs(share - 0.25) < 0.03
        assert seed not in results or (results[seed] == o).all()
        results[seed] = o
    assert (results[1] != results[2]).any()


if __name__ == "__main__":
    main()
