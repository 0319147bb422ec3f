# SPDX-License-Identifier: MIT
"""The lanes and registers that hold each element, and the bytes that they access.

A step is one instruction of the kernel's binary: the first time that the waves of a recorded
workgroup execute it. Addresses are those that the lanes had on the emulated GPU.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cklang.emulator.clock.instruction import lane_bytes
from cklang.emulator.clock.lds import phase_of_lane, width_of
from cklang.emulator.clock.sampling import waves_of_groups
from cklang.emulator.engine.fragments import MatrixInstruction, matrix_instruction
from cklang.emulator.engine.recording import DISABLED, SEGMENT_BYTES, RecordedWave
from cklang.emulator.profiler.model import LaunchProfile
from cklang.emulator.profiler.source import Place
from cklang.errors import CkValueError

_WORD = 4
MOST_STEPS = 32
"""Steps of a launch: the earliest."""
_REGISTERS = re.compile(r"\b([va])(?:(\d+)|\[(\d+):(\d+)\])")
_STORES = re.compile(r"ds_(write|store)|\w+_store")
_STRIDE = re.compile(r"ds_\w+2(st64)?_b(32|64)")


@dataclass(frozen=True, slots=True)
class Held:
    """Bytes of memory, and the register of a lane that holds them."""

    wave: int
    """The wave's number in the workgroup."""
    lane: int
    register: str
    at: int
    """The address of the first byte; of the LDS that of the workgroup's."""
    bytes: int
    conflict: int = 0
    """Lanes of its phase that want another word of its bank before it."""


@dataclass(frozen=True, slots=True)
class TileStep:
    """One instruction, as the waves of a workgroup execute it for the first time."""

    text: str
    place: Place | None
    stage: str
    cycle: int
    """At which the first of the waves executes it, by the clock."""
    memory: str
    """``LDS``, ``global`` or ``registers``."""
    row: int
    """Bytes of a row of the picture: those of all banks, or of a line of the caches."""
    held: tuple[Held, ...] = ()
    matrix: MatrixInstruction | None = None
    """For a matrix instruction: which lane holds which element."""

    @property
    def efficiency(self) -> float:
        """Bytes over those of the pieces of 64 bytes that hold them."""
        parts = {
            (access.at + skip) // SEGMENT_BYTES
            for access in self.held
            for skip in range(0, access.bytes, _WORD)
        }
        used = {(access.at + skip) for access in self.held for skip in range(access.bytes)}
        return len(used) / (SEGMENT_BYTES * len(parts)) if parts else 0.0

    @property
    def conflicts(self) -> int:
        """Words that wait for another word of their bank."""
        return sum(access.conflict > 0 for access in self.held)


def tile_steps(launch: LaunchProfile, most: int = MOST_STEPS) -> tuple[TileStep, ...]:
    """Return what the first recorded workgroup of a launch holds where, step by step.

    There are at most ``most`` steps, the earliest.
    """
    detail = launch.detail
    groups = waves_of_groups(detail.launch)
    steps: dict[int, TileStep] = {}
    for wave, at in enumerate(groups[0] if groups else ()):
        timed = detail.unit.waves[wave]
        issue = timed.start + timed.stall
        for place, line, step in _of_wave(launch, wave, detail.launch.waves[at]):
            known = steps.get(line)
            cycle = int(issue[place])
            if known is None:
                steps[line] = replace(step, cycle=cycle)
            elif step.held:
                steps[line] = replace(
                    known, cycle=min(known.cycle, cycle), held=(*known.held, *step.held)
                )
    return tuple(sorted(steps.values(), key=lambda step: step.cycle)[:most])


def _of_wave(
    launch: LaunchProfile, number: int, wave: RecordedWave
) -> Iterator[tuple[int, int, TileStep]]:
    """Yield the first execution of each instruction: its place, its line and what it holds."""
    detail = launch.detail
    ops = [instruction.op for instruction in detail.listing]
    lines = detail.line_of[wave.first_slots]
    local = np.flatnonzero([ops[line].startswith("ds_") for line in lines.tolist()])
    if len(local) == len(wave.lds):
        _, first = np.unique(lines[local], return_index=True)
        for at in first.tolist():
            line = int(lines[local[at]])
            row = wave.lds[at]
            address = wave.patterns[int(row[0])].astype(np.int64)
            taken = address != DISABLED
            address = address + int(row[1])
            step = _local(launch, line, number, address, taken)
            yield int(wave.starts[local[at]]), line, step
    places = wave.memory[:, 0]
    for access in np.unique(wave.shown["access"]).tolist():
        line = int(detail.line_of[wave.slot_at(places[access : access + 1])[0]])
        pieces = wave.shown[wave.shown["access"] == access]
        register = _data_registers(detail.texts[line])[0]
        held = [
            Held(number, lane, _behind(register, skip), at, count)
            for _, lane, at, count, skip in pieces.tolist()
        ]
        step = _step(launch, line, "global", 2 * SEGMENT_BYTES, tuple(_joined(held)))
        yield int(places[access]), line, step
    if number == 0:
        yield from _matrices(launch, wave)


