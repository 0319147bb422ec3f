# SPDX-License-Identifier: MIT
"""Waves of one compute unit, from the instructions that they execute to the cycles of each."""

import ctypes
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from cklang.arch import arch
from cklang.emulator.clock.constants import ClockConstants
from cklang.emulator.clock.instruction import Instruction, timed
from cklang.emulator.clock.lds import LdsTables, lds_tables
from cklang.emulator.clock.native import REASONS, UNITS, CMachine, COp, CWave, compute_unit
from cklang.forks import cached_property

Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.int32]
_SEPARATE = 1000
"""In C, an interlock of so many cycles and more counts from the producer's issue."""


@dataclass(frozen=True, slots=True)
class WaveStream:
    """What one wave executes."""

    line: Words
    """Index into the listing of each executed instruction, [instruction]."""
    simd: int
    group: int = 0
    """Its workgroup."""
    begin: int = 0
    """Cycle before which it issues nothing."""
    after: int = -1
    """The workgroup whose place its own takes; -1: none, it is there from the start."""
    cycles: Words | None = None
    """Cycles of the memory unit of each executed instruction; below 0: as the listing says."""
    latency: Words | None = None
    """Latency of memory of each executed instruction; below 0: the usual one."""
    path: Words | None = None
    """Sixteenths of a cycle that each executed instruction takes of the compute unit's share of the
    way behind its L1."""
    write: float = 1.0
    """How many times as long as that a store takes the way of writes."""


@dataclass(frozen=True, slots=True)
class TimedWave:
    """When a wave executed what: the columns of AMD's instruction traces."""

    start: Integers
    """Cycle at which the wave first tries to issue each instruction, [instruction]."""
    stall: Words
    """Cycles from then to the issue."""
    duration: Words
    """Cycles until the wave goes on, the stall too."""
    end: int
    reason: npt.NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, np.uint8))
    """Why the wave lost the most cycles before each instruction: an index of ``REASONS``."""


@dataclass(frozen=True, slots=True)
class TimedUnit:
    """What the waves of a compute unit did."""

    waves: tuple[TimedWave, ...]
    lost: Integers
    """Cycles that waves did not issue, [line of the listing, reason]."""


@dataclass(frozen=True)
class Program:
    """A listing with the costs of its instructions; arrays are [line]."""

    constants: ClockConstants
    ops: ctypes.Array[COp]
    unknown: tuple[int, ...]
    """Lines that the clock has no cost for."""
    names: tuple[str, ...] = ()
    """The operation of each line."""

    @cached_property
    def unit(self) -> Words:
        """The unit of each instruction, an index of ``UNITS``."""
        return np.array([op.unit for op in self.ops], np.int32)

    @cached_property
    def busy(self) -> Words:
        """Cycles of the unit, where the addresses of lanes are neighbours."""
        return np.array([op.busy for op in self.ops], np.int32)

    @cached_property
    def issue(self) -> Words:
        """Cycles until the wave may try its next instruction."""
        return np.array([op.issue for op in self.ops], np.int32)

    @cached_property
    def lds(self) -> LdsTables:
        """How its instructions access the LDS."""
        return lds_tables(self.constants, self.names, self.unit, self.busy)


def program(
    listing: Sequence[Instruction], constants: ClockConstants, executed: Iterable[int] | None = None
) -> Program:
    """Return a listing with the costs of its instructions.

    Args:
        listing: The instructions.
        constants: Of the GPU.
        executed: The lines that waves execute; all by default. The others get no cost.
    """
    ops = (COp * len(listing))()
    unknown = []
    for line in range(len(listing)) if executed is None else executed:
        place = int(line)
        op = timed(listing[place], constants)
        if op is None:
            unknown.append(place)
            op = COp(unit=UNITS.index("internal"), issue=constants.cycles("turn"), priority=-1)
        ops[place] = op
    return Program(constants, ops, tuple(unknown), tuple(instruction.op for instruction in listing))


_FIELDS = {
    "turn": "turn", "taken": "taken_branch", "barrier": "barrier", "wait_exit": "wait_exit",
    "lds_latency": "lds_latency", "lds_depth": "lds_depth", "vmem_latency": "vmem_latency",
    "vmem_depth": "vmem_depth", "smem_latency": "smem_latency", "smem_cold": "smem_cold_latency",
    "store_latency": "store_latency", "matrix_port": "matrix_port", "valu_shared": "valu_shared",
    "launch": "workgroup_launch", "outstanding": "vmem_outstanding_bytes",
    "fetch_bytes": "fetch_bytes", "fetch_cycles": "fetch_cycles", "fetch_branch": "fetch_branch",
}  # fmt: skip
"""Fields of the C struct, and the constants that they hold."""
_SCALE = 16
_WAITS_BEFORE_ATTEMPT = ("salu", "branch", "smem")


