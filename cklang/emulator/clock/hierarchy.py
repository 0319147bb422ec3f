# SPDX-License-Identifier: MIT
"""Caches with contents, and bandwidth that compute units share.

What the L1 cache of one compute unit does not have is in the L2 of the chiplet, in the last-level
cache or in memory, according to what the other workgroups of the chiplet access at the same time.
Each level serves all compute units at a published rate; this one has its share.
:mod:`cklang.emulator.clock.access_costs` has what accesses cost at these levels.
"""

from dataclasses import dataclass
from functools import cache
from math import ceil, factorial, sqrt

import numpy as np
import numpy.typing as npt

from cklang.arch import ArchSpec
from cklang.emulator.clock.constants import ClockConstants
from cklang.emulator.clock.memory import translation
from cklang.emulator.engine.recording import SEGMENT_BYTES

Floats = npt.NDArray[np.float64]


def retained(ratio: float) -> float:
    """Return the share of accesses that hit a cache which drops the line used longest ago.

    Lines are spread over the sets at random, so that some sets are full before others: an access
    hits if its set has a place for all lines of it that are accessed in between.

    Args:
        ratio: Bytes that are accessed between two accesses to a line, over the cache's size.

    Example:
        >>> [round(retained(ratio), 2) for ratio in (0.5, 0.75, 1, 1.25, 1.5)]
        [0.99, 0.84, 0.47, 0.16, 0.03]
    """
    ratios, shares = retained_table()
    return float(np.interp(ratio, ratios, shares))


_WAYS = 16
"""Lines of a set, in the L2 and in the last-level cache."""
_LARGEST = 4
"""Ratio from which on nothing is retained."""


@cache
def retained_table() -> tuple[Floats, Floats]:
    """Return ratios, evenly spaced from 0, and the share that is retained at each."""
    ratios = np.linspace(0, _LARGEST, 64 * _LARGEST + 1)
    others = np.arange(_WAYS)
    mean = ratios[:, None] * _WAYS
    factorials = np.array([factorial(count) for count in others], dtype=np.float64)
    shares = (np.exp(-mean) * mean**others / factorials).sum(1)
    shares[-1] = 0.0
    return ratios, shares


def sharers(each: float, distinct: float, workgroups: int, chiplets: int, resident: int) -> float:
    """Return how many workgroups of a chiplet access a line while it is in the L2.

    Workgroups go round the chiplets, so a chiplet runs one of ``chiplets`` neighbours. Of tiles in
    two dimensions, those that run at the same time share rows and columns: as many as the square
    root of their number.

    Args:
        each: Bytes that a workgroup loads.
        distinct: Bytes that all of them load, each counted once.
        workgroups: Of the launch.
        chiplets: Of the GPU.
        resident: Workgroups that run on one of them at a time.

    Example:
        >>> sharers(1 << 10, 1 << 20, 1 << 10, 8, 76)  # each byte is loaded once
        1.0
        >>> sharers(1 << 20, 1 << 26, 4096, 8, 64)  # products of 64 x 64 tiles
        8.0
    """
    if distinct <= 0:
        return 1.0
    readers = max(1.0, each * workgroups / distinct)
    return max(1.0, min(sqrt(resident), 1 + (readers - 1) / chiplets))


@dataclass(frozen=True, slots=True)
class Kept:
    """What caches hold of the operands of a launch when it begins, as shares of their lines."""

    l2: float
    last_level: float


EMPTY = Kept(0.0, 0.0)
"""All operands come from memory."""


@dataclass(frozen=True, slots=True)
class Levels:
    """What one compute unit sees of the memory behind its L1 cache during a launch."""

    line_bytes: int
    l1_lines: int
    scalar_lines: int
    """Lines of ``SEGMENT_BYTES`` in the scalar cache."""
    l2_lines: float
    """Lines of the chiplet's L2 for each running compute unit; shared lines count once."""
    far_share: float
    """Share of the lines new to this compute unit that are not in the L2: no other has brought them
    there, nor has the launch before."""
    cold_share: float
    """Share of its lines that the launch before has not left in the L2."""
    latency_l1: float
    latency_l2: float
    latency_far: float
    """Behind the L2: of the last-level cache and of memory, by their shares."""
    latency_scalar: float
    """Latency of the scalar cache."""
    latency_cold: float
    """Latency of a scalar load from behind the L2."""
    cycles_l2: float
    """Between two lines from the L2, at this compute unit's share of the rate."""
    cycles_far: float
    stored_segments: int
    """Neighbouring pieces of ``SEGMENT_BYTES`` that a store takes as a whole if it touches one."""
    cycles_stored: float
    """Cycles of the L1 for these stores."""
    write: float = 1.0
    """How many times as long as ``cycles_far`` a line takes where lines are only written."""
    memory_share: float = 0.0
    """Share of the lines behind the L2 that are in memory, not in the last-level cache."""
    memory_cycles: float = 0.0
    """Between two lines from memory, at this compute unit's share of the rate."""
    slowest: str = ""
    """The level with the longest time for what the L1 does not have."""


