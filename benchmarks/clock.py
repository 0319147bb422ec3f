# SPDX-License-Identifier: MIT
"""Compare the clock with measurements on real GPUs, and fit its free constants.

Reads the folder ``silicon`` of ``CKLANG_DATA_DIR`` and prints Markdown; where the folder is absent
it says so and ends. Rows that say "held out" are cross-validated: for each kernel the constants are
those that fit the other kernels best.

python benchmarks/clock.py [--only lds,matrix,products,small,memory,bandwidth,speed]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path

import numpy as np
import numpy.typing as npt
from data.silicon import Trace, folder, instruction_traces, microbench, small_traces, table

from cklang.arch import arch
from cklang.emulator.clock.constants import ClockConstants, constants_of
from cklang.emulator.clock.hierarchy import stream_rate
from cklang.emulator.clock.lds import LANES, conflicts, width_of
from cklang.emulator.clock.matrix import matrix_cycles, matrix_shape
from cklang.emulator.clock.memory import chase_latency, of_launch
from cklang.emulator.clock.waves import TimedWave, program, run

Floats = npt.NDArray[np.float64]
Point = dict[str, float]
_HOT = 10
"""A line that each wave executes more often is in the main loop."""


def lds_rows(path: Path) -> list[str]:
    """Replay the experiments of pairs of lanes and of banks against the model of banks."""
    rows = []
    for name, case in table(path, "lds_conflicts_gfx950.json")["instructions"].items():
        width = width_of(constants_of("gfx950"), "read", 4 * case["access_dwords"])
        address = np.arange(LANES) * 256
        pairs = [(i, j) for i in range(LANES) for j in range(i + 1, LANES)]
        equal = sum(
            (conflicts(width, address, np.array([i, j])) > 0) == (case["conflict"][i][j] == "1")
            for i, j in pairs
        )
        first, last = case["tested_b"]
        offsets = []
        for bank in range(first, last + 1):
            two = np.zeros(LANES, dtype=np.int64)
            two[1] = 4 * bank
            if conflicts(width, two, np.array([0, 1])):
                offsets.append(bank)
        rows.append(
            f"| LDS conflicts of {name}, gfx950 | {equal} of {len(pairs)} pairs of lanes; "
            f"offsets that conflict: {'equal' if offsets == case['conflicting_b'] else offsets} |"
        )
    return rows


_MATRIX_GPUS = {"MI250": "gfx90a", "MI300": "gfx942", "RDNA3": "gfx1100", "RDNA4": "gfx1201"}


def matrix_rows(path: Path) -> list[str]:
    """Compare cycles of matrix instructions with AMD's table."""
    rows = []
    for gpu, name in _MATRIX_GPUS.items():
        listed = microbench(path, gpu, "matrix instruction")
        equal = 0
        for row in listed:
            shape = matrix_shape(row["parameter"])
            cycles = None if shape is None else matrix_cycles(shape, constants_of(name).matrix)
            equal += cycles == int(row["value"])
        rows.append(f"| cycles of matrix instructions, {name} | {equal} of {len(listed)} exact |")
    return rows


def timed(trace: Trace, constants: ClockConstants) -> list[TimedWave]:
    """Run the waves of a trace on the model."""
    return run(program(trace.listing, of_launch(constants, alone=trace.alone)), trace.streams)


def iteration(line: npt.NDArray[np.int32], issue: npt.NDArray[np.int64]) -> float:
    """Return the mean cycles between two executions of the first line of the main loop."""
    executed = np.bincount(line)
    usual = np.median(executed[executed > _HOT])
    head = np.flatnonzero(executed >= usual / 2)[0]
    return float(np.diff(issue[line == head]).mean())


def iteration_error(trace: Trace, constants: ClockConstants) -> float:
    """Return the relative error of an iteration of the main loop, over all waves."""
    waves = timed(trace, constants)
    ours, theirs = (
        np.mean([iteration(s.line, x) for s, x in zip(trace.streams, issue, strict=True)])
        for issue in ([w.start + w.stall for w in waves], trace.issue)
    )
    return float(ours / theirs - 1)


