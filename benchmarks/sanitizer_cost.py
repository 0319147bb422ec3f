# SPDX-License-Identifier: MIT
"""How much longer programs take under each of the emulator's checks.

    python benchmarks/sanitizer_cost.py [--gpu gfx942] [--only WORD ...] [--rounds 2]
                                        [--seconds 0.5] [--check NAME ...] [--against FOLDER]

Prints one table of small programs and one of large ones: milliseconds of processor time of a call
without checks, and how many times as long it takes under each check, and under all of ``all``. That
is the time of all threads of the process, so that other work on the machine disturbs little, with
the tenth of a millisecond that Python has in it; the least mean of a window of calls counts. Hot
code is translated, with checks too; a column says what it costs to interpret everything, as
``numeric`` and ``schedule`` do.

``--against`` names the folder of another cklang, such as a checkout of an earlier commit. Both are
measured in turns, and each cell has the other's figure and ours.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from ck_mutants import OPS, CkOp

import cklang as ck
from cklang import emulator, knobs
from cklang.device.device import open_device

_LARGE = {
    "plain product": ((512, 512), (512, 512)),
    "attention": ((1, 8, 512, 64),) * 3,
    "root mean square": ((1024, 1024), (1024,)),
    "pointwise": ((1024, 1024), (1024, 1024)),
    "sum": ((1024, 1024),),
    "sort": ((256, 1024),),
}
"""Larger shapes for ops of the mutation study; that study's own are the small ones."""

_SIZES = {
    "small": {name: OPS[name] for name in _LARGE},
    "large": {
        name: CkOp(function=OPS[name].function, shapes=shapes) for name, shapes in _LARGE.items()
    },
}
_CHECKS = (*knobs.SANITIZERS, "all")
_FEWEST = 3
_WINDOWS = 3
"""Calls that are measured, at least, once three have translated what is hot."""

Times = dict[str, dict[str, dict[str, float]]]
"""Seconds by size, program and column: "", "interpreted", or a check."""


def seconds(op: CkOp, gpu: str, least: float, *checks: str) -> float:
    """The least mean time of the calls in some windows of so many seconds together."""
    device = open_device(f"emu:{gpu}")
    emulator.sanitize(*checks)
    with knobs.scope(CKLANG_DEVICE=f"emu:{gpu}"):
        function, arguments = ck.op(op.function), op.arguments(gpu)

        def window(calls: int, most: float) -> float:
            # The time of threads that run on other cores is added up late: one call says nothing.
            start, end, done = time.process_time(), time.monotonic() + most, 0
            while done < calls or time.monotonic() < end:
                function(*arguments)
                device.synchronize()
                done += 1
            return (time.process_time() - start) / done

        window(3, 0.0)
        times = [window(_FEWEST, least / _WINDOWS) for _ in range(_WINDOWS)]
    emulator.sanitize()
    return min(times)


def measured(op: CkOp, gpu: str, least: float, checks: list[str]) -> dict[str, float]:
    """Measure one op."""
    times = {"": seconds(op, gpu, least)}
    emulator.translation("off")
    times["interpreted"] = seconds(op, gpu, least)
    emulator.translation("hot")
    return times | {check: seconds(op, gpu, least, check) for check in checks}


def all_measured(options: argparse.Namespace) -> Times:
    """Measure all programs with the cklang that is imported."""
    emulator.load()
    return {
        size: {
            name: measured(op, options.gpu, options.seconds, options.check)
            for name, op in ops.items()
            if not options.only or any(word in name for word in options.only)
        }
        for size, ops in _SIZES.items()
    }


def rounds(options: argparse.Namespace, folders: list[Path]) -> Iterator[tuple[int, Times]]:
    """Measure each cklang in turns, in processes of their own; yields its number and the times."""
    command = [sys.executable, __file__, *sys.argv[1:], "--json"]
    for _ in range(options.rounds):
        for number, folder in enumerate(folders):
            environment = {**os.environ, "PYTHONPATH": str(folder)}
            done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE)
            yield number, json.loads(done.stdout)


def least(some: Times, other: Times) -> Times:
    """The shorter times."""
    return {
        size: {
            name: {column: min(own, other[size][name][column]) for column, own in times.items()}
            for name, times in programs.items()
        }
        for size, programs in some.items()
    }


def table(size: str, versions: list[Times]) -> str:
    """The rows of one size in Markdown, and the ratio of their sums."""
    of_size = [_with_sums(times[size]) for times in versions]
    columns = [column for column in of_size[0]["together"] if column]
    lines = [f"| {' | '.join([size, 'ms', *columns])} |", f"|{'---|' * (len(columns) + 2)}"]
    for name in of_size[0]:
        rows = [programs[name] for programs in of_size]
        cells = [" / ".join(f"{times[''] * 1e3:.2f}" for times in rows)]
        cells += [
            " / ".join(f"{times[column] / times['']:.1f}" for times in rows) for column in columns
        ]
        lines.append(f"| {' | '.join([name, *cells])} |")
    return "\n".join(lines)


def _with_sums(programs: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    columns = next(iter(programs.values()))
    sums = {column: sum(times[column] for times in programs.values()) for column in columns}
    return {**programs, "together": sums}


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpu", default="gfx942")
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each program and check")
    parser.add_argument("--check", nargs="+", default=list(_CHECKS), choices=_CHECKS)
    parser.add_argument("--against", type=Path, help="the folder of another cklang")
    parser.add_argument("--json", action="store_true", help="print the times of one round")
    options = parser.parse_args()
    if options.json:
        print(json.dumps(all_measured(options)))
        return
    own = Path(ck.__file__).parents[1]
    folders = [*([options.against] if options.against else []), own]
    versions: list[Times] = [{}] * len(folders)
    for number, times in rounds(options, folders):
        versions[number] = least(versions[number], times) if versions[number] else times
    for size in _SIZES:
        print(f"{table(size, versions)}\n", flush=True)


if __name__ == "__main__":
    main()
