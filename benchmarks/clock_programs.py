# SPDX-License-Identifier: MIT
"""Compare the clock's times of whole kernels with times on an MI300A.

The kernels of ``hip/programs.hip`` do what those of the programs that were timed do
(sarchlab/mgpusim, ``gpu_perf_scripts``); another compiler built those. Reads ``mi300a_times.csv``
in ``silicon`` of ``CKLANG_DATA_DIR``; prints Markdown. Each program is held out: one constant of
the dispatcher and the overhead of a launch are fitted to the others.

python benchmarks/clock_programs.py [--only relu,fir] [--points]
"""

from __future__ import annotations

import argparse
import csv
import struct
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from data.silicon import folder
from hip_programs import Programs, ok

from cklang.arch import ArchSpec, arch
from cklang.emulator.clock.constants import constants_of
from cklang.emulator.clock.kernel import all_rounds, launch_detail
from cklang.emulator.clock.waves import run_unit
from cklang.emulator.engine.recording import RecordedLaunch, timing

_SOURCE = Path(__file__).parent / "hip" / "programs.hip"
_BOARD = "MI300A"
_MOST_BYTES = 5 << 30


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch of a program: its shape, its numbers and the bytes that it must move."""

    groups: tuple[int, int]
    block: tuple[int, int]
    numbers: tuple[int, int, int]
    bytes: tuple[int, int, int, int]
    """Of two inputs, of the output, and of a buffer of the kernel or a third input."""


def _up(count: int, size: int) -> int:
    return -(-count // size)


def _line(count: int, block: int, numbers: tuple[int, int, int], sizes: Any) -> Launch:
    return Launch((_up(count, block), 1), (block, 1), numbers, sizes)


def _vectoradd(n: int) -> Launch:
    return _line(n, 256, (n, 0, 0), (4 * n, 4 * n, 4 * n, 0))


def _relu(n: int) -> Launch:
    return _line(n, 256, (n, 0, 0), (4 * n, 0, 4 * n, 0))


def _fir(n: int, taps: int) -> Launch:
    return _line(n, 256, (n, taps, 0), (4 * n, 4 * taps, 4 * n, 4 * taps))


def _simpleconvolution(n: int, _: int, mask: int) -> Launch:
    padded = (n + mask - 1) ** 2
    return _line(n * n, 64, (n, mask, 0), (4 * padded, 4 * mask * mask, 4 * n * n, 0))


def _kmeans(n: int, features: int, clusters: int) -> Launch:
    sizes = (4 * n * features, 4 * features * clusters, 4 * n, 0)
    return _line(n, 256, (n, features, clusters), sizes)


def _nbody(n: int) -> Launch:
    return _line(n, 256, (n, 0, 0), (16 * n, 16 * n, 32 * n, 16 * 256))


def _matrixmultiplication(n: int, _: int, __: int) -> Launch:
    tiles = n // 32
    return Launch((tiles, tiles), (8, 8), (n, 0, 0), (*(4 * n * n,) * 3, 16 * 256))


def _im2col(_: int, __: int, n: int, ___: int, mask: int, ____: int) -> Launch:
    size = (n - mask + 1) ** 2
    return _line(size, 256, (n, mask, 1), (4 * n * n, 0, 4 * size * mask * mask, 0))


def _matrixtranspose(n: int, _: int) -> Launch:
    return Launch((n // 64, n // 64), (16, 16), (n, 0, 0), (4 * n * n, 0, 4 * n * n, 0))


def _stencil2d(n: int, _: int) -> Launch:
    padded = 4 * (n + 2) * (n + 2)
    return Launch((n // 16, n // 64), (1, 64), (n, 0, 0), (padded, 0, padded, 0))


def _spmv_csr_scalar(n: int, _: int, nonzero: int) -> Launch:
    columns = _up(n + 1, _WORDS_OF_LINE) * _WORDS_OF_LINE
    sizes = (4 * nonzero, 4 * n, 4 * n, 4 * (columns + nonzero))
    return _line(n, 256, (n, columns, nonzero), sizes)


_WORDS_OF_LINE = 32

PROGRAMS: Mapping[str, Callable[..., Launch]] = {
    "vectoradd": _vectoradd, "relu": _relu, "fir": _fir, "simpleconvolution": _simpleconvolution,
    "kmeans": _kmeans, "nbody": _nbody, "matrixmultiplication": _matrixmultiplication,
    "im2col": _im2col, "matrixtranspose": _matrixtranspose, "stencil2d": _stencil2d,
    "spmv_csr_scalar": _spmv_csr_scalar,
}  # fmt: skip
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


class Recorder:
    """The compiled programs on the emulated GPU, and memory for their operands."""

    def __init__(self, where: Path) -> None:
        self._programs = Programs(_SOURCE, "gfx942", where)
        self._hip = self._programs.hip
        self._memory = [int(ok(self._hip.hipMalloc(_MOST_BYTES))) for _ in range(4)]

    def _write(self, address: int, words: npt.NDArray[np.int32]) -> None:
        kind = self._hip.hipMemcpyKind.hipMemcpyHostToDevice
        ok(self._hip.hipMemcpy(address, words, words.nbytes, kind))

    def record(self, name: str, launch: Launch) -> RecordedLaunch:
        """Run two workgroups of a launch, and return what they executed."""
        if name == "spmv_csr_scalar":
            self._write(self._memory[3], matrix(*launch.numbers))
        arguments = struct.pack("=4Q3i", *self._memory, *launch.numbers)
        with timing(2, alone=True) as recording:
            self._programs.launch(name, (*launch.groups, 1), (*launch.block, 1), arguments)
        return recording.launches[0]


def matrix(rows: int, columns: int, nonzero: int) -> npt.NDArray[np.int32]:
    """Return the first element of each row of a sparse matrix, and from ``columns`` on all columns.

    Args:
        rows: How many, all with as many elements, in columns beside each other.
        columns: Words before the columns.
        nonzero: Elements.
    """
    each = nonzero // rows
    words = np.zeros(columns + nonzero, np.int32)
    words[: rows + 1] = np.arange(rows + 1) * each
    words[columns:] = (np.arange(rows)[:, None] + np.arange(each)).ravel() % rows
    return words


def clock_us(recorded: RecordedLaunch, launch: Launch, spec: ArchSpec) -> list[float]:
    """Return the clock's time for each value of the fitted constant."""
    constants = constants_of("gfx942", _BOARD).with_numbers({"workgroup_dispatch": 1.0})
    detail = launch_detail(recorded, spec, constants, sum(launch.bytes))
    times = []
    for dispatch in _DISPATCH:
        streams = [replace(wave, begin=round(wave.begin * dispatch)) for wave in detail.streams]
        cycles = all_rounds(detail, run_unit(detail.prog, streams))
        times.append(cycles / spec.clock_hz * 1e6)
    return times


Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Compared:
    """The points of all programs."""

    program: npt.NDArray[np.str_]
    """[point]"""
    size: tuple[str, ...]
    gpu: Floats
    """µs on the GPU, [point]."""
    clock: Floats
    """µs by the clock, without a launch's overhead, [value of the fitted constant, point]."""


