# SPDX-License-Identifier: MIT
"""One fused product from declaration to result, and the same with an algorithm of your own.

python examples/gemm/basic.py
"""

from __future__ import annotations

import numpy as np

import cklang as ck
from cklang.testing import report

M, N, K = ck.dims("M N K")


@ck.op
def layer(x: ck.f16[M, K], w: ck.f16[N, K], bias: ck.f16[N], res: ck.f16[M, N]) -> ck.f16[M, N]:
    """Return gelu(x @ w.T + bias) + res: all of it is one kernel."""
    return ck.gelu(x @ w.T + bias) + res


MINE = ck.dispatch.Algorithm(
    tile=(64, 64, 32),  # what a workgroup computes, and how far it goes along K at a time
    warps=(2, 2, 1),
    warp_tile=(16, 16, 32),
    vector_a=1,  # elements in one load: 1 fits every extent, stride and address
    vector_b=1,
    vector_e=1,
    vector_d=(1, 1),
)


def main() -> None:
    """Call the op with the default choice and with ``MINE``."""
    rng = np.random.default_rng(0)
    shapes = (96, 64), (80, 64), (80,), (96, 80)
    args = [rng.uniform(-1, 1, shape).astype(np.float16) for shape in shapes]

    print("kernel                                      instructions  error / bound")
    for op in (layer, layer.using(MINE)):
        y = op(*args)
        result = report(op, args, y)
        result.check()
        assert op.last is not None
        (launch,) = op.last.launches
        algorithm = launch.key.algorithm
        name = f"{algorithm.pipeline} {algorithm.tile}, loads of {algorithm.vector_a}"
        print(f"{name:42}  {op.last.instructions!s:>12}  {result.ratio:13.2f}")
    print(layer.explain(*args))


if __name__ == "__main__":
    main()
