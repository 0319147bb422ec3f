# SPDX-License-Identifier: MIT
"""8-bit weights and activations with block scales, and MX operands: fused products of both.

python examples/09_block_scale.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

import cklang as ck
from cklang.testing import report
from cklang.types import DType

M, N, K = ck.dims("M N K")
# The two encodings of 8-bit floats: OCP on gfx950, FNUZ on gfx942.
F8: Any = ck.dtype_var("F8", ck.fp8, ck.fp8_fnuz)


@ck.op
def linear(
    x: F8[M, K],
    w: F8[N, K],
    scale_x: ck.f32[M, K / 128],
    scale_w: ck.f32[N / 128, K / 128],
    bias: ck.f32[N],
) -> ck.bf16[M, N]:
    """Return silu(x @ w.T + bias): a scale for 128 of each row of x, and for 128 x 128 of w."""
    return ck.silu(ck.gemm(x, w.T, scale_a=scale_x, scale_b=scale_w.T) + bias)


@ck.op
def mx_linear(
    x: ck.fp8[M, K], w: ck.fp8[N, K], scale_x: ck.e8m0[M, K / 32], scale_w: ck.e8m0[N, K / 32]
) -> ck.bf16[M, N]:
    """Return relu(x @ w.T) of MX operands, which have a power of two for 32 of each row."""
    return ck.relu(ck.gemm(x, w.T, scale_a=scale_x, scale_b=scale_w.T))


def quantised(
    x: np.ndarray, dtype: DType, rows: int, columns: int, *, powers: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return ``x`` in 8 bits and the scale of each block of ``rows`` by ``columns``."""
    counts = [-(-extent // size) for extent, size in zip(x.shape, (rows, columns), strict=True)]
    padded = np.zeros((counts[0] * rows, counts[1] * columns), np.float32)
    padded[: x.shape[0], : x.shape[1]] = x
    blocks = np.abs(padded).reshape(counts[0], rows, counts[1], columns)
    scale = np.maximum(blocks.max(axis=(1, 3)), 1e-6) / 200
    if powers:
        scale = np.exp2(np.ceil(np.log2(scale)))
    spread = np.kron(scale, np.ones((rows, columns), np.float32))
    return (x / spread[: x.shape[0], : x.shape[1]]).astype(dtype.numpy), scale


def main() -> None:
    """Run both and check every element against the reference."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((200, 336)).astype(np.float32)
    w = rng.standard_normal((160, 336)).astype(np.float32)
    bias = rng.standard_normal(160).astype(np.float32)

    for device, dtype in (("emu:gfx942", ck.fp8_fnuz), ("emu:gfx950", ck.fp8)):
        (qx, sx), (qw, sw) = quantised(x, dtype, 1, 128), quantised(w, dtype, 128, 128)
        args = (qx, qw, sx.astype(np.float32), sw.astype(np.float32), bias)
        y = linear(*args, device=device)
        print(f"== linear on {device}: K is 336, whose last block has 80")
        result = report(linear, args, y)
        print(result)
        result.check()

    (qx, sx), (qw, sw) = (quantised(each, ck.fp8, 1, 32, powers=True) for each in (x, w))
    operands = (qx, qw, sx.astype(ck.e8m0.numpy), sw.astype(ck.e8m0.numpy))
    y = mx_linear(*operands, device="emu:gfx950")
    print("\n== MX on gfx950: the matrix instructions apply the scales")
    print(mx_linear.last)
    result = report(mx_linear, operands, y)
    print(result)
    result.check()
    print("PASS")


if __name__ == "__main__":
    main()
