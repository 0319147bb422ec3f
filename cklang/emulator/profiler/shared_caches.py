# SPDX-License-Identifier: MIT
"""Caches of code and of scalars, shared by neighbouring compute units."""

from dataclasses import dataclass
from math import ceil, prod

import numpy as np
import numpy.typing as npt

from cklang.emulator.clock.access_costs import RecordedAccesses, scalar_requests
from cklang.emulator.clock.constants import ClockConstants
from cklang.emulator.clock.kernel import LaunchDetail
from cklang.emulator.clock.records import recent_misses, stream_of
from cklang.emulator.engine.recording import SEGMENT_BYTES

Integers = npt.NDArray[np.int64]
FETCHED = 32
"""Bytes of code that a wave fetches at once, as the published counters of a copy show."""
_CODE_LINE = 64
"""Bytes of a line of the instruction cache."""
_ROUNDS = 3
"""Rounds of workgroups whose scalar loads are looked at."""


@dataclass(frozen=True, slots=True)
class CacheMisses:
    """What the caches of one kind do not have when a launch asks them; all others are hits."""

    misses: float
    """Requests for lines that are not there."""
    duplicates: float
    """Requests for lines that are on their way for an earlier one."""
    lines: float
    """Fetched lines."""

    def hits(self, requests: float) -> float:
        """Return how many of the requests find their line."""
        return requests - self.misses - self.duplicates


@dataclass(frozen=True, slots=True)
class _Shares:
    """The workgroups of such caches: they differ by one at most."""

    caches: int
    """How many of the GPU's caches a workgroup can use."""
    groups: int
    """Workgroups of the launch."""
    together: int
    """Workgroups that use one at a time, at most."""

    @property
    def at_once(self) -> int:
        """Workgroups that use one at a time, of this launch."""
        return min(self.together, max(1, round(self.groups / self.caches)))

    def counts(self) -> dict[int, int]:
        """Return how many caches have how many workgroups, by the latter."""
        least, more = divmod(self.groups, self.caches)
        return {least: self.caches - more, least + 1: more}


def _shares(detail: LaunchDetail, constants: ClockConstants) -> _Shares:
    spec, groups = detail.spec, prod(detail.launch.groups)
    caches = round(spec.chiplets * constants["shared_caches"])
    resident = ceil(detail.resident * spec.compute_units / caches)
    return _Shares(min(caches, groups), groups, resident)


def scalar_misses(detail: LaunchDetail, constants: ClockConstants, requests: float) -> CacheMisses:
    """Return what the scalar caches do not have, empty when the launch begins."""
    shares = _shares(detail, constants)
    accesses = RecordedAccesses(
        detail.launch.waves, detail.heads, detail.access_kinds, range(len(detail.heads.ends))
    )
    named = np.array([op.startswith("s_wait") for op in detail.code.ops])
    waits = np.zeros(len(detail.texts), np.uint8)
    for line in np.flatnonzero(named[detail.code.op_of]).tolist():
        waits[line] = _waits_for_scalars(detail.texts[line])

    def asked(count: int) -> npt.NDArray[np.float64]:
        """Requests to one cache with so many workgroups; later ones count as those before."""
        timed = min(count, _ROUNDS * shares.together)
        first, some = scalar_requests(
            accesses,
            detail.line_of,
            waits,
            lines=constants.cycles("scalar_cache_bytes") // SEGMENT_BYTES,
            count=timed,
            together=shares.together,
            queue=constants.cycles("scalar_cache_queue"),
        )
        return some + (some - first) / max(1, timed - shares.together) * (count - timed)

    totals = sum(number * asked(count) for count, number in shares.counts().items() if number)
    _, misses, duplicates, lines = np.asarray(totals).tolist()
    return CacheMisses(misses, min(duplicates, requests - misses), lines)


def _waits_for_scalars(text: str) -> bool:
    """Return whether a wave waits there for its scalar loads.

    Example:
        >>> [_waits_for_scalars(text) for text in ("s_waitcnt lgkmcnt(0)", "s_waitcnt vmcnt(0)")]
        [True, False]
    """
    return text.startswith("s_wait_kmcnt") or (text.startswith("s_wait") and "lgkmcnt" in text)


def instruction_misses(
    detail: LaunchDetail, constants: ClockConstants, executed: npt.NDArray[np.float64]
) -> CacheMisses:
    """Return what the instruction caches do not have where a launch of the same kernel came before.

    ``executed`` counts executions by all waves, [line].
    """
    used = np.unique(detail.code.addresses[executed > 0] // _CODE_LINE)
    lines = constants.cycles("instruction_cache_bytes") // _CODE_LINE
    if len(used) <= lines:
        return CacheMisses(0.0, 0.0, 0.0)
    shares = _shares(detail, constants)
    misses, duplicates = _of_a_round(detail, shares, lines, constants.cycles("scalar_cache_queue"))
    rounds = shares.groups / shares.at_once
    return CacheMisses(rounds * misses, rounds * duplicates, rounds * misses)


def _of_a_round(
    detail: LaunchDetail, shares: _Shares, lines: int, queue: int
) -> tuple[float, float]:
    """Return misses and duplicates of workgroups that run at a time, and take turns of a fetch."""
    groups = detail.heads.groups[: shares.at_once]
    waves = [_fetched_lines(detail, at) for group in groups for at in group]
    turn = np.concatenate([np.arange(len(wave)) for wave in waves])
    order = np.argsort(turn, kind="stable")
    asked, turn = np.concatenate(waves)[order], turn[order]
    # What the launch before has left is what such a round leaves.
    missed = recent_misses(np.tile(asked, 2), lines)[len(asked) :]
    # Others that ask in the same turn are answered with the line.
    names = turn * (int(asked.max()) + 1) + asked
    _, place, counts = np.unique(names, return_inverse=True, return_counts=True)
    fetched = np.bincount(place[missed], minlength=len(counts))
    others = counts * (shares.at_once / len(groups)) - fetched
    return float(missed.sum()), float(np.minimum(others, queue * fetched).sum())


def _fetched_lines(detail: LaunchDetail, at: int) -> Integers:
    """Return the line of each fetch of a recorded wave."""
    line, _ = stream_of(detail.launch.waves, detail.heads, at, detail.line_of, detail.prog)
    block = detail.code.addresses[line] // FETCHED
    begins = np.diff(block, prepend=-1) != 0
    begins[1:] |= np.diff(line) != 1
    lines: Integers = block[begins] * FETCHED // _CODE_LINE
    return lines


def fetches_of(detail: LaunchDetail, executed: npt.NDArray[np.float64]) -> float:
    """Return how often waves fetch code: where they come into a block, from above or by a jump.

    Where an instruction is executed more often than the one before it, waves have jumped to it.

    ``executed`` counts executions by all waves, [line].
    """
    above = np.concatenate([[0.0], executed[:-1]])
    begins = np.diff(detail.code.addresses // FETCHED, prepend=-1) != 0
    return float(np.where(begins, executed, np.maximum(executed - above, 0)).sum())
