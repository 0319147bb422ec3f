# SPDX-License-Identifier: MIT
"""Caches with contents, and bandwidth that compute units share.

The lines that recorded workgroups access go through the L1 cache of one compute unit. What misses
it is in the L2 of the chiplet, in the last-level cache or in memory, according to what the other
workgroups of the chiplet access at the same time. Each level serves all compute units at a
published rate, of which this one has its share.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cache
from math import ceil, factorial, prod, sqrt

import numpy as np
import numpy.typing as npt

from cklang.arch import ArchSpec
from cklang.clock.constants import ClockConstants
from cklang.clock.memory import translation
from cklang.emulator.recording import SEGMENT_BYTES, RecordedWave

__all__ = [
    "Accesses",
    "Levels",
    "MemoryCosts",
    "RecentLines",
    "accesses_of",
    "bytes_of",
    "levels_of",
    "memory_costs",
    "retained",
    "shared_lines",
    "sharers",
    "stream_rate",
]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.int32]
SCALE = 16
"""Parts of a cycle in which the compute unit counts its share of the paths to memory."""


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
    ratios, shares = _retained_table()
    return float(np.interp(ratio, ratios, shares))


_WAYS = 16
"""Lines of a set, in the L2 and in the last-level cache."""
_LARGEST = 4
"""Ratio from which on nothing is retained."""


@cache
def _retained_table() -> tuple[Floats, Floats]:
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
class Levels:
    """What one compute unit sees of the memory behind its L1 cache during a launch."""

    line_bytes: int
    l1_lines: int
    scalar_lines: int
    """Lines of ``SEGMENT_BYTES`` in the scalar cache."""
    l2_lines: float
    """Of the chiplet's L2, for each compute unit that runs; those that several share count once."""
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
    """Of the scalar cache."""
    latency_cold: float
    """Of a scalar load from behind the L2."""
    cycles_l2: float
    """Between two lines from the L2, at this compute unit's share of the rate."""
    cycles_far: float
    stored_segments: int
    """Neighbouring pieces of ``SEGMENT_BYTES`` that a store takes as a whole if it touches one."""
    cycles_stored: float
    """Of the L1, for these."""
    write: float = 1.0
    """How many times as long as ``cycles_far`` a line takes where lines are only written."""
    memory_share: float = 0.0
    """Share of the lines behind the L2 that are in memory, not in the last-level cache."""
    memory_cycles: float = 0.0
    """Between two lines from memory, at this compute unit's share of the rate."""


