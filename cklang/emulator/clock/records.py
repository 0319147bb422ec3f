# SPDX-License-Identifier: MIT
"""What recorded waves did, read by native code from where the emulator has written it."""

import ctypes
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from cklang.emulator.clock.native import addresses_function, pointer
from cklang.emulator.clock.waves import Program
from cklang.emulator.engine.recording import SEGMENT_BYTES, PackedWaves

Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]
Extents = npt.NDArray[np.uint64]

KINDS = ("scalar", "atomic", "write", "read")
"""Kinds of global memory accesses, in the order of ``ck_requests`` in ``addresses.cpp``."""


@cache
def kind_of(op: str) -> int:
    """Return the kind of an operation's accesses, an index of ``KINDS``.

    Example:
        >>> [KINDS[kind_of(op)] for op in ("s_load_dword", "global_store_dword", "flat_load_dword")]
        ['scalar', 'write', 'read']
    """
    if op.startswith("s_"):
        return KINDS.index("scalar")
    return KINDS.index("atomic" if "atomic" in op else "write" if "store" in op else "read")


@dataclass(frozen=True, slots=True)
class WaveHeads:
    """The recorded waves of a launch, ordered by workgroup and number; arrays are [wave]."""

    number: Integers
    """Each one's number among the recorded waves."""
    begin: Integers
    """In the packed bytes."""
    executed: Integers
    """Instructions."""
    accesses: Integers
    """Accesses to global memory."""
    first_access: Integers
    """The number of the first of them, among those of all waves in the order of the recording."""
    ends: Integers
    """Where each workgroup's waves end, [workgroup]."""

    @property
    def groups(self) -> list[list[int]]:
        """The places of each workgroup's waves in these arrays."""
        ends = self.ends.tolist()
        return [list(range(*span)) for span in zip([0, *ends[:-1]], ends, strict=False)]


def heads_of(waves: PackedWaves) -> WaveHeads:
    """Return the heads of recorded waves.

    Example:
        >>> heads_of(PackedWaves(np.zeros(0, np.uint8), 0)).groups
        []
    """
    rows = np.zeros((len(waves), 5), np.int64)
    if len(waves):
        run = addresses_function("ck_heads")
        run(pointer(waves.packed), ctypes.c_int64(len(waves)), pointer(rows))
    order = np.lexsort((rows[:, 2], rows[:, 1]))
    before = np.cumsum(rows[:, 4]) - rows[:, 4]
    begin, workgroup, _, executed, accesses = np.ascontiguousarray(rows[order].T)
    ends = np.flatnonzero(np.diff(workgroup, append=-1)) + 1
    return WaveHeads(order, begin, executed, accesses, before[order], ends)


def some_of(waves: PackedWaves, heads: WaveHeads, places: slice) -> PackedWaves:
    """Return some of a launch's recorded waves.

    Args:
        waves: All of them.
        heads: Of these.
        places: In ``heads``.
    """
    limits = np.append(np.sort(heads.begin), len(waves.packed))
    begins = heads.begin[places]
    ends = limits[np.searchsorted(limits, begins, side="right")]
    pieces = [waves.packed[begin:end] for begin, end in zip(begins, ends, strict=True)]
    return PackedWaves(np.concatenate(pieces), len(pieces))


class _CListing(ctypes.Structure):
    """``Listing`` of ``addresses.cpp``."""

    _fields_ = (
        ("line_of", ctypes.c_void_p),
        ("lines", ctypes.c_void_p),
        ("widths", ctypes.c_void_p),
    )


def _listing(line_of: Words, prog: Program) -> _CListing:
    """Return a listing for C; the arrays must stay."""
    tables = (line_of, prog.lds.lines, prog.lds.widths)
    return _CListing(*(table.ctypes.data for table in tables))


@dataclass(frozen=True, slots=True)
class RecordSums:
    """Sums over the executions of recorded waves; arrays are [line] but the last one."""

    sampled: Floats
    """Executions."""
    lanes: Floats
    accesses: Floats
    """Executions that accessed global memory."""
    bytes: Floats
    segments: Floats
    conflicts: Floats
    """Passes of the LDS beyond one a phase."""
    lds_cycles: Floats
    access_lines: Words
    """The line of each access to global memory, one wave of the recording after the other."""


def sums_of(waves: PackedWaves, heads: WaveHeads, line_of: Words, prog: Program) -> RecordSums:
    """Return what recorded waves did, by line of their listing.

    Args:
        waves: What was recorded.
        heads: Of the waves.
        line_of: The line of each dword of the code.
        prog: The listing with its costs.
    """
    lines = len(prog.names)
    sums, access_lines = np.zeros((7, lines)), np.zeros(int(heads.accesses.sum()), np.int32)
    checked(
        addresses_function("ck_sums")(
            pointer(waves.packed), ctypes.c_int64(len(waves)),
            ctypes.byref(_listing(line_of, prog)), ctypes.c_int64(lines),
            pointer(sums), pointer(access_lines),
        )
    )  # fmt: skip
    sampled, lanes, accesses, moved, segments, conflicts, lds_cycles = sums
    return RecordSums(
        sampled=sampled,
        lanes=lanes,
        accesses=accesses,
        bytes=moved,
        segments=segments,
        conflicts=conflicts,
        lds_cycles=lds_cycles,
        access_lines=access_lines,
    )


