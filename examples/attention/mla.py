# SPDX-License-Identifier: MIT
"""Decoding with multi-head latent attention: head sizes 576 and 512, one cache for keys and values.

python examples/attention/mla.py
"""

from __future__ import annotations

import numpy as np

import cklang as ck
from cklang.testing import report

B, H, S, D, E, N, P = ck.dims("B H S D E N P")
LATENT, ROTARY, PAGE = 512, 64, 16
SCALE = (128 + ROTARY) ** -0.5
"""Of the head size before the weights of the keys went into q."""


@ck.op
def decode(
    q: ck.f16[B, H, S, D],
    keys: ck.f16[N, 1, PAGE, D],
    values: ck.f16[N, 1, PAGE, E],
    lengths: ck.i32[B],
    table: ck.i32[B, P],
) -> ck.f16[B, H, S, E]:
    """Attend to the latent vectors of a cache in pages, of which the first 512 elements are v."""
    return ck.attention(q, keys, values, seqlens_k=lengths, block_table=table, scale=SCALE)


def main() -> None:
    """One new token of three sequences: 32 query heads share one latent head of the cache."""
    rng = np.random.default_rng(0)

    def half(*shape: int) -> np.ndarray:
        return rng.uniform(-1, 1, shape).astype(np.float16)

    heads = 32
    lengths = np.array([50, 3, 64], np.int32)
    table = rng.permutation(12).reshape(3, 4).astype(np.int32)
    cache = half(12, 1, PAGE, LATENT + ROTARY)
    values = cache[..., :LATENT]  # a view: the cache is stored once
    q = half(3, heads, 1, LATENT + ROTARY)
    op = decode.using(splits=1)
    print("the heads are  workgroups  error / bound")
    results = []
    # Heads that share their keys become rows of one tile by themselves where that is quicker: a
    # tile of 64 then reads the cache once. Written as rows, they are so in any case.
    for name, asked in (("heads", q), ("rows", q.transpose(0, 2, 1, 3))):
        args = (asked, cache, values, lengths, table)
        o = op(*args)
        result = report(op, args, o)
        result.check()
        assert op.last is not None
        (launch,) = op.last.launches
        assert isinstance(launch.key.algorithm, ck.dispatch.AttentionAlgorithm)
        assert launch.key.algorithm.pipeline.value == "long_head"
        print(f"{name:13}  {np.prod(launch.grid):10}  {result.ratio:13.2f}")
        results.append(o)
    assert (results[0] == results[1].transpose(0, 2, 1, 3)).all(), "the same bits"


if __name__ == "__main__":
    main()
