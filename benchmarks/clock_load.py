# SPDX-License-Identifier: MIT
"""Fit the clock frequency under load to published measurements, and say how far off the fit is.

    python benchmarks/clock_load.py

Reads ``silicon/microbench.csv`` of ``CKLANG_DATA_DIR``: an f32 stream with more and more arithmetic
on an MI300X at its limit of power, with bandwidth, rate and clock of each. The law is the one of
``cklang/clock/power.py``. Each stretch of five neighbouring points is predicted from all others.

Products: instruction traces of an MI325X have the cycles of a whole launch, and their authors its
microseconds without the trace; each product is predicted from the others.
"""

from __future__ import annotations

import csv
import gzip
import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import numpy.typing as npt
from data.silicon import folder

from cklang.arch import arch

_WHAT = "fp32 stream with arithmetic: "
_COLUMNS = ("bandwidth", "fp32 rate", "clock under load")
_STRETCH = 5
_MEGA = 1e6

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


def slowdown(table: Floats) -> float:
    """Return how much longer a cycle is for each TFLOP/s, as a share: the median of products."""
    highest = arch("gfx942").clock_hz / _MEGA
    return float(np.median((highest / table[:, 0] - 1) / table[:, 1]))


def print_products(path: Path) -> None:
    """Print the clock of each product, and that which the others predict."""
    found = products(path)
    table = np.array(list(found.values()))
    highest = arch("gfx942").clock_hz / _MEGA
    errors = []
    for place, (name, (mhz, rate)) in enumerate(found.items()):
        others = slowdown(np.delete(table, place, axis=0))
        clock = highest / (1 + others * rate)
        errors.append(abs(clock / mhz - 1))
        print(
            f"{name}: {mhz:.0f} MHz, by the others {clock:.0f}, {rate:.0f} TFLOP/s at {highest:.0f}"
        )
    print(f"load_clock_matrix {slowdown(table):.3e} for a TFLOP/s, {len(table)} products, ", end="")
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


if __name__ == "__main__":
    main()
