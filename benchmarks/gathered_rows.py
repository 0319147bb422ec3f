# SPDX-License-Identifier: MIT
"""Products that read the rows of A at indices beside those of rows that were copied before.

    python benchmarks/gathered_rows.py

Wave instructions and bytes of a small product on the emulator, by one algorithm, and predicted
times of a layer's share of one expert on MI300X. Counts are the same on every machine.
"""

from __future__ import annotations

import re

import numpy as np

import cklang as ck

ARCH = "gfx942"
T, M, N, K = ck.dims("T M N K")
ALGORITHM = ck.Algorithm(
    tile=(64, 64, 32), warps=(2, 2, 1), warp_tile=(16, 16, 16), vector_a=8, vector_b=8, vector_e=8
)
SHAPES = (("Mixtral 8x7B", 1024, 4096, 14336), ("DeepSeek-V3", 256, 7168, 2048))
"""Of the product of one expert of each model: tokens of 4096, hidden size, columns."""


@ck.op
def stored(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
    """The rows follow each other."""
    return ck.gelu(x @ w.T)


@ck.op
def gathered(x: ck.f16[T, K], rows: ck.i32[M], w: ck.f16[N, K]) -> ck.f16[M, N]:
    """The rows are those of a table."""
    return ck.gelu(x[rows] @ w.T)


@ck.op
def copied(x: ck.f16[T, K], rows: ck.i32[M]) -> ck.f16[M, K]:
    """The copy alone."""
    return x[rows]


def counts() -> None:
    """Print the table of instructions and bytes."""
    rng = np.random.default_rng(0)
    x, w = (rng.uniform(-1, 1, shape).astype(np.float16) for shape in ((512, 512), (512, 512)))
    rows = rng.integers(0, 512, 256).astype(np.int32)
    calls = (
        ("product of stored rows", stored.using(ALGORITHM), (x[rows], w)),
        ("product that reads at indices", gathered.using(ALGORITHM), (x, rows, w)),
        ("copy of the rows", copied, (x, rows)),
    )
    print("| kernel | wave instructions | bytes loaded | bytes stored |\n|---|---|---|---|")
    for name, op, args in calls:
        op(*args, device=f"emu:{ARCH}")
        stats = ck.emulator.stats(0)
        numbers = (stats.instructions, stats.bytes_loaded, stats.bytes_stored)
        print(f"| {name} |", " | ".join(f"{each:,}" for each in numbers), "|", flush=True)


def predictions() -> None:
    """Print the table of predicted times."""
    print("\n| expert of | rows | K | N | predicted, µs | more with a copy, µs |")
    print("|---|---|---|---|---|---|")
    for name, m, k, n in SHAPES:
        x, w = np.empty((4096, k), np.float16), np.empty((n, k), np.float16)
        text = gathered.explain(x, np.zeros(m, np.int32), w, device=f"emu:{ARCH}")
        times = re.findall(r"([\d.]+) µs predicted, ([\d.]+) more with a copy", text)[0]
        print(f"| {name} | {m} | {k} | {n} | {times[0]} | {times[1]} |")


if __name__ == "__main__":
    counts()
    predictions()
