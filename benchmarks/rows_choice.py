# SPDX-License-Identifier: MIT
"""The kernel of rows that the cost model chooses, beside others by the clock.

For sums, transposes and reductions of matrices, each tiling of a list is priced by the clock
(docs/clock.md) on the emulated GPU, and the one that the cost model chooses is set beside the
quickest:

    python benchmarks/rows_choice.py [--gpu gfx942] [--all]
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from kernelbench_ops import pointwise, row_sum, scaled

import cklang as ck

M, K, X = ck.dims("M K X")


@ck.op
def added(x: ck.f16[M, K], y: ck.f16[M, K]) -> ck.f16[M, K]:
    """A sum of matrices."""
    return x + y


@ck.op
def transposed(x: ck.f16[M, K]) -> ck.f16[K, M]:
    """A matrix with its axes exchanged."""
    return x.T


@ck.op
def added_transposed(x: ck.f16[M, K], y: ck.f16[K, M]) -> ck.f16[M, K]:
    """A sum of a matrix and a transposed one."""
    return x + y.T


@ck.op
def softmax(x: ck.f16[M, K]) -> ck.f16[M, K]:
    """The softmax of rows."""
    return ck.softmax(x)


TILINGS = ((256, 8), (256, 4), (1024, 8), (64, 8), (16, 8), (16, 4), (1, 8))
"""Threads of a row, and elements of a vector."""

CASES: tuple[tuple[Any, int, int], ...] = (
    (added, 16, 1000),
    (added, 64, 4096),
    (added, 1024, 4096),
    (added, 8192, 4096),
    (transposed, 64, 4096),
    (transposed, 4096, 64),
    (transposed, 512, 512),
    (transposed, 1024, 1024),
    (transposed, 4096, 4096),
    (added_transposed, 1024, 1024),
    (pointwise(scaled), 1024, 4096),
    (pointwise(scaled), 16384, 4096),
    (row_sum, 64, 65536),
    (row_sum, 512, 131072),
    (row_sum, 4096, 4096),
    (row_sum, 65536, 128),
    (softmax, 64, 32768),
    (softmax, 4096, 65536),
)


def arguments(op: Any, rows: int, columns: int) -> list[np.ndarray[Any, Any]]:
    """Return arrays for an op."""
    turned = {"y": (columns, rows)} if op is added_transposed else {}
    return [
        np.ones(turned.get(each.name, (rows, columns)), each.type.dtype.numpy)
        for each in op.program.signature.tensors
    ]


def main() -> None:
    """Print a row for each case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpu", default="gfx942")
    parser.add_argument("--all", action="store_true", help="print the time of each tiling")
    asked = parser.parse_args()
    device = f"emu:{asked.gpu}"
    print("| op | matrix | chosen | µs | quickest | µs |")
    print("|---|---|---|---|---|---|", flush=True)
    for op, rows, columns in CASES:
        args = arguments(op, rows, columns)
        ((key, _),) = op.kernels(*args, device=device)
        chosen = key.algorithm
        tried = dict.fromkeys((*TILINGS, (chosen.threads, chosen.vector)))
        times = {
            each: ck.predict(
                op.using(ck.dispatch.RowwiseAlgorithm(threads=each[0], vector=each[1])),
                *args,
                device=device,
            ).us
            for each in tried
        }
        best = min(times, key=lambda each: times[each])
        own = (chosen.threads, chosen.vector)
        cells = (
            f"{threads} x {vector} | {times[threads, vector]:.2f}"
            for threads, vector in (own, best)
        )
        print(f"| {op.program.name} | {rows} x {columns} | {' | '.join(cells)} |", flush=True)
        if asked.all:
            print("\n".join(f"    {each}: {us:.2f}" for each, us in times.items()), flush=True)


if __name__ == "__main__":
    main()
