# SPDX-License-Identifier: MIT
"""What a launch did, by line of its listing: the arrays from which all else is computed."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from cklang.clock.kernel import LaunchDetail, LdsUse
from cklang.clock.native import UNITS
from cklang.emulator.recording import SEGMENT_BYTES, RecordedLaunch, RecordedWave
from cklang.forks import cached_property

__all__ = [
    "LaunchFacts",
    "UnknownCost",
    "distinct_bytes",
    "facts_of",
    "scale_of",
    "unknown_costs",
]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class LaunchFacts:
    """A launch by line of its listing; every array is [line].

    ``executed`` counts all workgroups. The arrays from ``sampled`` to ``lds_cycles`` are sums over
    the recorded workgroups, to be multiplied by ``scale`` for the launch. ``duration`` and
    ``stall`` are cycles of the waves that were timed on one compute unit.
    """

    detail: LaunchDetail
    executed: Floats
    sampled: Floats
    """Executions by recorded waves."""
    lanes: Floats
    """Enabled lanes."""
    bytes: Floats
    """Of global memory, of all lanes."""
    segments: Floats
    """Pieces of 64 bytes of global memory, counted once an instruction."""
    accesses: Floats
    """Executions that accessed global memory."""
    conflicts: Floats
    """Passes of the LDS beyond one a phase."""
    lds_cycles: Floats
    scale: float
    """Workgroups of the launch over recorded ones."""

    @cached_property
    def duration(self) -> Floats:
        """Cycles from the first attempt to issue until the wave goes on."""
        return self._of_timed("duration")

    @cached_property
    def stall(self) -> Floats:
        """Of them, until it is issued."""
        return self._of_timed("stall")

    def _of_timed(self, column: str) -> Floats:
        total = np.zeros(len(self.detail.listing))
        for stream, timed in zip(self.detail.streams, self.detail.unit.waves, strict=True):
            total += np.bincount(stream.line, getattr(timed, column), len(total))
        return total

    @property
    def complete(self) -> bool:
        """Whether every workgroup was recorded."""
        return self.scale == 1

    @property
    def waves(self) -> int:
        """Waves of the launch."""
        launch = self.detail.launch
        threads = prod(launch.block)
        return prod(launch.groups) * -(-threads // launch.lanes)

    @property
    def wave_cycles(self) -> float:
        """Cycles of the timed waves, from the first to the last of each."""
        waves = self.detail.unit.waves
        return float(sum(wave.end - int(wave.start[0]) for wave in waves if len(wave.start)))

    def of_units(self, *names: str) -> npt.NDArray[np.bool_]:
        """Return which lines some units of the clock execute.

        Args:
            *names: Of ``cklang.clock.native.UNITS``.
        """
        return np.isin(self.detail.prog.unit, [UNITS.index(name) for name in names])


def facts_of(detail: LaunchDetail) -> LaunchFacts:
    """Return what a launch did, by line of its listing."""
    count = len(detail.listing)
    sums = {name: np.zeros(count) for name in _SAMPLED}
    for wave, use in zip(detail.launch.waves, detail.lds, strict=True):
        _add_wave(sums, detail.line_of, wave, use)
    return LaunchFacts(
        detail=detail,
        executed=_executed(detail),
        **sums,
        scale=scale_of(detail.launch),
    )


def scale_of(launch: RecordedLaunch) -> float:
    """Return the workgroups of a launch over those that were recorded."""
    recorded = len({wave.workgroup for wave in launch.waves})
    return prod(launch.groups) / max(recorded, 1)


_SAMPLED = ("sampled", "lanes", "bytes", "segments", "accesses", "conflicts", "lds_cycles")


def _executed(detail: LaunchDetail) -> Floats:
    dwords = np.flatnonzero(detail.launch.executed)
    dwords = dwords[dwords < len(detail.line_of)]
    executed = np.zeros(len(detail.listing))
    executed[detail.line_of[dwords]] = detail.launch.executed[dwords]
    return executed


def _add_wave(
    sums: dict[str, Floats],
    line_of: npt.NDArray[np.int32],
    wave: RecordedWave,
    use: LdsUse | None,
) -> None:
    count = len(sums["sampled"])

    def add(
        name: str, at: npt.NDArray[np.int32], values: npt.NDArray[np.generic] | None = None
    ) -> None:
        sums[name] += np.bincount(at, values, count)

    line = line_of[wave.slots]
    add("sampled", line, wave.sums())
    add("lanes", line, wave.sums(wave.enabled))
    at = line_of[wave.slot_at(wave.memory[:, 0])]
    add("accesses", at)
    add("bytes", at, wave.memory[:, 1])
    add("segments", at, wave.memory[:, 2])
    if use is not None:
        add("conflicts", use.line, use.conflicts)
        add("lds_cycles", use.line, use.cycles)


def distinct_bytes(launch: RecordedLaunch) -> int:
    """Return the bytes of the segments that the recorded waves accessed, each counted once."""
    segments = [wave.segments for wave in launch.waves if len(wave.segments)]
    return SEGMENT_BYTES * len(np.unique(np.concatenate(segments))) if segments else 0


@dataclass(frozen=True, slots=True)
class UnknownCost:
    """An operation for which the clock has no cost: it takes an issue slot and no unit."""

    op: str
    instructions: float
    """Share of the executed instructions of the timed waves."""
    cycles: float
    """Share of the cycles of the timed waves that they spend at it nevertheless."""


def unknown_costs(facts: LaunchFacts) -> tuple[UnknownCost, ...]:
    """Return the operations that waves execute and the clock has no cost for."""
    detail, count = facts.detail, len(facts.detail.listing)
    executed = np.zeros(count)
    for stream in detail.streams:
        executed += np.bincount(stream.line, minlength=count)
    lines: dict[str, list[int]] = {}
    for line in detail.prog.unknown:
        if executed[line]:
            lines.setdefault(detail.listing[line].op, []).append(line)
    rows = [
        UnknownCost(
            op,
            float(executed[chosen].sum() / executed.sum()),
            float(facts.duration[chosen].sum() / (facts.wave_cycles or 1.0)),
        )
        for op, chosen in lines.items()
    ]
    return tuple(sorted(rows, key=lambda row: (-row.cycles, row.op)))
