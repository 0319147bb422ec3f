# SPDX-License-Identifier: MIT
"""A linear layer with bias, GELU and residual as one CK Tile kernel.

Run it anywhere: without an AMD GPU the same code object runs on an emulated one.

    python examples/01_linear_gelu.py
"""

from __future__ import annotations

import numpy as np

import cklang as ck
from cklang.testing import report

M, N, K = ck.dims("M N K")


@ck.op
def linear_gelu(
    x: ck.f16[M, K], w: ck.f16[N, K], bias: ck.f16[N], res: ck.f16[M, N]
) -> ck.f16[M, N]:
    """Return gelu(x @ w.T + bias) + res."""
    return ck.gelu(x @ w.T + bias) + res


def arrays(m: int, n: int, k: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Make the operands: x [m, k], w [n, k], bias [n] and res [m, n], all f16."""
    rng = np.random.default_rng(seed)
    shapes = ((m, k), (n, k), (n,), (m, n))
    return tuple(rng.uniform(-1, 1, shape).astype(np.float16) for shape in shapes)


def main() -> None:
    """Run the op on a round and on an odd size and check both against the reference."""
    for m, n, k in ((384, 512, 256), (200, 136, 72)):
        print(f"== M x N x K = {m} x {n} x {k}")
        args = arrays(m, n, k)
        y = linear_gelu(*args)
        print(linear_gelu.explain(*args))
        print(linear_gelu.last)
        result = report(linear_gelu, args, y)
        print(result)
        result.check()
        print("PASS\n")


if __name__ == "__main__":
    main()
