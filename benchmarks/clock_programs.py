# SPDX-License-Identifier: MIT
"""Compare the clock's times of whole kernels with times on an MI300A.

The kernels of ``hip/programs.hip`` are written from descriptions: the programs that were timed are
not published, so a part of each error is that of another program. Reads the files
``mi300a_times.csv`` and ``microbench.csv`` in ``silicon`` of ``CKLANG_DATA_DIR``; prints Markdown.

python benchmarks/clock_programs.py [--only relu,fir] [--points]
"""

from __future__ import annotations

import argparse
import csv
import ctypes
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from data.silicon import folder, microbench

from cklang import emulator
from cklang.arch import ArchSpec, arch
from cklang.clock.constants import constants_of
from cklang.clock.kernel import launch_time
from cklang.clock.memory import at_footprint
from cklang.emulator.recording import RecordedLaunch, timing
from cklang.hipcc import driver

_SOURCE = Path(__file__).parent / "hip" / "programs.hip"
_UNITS = 228
_MOST_BYTES = 5 << 30


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch of a program: its shape, its numbers and the bytes that it must move."""

    groups: tuple[int, int]
    block: tuple[int, int]
    numbers: tuple[int, int, int]
    bytes: tuple[int, int, int]
    """Of the two inputs and of the output."""


def _up(count: int, size: int) -> int:
    return -(-count // size)


def _line(count: int, block: int, numbers: tuple[int, int, int], sizes: Any) -> Launch:
    return Launch((_up(count, block), 1), (block, 1), numbers, sizes)


def _vectoradd(n: int) -> Launch:
    return _line(n, 256, (n, 0, 0), (4 * n, 4 * n, 4 * n))


def _relu(n: int) -> Launch:
    return _line(n, 256, (n, 0, 0), (4 * n, 0, 4 * n))


def _fir(n: int, taps: int) -> Launch:
    return _line(n, 256, (n, taps, 0), (4 * n, 4 * taps, 4 * n))


def _simpleconvolution(n: int, _: int, mask: int) -> Launch:
    padded = (n + mask - 1) ** 2
    return _line(n * n, 64, (n, mask, 0), (4 * padded, 4 * mask * mask, 4 * n * n))


def _kmeans(n: int, features: int, clusters: int) -> Launch:
    sizes = (4 * n * features, 4 * features * clusters, 4 * n)
    return _line(n, 256, (n, features, clusters), sizes)


def _nbody(n: int) -> Launch:
    return _line(n, 256, (n, 0, 0), (16 * n, 16 * n, 16 * n))


def _matrixmultiplication(n: int, _: int, __: int) -> Launch:
    tiles = n // 32
    return Launch((tiles, tiles), (8, 8), (n, 0, 0), (4 * n * n,) * 3)


def _im2col(_: int, __: int, n: int, ___: int, mask: int, ____: int) -> Launch:
    size = (n - mask + 1) ** 2
    return _line(size, 256, (n, mask, 0), (4 * n * n, 0, 4 * size * mask * mask))


PROGRAMS: Mapping[str, Callable[..., Launch]] = {
    "vectoradd": _vectoradd,
    "relu": _relu,
    "fir": _fir,
    "simpleconvolution": _simpleconvolution,
    "kmeans": _kmeans,
    "nbody": _nbody,
    "matrixmultiplication": _matrixmultiplication,
    "im2col": _im2col,
}
_MOST_STEPS = {"nbody": 20_000, "matrixmultiplication": 2_048}
"""Sizes above take long to execute in a wave."""


def _numbers(size: str) -> list[int]:
    """Return the numbers in a size, such as 3 and 128 in ``128x128_mask3``."""
    digits = "".join(c if c.isdigit() else " " for c in size)
    return [int(word) for word in digits.split()]


def points(path: Path, names: list[str]) -> list[tuple[str, str, float, Launch]]:
    """Return kernel, size, µs and launch of the points that fit into memory."""
    chosen = []
    with (path / "mi300a_times.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            name = row["kernel"]
            if row["kernel_only"] != "1" or row["cus"] != "all" or name not in names:
                continue
            numbers = _numbers(row["size"])
            launch = PROGRAMS[name](*numbers)
            if sum(launch.bytes) <= _MOST_BYTES and numbers[0] <= _MOST_STEPS.get(name, 1 << 40):
                chosen.append((name, row["size"], float(row["min_us"]), launch))
    return chosen


class Module:
    """The compiled programs on the emulated GPU."""

    def __init__(self, folder: Path) -> None:
        emulator.load()
        from hip import hip

        self._hip: Any = hip
        bundle = folder / "programs.hipfb"
        driver.build(["--genco", "--offload-arch=gfx942", str(_SOURCE), "-o", str(bundle)], print)
        self._ok(self._hip.hipSetDevice(0))
        self._module = self._ok(self._hip.hipModuleLoadData(bundle.read_bytes()))
        self._memory = [int(self._ok(self._hip.hipMalloc(_MOST_BYTES))) for _ in range(3)]

    @staticmethod
    def _ok(answer: Any) -> Any:
        status, *values = answer
        if status.value:
            raise RuntimeError(status.name)
        return values[0] if values else None

    def record(self, name: str, launch: Launch) -> RecordedLaunch:
        """Run two workgroups of a launch, and return what they executed."""
        function = self._ok(self._hip.hipModuleGetFunction(self._module, name.encode()))
        arguments = (ctypes.c_uint64 * 5)()
        for place, address in enumerate(self._memory):
            arguments[place] = address
        packed = np.array([*launch.numbers, 0], np.int32)
        ctypes.memmove(ctypes.addressof(arguments) + 24, packed.ctypes.data, 16)
        size = ctypes.c_size_t(36)
        extra = (ctypes.c_void_p * 5)(1, ctypes.addressof(arguments), 2, ctypes.addressof(size), 3)
        shape = (*launch.groups, 1, *launch.block, 1, 0, None, None, extra)
        with timing(2, alone=True) as recording:
            self._ok(self._hip.hipModuleLaunchKernel(function, *shape))
            self._ok(self._hip.hipDeviceSynchronize())
        return recording.launches[0]


def clock_us(recorded: RecordedLaunch, launch: Launch, spec: ArchSpec) -> float:
    """Return the clock's time on a GPU with other compute units than the recorded one."""
    each = recorded.resident // arch("gfx942").compute_units
    scaled = replace(recorded, resident=each * spec.compute_units)
    constants = at_footprint(constants_of("gfx942"), sum(launch.bytes))
    return launch_time(scaled, spec, constants)[0].us


