# SPDX-License-Identifier: MIT
"""Attention over sequence lengths: products, time, and what a causal mask saves.

python examples/11_attention_sweep.py
"""

from __future__ import annotations

import time

import numpy as np

import cklang as ck

B, H, G, S, T, D = ck.dims("B H G S T D")


@ck.op
def causal(
    q: ck.f16[B, H, S, D], k: ck.f16[B, G, T, D], v: ck.f16[B, G, T, D]
) -> ck.f16[B, H, S, D]:
    """Hide later keys; the last query sees all of them."""
    return ck.attention(q, k, v, mask=ck.causal("bottom_right"))


def main() -> None:
    """Print a row for each length: on an emulated GPU times are those of the emulator."""
    rng = np.random.default_rng(0)
    print("| length | Mflop | ms | Gflop/s |\n|---|---|---|---|")
    for length in (64, 128, 256, 512):
        q, k, v = (rng.uniform(-1, 1, (1, 2, length, 64)).astype(np.float16) for _ in range(3))
        causal(q, k, v)  # builds and loads
        start = time.perf_counter()
        o = causal(q, k, v)
        seconds = time.perf_counter() - start
        # Two products of length x length x 64 for each head, of which the mask leaves half.
        flops = 2 * 2 * 2 * 64 * length * (length + 1) / 2
        print(
            f"| {length} | {flops / 1e6:.1f} | {seconds * 1e3:.1f} | {flops / seconds / 1e9:.2f} |"
        )
        assert np.isfinite(o).all()


if __name__ == "__main__":
    main()
