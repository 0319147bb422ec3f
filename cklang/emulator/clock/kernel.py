# SPDX-License-Identifier: MIT
"""The time of a whole launch, from what a few of its workgroups executed on the emulated GPU.

Some workgroups are timed in detail on one compute unit, which holds as many at a time as the GPU
would. Those that a compute unit executes beyond a few rounds take the time of the rounds before.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, prod

import numpy as np
import numpy.typing as npt

from cklang.arch import ArchSpec, arch
from cklang.emulator.clock.access_costs import RecordedAccesses, bytes_of
from cklang.emulator.clock.constants import ClockConstants
from cklang.emulator.clock.hierarchy import Kept
from cklang.emulator.clock.instruction import Instruction
from cklang.emulator.clock.launch_memory import LaunchExtent, MemoryTraffic, with_memory
from cklang.emulator.clock.listing import CodeListing, listing_of, reached
from cklang.emulator.clock.memory import of_launch
from cklang.emulator.clock.native import UNITS
from cklang.emulator.clock.records import (
    RecordSums,
    WaveHeads,
    heads_of,
    kind_of,
    stream_of,
    sums_of,
)
from cklang.emulator.clock.sampling import differ, executed_of
from cklang.emulator.clock.touched import footprint_of
from cklang.emulator.clock.waves import (
    Program,
    TimedUnit,
    TimedWave,
    WaveStream,
    program,
    run_unit,
    without,
)
from cklang.emulator.engine.recording import RecordedLaunch
from cklang.forks import cached_property
from cklang.memo import BoundedMemo
from cklang.toolchain.progress import Wait

_ROUNDS = 3
"""Rounds of workgroups that are timed in detail."""


@dataclass(frozen=True, slots=True)
class Span:
    """What a wave does from one cycle to another."""

    start: int
    stop: int
    kind: str
    """``matrix``, ``vector``, ``scalar``, ``memory``, ``LDS``, ``barrier`` or ``wait``."""


@dataclass(frozen=True, slots=True)
class LaunchTime:
    """How long one launch takes."""

    kernel: str
    cycles: float
    """Cycles of the shader clock, from the first workgroup's start to the last one's end."""
    us: float
    """At the GPU's highest clock."""
    workgroups: int
    resident: int
    """Workgroups of a compute unit at a time."""
    stall: Mapping[str, float]
    """Share of the waves' cycles that they are stalled at each operation, the largest first."""
    unknown: Mapping[str, float]
    """Share of the executed instructions for which the clock has no cost, by operation."""
    error: float | None
    """Median relative error of the clock on kernels of its class; None if none was measured."""
    spans: tuple[tuple[Span, ...], ...] = field(default=(), repr=False)
    """What each wave of the first workgroup does, cycle by cycle."""


_KINDS = (
    ("s_barrier", "barrier"),
    ("s_wait", "wait"),
    ("v_mfma", "matrix"),
    ("v_smfmac", "matrix"),
    ("v_wmma", "matrix"),
    ("v_swmmac", "matrix"),
    ("ds_", "LDS"),
    ("v_", "vector"),
    ("s_load", "memory"),
    ("s_", "scalar"),
    ("", "memory"),
)
"""Kinds of instructions by how their names begin; the first row that fits."""


def spans_of(ops: Sequence[str], wave: TimedWave) -> tuple[Span, ...]:
    """Return what a wave does, neighbours of one kind as one span.

    Args:
        ops: The operation of each instruction that the wave executes.
        wave: When it executes them. Cycles before an instruction issues are spans of waiting.

    Example:
        >>> wave = TimedWave(np.array([0, 4]), np.array([0, 6]), np.array([4, 8]), 12)
        >>> [(span.start, span.stop, span.kind) for span in spans_of(["v_add", "v_mfma"], wave)]
        [(0, 4, 'vector'), (4, 10, 'wait'), (10, 12, 'matrix')]
    """
    spans: list[Span] = []
    for op, start, stall, duration in zip(
        ops, wave.start.tolist(), wave.stall.tolist(), wave.duration.tolist(), strict=True
    ):
        kind = next(kind for prefix, kind in _KINDS if op.startswith(prefix))
        for first, last, what in (
            (start, start + stall, "wait"),
            (start + stall, start + duration, kind),
        ):
            if first == last:
                continue
            if spans and spans[-1].kind == what and spans[-1].stop >= first:
                first = spans.pop().start
            spans.append(Span(first, last, what))
    return tuple(spans)


_PROGRAMS: BoundedMemo[Hashable, tuple[ClockConstants, CodeListing, Program]] = BoundedMemo(8)