Times = dict[str, list[tuple[float, float, float]]]
"""By program: µs on the GPU, µs by the clock, µs of the bytes at the rate of a published stream."""


def held_out_errors(times: Times, bound: bool) -> dict[str, list[float]]:
    """Return the error of each point with the launch overhead that fits the other programs best."""
    errors: dict[str, list[float]] = {}
    for name, rows in times.items():
        others = [row for other, more in times.items() if other != name for row in more]
        small = [gpu - _ours(clock, floor, bound) for gpu, clock, floor in others if gpu < _SMALL]
        overhead = float(np.median(small)) if small else 0.0
        errors[name] = [
            _ours(clock, floor, bound) + max(overhead, 0.0) - gpu for gpu, clock, floor in rows
        ]
    return errors


_SMALL = 10.0
"""µs, below which a time is mostly that of the launch."""


def _ours(clock: float, floor: float, bound: bool) -> float:
    return max(clock, floor) if bound else clock


def rows_of(times: Times) -> list[str]:
    """Return a row of Markdown for each program, and one for all."""
    lines = [
        "| program | points | WMAPE, clock | WMAPE, bound by memory too | median error, then |"
    ]
    lines.append("|---|---|---|---|---|")
    both = [held_out_errors(times, bound) for bound in (False, True)]
    total = [0.0, 0.0, 0.0]
    for name, rows in times.items():
        actual = sum(row[0] for row in rows)
        weighted = [sum(map(abs, errors[name])) for errors in both]
        relative = [e / row[0] for e, row in zip(both[1][name], rows, strict=True)]
        total = [total[0] + actual, total[1] + weighted[0], total[2] + weighted[1]]
        shares = [f"{w / actual:.0%}" for w in weighted]
        lines.append(
            f"| {name} | {len(rows)} | {shares[0]} | {shares[1]} | {np.median(relative):+.0%} |"
        )
    relative = [
        abs(e) / row[0]
        for name, rows in times.items()
        for e, row in zip(both[1][name], rows, strict=True)
    ]
    lines.append(
        f"| all | {sum(map(len, times.values()))} | {total[1] / total[0]:.0%} | "
        f"{total[2] / total[0]:.0%} | {np.median(relative):.0%} of the size of each |"
    )
    return lines


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(PROGRAMS), help="programs, separated by commas")
    parser.add_argument("--points", action="store_true", help="print each point")
    options = parser.parse_args()
    path = folder()
    if path is None:
        print("no folder 'silicon' in CKLANG_DATA_DIR: nothing to compare the clock with")
        return
    spec = replace(arch("gfx942"), compute_units=_UNITS, chiplets=6)
    rate = 1e9 * max(float(r["value"]) for r in microbench(path, "MI300A", "DRAM stream, triad"))
    times: Times = {}
    with tempfile.TemporaryDirectory() as name:
        module = Module(Path(name))
        for program, size, gpu, launch in points(path, options.only.split(",")):
            clock = clock_us(module.record(program, launch), launch, spec)
            floor = sum(launch.bytes) / rate * 1e6
            times.setdefault(program, []).append((gpu, clock, floor))
            if options.points:
                groups = prod(launch.groups)
                print(f"{program} {size}: {groups} workgroups, GPU {gpu}, clock {clock:.2f}, "
                      f"memory {floor:.2f}", flush=True)  # fmt: skip
    print("\n".join(rows_of(times)))


if __name__ == "__main__":
    main()
