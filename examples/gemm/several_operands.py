# SPDX-License-Identifier: MIT
"""Epilogues that read several tensors: rows, columns, scalars, masks and full matrices.

python examples/gemm/several_operands.py
"""

from __future__ import annotations

import numpy as np

import cklang as ck
from cklang.testing import report, reports

M, N, K = ck.dims("M N K")


@ck.op
def add_multiply(x: ck.f16[M, K], w: ck.f16[N, K], d0: ck.f16[N], d1: ck.f16[M, N]) -> ck.f16[M, N]:
    """Return (x @ w.T + d0) * d1, as in CK Tile's own example of several D."""
    return (x @ w.T + d0) * d1


@ck.op
def many(
    x: ck.f16[M, K],
    w: ck.f16[N, K],
    row: ck.f32[N],
    column: ck.bf16[M],
    alpha: ck.f32,
    mask: ck.bool_[M, N],
    turned: ck.f16[N, M],
    res: ck.bf16[M, N],
) -> ck.f32[M, N]:
    """Mix dtypes and shapes; nothing is broadcast or transposed in memory."""
    z = (x @ w.T) * alpha + row + column[:, None]
    return ck.where(mask, z, ck.tanh(turned.T)) - res


def main() -> None:
    """Run both; each is one launch."""
    rng = np.random.default_rng(0)

    def half(*shape: int) -> np.ndarray:
        return rng.uniform(-1, 1, shape).astype(np.float16)

    m, n, k = 75, 31, 63
    brain = ck.bf16.numpy
    few = [half(m, k), half(n, k), half(n), half(m, n)]
    mixed = [
        half(m, k),
        half(n, k),
        half(n).astype(np.float32),
        half(m).astype(brain),
        0.5,
        rng.random((m, n)) < 0.5,
        half(n, m),
        half(m, n).astype(brain),
    ]
    print("op            operands  launches  verdict")
    for op, args in ((add_multiply, few), (many, mixed)):
        y = op(*args)
        result = report(op, args, y)
        result.check()
        assert op.last is not None
        launches = op.last.launches
        assert len(launches) == 1
        operands = len(launches[0].key.signature.d)
        assert all(each.passed for each in reports(op, args, y))
        print(f"{op.program.name:12}  {operands:8}  {len(launches):8}  {result}")


if __name__ == "__main__":
    main()
