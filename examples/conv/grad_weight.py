# SPDX-License-Identifier: MIT
"""The gradient of a convolution by its weight: a long sum, which workgroups may share.

python examples/conv/grad_weight.py
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import cklang as ck
from cklang.families.gemm.key import Reduction
from cklang.testing import report

N, C, K, H, W, Ho, Wo = ck.dims("N C K H W Ho Wo")


@ck.op
def step(
    x: ck.f16[N, H, W, C], dy: ck.f16[N, Ho, Wo, K], w: ck.f16[K, 3, 3, C]
) -> ck.f16[K, 3, 3, C]:
    """Return w after a step down its gradient: the update is the gradient's epilogue."""
    return w - 0.125 * ck.conv_grad_weight(x, dy, padding=1)


ALONE = ck.dispatch.Algorithm(
    tile=(64, 64, 32),
    warps=(2, 2, 1),
    warp_tile=(16, 16, 16),
    vector_a=1,
    vector_b=1,
    vector_e=1,
    vector_d=(1,),
)
SHARED = {
    "one workgroup a tile": ALONE,
    "split-K by 3": replace(ALONE, split_k=3, reduction=Reduction.WORKSPACE),
    "split-K, a tree": replace(ALONE, split_k=3, reduction=Reduction.TREE),
}


def main() -> None:
    """Take a step in each way."""
    rng = np.random.default_rng(0)
    x, dy = (rng.uniform(-1, 1, (2, 14, 14, c)).astype(np.float16) for c in (16, 24))
    w = rng.uniform(-1, 1, (24, 3, 3, 16)).astype(np.float16)
    args = (x, dy, w)
    print(f"{2 * 14 * 14} terms for each of {w.size} sums")
    print("sharing               workgroups  workspace bytes  error / bound")
    for name, algorithm in SHARED.items():
        op = step.using(algorithm)
        y = op(*args)
        result = report(op, args, y)
        result.check()
        np.testing.assert_array_equal(op(*args), y)  # the parts are added in one order
        assert op.last is not None
        blocks = int(np.prod(op.last.launches[0].grid))
        space = op.last.workspace_bytes
        print(f"{name:20}  {blocks:10}  {space:15}  {result.ratio:13.2f}")


if __name__ == "__main__":
    main()
