# SPDX-License-Identifier: MIT
"""The time of a whole launch, from what a few of its workgroups executed on the emulated GPU.

Some workgroups are timed in detail on one compute unit, which holds as many at a time as the GPU
would. Those that a compute unit executes beyond a few rounds take the time of the rounds before.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, prod

import numpy as np
import numpy.typing as npt

from cklang.arch import ArchSpec
from cklang.clock.constants import ClockConstants
from cklang.clock.instruction import Instruction, lane_bytes
from cklang.clock.lds import pass_counts, width_of
from cklang.clock.waves import Program, TimedWave, WaveStream, program, run, with_cold_scalars
from cklang.emulator.library import disassemble
from cklang.emulator.recording import DISABLED, RecordedLaunch, RecordedWave

__all__ = ["LaunchTime", "instruction_of", "launch_time"]

_ROUNDS = 3
"""Rounds of workgroups that are timed in detail."""
_WORD = 4
_REGISTER = re.compile(
    r"\b(?:(?:ttmp|[vsa])(?:\d+|\[\d+:\d+\])|(?:vcc|exec)(?:_lo|_hi)?|m0|scc)(?![\w(])"
)
_REMARKED = re.compile(r"s_wait|s_nop|s_setprio|s_sleep")


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
    """Of the shader clock, from the first workgroup's start to the last one's end."""
    us: float
    """At the GPU's highest clock."""
    workgroups: int
    resident: int
    """Workgroups of a compute unit at a time."""
    stall: Mapping[str, float]
    """Share of the waves' cycles that they are stalled at each operation, the largest first."""
    unknown: Mapping[str, float]
    """Share of the executed instructions for which the clock has no cost, by operation."""
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


def instruction_of(text: str, address: int = 0) -> Instruction:
    """Return an instruction from its assembly text.

    Example:
        >>> instruction_of("ds_read_b64 v[2:3], v4 offset:16").registers
        ('v[2:3]', 'v4')
        >>> instruction_of("s_waitcnt vmcnt(0)").remark
        'vmcnt(0)'
    """
    op, _, rest = text.strip().partition(" ")
    remark = rest.strip() if _REMARKED.match(op) else ""
    return Instruction(op, tuple(_REGISTER.findall(rest)), remark, address)


def listing_of(launch: RecordedLaunch, gpu: str) -> tuple[list[Instruction], npt.NDArray[np.int32]]:
    """Return the instructions of the code, and the line of each dword (-1 inside of one)."""
    listing: list[Instruction] = []
    line_of = np.full(len(launch.code) // _WORD, -1, np.int32)
    for row in disassemble(gpu, launch.code).splitlines():
        offset, _, text = row.partition(":")
        place = int(offset, 16)
        if place % _WORD == 0 and place // _WORD < len(line_of):
            line_of[place // _WORD] = len(listing)
            listing.append(instruction_of(text, place))
    return listing, line_of


def _lds_cycles(
    wave: RecordedWave, line: npt.NDArray[np.int32], prog: Program, listing: Sequence[Instruction]
) -> npt.NDArray[np.int32] | None:
    """Return the cycles of each LDS operation with its conflicts; None where addresses lack."""
    is_lds = np.array([instruction.op.startswith("ds_") for instruction in listing])
    places = np.flatnonzero(is_lds[line])
    if len(places) != len(wave.lds_address):
        return None
    cycles = np.full(len(line), -1, np.int32)
    for number in np.unique(line[places]):
        rows = line[places] == number
        op = listing[number].op
        width = width_of(prog.constants, "write" if "write" in op else "read", lane_bytes(op))
        address = wave.lds_address[rows]
        extra = pass_counts(width, address.astype(np.int64), address != DISABLED).sum(1)
        phases = np.ceil((address != DISABLED).sum(1) / width.lanes).astype(np.int64)
        cycles[places[rows]] = prog.ops[number].busy + np.maximum(0, extra - phases)
    return cycles


def _streams(
    launch: RecordedLaunch, gpu: str, constants: ClockConstants
) -> tuple[Program, list[Instruction], list[list[WaveStream]]]:
    """Return the program and the waves of each recorded workgroup."""
    listing, line_of = listing_of(launch, gpu)
    prog = program(listing, constants)
    groups: dict[int, list[WaveStream]] = {}
    for wave in sorted(launch.waves, key=lambda wave: (wave.workgroup, wave.wave)):
        line = line_of[wave.line]
        stream = WaveStream(line, simd=0, cycles=_lds_cycles(wave, line, prog, listing))
        groups.setdefault(wave.workgroup, []).append(stream)
    return prog, listing, list(groups.values())


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
    launch: RecordedLaunch, spec: ArchSpec, constants: ClockConstants
) -> tuple[LaunchTime, list[TimedWave]]:
    """Return the time of a launch, and the waves that were timed in detail."""
    prog, listing, recorded = _streams(launch, spec.name, constants)
    total = prod(launch.groups)
    units = spec.compute_units
    each = ceil(total / units)
    resident = min(each, max(1, launch.resident // units))
    detailed = min(each, _ROUNDS * resident)
    streams = _on_one_unit(recorded, detailed, resident, spec.simds_per_cu)
    waves = run(prog, with_cold_scalars(prog, streams))
    ends = np.zeros(detailed)
    for stream, wave in zip(streams, waves, strict=True):
        ends[stream.group] = max(ends[stream.group], wave.end)
    cycles = float(ends.max())
    if each > detailed:
        later = (cycles - ends[:resident].max()) / (detailed - resident)
        cycles += later * (each - detailed)
    result = LaunchTime(
        launch.kernel,
        cycles,
        cycles / spec.clock_hz * 1e6,
        total,
        resident,
        _stall_shares(listing, streams, waves),
        _unknown_shares(prog, listing, streams),
        tuple(
            spans_of([listing[line].op for line in stream.line], wave)
            for stream, wave in zip(streams, waves, strict=True)
            if stream.group == 0
        ),
    )
    return result, waves


def _stall_shares(
    listing: Sequence[Instruction], streams: Sequence[WaveStream], waves: Sequence[TimedWave]
) -> dict[str, float]:
    stall = np.zeros(len(listing))
    cycles = 0
    for stream, wave in zip(streams, waves, strict=True):
        np.add.at(stall, stream.line, wave.stall)
        cycles += wave.end - int(wave.start[0])
    by_op: dict[str, float] = {}
    for number in np.flatnonzero(stall):
        op = listing[int(number)].op
        by_op[op] = by_op.get(op, 0.0) + float(stall[number]) / cycles
    return dict(sorted(by_op.items(), key=lambda item: -item[1]))


def _unknown_shares(
    prog: Program, listing: Sequence[Instruction], streams: Sequence[WaveStream]
) -> dict[str, float]:
    executed = np.zeros(len(listing))
    for stream in streams:
        np.add.at(executed, stream.line, 1)
    shares: dict[str, float] = {}
    for line in prog.unknown:
        if executed[line]:
            op = listing[line].op
            shares[op] = shares.get(op, 0.0) + float(executed[line] / executed.sum())
    return shares
