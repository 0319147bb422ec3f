# SPDX-License-Identifier: MIT
"""What a launch did, by line of its listing: the arrays from which all else is computed."""

from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from cklang.emulator.clock.kernel import LaunchDetail
from cklang.emulator.clock.native import UNITS
from cklang.emulator.clock.records import add_by_line
from cklang.emulator.clock.touched import scale_of
from cklang.forks import cached_property

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
    """Bytes of global memory that all lanes access."""
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
    def executed_by_op(self) -> Floats:
        """Executions of each operation of the listing, [operation]."""
        code = self.detail.code
        return np.bincount(code.op_of, self.executed, len(code.ops)).astype(np.float64)

    @cached_property
    def duration(self) -> Floats:
        """Cycles from the first attempt to issue until the wave goes on."""
        return self._of_timed("duration")

    @cached_property
    def stall(self) -> Floats:
        """Cycles that waves waited before they were issued."""
        return self._of_timed("stall")

    def _of_timed(self, column: str) -> Floats:
        total = np.zeros(len(self.detail.listing))
        for stream, timed in zip(self.detail.streams, self.detail.unit.waves, strict=True):
            add_by_line(total, stream.line, getattr(timed, column))
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

    @cached_property
    def wave_cycles(self) -> float:
        """Cycles of the timed waves, from the first to the last of each."""
        waves = self.detail.unit.waves
        return float(sum(wave.end - int(wave.start[0]) for wave in waves if len(wave.start)))

    def of_units(self, *names: str) -> npt.NDArray[np.bool_]:
        """Return which lines some units of the clock execute."""
        return np.isin(self.detail.prog.unit, [UNITS.index(name) for name in names])


def facts_of(detail: LaunchDetail) -> LaunchFacts:
    """Return what a launch did, by line of its listing."""
    sums = detail.sums
    return LaunchFacts(
        detail=detail,
        executed=_executed(detail),
        sampled=sums.sampled,
        lanes=sums.lanes,
        bytes=sums.bytes,
        segments=sums.segments,
        accesses=sums.accesses,
        conflicts=sums.conflicts,
        lds_cycles=sums.lds_cycles,
        scale=scale_of(detail.launch, detail.heads),
    )


def _executed(detail: LaunchDetail) -> Floats:
    dwords = np.flatnonzero(detail.launch.executed)
    dwords = dwords[dwords < len(detail.line_of)]
    executed = np.zeros(len(detail.listing))
    executed[detail.line_of[dwords]] = detail.launch.executed[dwords]
    return executed


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
