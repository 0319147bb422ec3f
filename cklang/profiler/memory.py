# SPDX-License-Identifier: MIT
"""Requests from the L1 cache to the L2: the lines that recorded workgroups read and write."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cklang.clock.constants import ClockConstants
from cklang.clock.hierarchy import RecentLines
from cklang.clock.kernel import LaunchDetail
from cklang.emulator.recording import SEGMENT_BYTES, RecordedWave

__all__ = ["CacheRequests", "cache_requests"]


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
    groups: dict[int, list[RecordedWave]] = {}
    for wave in detail.launch.waves:
        groups.setdefault(wave.workgroup, []).append(wave)
    reads = writes = atomics = 0
    for waves in groups.values():
        cache = RecentLines(capacity // line_bytes)
        for op, segments in _in_turns(detail, waves):
            if op.startswith("s_"):
                continue
            if "atomic" in op:
                atomics += len(segments)
            elif "store" in op:
                writes += len(segments)
            else:
                lines = np.unique(segments // (line_bytes // SEGMENT_BYTES))
                reads += sum(not cache.hit(line) for line in lines.tolist())
    return CacheRequests(reads, reads * line_bytes, writes, atomics)


def _in_turns(
    detail: LaunchDetail, waves: list[RecordedWave]
) -> Iterator[tuple[str, np.ndarray[tuple[int], np.dtype[np.uint64]]]]:
    """Yield the operation and segments of each access: the first of each wave, then the second."""
    ends = [np.cumsum(wave.memory[:, 2]) for wave in waves]
    for number in range(max((len(wave.memory) for wave in waves), default=0)):
        for wave, end in zip(waves, ends, strict=True):
            if number >= len(wave.memory):
                continue
            place, _, count = wave.memory[number]
            op = detail.listing[int(detail.line_of[wave.line[place]])].op
            yield op, wave.segments[int(end[number]) - int(count) : int(end[number])]
