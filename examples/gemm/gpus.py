# SPDX-License-Identifier: MIT
"""The same op on every GPU: CDNA2 to CDNA4, RDNA3 and RDNA4, each with kernels of its own.

python examples/gemm/gpus.py
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import cklang as ck
from cklang.testing import report

M, N, K = ck.dims("M N K")


@ck.op
def fused(x: ck.f16[M, K], w: ck.f16[N, K], bias: ck.f16[N], res: ck.f16[M, N]) -> ck.f16[M, N]:
    """Return gelu(x @ w.T + bias) + res."""
    return ck.gelu(x @ w.T + bias) + res


CDNA2 = ck.dispatch.Algorithm(
    tile=(64, 64, 32),
    warps=(2, 2, 1),
    warp_tile=(16, 16, 16),
    vector_a=1,
    vector_b=1,
    vector_e=1,
    vector_d=(1, 1),
)
CDNA3 = replace(CDNA2, warp_tile=(16, 16, 32))
RDNA3 = replace(CDNA2, warps=(4, 2, 1))
RDNA4 = replace(RDNA3, vector_a=8, vector_b=8, vector_e=8, vector_d=(8, 8))
GPUS = {"gfx90a": CDNA2, "gfx942": CDNA3, "gfx950": CDNA3, "gfx1100": RDNA3, "gfx1201": RDNA4}
"""Named, so that few kernels are compiled; without ``using`` the GPU's cost model chooses."""


def main() -> None:
    """Run on each emulated GPU; a program has one HIP library, and that one has all of them."""
    rng = np.random.default_rng(0)
    shapes = (75, 64), (32, 64), (32,), (75, 32)
    args = [rng.uniform(-1, 1, shape).astype(np.float16) for shape in shapes]
    print("GPU      wave  matrix instruction  instructions  error / bound")
    for gpu, algorithm in GPUS.items():
        op = fused.using(algorithm)
        with ck.using(arch=gpu):
            y = op(*args)
        result = report(op, args, y)
        result.check()
        assert op.last is not None
        (launch,) = op.last.launches
        assert launch.key.arch == gpu
        waves = int(np.prod(algorithm.warps))
        lanes = launch.block[0] // waves
        shape = "x".join(map(str, algorithm.warp_tile))
        count = op.last.instructions
        print(f"{gpu:7}  {lanes:4}  {shape:>18}  {count!s:>12}  {result.ratio:13.2f}")


if __name__ == "__main__":
    main()