def _step(
    launch: LaunchProfile, line: int, memory: str, row: int, held: tuple[Held, ...] = ()
) -> TileStep:
    text, place = launch.detail.texts[line], launch.places[line]
    return TileStep(text, place, launch.stage_of_line[line], 0, memory, row, held)


def _matrices(launch: LaunchProfile, wave: RecordedWave) -> Iterator[tuple[int, int, TileStep]]:
    """Yield the first instruction of each matrix operation whose layout is known."""
    detail = launch.detail
    seen: set[str] = set()
    executed = detail.line_of[wave.line]
    for line in dict.fromkeys(executed.tolist()):
        op = detail.listing[line].op
        if op in seen or not re.match(r"v_(mfma|wmma)", op):
            continue
        seen.add(op)
        try:
            matrix = matrix_instruction(launch.gpu, detail.texts[line], detail.launch.lanes)
        except CkValueError:
            continue  # a layout that is not known
        place = int(np.argmax(executed == line))
        yield place, line, replace(_step(launch, line, "registers", 0), matrix=matrix)


def _joined(held: Sequence[Held]) -> Iterator[Held]:
    """Yield pieces, those that go on in memory and in the registers of a lane as one."""
    last: Held | None = None
    for access in held:
        if last is not None and (last.lane, last.at + last.bytes) == (access.lane, access.at):
            last = replace(last, bytes=last.bytes + access.bytes)
            continue
        if last is not None:
            yield last
        last = access
    if last is not None:
        yield last


def _data_registers(text: str) -> list[str]:
    """Return the first registers of the operands that hold the data of an access.

    Example:
        >>> _data_registers("ds_read_b128 v[4:7], v2 offset:64")
        ['v4']
        >>> _data_registers("global_store_dwordx2 v[2:3], v[8:9], off")
        ['v8']
        >>> _data_registers("buffer_store_dwordx4 v[0:3], v9, s[4:7], 0 offen")
        ['v0']
        >>> _data_registers("ds_write2_b32 v0, v4, v6 offset1:8")
        ['v4', 'v6']
    """
    registers = [f"{match[1]}{match[2] or match[3]}" for match in _REGISTERS.finditer(text)]
    if not registers:
        return [""]
    if re.match(r"(ds|global|flat|scratch)_", text) and _STORES.match(text) and registers[1:]:
        return registers[1:]
    return registers[:1]


def _behind(register: str, skip: int) -> str:
    return f"{register[0]}{int(register[1:]) + skip // _WORD}" if register else ""


def _offsets(text: str, width: int) -> list[int]:
    """Return where the parts of an access to the LDS begin, from its recorded address.

    That has the first offset, which operations with two count in units of their width.

    Example:
        >>> _offsets("ds_read2_b32 v[0:1], v2 offset0:2 offset1:8", 8)
        [6, 30]
        >>> _offsets("ds_read_b64 v[0:1], v2 offset:8", 8)
        [0]
    """
    pair = _STRIDE.match(text)
    if pair is None:
        return [0]
    unit = width // 2 * (64 if pair[1] else 1)
    first, second = (
        int(match[1]) if (match := re.search(rf"{name}:(\d+)", text)) else 0
        for name in ("offset0", "offset1")
    )
    return [first * unit - first, second * unit - first]


def _local(
    launch: LaunchProfile, line: int, number: int, address: np.ndarray, taken: np.ndarray
) -> TileStep:
    """Return an operation of the LDS, with the lanes that conflict in its banks."""
    text = launch.detail.texts[line]
    bytes_ = lane_bytes(text.partition(" ")[0])
    direction = "write" if _STORES.match(text) else "read"
    width = width_of(launch.constants, direction, bytes_)
    phase = phase_of_lane(width)
    registers, offsets = _data_registers(text), _offsets(text, bytes_)
    size = bytes_ // len(offsets)
    banks: dict[tuple[int, int, int], list[int]] = {}
    held = []
    for lane in np.flatnonzero(taken).tolist():
        for part, offset in enumerate(offsets):
            at = int(address[lane]) + offset
            before = 0
            for word in range(at // _WORD, (at + size - 1) // _WORD + 1):
                words = banks.setdefault((int(phase[lane]), part, word % width.banks), [])
                if word not in words:
                    words.append(word)
                before = max(before, words.index(word))
            register = registers[part] if part < len(registers) else ""
            register = register or _behind(registers[0], part * size)
            held.append(Held(number, lane, register, at, size, before))
    return _step(launch, line, "LDS", width.banks * _WORD, tuple(held))


def text_of(step: TileStep) -> str:
    """Return a step in words."""
    where = "" if step.place is None else f", {step.place.short}"
    about = f"cycle {step.cycle}: {step.text} ({step.stage}{where})"
    if step.memory == "LDS":
        return f"{about}; {step.conflicts} of {len(step.held)} accesses conflict in the banks"
    if step.memory == "global":
        return f"{about}; {step.efficiency:.0%} of the 64-byte pieces that are touched is used"
    return about


def rows_of(held: Sequence[Held], row: int) -> list[int]:
    """Return the rows of memory that are accessed, in order."""
    return sorted(
        {
            at // row
            for access in held
            for at in range(access.at, access.at + access.bytes, min(row, _WORD))
        }
    )
