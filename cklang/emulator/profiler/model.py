# SPDX-License-Identifier: MIT
"""Profiles: of launches, of their instructions and of source lines."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan, prod

import numpy as np

from cklang.emulator.clock.constants import ClockConstants
from cklang.emulator.clock.kernel import LaunchDetail, cycles_without
from cklang.emulator.clock.native import REASONS
from cklang.emulator.clock.power import clock_of_products, clock_under_load, matrix_rates
from cklang.emulator.profiler.counters import Counter, counted, timed
from cklang.emulator.profiler.facts import (
    LaunchFacts,
    UnknownCost,
    facts_of,
    unknown_costs,
)
from cklang.emulator.profiler.memory import CacheRequests, cache_requests
from cklang.emulator.profiler.names import readable
from cklang.emulator.profiler.occupancy import Occupancy, occupancy_of
from cklang.emulator.profiler.roofline import Limit, Roofline, limits_of, roofline_of
from cklang.emulator.profiler.source import Place, phases_of, places_of
from cklang.emulator.profiler.stages import stages_of
from cklang.forks import cached_property


@dataclass(frozen=True, slots=True, kw_only=True)
class InstructionProfile:
    """One instruction of a listing. Cycles are those of the waves of one compute unit."""

    address: int
    """In the code object's text section, in bytes."""
    text: str
    place: Place | None
    phase: str
    """``before``, ``loop`` or ``after`` the loops of the kernel; ``straight`` without any."""
    stage: str
    """The pipeline stage: one of ``cklang.emulator.profiler.stages.STAGES``."""
    hits: int
    """Executions by waves, of the whole launch."""
    cycles: int
    """From the first attempt to issue it until its wave goes on."""
    stall: int
    """Cycles that waves waited before its executions were issued."""
    lost: Mapping[str, int]
    """Cycles without issue by reason, the largest first; those before the attempt, too."""
    lanes: float
    """Enabled lanes, on average."""
    bytes: float
    """Bytes of global memory that the lanes of an execution access."""
    efficiency: float | None
    """Bytes over those of the 64-byte pieces that hold them; above 1 where lanes share bytes."""
    conflicts: float
    """Passes of the LDS beyond one a phase, of an execution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageProfile:
    """One stage of the pipeline: the sums over its instructions."""

    stage: str
    hits: int
    cycles: int
    stall: int
    lost: Mapping[str, int]
    share: float
    """Share of the cycles of all waves that were timed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceProfile:
    """One source line: the sums over its instructions."""

    place: Place
    stage: str
    """The stage with most of its cycles."""
    hits: int
    cycles: int
    stall: int
    lost: Mapping[str, int]
    bytes: float
    """Bytes of global memory in the whole launch, scaled from the recorded workgroups."""
    conflicts: float
    """LDS conflicts in the whole launch, scaled too."""
    share: float
    """Share of the cycles of all waves that were timed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRow:
    """All launches of a kernel."""

    kernel: str
    gpu: str
    launches: int
    us: float
    mean_us: float
    share: float
    """Share of the time of all kernels."""


_BUSY = 0.5
"""Share of the time from which on a unit limits a launch."""
_BOARD = "MI300X"
"""The board whose power law for vector instructions is known."""


@dataclass(frozen=True, slots=True)
class UnderLoad:
    """A launch, one of many that keep the whole GPU busy, where power limits the clock."""

    board: str
    """The board with the GPU, which limits its power."""
    clock_hz: float
    us: float
    error: float
    """Median error under load of the kernels that were measured, held out."""


@dataclass(frozen=True, kw_only=True)
class LaunchProfile:
    """One launch of a kernel on an emulated GPU."""

    number: int
    kernel: str
    """Its name without parameters."""
    detail: LaunchDetail = field(repr=False)
    facts: LaunchFacts = field(repr=False)
    board: str | None = None
    """On which it runs; None: the first one that is known with the GPU."""

    @property
    def constants(self) -> ClockConstants:
        """The clock's numbers of the GPU."""
        return self.detail.prog.constants

    @cached_property
    def cycles(self) -> float:
        """From the first workgroup's start to the last one's end, by the clock."""
        return self.detail.cycles

    @property
    def us(self) -> float:
        """At the GPU's highest clock, without the overhead of a launch."""
        return self.cycles / self.detail.spec.clock_hz * 1e6

    @property
    def under_load(self) -> UnderLoad | None:
        """The time at the clock that power leaves; None if no such kernel was measured.

        Kernels of vector instructions were, on gfx942, and kernels of matrix instructions on
        elements of 16, 8 and 4 bits, on gfx942 and gfx950. The rates are those of the whole GPU,
        lower for a launch that leaves compute units idle.
        """
        if self.counter("SQ_INSTS_MFMA"):
            return self._product_under_load()
        error = self.constants.validated("load_clock")
        if error is None or self.board not in (None, _BOARD):
            return None
        by_memory = self.roofline.bound == "memory"
        clock = clock_under_load(
            self.constants,
            self.detail.spec,
            self.roofline.bytes_per_second,
            self.roofline.flops_per_second,
            bound_by_memory=by_memory,
        )
        if not clock:
            return None
        us = self.us if by_memory else self.cycles / clock * 1e6
        return UnderLoad(_BOARD, clock, us, error)

    def _product_under_load(self) -> UnderLoad | None:
        """The time of a kernel all of whose matrix instructions have a known cost of power."""
        boards = self.constants.boards
        board = next((row for row in boards if self.board in (None, row.board)), None)
        if board is None or board.error is None:
            return None
        clock = clock_of_products(board, self.detail.spec, matrix_rates(self.detail))
        if clock is None:
            return None
        return UnderLoad(board.board, clock, self.cycles / clock * 1e6, board.error)

    @property
    def error(self) -> float | None:
        """Median relative error of the clock on kernels of its class; None without silicon."""
        return self.detail.error

    @cached_property
    def requests(self) -> CacheRequests | None:
        """Requests to the L1 caches."""
        return cache_requests(self.detail, self.constants)

    @cached_property
    def counted(self) -> tuple[Counter, ...]:
        """The counters that need no clock."""
        return counted(self.facts, self.requests)

    @cached_property
    def counters(self) -> tuple[Counter, ...]:
        """All counters."""
        return (*timed(self.facts, self.cycles), *self.counted)

    @cached_property
    def occupancy(self) -> Occupancy:
        """Waves of a compute unit, and what limits them."""
        return occupancy_of(self.detail.launch, self.detail.spec)

    @cached_property
    def roofline(self) -> Roofline:
        """Its place in the roofline of the GPU."""
        return roofline_of(self.facts, self.us)

    @cached_property
    def limits(self) -> tuple[Limit, ...]:
        """How busy the units are."""
        return limits_of(self.facts, self.roofline, self.cycles)

    @property
    def bound(self) -> str:
        """What limits the launch, in words: the busiest unit, or what its waves wait for."""
        units = {limit.name: limit.share for limit in self.limits if limit.name != "memory"}
        behind, share = self.detail.busy_behind_l1
        name, share = max([(behind, share), *units.items()], key=lambda unit: unit[1])
        if share >= _BUSY:
            return f"{name} ({min(share, 1):.0%} busy)"
        reason, lost = next(iter(self.lost.items()), ("nothing", 0.0))
        text = f"waits for {reason} ({lost:.0%} of the waves' cycles)"
        if self.occupancy.grid >= 1:
            return text
        there = self.detail.spec.compute_units
        return f"{text}; {prod(self.groups)} workgroups for {there} compute units"

    @cached_property
    def unknown(self) -> tuple[UnknownCost, ...]:
        """Operations for which the clock has no cost, that with the most cycles first."""
        return unknown_costs(self.facts)

    @property
    def gpu(self) -> str:
        """The GPU, such as ``gfx942``."""
        return self.detail.spec.name

    @property
    def groups(self) -> tuple[int, int, int]:
        """Workgroups."""
        return self.detail.launch.groups

    @property
    def block(self) -> tuple[int, int, int]:
        """Threads of a workgroup."""
        return self.detail.launch.block

    @property
    def waves(self) -> int:
        """Waves of all workgroups."""
        return self.facts.waves

    def counter(self, name: str) -> float:
        """Return the value of a counter; the clock runs only where it gives it.

        Raises:
            KeyError: The model does not have it.
        """
        values = {row.name: row.value for row in self.counted}
        if name not in values:
            values = {row.name: row.value for row in self.counters}
        return values[name]

    @cached_property
    def lost(self) -> dict[str, float]:
        """Share of the waves' cycles without issue by reason, the largest first."""
        total = self.facts.wave_cycles or 1.0
        by_reason = self.detail.unit.lost.sum(0) / total
        shares = {REASONS[at]: float(by_reason[at]) for at in np.argsort(-by_reason, kind="stable")}
        return {reason: share for reason, share in shares.items() if share > 0}

    @cached_property
    def places(self) -> tuple[Place | None, ...]:
        """The source line of each line of the listing."""
        return tuple(places_of(self.detail))

    @cached_property
    def stage_of_line(self) -> tuple[str, ...]:
        """The stage of each line of the listing."""
        return stages_of(self.detail)

    @cached_property
    def stages(self) -> tuple[StageProfile, ...]:
        """The stages of the pipeline, that with the most cycles first."""
        facts = self.facts
        lines: dict[str, list[int]] = {}
        for at in np.flatnonzero(facts.executed).tolist():
            lines.setdefault(self.stage_of_line[at], []).append(at)
        rows = [
            StageProfile(
                stage=stage,
                hits=int(facts.executed[chosen].sum()),
                cycles=int(facts.duration[chosen].sum()),
                stall=int(facts.stall[chosen].sum()),
                lost=_by_reason(self.detail.unit.lost[chosen].sum(0)),
                share=float(facts.duration[chosen].sum()) / (facts.wave_cycles or 1.0),
            )
            for stage, chosen in lines.items()
        ]
        return tuple(sorted(rows, key=lambda row: (-row.cycles, row.stage)))

    @cached_property
    def instructions(self) -> tuple[InstructionProfile, ...]:
        """The instructions that waves executed, in the order of the code."""
        return tuple(self._instructions())

    def _instructions(self) -> Iterator[InstructionProfile]:
        facts, listing = self.facts, self.detail.listing
        phases = phases_of(self.detail, facts.executed, facts.waves)
        lines = np.flatnonzero(facts.executed)
        sampled, accesses = (np.where(n == 0, 1.0, n) for n in (facts.sampled, facts.accesses))
        fetched = np.where(facts.segments == 0, np.nan, 64 * facts.segments)
        columns = (
            facts.executed, facts.duration, facts.stall, facts.lanes / sampled,
            facts.bytes / accesses, facts.bytes / fetched, facts.conflicts / sampled,
        )  # fmt: skip
        numbers = np.stack([column[lines] for column in columns], 1).tolist()
        lost = self.detail.unit.lost[lines]
        for at, row, reasons in zip(lines.tolist(), numbers, lost, strict=True):
            hits, cycles, stall, lanes, moved, efficiency, conflicts = row
            yield InstructionProfile(
                address=listing[at].address,
                text=self.detail.texts[at],
                place=self.places[at],
                phase=phases[at],
                stage=self.stage_of_line[at],
                hits=int(hits),
                cycles=int(cycles),
                stall=int(stall),
                lost=_by_reason(reasons),
                lanes=lanes,
                bytes=moved,
                efficiency=None if isnan(efficiency) else efficiency,
                conflicts=conflicts,
            )

    @cached_property
    def sources(self) -> tuple[SourceProfile, ...]:
        """The source lines, that with the most cycles first."""
        lines: dict[Place, list[int]] = {}
        for at in np.flatnonzero(self.facts.executed):
            place = self.places[int(at)]
            if place is not None:
                lines.setdefault(place, []).append(int(at))
        rows = [self._source(place, chosen) for place, chosen in lines.items()]
        return tuple(sorted(rows, key=lambda row: (-row.cycles, row.place)))

    def _source(self, place: Place, lines: Sequence[int]) -> SourceProfile:
        facts, chosen = self.facts, list(lines)
        cycles = float(facts.duration[chosen].sum())
        return SourceProfile(
            place=place,
            stage=self._main_stage(chosen),
            hits=int(facts.executed[chosen].sum()),
            cycles=int(cycles),
            stall=int(facts.stall[chosen].sum()),
            lost=_by_reason(self.detail.unit.lost[chosen].sum(0)),
            bytes=float(facts.bytes[chosen].sum()) * facts.scale,
            conflicts=float(facts.conflicts[chosen].sum()) * facts.scale,
            share=cycles / (facts.wave_cycles or 1.0),
        )

    def _main_stage(self, lines: Sequence[int]) -> str:
        cycles: dict[str, float] = {}
        for at in lines:
            stage = self.stage_of_line[at]
            cycles[stage] = cycles.get(stage, 0.0) + float(self.facts.duration[at])
        return max(cycles, key=lambda stage: cycles[stage])

    def us_without(
        self,
        *reasons: str,
        lines: Sequence[int] | None = None,
        conflicts: bool = True,
        neighbours: Sequence[int] = (),
    ) -> float:
        """Return the time in µs if waves never waited for some reasons.

        The clock runs again. The waves execute the same instructions, so this is the most that a
        change which removes the wait can win, not a prediction of the changed kernel.

        Args:
            *reasons: Of ``cklang.emulator.clock.native.REASONS``.
            lines: Of the listing, at which they do not wait; all by default.
            conflicts: Whether lanes conflict in the LDS.
            neighbours: Lines of the listing at which the L1 takes as long as for lanes that access
                memory side by side. The bytes that come from the L2 stay as they are.
        """
        cycles = cycles_without(
            self.detail, reasons, lines, conflicts=conflicts, neighbours=neighbours
        )
        return cycles / self.detail.spec.clock_hz * 1e6


