# SPDX-License-Identifier: MIT
"""Advice that follows from the numbers of a launch: each with its evidence and what it could win.

Every rule looks at one thing, says nothing where the numbers do not prove it, and gives the time
that the clock predicts without the wait. Where the clock cannot run without something, it says so.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil, prod

import numpy as np

from cklang.emulator.clock.native import REASONS
from cklang.emulator.profiler.model import InstructionProfile, LaunchProfile


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """One thing to change."""

    what: str
    evidence: str
    us: float | None
    """The time without the loss, by the clock; None if the clock cannot tell."""
    gain: float | None
    """Share of the time that this would save."""

    def __str__(self) -> str:
        if self.us is None or self.gain is None:
            return f"{self.what} Evidence: {self.evidence}."
        counterfactual = f"{self.us:.4g} µs without it ({self.gain:.0%} less)"
        return f"{self.what} Evidence: {self.evidence}. By the clock: {counterfactual}."


_LEAST_SHARE = 0.1
"""The least share of the waves' cycles that deserves advice."""
_LEAST_GAIN = 0.03
_POOR_EFFICIENCY = 0.5
_POOR_LANES = 0.75
_REMEDIES = {
    "load": (
        "Waves wait for loads from global memory: issue loads earlier (prefetch, more of them on "
        "their way), or have more waves a SIMD."
    ),
    "store": "Waves wait for stores: do not wait for them before the end of the kernel.",
    "LDS": (
        "Waves wait for the LDS: read further ahead of use, in wider accesses, and without "
        "conflicts."
    ),
    "scalar load": "Waves wait for scalar loads: load kernel arguments and constants earlier.",
    "barrier": "Waves wait at barriers: give all waves of a workgroup as much work between them.",
    "matrix result": (
        "Matrix instructions wait for each other's results: interleave independent accumulators."
    ),
    "vector result": "Vector instructions wait for results: interleave independent work.",
    "scalar result": "Instructions wait for scalar results: compute addresses and masks earlier.",
    "vector unit busy": "The vector units are busy: execute fewer vector instructions.",
    "matrix unit busy": "The matrix units are busy: this kernel is near to what they can do.",
    "LDS queue full": "The LDS is busy: access it less often, or in wider accesses.",
    "memory queue full": "The queue of memory instructions is full: use wider loads and stores.",
    "s_nop, s_sleep": "Waves pass cycles in s_nop or s_sleep: put independent work there.",
    "instruction fetch": "Waves wait for instructions: shorten and align the loop.",
}


def advice_of(launch: LaunchProfile) -> tuple[Advice, ...]:
    """Return what the numbers of a launch advise, the largest gain first."""
    rows = [row for rule in _RULES for row in rule(launch)]
    return tuple(sorted(rows, key=lambda row: -(row.gain or 0.0)))


def _count(number: int, what: str) -> str:
    """Return a number of things.

    Example:
        >>> _count(1, "workgroup"), _count(2, "workgroup")
        ('1 workgroup', '2 workgroups')
    """
    return f"{number} {what}{'s' * (number != 1)}"


def _gain(launch: LaunchProfile, us: float) -> float:
    return 1 - us / launch.us if launch.us else 0.0


def _waits(launch: LaunchProfile) -> Iterator[Advice]:
    for reason, share in launch.lost.items():
        if share < _LEAST_SHARE or reason not in _REMEDIES:
            continue
        us = launch.us_without(reason)
        if _gain(launch, us) < _LEAST_GAIN:
            continue
        yield Advice(
            what=_remedy(launch, reason),
            evidence=f"{share:.0%} of the waves' cycles: {reason}, {_where(launch, reason)}",
            us=us,
            gain=_gain(launch, us),
        )


def _remedy(launch: LaunchProfile, reason: str) -> str:
    """Return what helps; stores that a wave waits for when it ends were not waited for before."""
    at_end = "s_endpgm" in launch.detail.texts[_worst_line(launch, reason)]
    return _LAST_STORES if reason == "store" and at_end else _REMEDIES[reason]


_LAST_STORES = (
    "Stores are on their way when waves end: store less, in wider accesses, or have other waves "
    "work meanwhile."
)


def _worst_line(launch: LaunchProfile, reason: str) -> int:
    """Return the line at which waves lose most cycles for a reason."""
    return int(np.argmax(launch.detail.unit.lost[:, REASONS.index(reason)]))


def _where(launch: LaunchProfile, reason: str) -> str:
    """Return the place at which waves lose most cycles for a reason."""
    column = launch.detail.unit.lost[:, REASONS.index(reason)]
    line = _worst_line(launch, reason)
    place = launch.places[line]
    at = "" if place is None else f" at {place.short}"
    share = float(column[line] / max(column.sum(), 1))
    return f"{share:.0%} of them before {launch.detail.texts[line]!r}{at}"