def issue_errors(trace: Trace, constants: ClockConstants) -> Floats:
    """Return the relative error of each issue time since the wave's first one."""
    errors = []
    waits = np.array([i.op.startswith("s_wait") for i in trace.listing])
    packets = zip(trace.streams, timed(trace, constants), trace.place, trace.issue, strict=True)
    for stream, wave, place, issue in packets:
        ours = wave.start + wave.stall - wave.start[0] - wave.stall[0]
        if not trace.stall:  # these stamp a wait when it is satisfied
            ends = wave.start + wave.duration - wave.start[0] - 1
            ours = np.where(waits[stream.line], ends, ours)
        since = issue - issue[0]
        later = since > 0
        errors.append(np.abs(ours[place][later] - since[later]) / since[later])
    return np.concatenate(errors)


def stall_by_line(trace: Trace, constants: ClockConstants) -> tuple[Floats, Floats, Floats]:
    """Return the stall of each line on the GPU and in the model, and how often it is executed."""
    count = len(trace.listing)
    theirs, ours, executed = np.zeros(count), np.zeros(count), np.zeros(count)
    for stream, stall, wave in zip(
        trace.streams, trace.stall, timed(trace, constants), strict=True
    ):
        np.add.at(theirs, stream.line, stall)
        np.add.at(ours, stream.line, wave.stall)
        np.add.at(executed, stream.line, 1)
    return theirs, ours, executed


def rank_correlation(a: Floats, b: Floats) -> float:
    """Return Spearman's correlation, equal values with the mean of their ranks."""

    def ranks(x: Floats) -> Floats:
        _, inverse, counts = np.unique(x, return_inverse=True, return_counts=True)
        return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[inverse], dtype=np.float64)

    return float(np.corrcoef(ranks(a), ranks(b))[0, 1])


def grid(**values: Sequence[float]) -> list[Point]:
    """Return all combinations of values of some constants."""
    return [dict(zip(values, point, strict=True)) for point in product(*values.values())]


def held_out(
    traces: Sequence[Trace],
    constants: ClockConstants,
    points: Sequence[Point],
    loss: Callable[[Trace, ClockConstants], float],
) -> tuple[list[tuple[Trace, Point]], Point]:
    """Return each trace with the constants that fit all other kernels best, and the best of all."""
    losses = np.array(
        [[loss(trace, constants.with_numbers(point)) for trace in traces] for point in points]
    )
    chosen = []
    for trace in traces:
        others = [other.kernel != trace.kernel for other in traces]
        chosen.append((trace, points[int(losses[:, others].mean(1).argmin())]))
    return chosen, points[int(losses.mean(1).argmin())]


def product_rows(path: Path) -> list[str]:
    """Compare the main loops of products on MI325X, each with constants fitted to the others."""
    constants = constants_of("gfx942")
    traces = list(instruction_traces(path, "gfx942"))
    points = grid(vmem_latency=(1400, 1500, 1600, 1700))
    chosen, best = held_out(traces, constants, points, lambda t, c: abs(iteration_error(t, c)))
    rows, errors, ranks = [], [], []
    for trace, point in chosen:
        held = constants.with_numbers(point)
        error = iteration_error(trace, held)
        theirs, ours, executed = stall_by_line(trace, held)
        loop = executed > _HOT * len(trace.streams)
        rank = rank_correlation(theirs[loop], ours[loop])
        every = rank_correlation(theirs[executed > 0], ours[executed > 0])
        difference = np.abs(theirs / theirs.sum() - ours / ours.sum()).sum() / 2
        errors.append(abs(error))
        ranks.append(rank)
        rows.append(
            f"| {trace.kernel}, held out | iteration {error:+.1%}; stall by line of the main loop: "
            f"rank correlation {rank:.2f} (all lines {every:.2f}), "
            f"{difference:.0%} of the stall at other lines |"
        )
    summary = (
        f"| products of gfx942, held out | iteration: median {np.median(errors):.1%}, mean "
        f"{np.mean(errors):.1%}; rank correlation: median {np.median(ranks):.2f}, least "
        f"{min(ranks):.2f}; fitted to all: {best} |"
    )
    return [*rows, summary]