_SMALL = 10.0
"""µs, below which a time is mostly that of the launch."""


def _overheads(compared: Compared, used: npt.NDArray[np.bool_]) -> Floats:
    """Return the overhead of a launch for each value of the fitted constant."""
    small = used & (compared.gpu < _SMALL)
    if not small.any():
        return np.zeros(len(compared.clock))
    return np.maximum(0, np.median(compared.gpu[small] - compared.clock[:, small], axis=1))


def held_out_errors(compared: Compared) -> tuple[Floats, dict[str, float]]:
    """Return the error of each point in µs, and the constant chosen for each program.

    The constant and the overhead of a launch are those that fit the other programs best.
    """
    errors = np.zeros(len(compared.gpu))
    chosen = {}
    for name in dict.fromkeys(compared.program.tolist()):
        others = compared.program != name
        times = compared.clock + _overheads(compared, others)[:, None]
        wrong = np.abs(times / compared.gpu - 1)
        best = int(wrong[:, others].mean(1).argmin()) if others.any() else 0
        errors[~others] = (times[best] - compared.gpu)[~others]
        chosen[name] = _DISPATCH[best]
    return errors, chosen


_DISPATCH = (5.0, 6.0, 7.0, 8.0)
"""Cycles between two workgroups of a chiplet, of which the fit takes one."""


def rows_of(compared: Compared) -> list[str]:
    """Return a row of Markdown for each program, and one for all."""
    errors, chosen = held_out_errors(compared)
    relative = errors / compared.gpu
    lines = ["| program | points | WMAPE | median error | mean size of errors | dispatch |"]
    lines.append("|---|---|---|---|---|---|")
    names = list(dict.fromkeys(compared.program.tolist()))
    for name in [*names, "all"]:
        of = compared.program == name if name != "all" else np.ones(len(errors), dtype=bool)
        weighted = np.abs(errors[of]).sum() / compared.gpu[of].sum()
        lines.append(
            f"| {name} | {of.sum()} | {weighted:.0%} | {np.median(relative[of]):+.0%} | "
            f"{np.abs(relative[of]).mean():.0%} | {chosen.get(name, '')} |"
        )
    return lines


def compare(path: Path, names: list[str]) -> Compared:
    """Time all points of some programs with each value of the fitted constant."""
    spec = arch("gfx942").on_board(_BOARD)
    rows, clock = points(path, names), []
    with tempfile.TemporaryDirectory() as name:
        recorder = Recorder(Path(name))
        for program, _, _, launch in rows:
            recorded = recorder.record(program, launch)
            clock.append(clock_us(recorded, launch, spec))
    return Compared(
        np.array([row[0] for row in rows]),
        tuple(row[1] for row in rows),
        np.array([row[2] for row in rows]),
        np.array(clock).T,
    )


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
    compared = compare(path, options.only.split(","))
    if options.points:
        for program, size, gpu, error in zip(
            compared.program, compared.size, compared.gpu, held_out_errors(compared)[0], strict=True
        ):
            print(f"{program} {size}: GPU {gpu}, clock {gpu + error:.2f}", flush=True)
    print("\n".join(rows_of(compared)))


if __name__ == "__main__":
    main()