def _conflicts(launch: LaunchProfile) -> Iterator[Advice]:
    conflicts, cycles = launch.facts.conflicts.sum(), launch.facts.lds_cycles.sum()
    if cycles == 0 or conflicts / cycles < _LEAST_SHARE:
        return
    worst = max(launch.instructions, key=lambda row: row.conflicts * row.hits)
    us = launch.us_without(conflicts=False)
    if _gain(launch, us) < _LEAST_GAIN:
        return
    yield Advice(
        what=(
            "Lanes conflict in the banks of the LDS: pad the rows, or swizzle the addresses, so "
            "that lanes of one phase are in different banks."
        ),
        evidence=(
            f"{conflicts / cycles:.0%} of the LDS's cycles are conflicts; "
            f"{worst.text!r}{_at(worst)} takes {worst.conflicts:.1f} further passes each time"
        ),
        us=us,
        gain=_gain(launch, us),
    )


def _at(row: InstructionProfile) -> str:
    return "" if row.place is None else f" at {row.place.short}"


def _coalescing(launch: LaunchProfile) -> Iterator[Advice]:
    poor = [
        row
        for row in launch.instructions
        if row.efficiency is not None
        and row.efficiency < _POOR_EFFICIENCY
        and row.lanes > 1
        and not row.text.startswith("s_")
    ]
    if not poor:
        return
    worst = max(poor, key=lambda row: row.hits * row.bytes / (row.efficiency or 1.0))
    timed = "rate_l2" in launch.constants.numbers  # by the addresses of each access
    lines = launch.detail.line_of[[row.address // 4 for row in poor]].tolist()
    us = launch.us_without(neighbours=lines) if timed else None
    yield Advice(
        what=(
            "Neighbouring lanes access memory far apart: let them access neighbours, through the "
            "LDS if need be."
        ),
        evidence=(
            f"{worst.text!r}{_at(worst)} uses {worst.efficiency:.0%} of the 64-byte pieces that it "
            f"touches (in {_count(len(poor), 'such instruction')})"
            + (
                ""
                if timed
                else "; the clock takes each access as one of neighbours, so that its "
                "time is too short"
            )
        ),
        us=us,
        gain=None if us is None else _gain(launch, us),
    )


def _lanes(launch: LaunchProfile) -> Iterator[Advice]:
    vector = launch.facts.of_units("valu", "trans", "matrix")
    executed = launch.facts.sampled[vector].sum()
    if executed == 0:
        return
    mean = float(launch.facts.lanes[vector].sum() / executed)
    width = launch.detail.launch.lanes
    if mean / width >= _POOR_LANES:
        return
    yield Advice(
        what="Lanes are disabled: let all lanes of a wave take the same branches.",
        evidence=f"{mean:.1f} of {width} lanes are enabled in an average vector instruction",
        us=None,
        gain=None,
    )


def _grid(launch: LaunchProfile) -> Iterator[Advice]:
    units, total = launch.detail.spec.compute_units, prod(launch.groups)
    slots = units * launch.detail.resident
    rounds = total / slots
    if total < units:
        yield Advice(
            what="The grid is smaller than the GPU: use smaller tiles, or split the work further.",
            evidence=f"{_count(total, 'workgroup')} for {units} compute units",
            us=None,
            gain=None,
        )
    elif 1 < rounds < _FEW_ROUNDS and rounds / ceil(rounds) < _POOR_LANES:
        yield Advice(
            what="The last round of workgroups leaves most of the GPU idle: change the tile size.",
            evidence=f"{total} workgroups in {ceil(rounds)} rounds of {slots}",
            us=launch.us * rounds / ceil(rounds),
            gain=1 - rounds / ceil(rounds),
        )


_FEW_ROUNDS = 8


def _scratch(launch: LaunchProfile) -> Iterator[Advice]:
    spills = sum(row.hits for row in launch.instructions if row.text.startswith("scratch_"))
    bytes_of_lane = launch.detail.launch.scratch_bytes
    if spills == 0 or bytes_of_lane == 0:
        return
    yield Advice(
        what="Registers are spilled, or arrays are indexed at run time: use fewer registers.",
        evidence=f"{spills} accesses to private memory, {bytes_of_lane} bytes of each lane",
        us=None,
        gain=None,
    )


def _unknown(launch: LaunchProfile) -> Iterator[Advice]:
    for row in launch.unknown:
        yield Advice(
            what=f"The clock has no cost for {row.op}: trust this profile less.",
            evidence=(
                f"{row.instructions:.1%} of the executed instructions, which take "
                f"{row.cycles:.1%} of the waves' cycles as if each took a turn to issue"
            ),
            us=None,
            gain=None,
        )


_RULES: tuple[Callable[[LaunchProfile], Iterator[Advice]], ...] = (
    _waits,
    _conflicts,
    _coalescing,
    _lanes,
    _grid,
    _scratch,
    _unknown,
)