def machine(constants: ClockConstants) -> CMachine:
    """Return the constants as the C part takes them."""
    result = CMachine(**{field: constants.cycles(name) for field, name in _FIELDS.items()})
    result.store_256 = round(constants["store_cycles_256"] * _SCALE)
    result.return_256 = round(constants["return_cycles_256"] * _SCALE)
    result.burst = _burst(constants)
    for producer in range(len(UNITS)):
        result.adjust[producer][:] = [-1] * len(UNITS)
    for row in constants.interlocks:
        cycles = row.cycles if row.after_result else _SEPARATE + row.cycles
        result.adjust[UNITS.index(row.producer)][UNITS.index(row.consumer)] = cycles
    result.idle[:] = [int(unit in _WAITS_BEFORE_ATTEMPT) for unit in UNITS]
    return result


def _burst(constants: ClockConstants) -> int:
    """Return the cycles by which a compute unit may be ahead of its share of the paths to memory.

    Loads come in bursts, and other compute units have theirs at other times. Ahead is as much as a
    compute unit may have on its way, at its share of the L2's rate.
    """
    if "rate_l2" not in constants.numbers:
        return 0
    spec = arch(constants.gpu)
    share = constants["rate_l2"] * spec.chiplets / spec.compute_units
    return round(constants["vmem_outstanding_bytes"] / share)


def _pointer(values: npt.NDArray[np.generic] | None) -> int | None:
    return None if values is None else values.ctypes.data


def without(prog: Program, reasons: Sequence[str], lines: Sequence[int] | None = None) -> Program:
    """Return a program some of whose instructions never wait for some reasons.

    Args:
        prog: The program.
        reasons: Of ``REASONS``.
        lines: Of the listing; all by default.

    Example:
        >>> from cklang.emulator.clock.constants import constants_of
        >>> prog = program([Instruction("s_nop", (), "3")], constants_of("gfx942"))
        >>> twice = [WaveStream(np.zeros(2, np.int32), simd=0)]
        >>> run(prog, twice)[0].end, run(without(prog, ["s_nop, s_sleep"]), twice)[0].end
        (32, 0)
    """
    ops = (COp * len(prog.ops))(*prog.ops)
    bits = sum(1 << REASONS.index(reason) for reason in set(reasons))
    for line in range(len(ops)) if lines is None else lines:
        ops[line].without = bits
    return replace(prog, ops=ops)


def run(prog: Program, streams: Sequence[WaveStream]) -> list[TimedWave]:
    """Run waves on one compute unit, the older ones first in the list; return their times.

    Example:
        >>> from cklang.emulator.clock.constants import constants_of
        >>> listing = [Instruction("v_mfma_f32_16x16x16_bf16", ("v[0:3]", "v[8:9]", "v[10:11]"))]
        >>> prog = program(listing, constants_of("gfx942"))
        >>> twice = WaveStream(np.zeros(2, np.int32), simd=0)
        >>> run(prog, [twice])[0].stall.tolist()
        [0, 12]
    """
    return list(run_unit(prog, streams).waves)


def run_unit(prog: Program, streams: Sequence[WaveStream]) -> TimedUnit:
    """Run waves as :func:`run` does; return also which cycles they lose, and why."""
    waves = (CWave * len(streams))()
    lost = np.zeros((len(prog.ops), len(REASONS)), np.int64)
    results, keep = [], []
    for wave, stream in zip(waves, streams, strict=True):
        line = np.ascontiguousarray(stream.line, dtype=np.int32)
        count = len(line)
        start, stall = np.zeros(count, np.int64), np.zeros(count, np.int32)
        duration, reason = np.zeros(count, np.int32), np.zeros(count, np.uint8)
        results.append((start, stall, duration, reason))
        keep.append(line)
        wave.line, wave.start = _pointer(line), _pointer(start)
        wave.stall, wave.length = _pointer(stall), _pointer(duration)
        wave.reason = _pointer(reason)
        wave.cycles, wave.latency = _pointer(stream.cycles), _pointer(stream.latency)
        wave.path = _pointer(stream.path)
        wave.begin, wave.count, wave.simd = stream.begin, count, stream.simd
        wave.group, wave.after = stream.group, stream.after
        wave.write_256 = round(stream.write * 256)
    compute_unit(machine(prog.constants), prog.ops, waves, _pointer(lost))
    timed_waves = tuple(
        TimedWave(start, stall, duration, int(wave.end), reason)
        for (start, stall, duration, reason), wave in zip(results, waves, strict=True)
    )
    return TimedUnit(timed_waves, lost)