def stream_of(
    waves: PackedWaves, heads: WaveHeads, at: int, line_of: Words, prog: Program
) -> tuple[Words, Words | None]:
    """Return the lines that a wave executed, and the cycles that each takes of the LDS.

    The cycles are -1 where they are those of the listing; None if addresses lack.

    Args:
        waves: What was recorded.
        heads: Of the waves.
        at: The wave's place in ``heads``.
        line_of: The line of each dword of the code.
        prog: The listing with its costs.
    """
    line, cycles = (np.empty(int(heads.executed[at]), np.int32) for _ in range(2))
    known = checked(
        addresses_function("ck_stream")(
            ctypes.c_void_p(waves.packed.ctypes.data + int(heads.begin[at])),
            ctypes.byref(_listing(line_of, prog)), pointer(line), pointer(cycles),
        )
    )  # fmt: skip
    return line, cycles if known else None


@dataclass(frozen=True, slots=True)
class RequestCounts:
    """What the L1 caches of recorded workgroups ask the L2 for, and what is new to it."""

    reads: int
    """Lines that were not in the L1."""
    writes: int
    """Segments: the L1 passes all writes on."""
    atomics: int
    new_read: int
    """Lines for which their L2 was not asked before."""
    new_written: int
    new_changed: int
    """Bytes changed by atomics."""
    written: int
    """Segments that are written or changed, each once an L2."""
    again: Integers
    """Lines that are read again from an L2, by how many it was asked for since, [eighth of an
    octave]."""


def request_counts(
    waves: PackedWaves,
    heads: WaveHeads,
    kinds: npt.NDArray[np.uint8],
    line: tuple[int, int],
    l2: Integers | None = None,
) -> RequestCounts:
    """Return what L1 caches ask the L2 for.

    Each workgroup has an L1, which drops the line that was used longest ago. Its waves take turns
    of one access. Workgroups run one after the other.

    Args:
        waves: What was recorded.
        heads: Of the waves.
        kinds: Of each access, an index of ``KINDS``, in the order of ``RecordSums.access_lines``.
        line: Segments of a line of the L1, and its lines.
        l2: The number of the L2 behind each workgroup, below 64; what is new to them is not counted
            without, [workgroup].
    """
    counts, again = np.zeros(7, np.int64), np.zeros(512, np.int64)
    checked(
        addresses_function("ck_requests")(
            pointer(waves.packed), pointer(heads.begin),
            pointer(heads.first_access), pointer(heads.ends),
            None if l2 is None else pointer(l2), ctypes.c_int64(len(heads.ends)),
            pointer(kinds), *map(ctypes.c_int64, line), pointer(counts), pointer(again),
        )
    )  # fmt: skip
    reads, writes, atomics, new_read, new_written, new_changed, written = counts.tolist()
    return RequestCounts(
        reads=reads,
        writes=writes,
        atomics=atomics,
        new_read=new_read,
        new_written=new_written,
        new_changed=new_changed,
        written=written,
        again=again,
    )


def recent_misses(lines: Integers, capacity: int) -> npt.NDArray[np.bool_]:
    """Return which lines a cache does not have when it is asked for them one after the other.

    Args:
        lines: Their numbers.
        capacity: Lines of the cache, which drops the one that was used longest ago.

    Example:
        >>> recent_misses(np.array([1, 2, 1, 3, 2]), 2).tolist()
        [True, True, False, True, True]
    """
    lines, missed = np.ascontiguousarray(lines, np.int64), np.zeros(len(lines), np.uint8)
    checked(
        addresses_function("ck_recent")(
            pointer(lines), *map(ctypes.c_int64, (len(lines), capacity)), pointer(missed)
        )
    )
    return missed.astype(bool)


def extent_counts(
    waves: PackedWaves, extents: Extents, kinds: npt.NDArray[np.uint8] | None = None
) -> Integers:
    """Return what recorded waves access of some extents of memory, [extent, count].

    The counts are distinct segments, reads of segments and writes to them; the last row has those
    of segments in no extent.

    Args:
        waves: What was recorded.
        extents: In the order of their addresses, [extent, (begin, end)].
        kinds: Of each access, an index of ``KINDS``, in the order of ``RecordSums.access_lines``;
            without, no reads and writes are counted.
    """
    counts = np.zeros((len(extents) + 1, 3), np.int64)
    if len(waves):
        checked(
            addresses_function("ck_extents")(
                pointer(waves.packed), ctypes.c_int64(len(waves)),
                pointer(extents), ctypes.c_int64(len(extents)),
                None if kinds is None else pointer(kinds), pointer(counts),
            )
        )  # fmt: skip
    return counts


def distinct_bytes(waves: PackedWaves) -> int:
    """Return the bytes of the segments that recorded waves accessed, each counted once."""
    return SEGMENT_BYTES * int(extent_counts(waves, np.zeros((0, 2), np.uint64))[0, 0])


def add_by_line(sums: Floats, line: Words, values: Words) -> None:
    """Add to the sums of each line the values of its executions."""
    run = addresses_function("ck_add_by_line")
    run(pointer(line), pointer(values), ctypes.c_int64(len(line)), pointer(sums))


def checked(result: int) -> int:
    """Return what native code returned."""
    if result < 0:
        raise MemoryError("the clock has no memory for what waves did")
    return result
