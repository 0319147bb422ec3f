# SPDX-License-Identifier: MIT
"""What the memory accesses of a launch cost each of the waves that are timed in detail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cklang.arch import ArchSpec
from cklang.clock.hierarchy import (
    Accesses,
    Levels,
    MemoryCosts,
    bytes_of,
    levels_of,
    memory_costs,
)
from cklang.clock.native import UNITS
from cklang.clock.waves import Program, WaveStream

__all__ = ["LaunchExtent", "with_memory"]


@dataclass(frozen=True, slots=True)
class LaunchExtent:
    """How much of a launch there is."""

    workgroups: int
    resident: int
    """Of a compute unit at a time."""
    detailed: int
    """Workgroups of one compute unit that are timed."""
    footprint: int
    """Bytes of its operands."""
    warm: bool = True
    """Whether the launch before has left its operands in the caches."""


def with_memory(
    prog: Program,
    streams: Sequence[WaveStream],
    groups: Sequence[Sequence[Accesses]],
    spec: ArchSpec,
    extent: LaunchExtent,
) -> list[WaveStream]:
    """Return the waves of one compute unit with what each of their accesses costs.

    Args:
        prog: The costs of instructions.
        streams: The waves, workgroup by workgroup.
        groups: What the waves of each recorded workgroup access.
        spec: The GPU.
        extent: Of the launch.

    Where the levels of memory of a GPU are not known, loads take the latency of the program.
    """
    if "rate_l2" not in prog.constants.numbers:
        return list(streams)
    line = prog.constants.cycles("l1_line_bytes")
    levels = levels_of(
        prog.constants,
        spec,
        workgroups=extent.workgroups,
        resident=extent.resident,
        each=bytes_of(groups, "load", line),
        written=bytes_of(groups, "store", line) * extent.workgroups,
        footprint=extent.footprint,
        warm=extent.warm,
    )
    costs = memory_costs(groups, levels, extent.detailed, extent.resident)
    units = min(spec.compute_units, extent.workgroups) / spec.chiplets
    between = units * prog.constants["workgroup_dispatch"]
    return [
        replace(_with_costs(prog, stream, cost, levels), begin=round((stream.group + 1) * between))
        for stream, cost in zip(streams, (row for rows in costs for row in rows), strict=True)
    ]


def _with_costs(prog: Program, stream: WaveStream, cost: MemoryCosts, levels: Levels) -> WaveStream:
    count = len(stream.line)
    cycles = np.full(count, -1, np.int32) if stream.cycles is None else stream.cycles.copy()
    # Loads all lanes of which are out of bounds access nothing.
    latency = np.full(count, round(levels.latency_l1), np.int32)
    path = np.zeros(count, np.int32)
    vector = prog.unit[stream.line[cost.place]] != UNITS.index("smem")
    places = cost.place[vector]
    cycles[places] = np.maximum(prog.busy[stream.line[places]], cost.cycles[vector])
    latency[cost.place] = cost.latency
    path[cost.place] = cost.path
    return replace(stream, cycles=cycles, latency=latency, path=path)
