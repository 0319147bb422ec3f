# SPDX-License-Identifier: MIT
"""2:4 sparsity: of every four elements along K at most two are not zero, and half the work is left.

python examples/gemm/sparse.py
"""

from __future__ import annotations

import numpy as np

import cklang as ck
from cklang.testing import report

M, N, K = ck.dims("M N K")


@ck.op
def sparse(x: ck.f16[M, K], w: ck.f16[N, K], bias: ck.f16[N], res: ck.f16[M, N]) -> ck.f16[M, N]:
    """Return gelu(x @ w.T + bias) + res for an x that is 2:4 sparse."""
    return ck.gelu(ck.gemm(x, w.T, sparse="a") + bias) + res


@ck.op
def dense(x: ck.f16[M, K], w: ck.f16[N, K], bias: ck.f16[N], res: ck.f16[M, N]) -> ck.f16[M, N]:
    """Return the same of any x."""
    return ck.gelu(x @ w.T + bias) + res


PLAIN = ck.dispatch.Algorithm(
    tile=(64, 64, 32),
    warps=(2, 2, 1),
    warp_tile=(16, 16, 32),
    vector_a=1,
    vector_b=1,
    vector_e=1,
    vector_d=(1, 1),
)


def main() -> None:
    """Prune, check, multiply, and compare with the dense product of the pruned matrix."""
    rng = np.random.default_rng(0)
    shapes = (128, 200), (136, 200), (136,), (128, 136)
    x, *rest = (rng.uniform(-1, 1, shape).astype(np.float16) for shape in shapes)

    pruned = ck.sparse24.prune(x)  # the two largest of every four stay
    ck.sparse24.check(pruned)
    kept = np.count_nonzero(pruned) / pruned.size
    try:
        ck.sparse24.check(x)
    except ck.CkError as error:
        print(f"not pruned: {error.code}, {error.message}")
    else:
        raise AssertionError

    device = "emu:gfx950"
    print(f"{kept:.0%} of the elements are kept\nproduct  instructions  kernel")
    results = []
    for name, op in (("sparse", sparse), ("dense", dense.using(PLAIN))):
        y = op(pruned, *rest, device=device)
        report(op, (pruned, *rest), y).check()
        assert op.last is not None
        print(f"{name:7}  {op.last.instructions!s:>12}  {op.last.launches[0].key.label}")
        results.append(y.astype(np.float32))
    assert np.abs(results[0] - results[1]).max() < 2e-2


if __name__ == "__main__":
    main()