_SMALL = (
    ("gfx950", "gfx950", instruction_traces,
     grid(vmem_latency=(900, 1500, 2200), smem_cold_latency=(500, 950, 1400))),
    ("gfx1100", "gfx1100", small_traces,
     grid(vmem_latency=(900, 1200, 1500), smem_cold_latency=(1100, 1300, 1500))),
    ("gfx1200", "gfx1201", small_traces,
     grid(vmem_latency=(1500, 1700, 1900), smem_cold_latency=(1400, 1550, 1700))),
)  # fmt: skip


def small_rows(path: Path) -> list[str]:
    """Compare issue times of small kernels, each with cold latencies fitted to the others."""
    rows = []
    for label, gpu, read, points in _SMALL:
        constants = constants_of(gpu)
        traces = list(read(path, label))
        chosen, best = held_out(
            traces, constants, points, lambda t, c: float(np.median(issue_errors(t, c)))
        )
        by_kernel: dict[str, list[Floats]] = {}
        for trace, point in chosen:
            errors = issue_errors(trace, constants.with_numbers(point))
            by_kernel.setdefault(trace.kernel, []).append(errors)
        each = {name: np.concatenate(errors) for name, errors in by_kernel.items()}
        rows += [
            f"| issue times of {name}, held out | median {np.median(errors):.1%} of "
            f"{len(errors):,} instructions |"
            for name, errors in each.items()
        ]
        every = np.concatenate(list(each.values()))
        kernels = [np.median(errors) for errors in each.values()]
        rows.append(
            f"| issue times on {label}, held out | median {np.median(every):.1%} of all; mean of "
            f"the kernels' medians {np.mean(kernels):.1%}; fitted to all: {best} |"
        )
    return rows


def memory_rows(path: Path) -> list[str]:
    """Compare latency by footprint: fitted to MI300X; MI300A is held out."""
    rows = []
    for gpu, how in (("MI300X", "fitted to it"), ("MI300A", "held out")):
        chase = microbench(path, gpu, "vector load latency")
        size = np.array([float(row["parameter"].split()[0]) * 1024 for row in chase])
        cycles = np.array([float(row["value"]) for row in chase])
        error = np.abs(chase_latency(constants_of("gfx942"), size) / cycles - 1)
        rows.append(
            f"| latency by footprint, {gpu}, {how} | mean {error.mean():.1%}, largest "
            f"{error.max():.0%}, {(error < 0.1).mean():.0%} of {len(chase)} sizes within 10 % |"
        )
    return rows


_STREAMS = {"read": (0.5, 0.0), "write": (0.5, 1.0), "scale": (1.0, 0.5), "triad": (1.5, 1 / 3)}
"""Bytes that a stream walks over, for one of its footprint (rates fall where these fill a cache),
and the share of them that it writes."""
_FITTED = {"read": ("read", "read"), "write": ("write", "init"), "mixed": ("scale", "scale")}
"""Of a rate, the stream by footprint and the stream of DRAM."""
_CACHED = (64 << 20, 200 << 20)
"""Bytes that are behind the L2 and in the last-level cache."""
_OCCUPIED = 85.0
"""Share of the lanes from which on more of them bring little."""
_NEAR = 0.1
_HELD = (128.0, 3072.0)
"""KiB that the L1 does not hold and the L2 does."""


def _kib(row: dict[str, str]) -> float:
    return float(row["parameter"].split()[0])


def by_footprint(path: Path, board: str, kind: str) -> tuple[Floats, Floats]:
    """Return the bytes that a stream walks over, and the bytes a second that it moves."""
    measured = microbench(path, board, f"{kind} bandwidth by footprint")
    size = [_kib(row) * 1024 * _STREAMS[kind][0] for row in measured]
    return np.array(size), np.array([float(row["value"]) * 1e9 for row in measured])


