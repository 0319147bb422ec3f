# SPDX-License-Identifier: MIT
"""Split-KV: workgroups share the keys of few queries, and a second kernel adds their parts.

python examples/attention/splits.py
"""

from __future__ import annotations

import numpy as np

import cklang as ck
from cklang.testing import report

B, H, G, S, T, D, E = ck.dims("B H G S T D E")


@ck.op
def decode(
    q: ck.f16[B, H, S, D],
    k: ck.f16[B, G, T, D],
    v: ck.f16[B, G, T, E],
    slopes: ck.f32[H],
) -> ck.f16[B, H, S, E]:
    """Attend from the last queries to all keys, scores lowered by distance."""
    return ck.attention(
        q,
        k,
        v,
        mask=ck.causal("bottom_right"),
        score=lambda s, h, i, j: s + slopes[h] * (j - i).to(ck.f32),
    )


def main() -> None:
    """Split by hand; without ``splits=`` the cost model decides, by the GPU's compute units."""
    rng = np.random.default_rng(0)
    q = rng.uniform(-1, 1, (1, 4, 2, 64)).astype(np.float16)
    k, v = (rng.uniform(-1, 1, (1, 2, 600, 64)).astype(np.float16) for _ in range(2))
    slopes = rng.uniform(0, 0.01, 4).astype(np.float32)
    args = (q, k, v, slopes)
    print("splits  launches  workgroups  workspace bytes  error / bound")
    for splits in (1, 2, 3, 5):
        op = decode.using(splits=splits)
        o = op(*args)
        result = report(op, args, o)
        result.check()
        np.testing.assert_array_equal(op(*args), o)
        assert op.last is not None
        launches, space = op.last.launches, op.last.workspace_bytes
        blocks = int(np.prod(launches[0].grid))
        print(f"{splits:6}  {len(launches):8}  {blocks:10}  {space:15}  {result.ratio:13.2f}")
        assert len(launches) == (1 if splits == 1 else 2)


if __name__ == "__main__":
    main()
