# SPDX-License-Identifier: MIT
"""What the accesses of workgroups to global memory cost on one compute unit.

The lines that recorded workgroups access go through its L1 cache and its scalar cache, in native
code. What they do not have is in the L2 or behind it, as :mod:`~cklang.emulator.clock.hierarchy`
says.
"""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, starmap

import numpy as np
import numpy.typing as npt

from cklang.emulator.clock.hierarchy import Levels, retained_table
from cklang.emulator.clock.native import addresses_function, pointer
from cklang.emulator.clock.records import WaveHeads, checked
from cklang.emulator.engine.recording import SEGMENT_BYTES, PackedWaves

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.int32]
SCALE = 16
"""Parts of a cycle in which the compute unit counts its share of the paths to memory."""


@dataclass(frozen=True, slots=True)
class RecordedAccesses:
    """The accesses of recorded workgroups to global memory."""

    waves: PackedWaves
    heads: WaveHeads
    """The heads of the waves."""
    kinds: npt.NDArray[np.uint8]
    """The kind of each access, an index of ``cklang.emulator.clock.records.KINDS``, in the order of
    ``RecordSums.access_lines``."""
    groups: Sequence[int]
    """Workgroups of ``heads``, in the order in which they run."""


@dataclass(frozen=True, slots=True)
class MemoryCosts:
    """What the accesses of a wave cost, [access]."""

    place: Words
    """The position of each access among the instructions that the wave executed."""
    cycles: Words
    """Cycles of the L1 for its addresses; of a store, for lines that it fills in part."""
    latency: Words
    path: Words
    """Cycles on the way to the L2 and behind it, in parts of a cycle (``SCALE``)."""
    behind: Floats
    """The probability that a load waits for memory."""
    memory: Floats
    """Lines that a load brings from memory."""