def _program_of(
    launch: RecordedLaunch, code: CodeListing, constants: ClockConstants, footprint: int
) -> Program:
    """Return the costs of the instructions that a launch executes; the last few are kept."""
    executed = code.line_of[reached(launch) & (code.line_of >= 0)]
    alone = prod(launch.groups) == 1
    key = (launch.gpu, launch.code, footprint, alone, executed.tobytes())
    known = _PROGRAMS.get(key)
    if known is not None and known[0] is constants and known[1] is code:
        return known[2]
    costs = of_launch(constants, footprint, alone=alone)
    prog = program(code.instructions, costs, executed)
    _PROGRAMS.put(key, (constants, code, prog))
    return prog


@dataclass(frozen=True, kw_only=True)
class LaunchDetail:
    """A launch and the compute unit on which some of its workgroups are timed, when asked for."""

    launch: RecordedLaunch
    spec: ArchSpec
    prog: Program
    code: CodeListing
    heads: WaveHeads
    """The heads of the recorded waves."""
    footprint: int
    """Bytes of the launch's operands."""
    detailed: int
    """Workgroups that are timed."""
    resident: int
    """Workgroups of a compute unit at a time."""
    each: int
    """Workgroups that a compute unit executes."""
    begins: Kept | Callable[[], Kept] | None
    """What caches hold of the operands when it begins, or a function that finds it out; None: what
    another such launch leaves."""
    differ: bool = False
    """Whether some recorded workgroups do more than others, as those of causal attention."""

    @property
    def listing(self) -> Sequence[Instruction]:
        """The instructions of the code object."""
        return self.code.instructions

    @property
    def texts(self) -> Sequence[str]:
        """The assembly text of each line."""
        return self.code.texts

    @property
    def line_of(self) -> npt.NDArray[np.int32]:
        """The line of each dword of the code; -1 inside of an instruction."""
        return self.code.line_of

    @cached_property
    def kept(self) -> Kept | None:
        """What caches hold of the operands when it begins; None: what another launch leaves."""
        return self.begins() if callable(self.begins) else self.begins

    @cached_property
    def sums(self) -> RecordSums:
        """What the recorded waves did, by line of the listing."""
        return sums_of(self.launch.waves, self.heads, self.line_of, self.prog)

    @cached_property
    def streams(self) -> Sequence[WaveStream]:
        """The waves of the compute unit."""
        return self._settled[0]

    @cached_property
    def unit(self) -> TimedUnit:
        """The times at which the waves execute their instructions."""
        return self._settled[1]

    @cached_property
    def _settled(self) -> tuple[Sequence[WaveStream], TimedUnit]:
        """The waves and their times, while memory is as busy as they keep it.

        Bisects for the fixed point: queueing slows the waves, which lowers memory's load. No load
        leads to more, and the load without a queue to less.
        """
        traffic = self.traffic
        streams = traffic.streams
        unit = run_unit(self.prog, streams)
        low, high = 0.0, traffic.load(_end(unit))
        while traffic.waits(high) - traffic.waits(low) > _SHORT_WAIT:
            tried = (low + high) / 2 if low else _FIRST_GUESS * high
            streams = traffic.busy(tried)
            unit = run_unit(self.prog, streams)
            reached = traffic.load(_end(unit))
            if abs(reached - tried) < _NEAR:
                break
            low, high = (tried, high) if reached > tried else (low, tried)
        return streams, unit

    @cached_property
    def access_kinds(self) -> npt.NDArray[np.uint8]:
        """The kind of each access to global memory, an index of ``clock.records.KINDS``."""
        of_op = np.array([kind_of(op) for op in self.code.ops], np.uint8)
        kinds: npt.NDArray[np.uint8] = of_op[self.code.op_of[self.sums.access_lines]]
        return kinds

    @cached_property
    def accesses(self) -> RecordedAccesses:
        """The accesses of the workgroups that are timed."""
        chosen: Sequence[int] = range(len(self.heads.ends))
        if self.differ:
            chosen = _spread(executed_of(self.heads), self.detailed)
        return RecordedAccesses(self.launch.waves, self.heads, self.access_kinds, chosen)

    @cached_property
    def moved(self) -> tuple[float, float]:
        """Bytes of lines that a workgroup loads and that it stores, means of those timed."""
        return bytes_of(self.accesses, self.prog.constants.cycles("l1_line_bytes"))

    @cached_property
    def traffic(self) -> MemoryTraffic:
        """The waves of the compute unit with what each of their accesses costs."""
        chosen, groups = self.accesses.groups, self.heads.groups
        return with_memory(
            self.prog,
            _on_one_unit(
                self._recorded([groups[at] for at in chosen[: self.detailed]]),
                self.detailed,
                self.resident,
                self.spec.simds_per_cu,
            ),
            self.accesses,
            self.spec,
            LaunchExtent(
                prod(self.launch.groups), self.resident, self.detailed, self.footprint, self.kept
            ),
        )

    def _recorded(self, groups: Sequence[Sequence[int]]) -> list[list[WaveStream]]:
        """Return the waves of some recorded workgroups, both in order."""

        def stream(at: int) -> WaveStream:
            line, cycles = stream_of(self.launch.waves, self.heads, at, self.line_of, self.prog)
            return WaveStream(line, 0, cycles=cycles)

        return [[stream(at) for at in group] for group in groups]

    @property
    def busy_behind_l1(self) -> tuple[str, float]:
        """The level behind the L1 that limits the waves, and the share of time it is busy."""
        return self.traffic.slowest, self.traffic.share(_end(self.unit))

    @property
    def cycles(self) -> float:
        """From the first workgroup's start to the last one's end."""
        return all_rounds(self, self.unit)

    @property
    def error(self) -> float | None:
        """Median relative error of the clock on whole kernels of this one's class, held out.

        Classes are kernels with matrix instructions and those without; where no whole kernels were
        compared, it is that of instruction traces; None if no hardware measurement exists.
        """
        products = bool((self.prog.unit == UNITS.index("matrix")).any())
        return self.prog.constants.validated("products" if products else "programs", "error")


