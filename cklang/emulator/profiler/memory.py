# SPDX-License-Identifier: MIT
"""Requests from the L1 cache to the L2: the lines that recorded workgroups read and write."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from cklang.emulator.clock.constants import ClockConstants
from cklang.emulator.clock.hierarchy import retained
from cklang.emulator.clock.kernel import LaunchDetail
from cklang.emulator.clock.records import RequestCounts, request_counts
from cklang.emulator.engine.recording import SEGMENT_BYTES

L2_LINE = 128
"""Bytes of a line of the L2."""


@dataclass(frozen=True, slots=True)
class CacheRequests:
    """What the L1 caches of the recorded workgroups ask the L2 for."""

    reads: int
    """Lines that were not in the L1."""
    line_bytes: int
    writes: int
    """Pieces of 64 bytes: the L1 passes all writes on."""
    atomics: int
    beyond: BeyondL2 | None = None
    """None if only some workgroups were recorded, and where lines of the L1 are not the L2's."""

    @property
    def read_bytes(self) -> int:
        """Bytes of the lines that are read."""
        return self.reads * self.line_bytes


@dataclass(frozen=True, slots=True)
class BeyondL2:
    """What the L2 caches, empty when the launch begins, do not have."""

    read: float
    """Lines that are fetched for reads and atomics."""
    missed: float
    """Requests for lines that are not there; a write to one fetches nothing."""
    line_bytes: int
    written: int
    """Pieces of 64 bytes that go to memory, at the latest when the launch ends."""


def cache_requests(detail: LaunchDetail, constants: ClockConstants) -> CacheRequests | None:
    """Return the requests of the recorded workgroups; None if the GPU's L1 is not known.

    Each workgroup has an L1 of its own here, with all of its lines free for any address and the
    one dropped that was used longest ago. Waves take turns of one memory instruction. Shared lines
    of neighbouring workgroups on one compute unit are read once on a GPU and once a workgroup here.
    Workgroups go round the chiplets; each has an L2.
    """
    if "l1_line_bytes" not in constants.numbers:
        return None
    line_bytes, capacity = constants.cycles("l1_line_bytes"), constants.cycles("l1_bytes")
    heads, spec = detail.heads, detail.spec
    complete = line_bytes == L2_LINE and len(heads.ends) == prod(detail.launch.groups)
    counts = request_counts(
        detail.launch.waves,
        heads,
        detail.access_kinds,
        (line_bytes // SEGMENT_BYTES, capacity // line_bytes),
        np.arange(len(heads.ends)) % spec.chiplets if complete else None,
    )
    beyond = _beyond(counts, spec.l2_bytes / line_bytes, line_bytes) if complete else None
    return CacheRequests(counts.reads, line_bytes, counts.writes, counts.atomics, beyond)


_EIGHTHS = 8


def _beyond(counts: RequestCounts, l2_lines: float, line_bytes: int) -> BeyondL2:
    """Return what L2 caches do not have, if sets of each are filled at random."""
    dropped = sum(
        count * (1 - retained(2 ** ((at + 0.5) / _EIGHTHS) / l2_lines))
        for at, count in enumerate(counts.again.tolist())
        if count
    )
    read = counts.new_read + counts.new_changed + dropped
    return BeyondL2(read, read + counts.new_written, line_bytes, counts.written)
