# SPDX-License-Identifier: MIT
"""Compare the clock's time of CK Tile's dense attention with a time on an MI300X.

Reads ``silicon/ck_tile_attention_mi300.csv`` of ``CKLANG_DATA_DIR``: f16, batch 2, 16 heads, 8192
queries and keys of 128. The kernel is the one that cklang chooses; prints Markdown.

python benchmarks/clock_attention.py
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from data.silicon import folder

import cklang as ck

_BATCH, _HEADS, _LENGTH, _WIDTH = 2, 16, 8192, 128

B, H, S, D = ck.dims("B H S D")


@ck.op
def attention(
    q: ck.f16[B, H, S, D], k: ck.f16[B, H, S, D], v: ck.f16[B, H, S, D]
) -> ck.f16[B, H, S, D]:
    """Compute dense attention."""
    return ck.attention(q, k, v)


def measured(path: Path) -> float:
    """Return the median µs of the runs of dense attention."""
    with (path / "ck_tile_attention_mi300.csv").open(newline="") as file:
        (row,) = (row for row in csv.DictReader(file) if row["curve"] == "fmha_dense")
    return float(np.median([float(us) for name, us in row.items() if name.startswith("us_")]))


def main() -> None:
    """Print the table."""
    path = folder()
    if path is None:
        print("no folder 'silicon' in CKLANG_DATA_DIR: nothing to compare the clock with")
        return
    q, k, v = (np.zeros((_BATCH, _HEADS, _LENGTH, _WIDTH), np.float16) for _ in range(3))
    predicted = ck.predict(attention, q, k, v, device="emu:gfx942")
    gpu = measured(path)
    print("| attention, f16, 2 x 16 x 8192 x 128 | GPU | clock | error |\n|---|---|---|---|")
    kernels = ", ".join(kernel.kernel for kernel in predicted.kernels)
    print(f"| {kernels} | {gpu:.0f} µs | {predicted.us:.0f} µs | {predicted.us / gpu - 1:+.0%} |")


if __name__ == "__main__":
    main()
