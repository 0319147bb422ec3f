# SPDX-License-Identifier: MIT
"""Compare the clock's times of CK Tile's products with times on an MI300X class GPU.

Reads ``silicon/ck_tile_gemm_16bit_gfx942*.csv`` of ``CKLANG_DATA_DIR``: f16, one kernel a shape.
Each kernel is compiled with the tiling that the table names; prints Markdown, with the times of
the analytic cost model beside.

python benchmarks/clock_products.py [--only s_64x64_k64_mem] [--points]
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np
from data.silicon import folder

import cklang as ck
from cklang.families.gemm.key import Algorithm, Pipeline, Scheduler

_OVERHEAD = 3.3
"""µs of the shortest times of the table, which are those of a launch."""
_SMALL = 10.0
_DEFAULT = "s_64x64_k64_mem,s_64x64_k128_v3"
_PIPELINES = {"mem": Pipeline.MEM, "compv3": Pipeline.COMPV3, "compv4": Pipeline.COMPV4}

M, N, K = ck.dims("M N K")


@ck.op
def product(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
    """Multiply as the table's kernels do."""
    return x @ w.T


def algorithms(path: Path) -> dict[str, Algorithm]:
    """Return the kernels of the table."""
    with (path / "ck_tile_gemm_16bit_gfx942_kernels.csv").open(newline="") as file:
        return {row["kernel"]: _algorithm(row) for row in csv.DictReader(file)}


def _algorithm(row: dict[str, str]) -> Algorithm:
    warp_m, warp_n, warp_k = (int(part) for part in row["warp_tile"].split("x"))
    along_m, along_n, along_k = (int(part) for part in row["waves_mnk"].split("x"))
    return Algorithm(
        tile=(int(row["tile_m"]), int(row["tile_n"]), int(row["tile_k"])),
        warps=(along_m, along_n, along_k),
        warp_tile=(warp_m, warp_n, warp_k),
        pipeline=_PIPELINES[row["pipeline"]],
        scheduler=Scheduler(row["scheduler"]),
        vector_a=8,
        vector_b=8,
        vector_e=8,
    )


def points(path: Path, name: str) -> list[tuple[tuple[int, int, int], float]]:
    """Return the extents and µs of a kernel's f16 rows, where rows are multiples of 16 bytes."""
    with (path / "ck_tile_gemm_16bit_gfx942.csv").open(newline="") as file:
        rows = [r for r in csv.DictReader(file) if r["kernel"] == name and r["dtype"] == "fp16"]
    every = [((int(r["m"]), int(r["n"]), int(r["k"])), float(r["us"])) for r in rows]
    return [(mnk, us) for mnk, us in every if mnk[1] % 8 == 0 and mnk[2] % 8 == 0]


def times(algorithm: Algorithm, extents: tuple[int, int, int]) -> tuple[float, float]:
    """Return the µs by the clock, with the overhead of a launch, and by the cost model."""
    m, n, k = extents
    x, w = np.empty((m, k), np.float16), np.empty((n, k), np.float16)
    op = product.using(algorithm)
    clock = ck.predict(op, x, w, device="emu:gfx942").us
    model = op.summary(x, w, device="emu:gfx942").microseconds
    return clock + _OVERHEAD, model or float("nan")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=_DEFAULT, help="kernels, separated by commas")
    parser.add_argument("--points", action="store_true", help="print each point")
    options = parser.parse_args()
    path = folder()
    if path is None:
        print("no folder 'silicon' in CKLANG_DATA_DIR: nothing to compare the clock with")
        return
    known = algorithms(path)
    errors: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    for name in options.only.split(","):
        for extents, us in points(path, name):
            clock, model = times(known[name], extents)
            errors[us < _SMALL].append((clock / us - 1, model / us - 1))
            if options.points:
                print(
                    f"{name} {extents}: {us:.2f}, clock {clock:.2f}, model {model:.2f}", flush=True
                )
    print("| products | points | clock: median error, median of sizes | cost model |")
    print("|---|---|---|---|")
    for small, label in ((False, "above 10 µs"), (True, "below")):
        if not errors[small]:
            continue
        table = np.array(errors[small])
        median, size = np.median(table, axis=0), np.median(np.abs(table), axis=0)
        print(
            f"| {label} | {len(table)} | {median[0]:+.0%}, {size[0]:.0%} "
            f"| {median[1]:+.0%}, {size[1]:.0%} |"
        )


if __name__ == "__main__":
    main()