class _CGroups(ctypes.Structure):
    """``Groups`` of ``addresses.cpp``."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("packed", "begins", "access", "first", "last")),
        ("count", ctypes.c_int64),
        ("kinds", ctypes.c_void_p),
    )


_SHARES = (
    "l2_lines", "far_share", "cold_share", "latency_l1", "latency_l2", "latency_far",
    "latency_scalar", "latency_cold", "cycles_l2", "cycles_far", "cycles_stored", "memory_share",
)  # fmt: skip

_COUNTS = ("per_line", "l1_lines", "scalar_lines", "stored_segments", "steps")


class _CLevels(ctypes.Structure):
    """``Levels`` of ``addresses.cpp``."""

    _fields_ = (
        *((name, ctypes.c_double) for name in _SHARES),
        *((name, ctypes.c_int64) for name in _COUNTS),
        *((name, ctypes.c_void_p) for name in ("ratios", "retained")),
    )


@dataclass(frozen=True, slots=True)
class _Spans:
    """Where the waves of each workgroup are among those of the heads, [workgroup]."""

    first: Integers
    last: Integers


def _spans(accesses: RecordedAccesses) -> _Spans:
    ends, groups = accesses.heads.ends, np.asarray(accesses.groups, np.int64)
    return _Spans(np.append(0, ends)[groups], ends[groups])


def _groups(accesses: RecordedAccesses, spans: _Spans) -> _CGroups:
    """Return workgroups for C; the arrays must stay."""
    heads = accesses.heads
    arrays = (accesses.waves.packed, heads.begin, heads.first_access, spans.first, spans.last)
    addresses = (array.ctypes.data for array in arrays)
    return _CGroups(*addresses, len(spans.first), accesses.kinds.ctypes.data)


def bytes_of(accesses: RecordedAccesses, line_bytes: int) -> tuple[float, float]:
    """Return the bytes of lines that a workgroup loads and that it stores, means of all.

    Args:
        accesses: Of some workgroups.
        line_bytes: Of the L1 cache.
    """
    spans, sums = _spans(accesses), np.zeros(2, np.int64)
    checked(
        addresses_function("ck_lines")(
            ctypes.byref(_groups(accesses, spans)),
            ctypes.c_int64(line_bytes // SEGMENT_BYTES),
            pointer(sums),
        )
    )
    loaded, stored = (sums * line_bytes / max(1, len(spans.first))).tolist()
    return loaded, stored


def memory_costs(
    accesses: RecordedAccesses, levels: Levels, count: int, resident: int
) -> list[MemoryCosts]:
    """Return what the accesses of workgroups cost that one compute unit executes in turn, by wave.

    Waves of workgroups that run at the same time take turns: a wave has one for the accesses that
    it issues without another instruction in between, so that what one of them brings the next one
    still finds in the L1. Each workgroup repeats a recorded one, with lines of its own except for
    those that all recorded ones access.

    Args:
        accesses: Of the recorded workgroups.
        levels: The memory behind the compute unit.
        count: Workgroups that it executes.
        resident: Of them, how many at a time.
    """
    spans, number = _spans(accesses), np.arange(count) % max(1, len(accesses.groups))
    parts = [
        accesses.heads.accesses[spans.first[group] : spans.last[group]] for group in number.tolist()
    ]
    ends = np.cumsum(np.concatenate([np.zeros(1, np.int64), *parts]))
    places, cycles, latency, path = np.zeros((4, int(ends[-1])), np.int32)
    behind, memory = np.zeros((2, int(ends[-1])))
    checked(
        addresses_function("ck_memory_costs")(
            ctypes.byref(_groups(accesses, spans)), ctypes.byref(_levels(levels)),
            *map(ctypes.c_int64, (count, resident)), pointer(places), pointer(cycles),
            pointer(latency), pointer(path), pointer(behind), pointer(memory),
        )
    )  # fmt: skip
    return [
        MemoryCosts(places[at], cycles[at], latency[at], path[at], behind[at], memory[at])
        for at in starmap(slice, pairwise(ends.tolist()))
    ]


def scalar_requests(
    accesses: RecordedAccesses,
    line_of: Words,
    waits: npt.NDArray[np.uint8],
    *,
    lines: int,
    count: int,
    together: int,
    queue: int,
) -> tuple[Integers, Integers]:
    """Return what a scalar cache is asked for by workgroups that run in rounds on its units.

    The counts are requests, those for lines that are not there, those for lines on their way, and
    lines that are fetched: of the first round, and of all. The cache is empty before.

    Args:
        accesses: Of the recorded workgroups, which the others repeat with lines of their own.
        line_of: The line of each dword of the code.
        waits: Whether waves wait for scalar loads there, [line of the listing].
        lines: Of ``SEGMENT_BYTES``, of the cache.
        count: Workgroups.
        together: Of them, how many at a time.
        queue: Requests that are answered together with the one that fetches a line, below 256.
    """
    spans = _spans(accesses)
    groups = _groups(accesses, spans)
    before, sums = np.zeros(len(accesses.kinds), np.int32), np.zeros((2, 4), np.int64)
    addresses_function("ck_waits_before")(
        ctypes.byref(groups), pointer(line_of), pointer(waits), pointer(before)
    )
    checked(
        addresses_function("ck_scalar_cache")(
            ctypes.byref(groups), pointer(before),
            *map(ctypes.c_int64, (lines, count, together, queue)), pointer(sums),
        )
    )  # fmt: skip
    return sums[0], sums[1]


def _levels(levels: Levels) -> _CLevels:
    ratios, shares = retained_table()
    return _CLevels(
        **{name: getattr(levels, name) for name in _SHARES},
        per_line=levels.line_bytes // SEGMENT_BYTES,
        l1_lines=levels.l1_lines,
        scalar_lines=levels.scalar_lines,
        stored_segments=levels.stored_segments,
        steps=len(ratios),
        ratios=ratios.ctypes.data,
        retained=shares.ctypes.data,
    )