def levels_of(
    constants: ClockConstants,
    spec: ArchSpec,
    *,
    workgroups: int,
    resident: int,
    each: float,
    written: float,
    footprint: float,
    warm: bool = True,
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
        warm: Whether the launch is one of many in a row on the same operands, so that what fits
            into the caches is there; else all of them come from memory.
    """
    line = constants.cycles("l1_line_bytes")
    units = spec.compute_units / spec.chiplets
    # Those with fewer workgroups than others need less of what all share.
    active = max(1.0, min(units, workgroups / spec.chiplets / resident))
    hit = retained(footprint / spec.last_level_cache_bytes) if warm else 0.0
    cache, memory = constants.rates["last_level"], constants.rates["memory"]
    far = hit * constants["chase_last_level"] + (1 - hit) * constants["chase_memory"]
    distinct = max(footprint - written, each)
    of_chiplet = min(distinct, each * workgroups / spec.chiplets) + written / spec.chiplets
    cold = 1 - retained(of_chiplet / spec.l2_bytes) if warm else 1.0
    issue = constants["turn"] + constants["wait_exit"] + constants["turn"]
    together = sharers(each, distinct, workgroups, spec.chiplets, ceil(active * resident))
    loaded = each * workgroups * cold / together
    share = written / (written + loaded) if written else 0.0
    missed = max(cache.cycles(share), (1 - hit) * memory.cycles(share))
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
        cycles_l2=line * active / constants["rate_l2"],
        cycles_far=line * active * missed,
        stored_segments=constants.cycles("store_bytes") // SEGMENT_BYTES,
        cycles_stored=constants["store_bytes"] / 256 * constants["store_cycles_256"],
        write=written_cycles / missed,
        memory_share=1 - hit,
        memory_cycles=line * active * memory.cycles(0.0),
    )


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

    Raises:
        KeyError: The rates of this GPU are not known.

    Example:
        >>> from cklang.arch import arch
        >>> from cklang.clock.constants import constants_of
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


class RecentLines:
    """The lines of a cache that drops the one which was used longest ago.

    Example:
        >>> cache = RecentLines(2)
        >>> [cache.hit(line) for line in (1, 2, 1, 3, 2)]
        [False, False, True, False, False]
    """

    def __init__(self, capacity: int) -> None:
        self._lines: OrderedDict[Hashable, None] = OrderedDict()
        self._capacity = capacity

    def hit(self, line: Hashable) -> bool:
        """Return whether a line is there; it is, from now on."""
        if line in self._lines:
            self._lines.move_to_end(line)
            return True
        self._lines[line] = None
        if len(self._lines) > self._capacity:
            self._lines.popitem(last=False)
        return False


@dataclass(frozen=True, slots=True)
class Accesses:
    """The accesses of a wave to global memory, in order."""

    place: Integers
    """Of each among the instructions that the wave executed, [access]."""
    kind: Sequence[str]
    """``load``, ``store`` or ``scalar``, [access]."""
    segments: Sequence[Sequence[int]]
    """Of each, the pieces of ``SEGMENT_BYTES``, [access][segment]."""


def accesses_of(wave: RecordedWave, ops: Sequence[str]) -> Accesses:
    """Return the accesses of a recorded wave.

    Args:
        wave: The wave.
        ops: The operation of each access.
    """
    places = wave.memory[:, 0].astype(np.int64)
    ends = np.cumsum(wave.memory[:, 2]).tolist()
    segments = wave.segments.tolist()
    begins = [0, *ends[:-1]] if ends else []
    return Accesses(
        places,
        [_kind(op) for op in ops],
        [segments[begin:end] for begin, end in zip(begins, ends, strict=True)],
    )


def _kind(op: str) -> str:
    if op.startswith("s_"):
        return "scalar"
    return "store" if "store" in op or "atomic" in op else "load"


@dataclass(frozen=True, slots=True)
class MemoryCosts:
    """What the accesses of a wave cost, [access]."""

    place: Integers
    """Of each among the instructions that the wave executed."""
    cycles: Words
    """Of the L1, for its addresses; of a store, for lines that it fills in part."""
    latency: Words
    """-1: as the instruction's."""
    path: Words
    """Of the way to the L2 and behind it, in parts of a cycle (``SCALE``)."""
    behind: Floats
    """The probability that a load waits for memory."""
    memory: Floats
    """Lines that a load brings from memory."""


class _Unit:
    """The caches of one compute unit during the run of some workgroups."""

    def __init__(self, levels: Levels, shared: frozenset[int]) -> None:
        self.levels = levels
        self._shared = shared
        self._l1 = RecentLines(levels.l1_lines)
        self._scalar = RecentLines(levels.scalar_lines)
        self._missed = 0
        self._last: dict[Hashable, int] = {}
        self._arguments: int | None = None

    def cost(self, kind: str, segments: Sequence[int], group: int) -> tuple[float, ...]:
        """Return what one access costs: latency, cycles of the path, ``behind``, ``memory``."""
        if kind == "scalar":
            return max(map(self._scalar_latency, segments), default=0.0), 0.0, 0.0, 0.0
        per_line = self.levels.line_bytes // SEGMENT_BYTES
        lines = dict.fromkeys(segment // per_line for segment in segments)
        names = [line if line in self._shared else (group, line) for line in lines]
        if kind == "store":
            path = self._path([self._far(name, 1.0) for name in names])
            filled = len(segments) / max(1, len(lines) * per_line)
            return self.levels.latency_l2, filled * path, 0.0, 0.0
        missed = [name for name in names if not self._l1.hit(name)]
        if not missed:
            return self.levels.latency_l1, 0.0, 0.0, 0.0
        far = [self._far(name, self.levels.far_share) for name in missed]
        none_far = prod(1 - share for share in far)
        near, behind = self.levels.latency_l2, self.levels.latency_far
        share = self.levels.memory_share
        return (
            near * none_far + behind * (1 - none_far),
            self._path(far),
            (1 - none_far) * share,
            sum(far) * share,
        )

    def _path(self, far: Sequence[float]) -> float:
        return max(len(far) * self.levels.cycles_l2, sum(far) * self.levels.cycles_far)

    def _far(self, name: Hashable, new: float) -> float:
        """Return the probability that a line which is not in the L1 is not in the L2 either.

        ``new`` is that of a line which this compute unit has not accessed. Lines that it writes
        leave the L2 when the kernel ends, so they go behind it once.
        """
        last = self._last.get(name)
        self._missed += 1
        self._last[name] = self._missed
        if last is None:
            return new
        if not isinstance(name, tuple):
            return 0.0
        return 1 - retained((self._missed - last) / self.levels.l2_lines)

    def _scalar_latency(self, segment: int) -> float:
        page = segment // _PAGE
        if self._arguments is None:  # The first scalar load reads what the host has just written.
            self._arguments = page
        name: Hashable = ("arguments",) if page == self._arguments else segment
        if self._scalar.hit(name):
            return self.levels.latency_scalar
        new = name not in self._last
        self._last[name] = self._missed
        cold = new * (1.0 if page == self._arguments else self.levels.cold_share)
        near = self.levels.latency_l2
        return near + cold * (self.levels.latency_cold - near)


_PAGE = 4096 // SEGMENT_BYTES


def shared_lines(groups: Sequence[Sequence[Accesses]], line_bytes: int) -> frozenset[int]:
    """Return the lines that every one of some workgroups accesses, if they are more than one.

    Args:
        groups: The waves of each workgroup.
        line_bytes: Of the L1 cache.
    """
    per_line = line_bytes // SEGMENT_BYTES
    lines = [
        {segment // per_line for wave in waves for each in wave.segments for segment in each}
        for waves in groups
    ]
    return frozenset(set.intersection(*lines)) if len(lines) > 1 else frozenset()


def bytes_of(groups: Sequence[Sequence[Accesses]], kind: str, line_bytes: int) -> float:
    """Return the bytes of lines that a workgroup loads or stores, the mean of some."""
    per_line = line_bytes // SEGMENT_BYTES
    counts = [
        len(
            {
                segment // per_line
                for wave in waves
                for each_kind, each in zip(wave.kind, wave.segments, strict=True)
                if each_kind == kind
                for segment in each
            }
        )
        for waves in groups
    ]
    return line_bytes * sum(counts) / max(1, len(counts))


def memory_costs(
    groups: Sequence[Sequence[Accesses]], levels: Levels, count: int, resident: int
) -> list[list[MemoryCosts]]:
    """Return what the accesses of workgroups cost that one compute unit executes in turn.

    Waves of workgroups that run at the same time take turns: a wave has one for the accesses that
    it issues without another instruction in between, so that what one of them brings the next one
    still finds in the L1. Each workgroup repeats a recorded one, with lines of its own except for
    those that all recorded ones access.

    Args:
        groups: The waves of each recorded workgroup.
        levels: The memory behind the compute unit.
        count: Workgroups that it executes.
        resident: Of them, how many at a time.
    """
    unit = _Unit(levels, shared_lines(groups, levels.line_bytes))
    costs: list[list[MemoryCosts]] = []
    for begin in range(0, count, resident):
        numbers = range(begin, min(begin + resident, count))
        waves = [(number, wave) for number in numbers for wave in groups[number % len(groups)]]
        rows: list[list[tuple[float, ...]]] = [[] for _ in waves]
        for at in _in_turns([wave for _, wave in waves]):
            (number, wave), row = waves[at], rows[at]
            row.append(unit.cost(wave.kind[len(row)], wave.segments[len(row)], number))
        each = iter(zip(rows, waves, strict=True))
        costs += [
            [_costs(*next(each), levels) for _ in groups[number % len(groups)]]
            for number in numbers
        ]
    return costs


def _in_turns(waves: Sequence[Accesses]) -> list[int]:
    """Return the wave of each access; waves take turns of what they issue in a row."""
    turns = [np.cumsum(np.diff(wave.place, prepend=-2) > 1) for wave in waves]
    numbers = np.repeat(np.arange(len(waves)), [len(each) for each in turns])
    order: list[int] = numbers[np.lexsort((numbers, np.concatenate([[], *turns])))].tolist()
    return order


def _costs(
    row: Sequence[tuple[float, ...]], wave: tuple[int, Accesses], levels: Levels
) -> MemoryCosts:
    accesses = wave[1]
    table = np.array(row, dtype=np.float64).reshape(-1, 4)
    cycles = [
        _address_cycles(kind, each, levels)
        for kind, each in zip(accesses.kind, accesses.segments, strict=True)
    ]
    return MemoryCosts(
        accesses.place,
        np.array(cycles, np.int32),
        table[:, 0].round().astype(np.int32),
        (table[:, 1] * SCALE).round().astype(np.int32),
        table[:, 2],
        table[:, 3],
    )


def _address_cycles(kind: str, segments: Sequence[int], levels: Levels) -> int:
    """Return the cycles of an access for its addresses.

    A store that leaves parts of its lines out takes as long as if it filled these, or the halves
    that it touches.
    """
    if kind == "scalar":
        return 0
    per_line = levels.line_bytes // SEGMENT_BYTES
    lines = len({segment // per_line for segment in segments}) if kind == "store" else 0
    if lines * per_line == len(segments):
        return len(segments)
    pieces = len({segment // levels.stored_segments for segment in segments if kind == "store"})
    return max(len(segments), round(pieces * levels.cycles_stored))
