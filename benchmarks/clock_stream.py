# SPDX-License-Identifier: MIT
"""Compare the clock's rate of reading memory, by the threads that read, with two GPUs.

Reads the DRAM streams by occupancy of an MI300A and an MI300X in ``silicon/microbench.csv`` of
``CKLANG_DATA_DIR``: arrays that no cache holds, one number a lane under way at a time, so that few
threads wait for latency and many for the rate. The kernel of ``hip/stream.hip`` does the same.
``--fit`` takes for each GPU the cycles that a load waits where memory is never idle
(``memory_queue``) which fit the other one best. Prints Markdown.

python benchmarks/clock_stream.py [--fit] [--points]
"""

from __future__ import annotations

import argparse
import csv
import re
import struct
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np
import numpy.typing as npt
from data.silicon import folder
from hip_programs import Programs, ok

from cklang.arch import ArchSpec, arch
from cklang.emulator.clock.constants import ClockConstants, constants_of
from cklang.emulator.clock.hierarchy import EMPTY
from cklang.emulator.clock.kernel import launch_detail
from cklang.emulator.engine.recording import RecordedLaunch, timing

_SOURCE = Path(__file__).parent / "hip" / "stream.hip"
_BOARDS = ("MI300A", "MI300X")
_READS = 64
"""Of each lane: enough that the first ones do not count."""
_FOOTPRINT = 4 << 30
_QUEUES = tuple(range(0, 2001, 100))

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Stream:
    """A published rate."""

    block: int
    groups: int
    """Of a compute unit."""
    rate: float
    """Bytes a second."""


def streams(path: Path, gpu: str) -> list[Stream]:
    """Return the published rates of a GPU."""
    with (path / "microbench.csv").open(newline="") as file:
        rows = [
            (re.findall(r"\d+", row["conditions"].partition("source:")[2]), float(row["value"]))
            for row in csv.DictReader(file)
            if row["gpu"] == gpu and row["what"] == "DRAM stream, read"
        ]
    return [Stream(int(words[0]), int(words[2]), value * 1e9) for words, value in rows]


def record(programs: Programs, stream: Stream, units: int) -> RecordedLaunch:
    """Run one workgroup; return what it executed."""
    groups = stream.groups * units
    count = _READS * groups * stream.block
    memory = int(ok(programs.hip.hipMalloc(8 * count)))
    arguments = struct.pack("=QQqi", memory, memory, count, 0)
    with timing(1, alone=True) as recording:
        programs.launch("read", (groups, 1, 1), (stream.block, 1, 1), arguments)
    ok(programs.hip.hipFree(memory))
    (launch,) = recording.launches
    return launch


def rate(launch: RecordedLaunch, spec: ArchSpec, constants: ClockConstants) -> float:
    """Return the bytes a second by the clock."""
    detail = launch_detail(launch, spec, constants, _FOOTPRINT, kept=EMPTY)
    read = 8 * _READS * prod(launch.groups) * prod(launch.block)
    return read / detail.cycles * spec.clock_hz


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--points", action="store_true", help="print each point")
    options = parser.parse_args()
    path = folder()
    if path is None:
        print("no folder 'silicon' in CKLANG_DATA_DIR: nothing to compare the clock with")
        return
    queues = _QUEUES if options.fit else (constants_of("gfx942")["memory_queue"],)
    errors = {}
    with tempfile.TemporaryDirectory() as name:
        programs = Programs(_SOURCE, "gfx942", Path(name))
        for gpu in _BOARDS:
            spec, constants = arch("gfx942").on_board(gpu), constants_of("gfx942", gpu)
            points = streams(path, gpu)
            launches = [record(programs, each, spec.compute_units) for each in points]
            errors[gpu] = np.array(
                [_errors(launches, points, spec, constants, queue) for queue in queues]
            )
            if options.points:
                for each, error in zip(points, errors[gpu][0], strict=True):
                    threads = each.block * each.groups
                    print(f"{gpu} {threads} threads: {each.rate / 1e9:.0f} GB/s, {error:+.0%}")
    print("| GPU | points | queue | median error, mean of sizes |\n|---|---|---|---|")
    for gpu, other in zip(errors, reversed(errors), strict=True):
        best = int(np.abs(errors[other]).mean(1).argmin())
        wrong = errors[gpu][best]
        print(
            f"| {gpu} | {len(wrong)} | {queues[best]:.0f} | {np.median(wrong):+.0%}, "
            f"{np.abs(wrong).mean():.0%} |"
        )


def _errors(
    launches: Sequence[RecordedLaunch],
    points: Sequence[Stream],
    spec: ArchSpec,
    constants: ClockConstants,
    queue: float,
) -> Floats:
    changed = constants.with_numbers({"memory_queue": queue})
    ours = [rate(launch, spec, changed) for launch in launches]
    return np.array(ours) / [each.rate for each in points] - 1


if __name__ == "__main__":
    main()
