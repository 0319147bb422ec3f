# SPDX-License-Identifier: MIT
"""What profiling costs: the time of a profile beside that of the same launch without.

    python benchmarks/profile_cost.py [--runs 5] [--only WORD ...] [--workgroups 8]

Each program runs on the emulated gfx942 without a profile, with one of which the counters are read
that are counted, with one of which those by the clock are read too, and with one of which source
lines, instructions and stages are read, in turn. All begin before the launch and end when the
results and the numbers are there. Printed are medians and ranges of the
time that passes and of the processor time of all threads, in milliseconds, and the ratios of the
medians. ``--phases`` prints where the time of a profile goes.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from ck_mutants import OPS
from plain_kernels import CASES, run, spread
from programs import half, linear

import cklang as ck
from cklang import emulator, knobs
from cklang.emulator.profiler.session import Profile

Work = Callable[[], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seconds:
    """The time that passed, and the time of the processors, of each run."""

    wall: list[float]
    processor: list[float]

    def add(self, work: Work) -> None:
        """Run something once."""
        processor, wall = time.process_time(), time.perf_counter()
        work()
        self.wall.append(time.perf_counter() - wall)
        self.processor.append(time.process_time() - processor)


def product(size: int) -> Work:
    """CK Tile's product of square f16 matrices, by the kernel that cklang chooses."""
    rng = np.random.default_rng(0)
    x, w = half(rng, size, size), half(rng, size, size)

    def work() -> None:
        linear(x, w)

    return work


def attention(heads: int, length: int) -> Work:
    """CK Tile's attention, by the kernel that cklang chooses."""
    rng = np.random.default_rng(0)
    q, k, v = (half(rng, 1, heads, length, 64) for _ in range(3))
    function = ck.op(OPS["attention"].function)

    def work() -> None:
        function(q, k, v)

    return work


def plain(name: str) -> Work:
    """A HIP kernel of ``data/plain_kernels.hip``."""
    case = CASES[name]()
    return lambda: run(name, case)


PROGRAMS: dict[str, Callable[[], Work]] = {
    "CK Tile product 1024³": lambda: product(1024),
    "CK Tile product 2048³": lambda: product(2048),
    "CK Tile attention 8 × 1024 × 64": lambda: attention(8, 1024),
    "HIP matmul": lambda: plain("matmul"),
    "HIP nbody": lambda: plain("nbody"),
    "HIP stencil": lambda: plain("stencil"),
    "HIP reduction": lambda: plain("reduction"),
}


def counted(profile: Profile) -> None:
    """Read the counters of every launch that need no clock."""
    for launch in profile.launches:
        if not launch.counted:
            raise SystemExit("a launch has no counters")


def counters(profile: Profile) -> None:
    """Read all counters of every launch."""
    for launch in profile.launches:
        if not launch.counters:
            raise SystemExit("a launch has no counters")


def lines(profile: Profile) -> None:
    """Read the stages, source lines and instructions of every launch."""
    for launch in profile.launches:
        if not launch.instructions or not launch.stages or launch.sources is None:
            raise SystemExit("a launch has no instructions")


def profiled(work: Work, read: Callable[[Profile], None], workgroups: int) -> Work:
    """Return the work with a profile of which something is read."""

    def both() -> None:
        with ck.profile(workgroups) as profile:
            work()
        read(profile)

    return both


def table_row(name: str, times: dict[str, Seconds]) -> str:
    """Return medians, ranges and ratios in Markdown."""
    cells = [name]
    for kind in ("wall", "processor"):
        plain_time = statistics.median(getattr(times["plain"], kind))
        for seconds in times.values():
            values = getattr(seconds, kind)
            text = spread([1e3 * value for value in values], ".0f")
            ratio = statistics.median(values) / plain_time
            cells.append(text if seconds is times["plain"] else f"{text}, {ratio:.2f} ×")
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--workgroups", type=int, default=8)
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--phases", action="store_true")
    options = parser.parse_args()
    emulator.load()
    kinds = ("plain", "counters", "and timed", "lines")
    head = ["program", *(f"{kind}, ms" for kind in kinds), *(f"{kind}, CPU ms" for kind in kinds)]
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
    with knobs.scope(CKLANG_DEVICE="emu:gfx942"):
        for name, make in PROGRAMS.items():
            if options.only and not any(word in name for word in options.only):
                continue
            work = make()
            works = {
                "plain": work,
                "counters": profiled(work, counted, options.workgroups),
                "and timed": profiled(work, counters, options.workgroups),
                "lines": profiled(work, lines, options.workgroups),
            }
            for each in works.values():  # the first run compiles and translates
                each()
            times = {kind: Seconds(wall=[], processor=[]) for kind in works}
            for _ in range(options.runs):
                for kind, each in works.items():
                    times[kind].add(each)
            print(table_row(name, times), flush=True)
            if options.phases:
                _print_phases(works["lines"])


def _print_phases(work: Work) -> None:
    profiler = cProfile.Profile()
    profiler.runcall(work)
    pstats.Stats(profiler).sort_stats("cumulative").print_stats("cklang|disassemble", 45)


if __name__ == "__main__":
    main()
