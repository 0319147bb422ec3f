# SPDX-License-Identifier: MIT
"""Workgroups that share the sum over K: split-K and stream-K, their parts added in one order.

python examples/gemm/stream_k.py

A product with few tiles and a long K leaves most of a GPU idle. Split-K cuts K into equal parts;
stream-K gives every workgroup the same number of K steps, whatever the number of tiles.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import cklang as ck
from cklang.families.gemm.key import Reduction
from cklang.testing import report

M, N, K = ck.dims("M N K")


@ck.op
def fused(x: ck.f16[M, K], w: ck.f16[N, K], bias: ck.f16[N], res: ck.f16[M, N]) -> ck.f16[M, N]:
    """Return gelu(x @ w.T + bias) + res."""
    return ck.gelu(x @ w.T + bias) + res


ALONE = ck.dispatch.Algorithm(
    tile=(64, 64, 32),
    warps=(2, 2, 1),
    warp_tile=(16, 16, 16),
    vector_a=1,
    vector_b=1,
    vector_e=1,
    vector_d=(1, 1),
)
SHARED = {
    "one workgroup a tile": ALONE,
    "split-K by 5": replace(ALONE, split_k=5, reduction=Reduction.WORKSPACE),
    "stream-K": replace(ALONE, stream_k=True, reduction=Reduction.WORKSPACE),
}


def main() -> None:
    """Run one tile of a long sum in each way; sums in one order repeat bit for bit."""
    rng = np.random.default_rng(0)
    shapes = (40, 777), (56, 777), (56,), (40, 56)
    args = [rng.uniform(-1, 1, shape).astype(np.float16) for shape in shapes]
    print("sharing               workgroups  workspace bytes  error / bound")
    for name, algorithm in SHARED.items():
        op = fused.using(algorithm)
        y, again = op(*args), op(*args)
        np.testing.assert_array_equal(y, again)
        result = report(op, args, y)
        result.check()
        assert op.last is not None
        blocks = int(np.prod(op.last.launches[0].grid))
        print(f"{name:20}  {blocks:10}  {op.last.workspace_bytes:15}  {result.ratio:13.2f}")
        assert (blocks > 1) == (algorithm is not ALONE)


if __name__ == "__main__":
    main()
