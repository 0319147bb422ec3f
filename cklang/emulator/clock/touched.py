# SPDX-License-Identifier: MIT
"""The memory that a launch touches, by array, from what some of its workgroups accessed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod

import numpy as np
import numpy.typing as npt

from cklang.emulator.clock.records import Extents, WaveHeads, extent_counts
from cklang.emulator.engine.recording import SEGMENT_BYTES, RecordedLaunch


@dataclass(frozen=True, slots=True, kw_only=True)
class TouchedMemory:
    """What all workgroups of a launch do with one extent of memory: an array, or its arguments."""

    begin: int
    """Its address; -1 for memory that belongs to no allocation."""
    bytes: float
    """Bytes that are touched, each counted once."""
    loaded: float
    """Bytes of loads and atomics, as often as waves load them."""
    stored: float


def scale_of(launch: RecordedLaunch, heads: WaveHeads) -> float:
    """Return the workgroups of a launch over those that were recorded."""
    return prod(launch.groups) / max(len(heads.ends), 1)


def touched_memory(
    launch: RecordedLaunch, heads: WaveHeads, kinds: npt.NDArray[np.uint8] | None = None
) -> Sequence[TouchedMemory]:
    """Return what a launch touches of each extent of memory.

    What the recorded workgroups touch is scaled to all of them, as if they shared nothing, up to
    the size of the extent.

    Args:
        launch: What was recorded.
        heads: Of its waves.
        kinds: Of each access, as :func:`extent_counts` takes them; without, nothing is loaded or
            stored.
    """
    extents = launch.extents
    scaled = SEGMENT_BYTES * scale_of(launch, heads) * extent_counts(launch.waves, extents, kinds)
    sizes = [*np.diff(extents.astype(np.int64), axis=1).ravel().tolist(), np.inf]
    begins = [*extents[:, 0].tolist(), -1]
    rows = zip(begins, sizes, *scaled.T.tolist(), strict=True)
    return [
        TouchedMemory(begin=begin, bytes=min(touched, size), loaded=loaded, stored=stored)
        for begin, size, touched, loaded, stored in rows
        if touched
    ]


def by_array(launches: Sequence[RecordedLaunch]) -> list[RecordedLaunch]:
    """Return launches whose extents are arrays, as far as it is known where in them one begins.

    Many arrays may lie in one allocation: of a workspace, or of a memory pool. Each pointer among
    the arguments of the launches is the beginning of one.
    """
    begins = np.unique(np.concatenate([launch.pointers for launch in launches] or [_NONE]))
    return [replace(launch, extents=_cut(launch.extents, begins)) for launch in launches]


_NONE = np.zeros(0, np.uint64)


def _cut(extents: Extents, places: Extents) -> Extents:
    """Return extents of memory that end where one of some places is in them.

    Example:
        >>> _cut(np.array([[10, 20], [30, 40]]), np.array([5, 10, 16, 30])).tolist()
        [[10, 16], [16, 20], [30, 40]]
    """
    rows: list[tuple[int, int]] = []
    for begin, end in extents.tolist():
        first, last = np.searchsorted(places, (begin + 1, end))
        rows += pairwise([begin, *places[first:last].tolist(), end])
    return np.array(rows, np.uint64).reshape(-1, 2)


def footprint_of(launch: RecordedLaunch, heads: WaveHeads) -> int:
    """Return the bytes of memory that a launch touches, each counted once."""
    return round(sum(memory.bytes for memory in touched_memory(launch, heads)))
