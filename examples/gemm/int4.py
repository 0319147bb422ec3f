# SPDX-License-Identifier: MIT
"""Weights of 4 bits, two in a byte, converted and scaled inside the product's kernel.

python examples/gemm/int4.py
"""

from __future__ import annotations

import numpy as np

import cklang as ck
from cklang.testing import report

M, N, K = ck.dims("M N K")


@ck.op
def linear(x: ck.f16[M, K], w: ck.i4[N, K], scale: ck.f32[N], res: ck.f16[M, N]) -> ck.f16[M, N]:
    """Return gelu((x @ w.T) * scale) + res, a scale for each output channel."""
    return ck.gelu((x @ w.T) * scale) + res


ALGORITHM = ck.dispatch.Algorithm(
    tile=(64, 64, 32),
    warps=(2, 2, 1),
    warp_tile=(16, 16, 32),
    vector_a=8,
    vector_b=8,
    vector_e=8,
    vector_d=(4, 8),
)
OP = linear.using(ALGORITHM)


def quantised(w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ``w`` in 4 bits and the factor of each row."""
    scale = np.abs(w).max(axis=1) / 7
    return np.rint(w / scale[:, None]).astype(ck.i4.numpy), scale.astype(np.float32)


def main() -> None:
    """Quantise a weight, pack it, and see what quantising costs in accuracy and saves in bytes."""
    rng = np.random.default_rng(0)
    n, k = 136, 208
    dense = rng.standard_normal((n, k)).astype(np.float32)
    codes, scale = quantised(dense)
    packed = ck.pack(codes)  # once; two elements share a byte
    assert (packed.unpack() == codes).all()
    print(f"weight: {dense.astype(np.float16).nbytes} bytes as f16, {packed.data.nbytes} packed")

    print("rows  error / bound  relative distance from the weight before quantising")
    for m in (8, 64):
        x, res = (rng.uniform(-1, 1, shape).astype(np.float16) for shape in ((m, k), (m, n)))
        y = OP(x, packed, scale, res)
        result = report(linear, (x, packed, scale, res), y)
        result.check()
        exact = ck.gelu(x.astype(np.float32) @ dense.T) + res
        far = np.linalg.norm(y - exact) / np.linalg.norm(exact)
        print(f"{m:4}  {result.ratio:13.2f}  {far:.3f}")
        assert far < 0.2


if __name__ == "__main__":
    main()