def levels_of(
    constants: ClockConstants,
    spec: ArchSpec,
    *,
    workgroups: int,
    resident: int,
    each: float,
    written: float,
    footprint: float,
    kept: Kept | None = None,
) -> Levels:
    """Return the levels during a launch on a GPU whose rates are known.

    Args:
        constants: Of the GPU.
        spec: The GPU.
        workgroups: Of the launch.
        resident: Workgroups of a compute unit at a time.
        each: Bytes that a workgroup loads.
        written: Bytes that the launch stores.
        footprint: Bytes of its operands.
        kept: What caches hold of the operands; by default, the launch is one of many in a row on
            the same operands, so that what fits into the caches is there.
    """
    line = constants.cycles("l1_line_bytes")
    units = spec.compute_units / spec.chiplets
    # Under-filled compute units use less of the shared bandwidth.
    active = max(1.0, min(units, workgroups / spec.chiplets / resident))
    distinct = max(footprint - written, each)
    if kept is None:
        of_chiplet = chiplet_bytes(spec, workgroups, each, written, distinct)
        far_bytes = footprint / spec.last_level_cache_bytes
        kept = Kept(retained(of_chiplet / spec.l2_bytes), retained(far_bytes))
    hit, cold = kept.last_level, 1 - kept.l2
    cache, memory = constants.rates["last_level"], constants.rates["memory"]
    far = hit * constants["chase_last_level"] + (1 - hit) * constants["chase_memory"]
    issue = constants["turn"] + constants["wait_exit"] + constants["turn"]
    together = sharers(each, distinct, workgroups, spec.chiplets, ceil(active * resident))
    loaded = each * workgroups * cold / together
    share = written / (written + loaded) if written else 0.0
    missed = max(cache.cycles(share), (1 - hit) * memory.cycles(share))
    behind = "the last-level cache" if missed == cache.cycles(share) else "memory"
    cycles_l2, cycles_far = line * active / constants["rate_l2"], line * active * missed
    written_cycles = max(1 / cache.write, (1 - hit) / memory.write)
    return Levels(
        line_bytes=line,
        l1_lines=constants.cycles("l1_bytes") // line,
        scalar_lines=constants.cycles("scalar_cache_bytes") // SEGMENT_BYTES,
        l2_lines=spec.l2_bytes / line / active * together,
        far_share=cold / together,
        cold_share=cold,
        latency_l1=constants["chase_l1"] - issue,
        latency_l2=constants["chase_l2"] - issue,
        latency_far=far + float(translation(constants, footprint)) - issue,
        latency_scalar=constants["smem_latency"],
        latency_cold=constants["smem_cold_latency"],
        cycles_l2=cycles_l2,
        cycles_far=cycles_far,
        stored_segments=constants.cycles("store_bytes") // SEGMENT_BYTES,
        cycles_stored=constants["store_bytes"] / 256 * constants["store_cycles_256"],
        write=written_cycles / missed,
        memory_share=1 - hit,
        memory_cycles=line * active * memory.cycles(0.0),
        slowest="the L2" if cycles_far * cold / together <= cycles_l2 else behind,
    )


def chiplet_bytes(
    spec: ArchSpec, workgroups: int, each: float, written: float, distinct: float
) -> float:
    """Return the bytes that a launch brings into the L2 of one chiplet.

    Args:
        spec: The GPU.
        workgroups: Of the launch.
        each: Bytes that a workgroup loads.
        written: Bytes that the launch stores.
        distinct: Bytes that all workgroups load, each counted once.
    """
    return min(distinct, each * workgroups / spec.chiplets) + written / spec.chiplets


def stream_rate(
    constants: ClockConstants, spec: ArchSpec, footprint: float, written: float = 0.0
) -> float:
    """Return the bytes a cycle that all compute units move, walking over arrays again and again.

    Each walks over its own part, in workgroups that load one line.

    Args:
        constants: Of the GPU.
        spec: The GPU.
        footprint: Bytes of the arrays.
        written: The share of them that is written, others are read.

    Example:
        >>> from cklang.arch import arch
        >>> from cklang.emulator.clock.constants import constants_of
        >>> round(stream_rate(constants_of("gfx942"), arch("gfx942"), 128 << 20))
        2568
    """
    line = constants["l1_line_bytes"]
    levels = levels_of(
        constants,
        spec,
        workgroups=ceil(footprint / line),
        resident=1,
        each=line * (1 - written),
        written=footprint * written,
        footprint=footprint,
    )
    active = levels.cycles_l2 * constants["rate_l2"] / line
    far = levels.far_share * levels.cycles_far * max(1.0, written * levels.write)
    between = max(levels.cycles_l2, far)
    return line * active * spec.chiplets / between
