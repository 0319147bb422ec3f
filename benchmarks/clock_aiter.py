# SPDX-License-Identifier: MIT
"""Compare the clock's times of AITER's fp4 products with times on an MI355X: the very binaries.

Reads ``silicon/other_gemm_tuned.csv.gz`` of ``CKLANG_DATA_DIR``: the winners of AITER's tuning that
are code objects of the package ``amd-aiter`` (``lib`` asm, ``gemm_a4w4_blockscale``). Times are
those of the kernels alone, with operands that change from run to run, so the clock takes it that no
cache holds them. Prints Markdown, at the highest clock and at that which power leaves, which knows
products with a longer K of one of these kernels (``clock_load.py``). Each kernel is held out: the
time before the first and after the last instruction is that which fits the others' times below
10 µs.

python benchmarks/clock_aiter.py [--tile 256x256] [--every 10] [--points]
"""

from __future__ import annotations

import argparse
import csv
import gzip
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from aiter_binary import Binary, binaries
from clock_products import Compared, print_table
from data.silicon import folder
from hip_programs import hip_module, ok

from cklang.arch import arch
from cklang.device.device import open_device
from cklang.emulator.clock.constants import constants_of
from cklang.emulator.clock.hierarchy import EMPTY
from cklang.emulator.clock.kernel import launch_detail
from cklang.emulator.clock.power import board_of, us_under_load
from cklang.emulator.engine.recording import RecordedLaunch

GPU = "gfx950"
_TILES = "256x256,32x128,128x128,64x128"
_MOST_BYTES = 1 << 30
MOST_K = 17_000
"""Of the products that are compared."""
_THREADS = 256
_BLOCK = 32
"""Elements that share a scale."""
_K_STEP = 256
_ARGUMENTS = 384
"""Bytes."""


@dataclass(frozen=True, slots=True)
class Point:
    """A product that was timed."""

    kernel: str
    extents: tuple[int, int, int]
    log2_parts: int
    """Of K."""
    us: float

    @property
    def file(self) -> str:
        """The name of the code object."""
        return self.kernel[self.kernel.index("f4gemm") : -1]

    @property
    def tile(self) -> tuple[int, int]:
        """Rows and columns."""
        m, n = map(int, self.file.rpartition("_")[2].split("x"))
        return m, n

    @property
    def bytes(self) -> int:
        """Of operands, scales and the result."""
        m, n, k = self.extents
        return (m + n) * (k // 2 + k // _BLOCK) + 2 * m * n


def points(path: Path, tiles: list[str], *, longer: bool = False) -> list[Point]:
    """Return the points of kernels with some tiles, or those whose K is longer than ``MOST_K``."""
    with gzip.open(path / "other_gemm_tuned.csv.gz", "rt", newline="") as file:
        rows = [row for row in csv.DictReader(file) if (row["lib"], row["dtype"]) == ("asm", "fp4")]
    every = [
        Point(
            row["kernel"],
            (int(row["M"]), int(row["N"]), int(row["K"])),
            int(row["split_k"]),
            float(row["us"]),
        )
        for row in rows
    ]
    ends = tuple(f"_BpreShuffle_{tile}" for tile in tiles)
    return [p for p in every if p.file.endswith(ends) and (p.extents[2] >= MOST_K) == longer]


class Kernels:
    """The package's code objects on the emulated GPU."""

    def __init__(self) -> None:
        hip = hip_module()
        ok(hip.hipSetDevice(open_device(f"emu:{GPU}").index))
        self._memory = [int(ok(hip.hipMalloc(_MOST_BYTES))) for _ in range(5)]
        self._folder = binaries(GPU) / "f4gemm"
        self._known: dict[str, Binary] = {}

    def _kernel(self, point: Point) -> Binary:
        if point.kernel not in self._known:
            self._known[point.kernel] = Binary(self._folder / f"{point.file}.co", point.kernel)
        return self._known[point.kernel]

    def record(self, point: Point) -> RecordedLaunch:
        """Run one workgroup; return what it executed."""
        (m, n, k), parts = point.extents, 1 << point.log2_parts
        result, a, b, scale_a, scale_b = self._memory
        scales = -(-k // _BLOCK // 8) * 8
        # Pointers, factors, strides, extents, scales and their strides.
        values: list[int | float] = [result, 0, a, b, 1.0, 0.0]
        values += [n, 0, n, 0, k, 0, k, 0, m, n, k]
        values += [scale_a, scale_b, scales, 0, scales, 0, point.log2_parts]
        each = -(-k // parts // _K_STEP) * _K_STEP
        tile_m, tile_n = point.tile
        groups = (-(-n // tile_n), -(-m // tile_m), -(-k // each))
        return self._kernel(point).record(groups, _THREADS, values, size=_ARGUMENTS)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tile", default=_TILES, help="tiles, separated by commas")
    parser.add_argument("--every", type=int, default=10, help="of so many points one")
    parser.add_argument("--points", action="store_true", help="print each point")
    options = parser.parse_args()
    path = folder()
    if path is None:
        print("no folder 'silicon' in CKLANG_DATA_DIR: nothing to compare the clock with")
        return
    kernels, spec, constants = Kernels(), arch(GPU), constants_of(GPU)
    board = board_of(constants, "MI355X")
    chosen, clock, load = [], [], []
    for tile in options.tile.split(","):
        for point in points(path, [tile])[:: options.every]:
            recorded = kernels.record(point)
            detail = launch_detail(recorded, spec, constants, point.bytes, kept=EMPTY)
            chosen.append(point)
            clock.append(detail.cycles / spec.clock_hz * 1e6)
            slower = None if board is None else us_under_load(detail, board)
            load.append(clock[-1] if slower is None else slower)
    compared = Compared(
        np.array([point.file.rpartition("_")[2] for point in chosen]),
        tuple(point.extents for point in chosen),
        np.array([point.us for point in chosen]),
        np.array(clock),
        np.full(len(chosen), np.nan),
    )
    print_table(compared, points=options.points)
    print("\nUnder load:\n")
    print_table(replace(compared, clock=np.array(load)), points=options.points)


if __name__ == "__main__":
    main()
