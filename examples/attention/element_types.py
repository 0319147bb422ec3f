# SPDX-License-Identifier: MIT
"""Attention in f16, bf16 and 8-bit floats, and how far each is from float64.

python examples/attention/element_types.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

import cklang as ck
from cklang.testing import report

B, H, G, S, T, D, E = ck.dims("B H G S T D E")
F: Any = ck.dtype_var("F", ck.f16, ck.bf16)


@ck.op
def attend(q: F[B, H, S, D], k: F[B, G, T, D], v: F[B, G, T, E]) -> F[B, H, S, E]:
    """Return softmax(q k^T / sqrt(D)) v."""
    return ck.attention(q, k, v)


@ck.op
def eight(
    q: ck.fp8_fnuz[B, H, S, D],
    k: ck.fp8_fnuz[B, G, T, D],
    v: ck.fp8_fnuz[B, G, T, E],
    scale: ck.const[float],
) -> ck.bf16[B, H, S, E]:
    """Attend on 8-bit floats of gfx942; gfx950 and gfx1201 take ck.fp8."""
    return ck.attention(q, k, v, scale=scale, mask=ck.causal("bottom_right"))


def quantised(x: np.ndarray) -> tuple[np.ndarray, float]:
    """Return x in 8 bits, and what it was divided by."""
    factor = float(np.abs(x).max() / 240)
    return (x / factor).astype(ck.fp8_fnuz.numpy), factor


def main() -> None:
    """Run each type on the same numbers."""
    rng, device = np.random.default_rng(0), "emu:gfx942"
    print("type      error / bound  largest distance from float64")
    q, k, v = (rng.uniform(-1, 1, (1, 2, rows, 64)).astype(np.float32) for rows in (70, 90, 90))
    exact = np.asarray(ck.attention(*(x.astype(np.float64) for x in (q, k, v))))
    for dtype in (ck.f16, ck.bf16):
        args = [x.astype(dtype.numpy) for x in (q, k, v)]
        o = attend(*args, device=device)
        result = report(attend, args, o)
        result.check()
        print(f"{dtype.name:8}  {result.ratio:13.2f}  {np.abs(o - exact).max():.2g}")

    q, k, v = (rng.uniform(-1, 1, (1, 2, rows, 128)).astype(np.float32) for rows in (70, 90, 90))
    (q8, of_q), (k8, of_k), (v8, of_v) = (quantised(x) for x in (q, k, v))
    scale = of_q * of_k * 128**-0.5
    o = eight(q8, k8, v8, scale, device=device)
    result = report(eight, (q8, k8, v8), o, scale=scale)
    result.check()
    full = [x.astype(np.float64) for x in (q, k, v)]
    exact = np.asarray(ck.attention(*full, mask=lambda i, j: j <= i + 20))
    far = np.abs(o.astype(np.float32) * of_v - exact).max()
    print(f"fp8_fnuz  {result.ratio:13.2f}  {far:.2g}")
    assert far < 0.2


if __name__ == "__main__":
    main()
