# SPDX-License-Identifier: MIT
"""Compare the clock's times of CK Tile's products with times on an MI300X class GPU.

Reads ``silicon/ck_tile_gemm_16bit_gfx942*.csv`` of ``CKLANG_DATA_DIR``: f16, one kernel a shape.
Each kernel is compiled with the tiling that the table names; prints Markdown, with the times of
the analytic cost model beside. Each kernel is held out: the overhead of a launch is that which fits
the others' times below 10 µs.

python benchmarks/clock_products.py [--only s_64x64_k64_mem] [--points]
"""

from __future__ import annotations

import argparse
import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from data.silicon import folder

import cklang as ck
from cklang.families.gemm.key import Algorithm, Pipeline, Scheduler

_SMALL = 10.0
"""µs, below which a time is mostly that of the launch."""
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
        double_buffer=row["pipeline"] == "compv4",
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
    """Return the µs by the clock, without the overhead of a launch, and by the cost model."""
    m, n, k = extents
    x, w = np.empty((m, k), np.float16), np.empty((n, k), np.float16)
    op = product.using(algorithm)
    clock = ck.predict(op, x, w, device="emu:gfx942").us
    model = op.summary(x, w, device="emu:gfx942").microseconds
    return clock, model or float("nan")


Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Compared:
    """The points of all kernels."""

    kernel: npt.NDArray[np.str_]
    """[point]"""
    extents: tuple[tuple[int, int, int], ...]
    gpu: Floats
    """µs on the GPU, [point]."""
    clock: Floats
    """µs by the clock, without the overhead of a launch, [point]."""
    model: Floats
    """µs by the cost model, [point]."""


def with_overhead(compared: Compared) -> Floats:
    """Return the clock's µs, [point], with the overhead that fits the other kernels best."""
    result = compared.clock.copy()
    for name in set(compared.kernel.tolist()):
        of = compared.kernel == name
        others = ~of & (compared.gpu < _SMALL)
        missing = compared.gpu[others] - compared.clock[others]
        result[of] += max(0.0, float(np.median(missing))) if others.any() else 0.0
    return result


def rows_of(compared: Compared) -> list[str]:
    """Return a row of Markdown for each kernel and range of times, and for all kernels."""
    lines = [
        "| products | points | clock: median error, median of sizes | cost model |",
        "|---|---|---|---|",
    ]
    clock = with_overhead(compared) / compared.gpu - 1
    model = compared.model / compared.gpu - 1
    names = list(dict.fromkeys(compared.kernel.tolist()))
    for small, label in ((False, "above 10 µs"), (True, "below")):
        for name in [*names, "all"]:
            of = (compared.gpu < _SMALL) == small
            if name != "all":
                of &= compared.kernel == name
            if of.any():
                errors = " | ".join(map(_errors, (clock[of], model[of])))
                lines.append(f"| {name}, {label} | {of.sum()} | {errors} |")
    return lines


def _errors(relative: Floats) -> str:
    return f"{np.median(relative):+.0%}, {np.median(np.abs(relative)):.0%}"


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
    rows = [(name, *row) for name in options.only.split(",") for row in points(path, name)]
    ours = np.array([times(known[name], extents) for name, extents, _ in rows])
    compared = Compared(
        np.array([row[0] for row in rows]),
        tuple(row[1] for row in rows),
        np.array([row[2] for row in rows]),
        ours[:, 0],
        ours[:, 1],
    )
    if options.points:
        shown = zip(rows, with_overhead(compared), compared.model, strict=True)
        for (name, extents, us), clock, model in shown:
            print(f"{name} {extents}: {us:.2f}, clock {clock:.2f}, model {model:.2f}")
    print("\n".join(rows_of(compared)))


if __name__ == "__main__":
    main()
