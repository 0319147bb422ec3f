# SPDX-License-Identifier: MIT
"""Fit the clock frequency under load to published measurements, and say how far off the fit is.

    python benchmarks/clock_load.py

Reads ``silicon/microbench.csv`` of ``CKLANG_DATA_DIR``: an f32 stream with more and more arithmetic
on an MI300X at its limit of power, with bandwidth, rate and clock of each. The law is the one of
``cklang/emulator/clock/power.py``. Each stretch of five neighbouring points is predicted from all
others.

Matrix instructions, by board: AMD has published the rate and the clock of the quickest products on
an MI300X and an MI325X ("Measuring Max-Achievable FLOPs", part 2, AMD's ROCm blogs, February 2025).
Instruction traces of five other products on an MI325X, of which the cycles and, without the trace,
the microseconds are known, are held out. For an MI355X there are rates alone: those at which the
products of several libraries end alike. Their matrix units are taken to be busy for as many cycles
as on the older boards, where both are known; those of AITER's products in fp4, as the clock times
the very binaries. Products of CK Tile in fp8, which the clock times without power, say how much a
board bears at its highest clock. Nothing of attention is in it (``clock_attention.py``).
"""

from __future__ import annotations

import csv
import gzip
import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import numpy.typing as npt
from clock_aiter import Kernels, points
from data.silicon import folder

from cklang.arch import arch
from cklang.emulator.clock.constants import constants_of
from cklang.emulator.clock.hierarchy import EMPTY
from cklang.emulator.clock.kernel import launch_detail
from cklang.emulator.clock.power import board_of, clock_of_products

_WHAT = "fp32 stream with arithmetic: "
_COLUMNS = ("bandwidth", "fp32 rate", "clock under load")
_STRETCH = 5
_MEGA, _TERA = 1e6, 1e12
_PEAKS = {"f16": "f16", "bf16": "bf16", "f8": "fp8"}

Floats = npt.NDArray[np.float64]


