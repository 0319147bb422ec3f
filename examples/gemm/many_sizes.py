# SPDX-License-Identifier: MIT
"""One op for every size: what is compiled once, what is chosen anew, and what is remembered.

python examples/gemm/many_sizes.py
"""

from __future__ import annotations

import time

import numpy as np

import cklang as ck
from cklang.testing import report

M, N, K = ck.dims("M N K")


@ck.op
def linear(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
    """Return relu(x @ w.T)."""
    return ck.relu(x @ w.T)


SIZES = (
    (16, 16, 32),
    (64, 64, 64),
    (128, 64, 256),
    (1, 256, 64),  # one token
    (200, 8, 136),  # no multiple of a tile
    (37, 53, 71),  # no multiple of anything
    (0, 64, 64),  # nothing to do
)


def main() -> None:
    """Run every size twice; the second call plans nothing."""
    rng = np.random.default_rng(0)
    algorithm = ck.dispatch.Algorithm(
        tile=(64, 64, 32),
        warps=(2, 2, 1),
        warp_tile=(16, 16, 32),
        vector_a=1,
        vector_b=1,
        vector_e=1,
    )
    op = linear.using(algorithm)  # one kernel for all: nothing else is compiled
    print("   M    N    K  workgroups  first ms  again ms")
    kernels = set()
    for m, n, k in SIZES:
        args = [rng.uniform(-1, 1, shape).astype(np.float16) for shape in ((m, k), (n, k))]
        seconds = []
        for _ in range(2):
            start = time.perf_counter()
            y = op(*args)
            seconds.append(time.perf_counter() - start)
        report(op, args, y).check()
        assert op.last is not None
        assert op.last.memoised
        grids = [launch.grid for launch in op.last.launches]
        kernels |= {launch.artifact.folder for launch in op.last.launches}
        blocks = sum(int(np.prod(grid)) for grid in grids)
        first, again = (1e3 * each for each in seconds)
        print(f"{m:4} {n:4} {k:4}  {blocks:10}  {first:8.2f}  {again:8.2f}")
    assert len(kernels) == 1
    print(f"{len(SIZES)} sizes, {len(kernels)} kernel")


if __name__ == "__main__":
    main()