def launch_detail(
    launch: RecordedLaunch,
    spec: ArchSpec,
    constants: ClockConstants,
    footprint: int | None = None,
    *,
    kept: Kept | Callable[[], Kept] | None = None,
) -> LaunchDetail:
    """Put some workgroups of a launch on one compute unit.

    Args:
        launch: What was recorded.
        spec: The GPU, which may have other compute units than the one that recorded.
        constants: Of the GPU.
        footprint: Bytes of the launch's operands; by default those of :func:`footprint_of`.
        kept: What caches hold of them when it begins, or a function that finds it out; by default
            what another such launch leaves.
    """
    code, heads = listing_of(launch, spec.name), heads_of(launch.waves)
    if footprint is None:
        footprint = footprint_of(launch, heads)
    prog = _program_of(launch, code, constants, footprint)
    per_unit = ceil(prod(launch.groups) / spec.compute_units)
    at_a_time = launch.resident // arch(launch.gpu).compute_units
    resident = min(per_unit, max(1, at_a_time))
    executed = executed_of(heads)
    unequal = differ(executed)
    rounds = max(_ROUNDS * resident, len(executed) if unequal else 0)
    return LaunchDetail(
        launch=launch,
        spec=spec,
        prog=prog,
        code=code,
        heads=heads,
        footprint=footprint,
        detailed=min(per_unit, rounds),
        resident=resident,
        each=per_unit,
        begins=kept,
        differ=unequal,
    )


_SHORT_WAIT = 20.0
"""Cycles in the queue before memory that change little."""
_NEAR = 0.02
"""How near a load of memory is to that which leads to itself."""
_FIRST_GUESS = 0.75
"""The first guess of memory's load: 75 % of the load without queueing."""


def _end(unit: TimedUnit) -> int:
    return max(wave.end for wave in unit.waves)