def measured(path: Path) -> Floats:
    """Return GB/s, GFLOP/s and MHz of each point, [point, column]."""
    points: dict[float, dict[str, float]] = defaultdict(dict)
    with (path / "microbench.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            if row["gpu"] == "MI300X" and row["what"].startswith(_WHAT):
                intensity = float(row["parameter"].split()[0])
                points[intensity][row["what"].removeprefix(_WHAT)] = float(row["value"])
    return np.array([[points[at][name] for name in _COLUMNS] for at in sorted(points)])


def fitted(table: Floats) -> Floats:
    """Return the clock without load, and what a GB/s and a GFLOP/s take of it, in MHz."""
    terms = np.column_stack([np.ones(len(table)), -table[:, 0], -table[:, 1]])
    numbers, *_ = np.linalg.lstsq(terms, table[:, 2], rcond=None)
    return np.asarray(numbers, np.float64)


def predicted(numbers: Floats, table: Floats) -> Floats:
    """Return the clock of each point in MHz."""
    free, of_byte, of_flop = numbers
    result: Floats = free - of_byte * table[:, 0] - of_flop * table[:, 1]
    return result


def products(path: Path) -> dict[str, tuple[float, float]]:
    """Return MHz and, at the highest clock, TFLOP/s of the traced products whose time is known."""
    highest = arch("gfx942").clock_hz / _MEGA
    found = {}
    for file in sorted(path.glob("att_gfx942_*.json.gz")):
        trace = json.loads(gzip.decompress(file.read_bytes()))
        us = trace["kernel_us_without_trace"]
        if us is None:
            continue
        times = [row[0] for rows in trace["occupancy"].values() for row in rows]
        mhz = (max(times) - min(times)) / us
        rate = 2 * trace["M"] * trace["N"] * trace["K"] / us / _MEGA
        found[trace["kernel"]] = (mhz, rate * highest / mhz)
    return found


_PUBLISHED = {
    ("MI300X", "f16"): (654.0, 1115.0),
    ("MI300X", "bf16"): (708.0, 1207.0),
    ("MI300X", "f8"): (1273.0, 1230.0),
    ("MI325X", "f16"): (794.0, 1354.0),
    ("MI325X", "bf16"): (843.0, 1447.0),
    ("MI325X", "f8"): (1519.0, 1464.0),
}
"""TFLOP/s and MHz of the quickest products, by board and kind of elements."""
_LENGTH = "16384"
"""Of products that are limited by power."""
_LIMITED = {
    "bf16": ("AITER", "HipKittens", "PyTorch", "hipBLASLt"),
    "fp8": ("HipKittens", "hipBLASLt"),
}
"""Implementations that attain the same rate, by type."""
_NOT_SLOWED = 2000.0
"""TFLOP/s of the quickest of CK Tile's fp8 products at the highest clock, which are not slowed."""
_QUICK = 5600.0
"""TFLOP/s that products in fp4 attain where power limits them."""
_MOST_K, _MOST_BYTES = 30_000, 1 << 30
_F16 = "f16"


def longer(at_highest: float, attained: float) -> float:
    """Return how much longer a cycle is, as a share, from two rates."""
    return at_highest / attained - 1


def costs(board: str) -> dict[str, float]:
    """Return the published cost of each kind on a board, for a TFLOP/s at the highest clock."""
    highest = arch("gfx942").clock_hz / _MEGA
    found = {}
    for (name, kind), (rate, mhz) in _PUBLISHED.items():
        if name == board:
            at_highest = rate * highest / mhz
            found[kind] = longer(at_highest, rate) / at_highest
    return found


def busy(kind: str) -> float:
    """Return the share of cycles that matrix units are busy, the mean over boards."""
    spec = arch("gfx942")
    peak = {entry.dtype: entry.flops_per_clock for entry in spec.matrix_rates}[_PEAKS[kind]]
    shares = [
        rate * _TERA / (peak * spec.compute_units * mhz * _MEGA)
        for (_, each), (rate, mhz) in _PUBLISHED.items()
        if each == kind
    ]
    return float(np.mean(shares))


def attained(path: Path, dtype: str, gpu: str = "MI355X") -> Floats:
    """Return the TFLOP/s of the largest products by some libraries."""
    with (path / "kernel_times.csv").open(newline="") as file:
        rates = [
            float(row["tflops"])
            for row in csv.DictReader(file)
            if (row["gpu"], row["op"], row["dtype"], row["M"], row["latest"])
            == (gpu, "gemm", dtype, _LENGTH, "1")
            and row["implementation"] in _LIMITED[dtype]
        ]
    return np.array(rates)


def fp4_products(path: Path) -> Floats:
    """Return the TFLOP/s attained and at the highest clock, [product, 2]."""
    spec, constants, kernels = arch("gfx950"), constants_of("gfx950"), Kernels()
    rows = []
    for point in points(path, ["256x256"], longer=True):
        m, n, k = point.extents
        rate = 2 * m * n * k / point.us / _MEGA
        if rate < _QUICK or k > _MOST_K or point.bytes > _MOST_BYTES:
            continue
        detail = launch_detail(kernels.record(point), spec, constants, point.bytes, kept=EMPTY)
        rows.append((rate, 2 * m * n * k / detail.cycles * spec.clock_hz / _TERA))
    return np.array(rows)


def print_boards(path: Path) -> None:
    """Print what products attain, and the costs of each board."""
    for dtype in _LIMITED:
        for gpu in ("MI350X", "MI355X"):
            rates = ", ".join(f"{rate:.0f}" for rate in sorted(attained(path, dtype, gpu)))
            print(f"{gpu}, {dtype}, products of {_LENGTH}: {rates} TFLOP/s")
    for board in ("MI300X", "MI325X"):
        print(f"{board}: free 0, " + ", ".join(f"{k} {c:.3g}" for k, c in costs(board).items()))
    spec = arch("gfx950")
    peaks = {entry.dtype: entry.flops_per_clock for entry in spec.matrix_rates}
    unit = spec.compute_units * spec.clock_hz / _TERA
    wide, narrow = (peaks[_PEAKS[kind]] * unit * busy(kind) for kind in ("bf16", "f8"))
    slow = longer(narrow, float(np.median(attained(path, "fp8"))))
    free = slow / (narrow / _NOT_SLOWED - 1)
    fp4 = fp4_products(path)
    print(
        "MI355X, fp4, TFLOP/s and those by the clock: "
        + ", ".join(f"{a:.0f} {b:.0f}" for a, b in fp4)
    )
    four = float(np.median((fp4[:, 1] / fp4[:, 0] - 1 + free) / fp4[:, 1]))
    cost = (longer(wide, float(np.median(attained(path, "bf16")))) + free) / wide
    older = costs("MI300X")
    print(
        f"MI355X: free {free:.3g}, f16 {cost * older[_F16] / older['bf16']:.3g}, bf16 {cost:.3g}, "
        f"f8 {(slow + free) / narrow:.3g}, f4 {four:.3g} ({len(fp4)} products)"
    )


def print_products(path: Path) -> None:
    """Print the clock of each traced product, and that which the published numbers predict."""
    gpu, board = arch("gfx942"), board_of(constants_of("gfx942"), "MI325X")
    errors = []
    for name, (mhz, rate) in products(path).items():
        clock = None if board is None else clock_of_products(board, gpu, {"bf16": rate * _TERA})
        if clock is None:
            continue
        errors.append(abs(clock / _MEGA / mhz - 1))
        print(f"{name}: {mhz:.0f} MHz, by the law {clock / _MEGA:.0f}, {rate:.0f} TFLOP/s at 2100")
    print(f"held out: median {np.median(errors):.1%}, largest {max(errors):.1%}")


def main() -> None:
    """Print the numbers and the errors."""
    path = folder()
    if path is None:
        print("no folder 'silicon' in CKLANG_DATA_DIR: nothing to fit to")
        return
    table = measured(path)
    free, of_byte, of_flop = fitted(table)
    print(f"load_clock {free:.0f} MHz, load_clock_byte {of_byte:.4f} MHz for a GB/s, ", end="")
    print(f"load_clock_flop {of_flop:.5f} MHz for a GFLOP/s, {len(table)} points")
    errors = np.zeros(len(table))
    for begin in range(0, len(table), _STRETCH):
        held = np.zeros(len(table), dtype=bool)
        held[begin : begin + _STRETCH] = True
        clock = predicted(fitted(table[~held]), table[held])
        errors[held] = np.abs(clock / table[held, 2] - 1)
    print(f"held out: median {np.median(errors):.1%}, mean {errors.mean():.1%}, ", end="")
    print(f"largest {errors.max():.1%}")
    print_products(path)
    print_boards(path)


if __name__ == "__main__":
    main()
