# SPDX-License-Identifier: MIT
"""Requests from the L1 cache to the L2: the lines that recorded workgroups read and write."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from cklang.clock.constants import ClockConstants
from cklang.clock.kernel import LaunchDetail
from cklang.clock.native import missed_lines
from cklang.emulator.recording import SEGMENT_BYTES, RecordedWave

__all__ = ["CacheRequests", "cache_requests"]

Words = npt.NDArray[np.uint32]
Integers = npt.NDArray[np.int64]
Counts = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class CacheRequests:
    """What the L1 caches of the recorded workgroups ask the L2 for."""

    reads: int
    """Lines that were not in the L1."""
    read_bytes: int
    writes: int
    """Pieces of 64 bytes: the L1 passes all writes on."""
    atomics: int


def cache_requests(detail: LaunchDetail, constants: ClockConstants) -> CacheRequests | None:
    """Return the requests of the recorded workgroups; None where the GPU's L1 is not known.

    Each workgroup has an L1 of its own here, with all of its lines free for any address and the
    one dropped that was used longest ago. Waves take turns of one memory instruction. Shared lines
    of neighbouring workgroups on one compute unit are read once on a GPU and once a workgroup here.
    """
    if "l1_line_bytes" not in constants.numbers:
        return None
    line_bytes, capacity = constants.cycles("l1_line_bytes"), constants.cycles("l1_bytes")
    kind = np.array([_kind(instruction.op) for instruction in detail.listing])
    groups: dict[int, list[RecordedWave]] = {}
    for wave in detail.launch.waves:
        groups.setdefault(wave.workgroup, []).append(wave)
    reads = writes = atomics = 0
    for waves in groups.values():
        accesses = _in_turns(waves)
        kinds = kind[detail.line_of[accesses.dword]]
        writes += int(accesses.count[kinds == _WRITE].sum())
        atomics += int(accesses.count[kinds == _ATOMIC].sum())
        chosen = kinds == _READ
        reads += missed_lines(
            accesses.segments,
            accesses.begin[chosen],
            accesses.count[chosen],
            line_bytes // SEGMENT_BYTES,
            capacity // line_bytes,
        )
    return CacheRequests(reads, reads * line_bytes, writes, atomics)


_SCALAR, _ATOMIC, _WRITE, _READ = range(4)


@cache
def _kind(op: str) -> int:
    if op.startswith("s_"):
        return _SCALAR
    return _ATOMIC if "atomic" in op else _WRITE if "store" in op else _READ


@dataclass(frozen=True, slots=True)
class _Accesses:
    """What the waves of a workgroup access: the first of each wave, then the second."""

    dword: Words
    """Of the code, [access]."""
    begin: Integers
    """The first piece of each in ``segments``, [access]."""
    count: Integers
    segments: Counts


def _in_turns(waves: list[RecordedWave]) -> _Accesses:
    counts = [wave.memory[:, 2].astype(np.int64) for wave in waves]
    count = np.concatenate(counts)
    turn = np.concatenate([np.arange(len(each)) for each in counts])
    order = np.argsort(turn, kind="stable")
    return _Accesses(
        np.concatenate([wave.slot_at(wave.memory[:, 0]) for wave in waves])[order],
        (np.cumsum(count) - count)[order],
        count[order],
        np.concatenate([wave.segments for wave in waves]),
    )
