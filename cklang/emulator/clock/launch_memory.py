# SPDX-License-Identifier: MIT
"""What the memory accesses of a launch cost each of the waves that are timed in detail."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cklang.arch import ArchSpec
from cklang.emulator.clock.access_costs import (
    SCALE,
    MemoryCosts,
    RecordedAccesses,
    bytes_of,
    memory_costs,
)
from cklang.emulator.clock.hierarchy import Floats, Kept, Levels, levels_of
from cklang.emulator.clock.native import UNITS
from cklang.emulator.clock.waves import Program, WaveStream, Words


@dataclass(frozen=True, slots=True)
class LaunchExtent:
    """How much of a launch there is."""

    workgroups: int
    resident: int
    """Workgroups that a compute unit holds at a time."""
    detailed: int
    """Workgroups of one compute unit that are timed."""
    footprint: int
    """Bytes of its operands."""
    kept: Kept | None = None
    """What caches hold of them when it begins; None: what another such launch leaves."""


@dataclass(frozen=True, slots=True)
class MemoryTraffic:
    """The waves of one compute unit with what each of their accesses costs."""

    streams: Sequence[WaveStream]
    """While nobody else uses memory."""
    behind: Sequence[Floats]
    """For each workgroup, the probability that an instruction waits for memory, [instruction]."""
    cycles: float
    """Cycles of memory, at this compute unit's share of its rate, for all loads. Loads go before
    stores there."""
    queue: float
    """Cycles that a load waits where memory is never idle."""
    slowest: str = ""
    """The level behind the L1 that limits them; empty where no rates are known."""

    def share(self, elapsed: float) -> float:
        """Return the share of some cycles that the way behind the L1 is busy with these waves."""
        parts = sum(int(stream.path.sum()) for stream in self.streams if stream.path is not None)
        return parts / SCALE / elapsed if elapsed else 0.0

    def load(self, elapsed: float) -> float:
        """Return the share of some cycles that memory is busy with these waves."""
        return min(1.0, self.cycles / elapsed) if elapsed else 0.0

    def waits(self, load: float) -> float:
        """Return the cycles that a load waits for others before it, by memory's load.

        Requests come at random, so that some wait before memory is busy all the time; a full queue
        takes no more of them.
        """
        return self.queue * load**_STEEPNESS

    def busy(self, load: float) -> list[WaveStream]:
        """Return the waves while memory is busy for a share of the time."""
        waits = self.waits(load)
        return [
            replace(stream, latency=stream.latency + np.rint(waits * share).astype(np.int32))
            if stream.latency is not None
            else stream
            for stream, share in zip(self.streams, self.behind, strict=True)
        ]


_STEEPNESS = 3
"""Power of memory's load with which loads wait: streams of 75 to 4200 GB/s on an MI300X."""


def with_memory(
    prog: Program,
    streams: Sequence[WaveStream],
    accesses: RecordedAccesses,
    spec: ArchSpec,
    extent: LaunchExtent,
) -> MemoryTraffic:
    """Return the waves of one compute unit with what each of their accesses costs.

    Args:
        prog: The costs of instructions.
        streams: The waves, workgroup by workgroup.
        accesses: Of the recorded workgroups.
        spec: The GPU.
        extent: Of the launch.

    Where the levels of memory of a GPU are not known, loads take the latency of the program.
    """
    if "rate_l2" not in prog.constants.numbers:
        return MemoryTraffic(list(streams), (), 0.0, 0.0)
    loaded, stored = bytes_of(accesses, prog.constants.cycles("l1_line_bytes"))
    levels = levels_of(
        prog.constants,
        spec,
        workgroups=extent.workgroups,
        resident=extent.resident,
        each=loaded,
        written=stored * extent.workgroups,
        footprint=extent.footprint,
        kept=extent.kept,
    )
    costs = memory_costs(accesses, levels, extent.detailed, extent.resident)
    units = min(spec.compute_units, extent.workgroups) / spec.chiplets
    between = units * prog.constants["workgroup_dispatch"]
    timed = [
        replace(_with_costs(prog, stream, cost, levels), begin=round((stream.group + 1) * between))
        for stream, cost in zip(streams, costs, strict=True)
    ]
    return MemoryTraffic(
        timed,
        [
            _at(cost.place, cost.behind, len(stream.line))
            for stream, cost in zip(timed, costs, strict=True)
        ],
        float(sum(cost.memory.sum() for cost in costs)) * levels.memory_cycles,
        prog.constants["memory_queue"],
        levels.slowest,
    )


def _at(place: Words, values: Floats, count: int) -> Floats:
    result = np.zeros(count)
    result[place] = values
    return result


def _with_costs(prog: Program, stream: WaveStream, cost: MemoryCosts, levels: Levels) -> WaveStream:
    count = len(stream.line)
    cycles = np.full(count, -1, np.int32) if stream.cycles is None else stream.cycles.copy()
    # Loads with all lanes out of bounds access nothing.
    latency = np.full(count, round(levels.latency_l1), np.int32)
    path = np.zeros(count, np.int32)
    vector = prog.unit[stream.line[cost.place]] != UNITS.index("smem")
    places = cost.place[vector]
    cycles[places] = np.maximum(prog.busy[stream.line[places]], cost.cycles[vector])
    latency[cost.place] = cost.latency
    path[cost.place] = cost.path
    return replace(stream, cycles=cycles, latency=latency, path=path, write=levels.write)