def _spread(executed: Sequence[int], count: int) -> list[int]:
    """Return ``count`` of some workgroups, in order, sampled by work quantile.

    A compute unit gets workgroups from all over the grid, in its order. They are evenly spaced by
    what they do: evenly spaced places may miss the long ones, which come at even distances too. If
    each compute unit gets a single one, the launch ends with the longest.

    Example:
        >>> _spread([9, 1, 9, 1, 9, 1], 2)
        [2, 3]
    """
    if count == 1:
        return [int(np.argmax(executed))]
    by_work = np.argsort(executed, kind="stable")
    taken = by_work[(2 * np.arange(count) + 1) * len(executed) // (2 * count)]
    chosen: list[int] = np.sort(taken).tolist()
    return chosen


def cycles_without(
    detail: LaunchDetail,
    reasons: Sequence[str],
    lines: Sequence[int] | None = None,
    *,
    conflicts: bool = True,
    neighbours: Sequence[int] = (),
) -> float:
    """Return the cycles of a launch whose waves never wait for some reasons.

    Args:
        detail: The launch.
        reasons: Of ``cklang.emulator.clock.native.REASONS``.
        lines: Of the listing, at which they do not wait; all by default.
        conflicts: Whether lanes conflict in the LDS.
        neighbours: Lines at which the L1 takes as long as for addresses side by side.
    """
    prog = without(detail.prog, reasons, lines)
    usual = np.zeros(len(detail.listing), dtype=bool)
    usual[list(neighbours)] = True
    if not conflicts:
        usual |= np.array([instruction.op.startswith("ds_") for instruction in detail.listing])
    streams = detail.streams
    if usual.any():
        streams = [_with_usual_cycles(stream, usual) for stream in streams]
    return all_rounds(detail, run_unit(prog, streams))


def _with_usual_cycles(stream: WaveStream, usual: npt.NDArray[np.bool_]) -> WaveStream:
    """Return the wave with the listing's default costs on some lines, whatever their addresses."""
    if stream.cycles is None:
        return stream
    return replace(stream, cycles=np.where(usual[stream.line], -1, stream.cycles).astype(np.int32))


def all_rounds(detail: LaunchDetail, unit: TimedUnit) -> float:
    """Return the cycles of a launch, from the times of its waves on one compute unit.

    Args:
        detail: The launch.
        unit: When the waves of ``detail.streams`` execute what.
    """
    ends = np.zeros(detail.detailed)
    for stream, wave in zip(detail.streams, unit.waves, strict=True):
        ends[stream.group] = max(ends[stream.group], wave.end)
    cycles = float(ends.max())
    rest = detail.each - detail.detailed
    if detail.differ:
        return cycles * detail.each / detail.detailed
    if rest > 0:
        later = (cycles - ends[: detail.resident].max()) / (detail.detailed - detail.resident)
        cycles += later * rest
    return cycles


def _on_one_unit(
    recorded: Sequence[Sequence[WaveStream]], count: int, resident: int, simds: int
) -> list[WaveStream]:
    """Return the waves of ``count`` workgroups that take each other's place on a compute unit."""
    waves: list[WaveStream] = []
    for group in range(count):
        after = group - resident if group >= resident else -1
        for wave in recorded[group % len(recorded)]:
            waves.append(replace(wave, simd=len(waves) % simds, group=group, after=after))
    return waves


def launch_time(
    launch: RecordedLaunch, spec: ArchSpec, constants: ClockConstants, footprint: int | None = None
) -> tuple[LaunchTime, list[TimedWave]]:
    """Return the time of a launch, and the waves that were timed in detail.

    The arguments are those of :func:`launch_detail`.
    """
    detail = launch_detail(launch, spec, constants, footprint)
    return time_of(detail), list(detail.unit.waves)


def time_of(detail: LaunchDetail) -> LaunchTime:
    """Return the time of a launch that was timed in detail."""
    with Wait(f"timing {detail.launch.kernel} by the clock"):
        cycles = detail.cycles
    return LaunchTime(
        detail.launch.kernel,
        cycles,
        cycles / detail.spec.clock_hz * 1e6,
        prod(detail.launch.groups),
        detail.resident,
        _stall_shares(detail.listing, detail.streams, detail.unit.waves),
        unknown_shares(detail),
        detail.error,
        tuple(
            spans_of([detail.listing[line].op for line in stream.line], wave)
            for stream, wave in zip(detail.streams, detail.unit.waves, strict=True)
            if stream.group == 0
        ),
    )


def _stall_shares(
    listing: Sequence[Instruction], streams: Sequence[WaveStream], waves: Sequence[TimedWave]
) -> dict[str, float]:
    stall = np.zeros(len(listing))
    cycles = 0
    for stream, wave in zip(streams, waves, strict=True):
        stall += np.bincount(stream.line, wave.stall, len(listing))
        cycles += wave.end - int(wave.start[0])
    by_op: dict[str, float] = {}
    for number in np.flatnonzero(stall):
        op = listing[int(number)].op
        by_op[op] = by_op.get(op, 0.0) + float(stall[number]) / cycles
    return dict(sorted(by_op.items(), key=lambda item: -item[1]))


def unknown_shares(detail: LaunchDetail) -> dict[str, float]:
    """Return the share of the timed instructions for which the clock has no cost, by operation."""
    listing = detail.listing
    executed = np.zeros(len(listing))
    for stream in detail.streams:
        executed += np.bincount(stream.line, minlength=len(listing))
    shares: dict[str, float] = {}
    for line in detail.prog.unknown:
        if executed[line]:
            op = listing[line].op
            shares[op] = shares.get(op, 0.0) + float(executed[line] / executed.sum())
    return shares