def fitted_rates(path: Path, board: str) -> dict[str, dict[str, float]]:
    """Return the bytes a second of a board by level and kind: of the cache, every other size's."""
    rates: dict[str, dict[str, float]] = {"last_level": {}, "memory": {}}
    for name, (cached, streamed) in _FITTED.items():
        size, rate = by_footprint(path, board, cached)
        used = (size >= _CACHED[0]) & (size <= _CACHED[1]) & (np.arange(len(size)) % 2 == 0)
        rates["last_level"][name] = float(np.median(rate[used]))
        rates["memory"][name] = 1e9 * float(
            np.median(
                [
                    float(row["value"])
                    for row in microbench(path, board, f"DRAM stream, {streamed}")
                    if float(row["parameter"].partition("%")[0]) >= _OCCUPIED
                ]
            )
        )
    return rates


def bandwidth_rows(path: Path) -> list[str]:
    """Compare bandwidth by footprint; of what is compared, nothing is used by the fit.

    That is triads at all sizes, and of the others every other size in the last-level cache and all
    sizes beyond it.
    """
    rows = []
    for board in ("MI300A", "MI300X"):
        constants, spec = constants_of("gfx942", board), arch("gfx942").on_board(board)
        unit = spec.chiplets * spec.clock_hz
        for level, rates in fitted_rates(path, board).items():
            fitted = ", ".join(f"{name} {rate / unit:.0f}" for name, rate in rates.items())
            rows.append(f"| rates of {level} on {board}, bytes a cycle of a chiplet | {fitted} |")
        if shared := microbench(path, board, "read bandwidth, all CUs read the same buffer"):
            in_l2 = [float(r["value"]) * 1e9 for r in shared if _HELD[0] <= _kib(r) <= _HELD[1]]
            same = np.median(in_l2) / unit
            rows.append(f"| L2 of {board}, where all read the same buffer, beside | {same:.0f} |")
        for kind, (_, written) in _STREAMS.items():
            size, rate = by_footprint(path, board, kind)
            ours = np.array([stream_rate(constants, spec, s, written) for s in size])
            used = (size >= _CACHED[0]) & (size <= _CACHED[1]) & (np.arange(len(size)) % 2 == 0)
            compared = (size > spec.l2_bytes * spec.chiplets) & ~(used & (kind != "triad"))
            error = np.abs(ours * spec.clock_hz / rate - 1)[compared]
            near = (error < _NEAR).mean()
            rows.append(
                f"| bandwidth by footprint beyond the L2, {kind}, {board}, held out | mean "
                f"{error.mean():.0%}, {near:.0%} of {len(error)} sizes within 10 % |"
            )
    return rows


def speed_rows(path: Path) -> list[str]:
    """Measure how fast the model is by processor time, without the reading of traces."""
    traces = list(instruction_traces(path, "gfx942"))
    constants = constants_of("gfx942")
    programs = [program(trace.listing, constants) for trace in traces]

    def issue() -> None:
        for trace, prog in zip(traces, programs, strict=True):
            run(prog, trace.streams)

    def whole() -> None:
        for trace in traces:
            timed(trace, constants)

    executed = sum(len(stream.line) for trace in traces for stream in trace.streams)
    rates = [
        executed / min(_seconds(work) for _ in range(_REPEATED)) / 1e6 for work in (issue, whole)
    ]
    return [
        (
            f"| speed of the compute unit, one core | {rates[0]:.1f} M wave instructions a second; "
            f"with the costs of the listings {rates[1]:.1f} M |"
        )
    ]


_REPEATED = 5


def _seconds(work: Callable[[], None]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


PARTS: dict[str, Callable[[Path], list[str]]] = {
    "lds": lds_rows,
    "matrix": matrix_rows,
    "products": product_rows,
    "small": small_rows,
    "memory": memory_rows,
    "bandwidth": bandwidth_rows,
    "speed": speed_rows,
}


def main() -> None:
    """Print the table of the parts that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(PARTS), help="parts, separated by commas")
    asked = parser.parse_args().only.split(",")
    path = folder()
    if path is None:
        print("no folder 'silicon' in CKLANG_DATA_DIR: nothing to compare the clock with")
        return
    print("| what | the clock |\n|---|---|")
    for name in asked:
        print("\n".join(PARTS[name](path)), flush=True)


if __name__ == "__main__":
    main()