def _by_reason(lost: np.ndarray[tuple[int], np.dtype[np.int64]]) -> dict[str, int]:
    cycles = [(-count, at) for at, count in enumerate(lost.tolist()) if count]
    return {REASONS[at]: -count for count, at in sorted(cycles)}


def launch_profile(number: int, detail: LaunchDetail, board: str | None = None) -> LaunchProfile:
    """Return the profile of a launch that is timed.

    Args:
        number: Of the launch.
        detail: Some of its workgroups on a compute unit.
        board: On which it runs; by default the first one that is known with the GPU.
    """
    return LaunchProfile(
        number=number,
        kernel=readable(detail.launch.kernel),
        detail=detail,
        facts=facts_of(detail),
        board=board,
    )


def kernel_rows(launches: Sequence[LaunchProfile]) -> tuple[KernelRow, ...]:
    """Return the launches by kernel and GPU, those that take longest first."""
    times: dict[tuple[str, str], list[float]] = {}
    for launch in launches:
        times.setdefault((launch.kernel, launch.gpu), []).append(launch.us)
    total = sum(launch.us for launch in launches) or 1.0
    rows = [
        KernelRow(
            kernel=kernel,
            gpu=gpu,
            launches=len(us),
            us=sum(us),
            mean_us=sum(us) / len(us),
            share=sum(us) / total,
        )
        for (kernel, gpu), us in times.items()
    ]
    return tuple(sorted(rows, key=lambda row: -row.us))


def grid_text(extents: tuple[int, int, int]) -> str:
    """Return extents without those of 1 at the end.

    Example:
        >>> grid_text((64, 2, 1)), grid_text((1, 1, 1))
        ('64x2', '1')
    """
    kept = extents if prod(extents[2:]) > 1 else extents[:2] if extents[1] > 1 else extents[:1]
    return "x".join(map(str, kept))
