# SPDX-License-Identifier: MIT
"""What a session shows, as text: stops, waves, registers, source, instructions, matrix operands."""

import linecache
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from cklang.arch import arch
from cklang.emulator.debugger.breakpoints import parse_breakpoint
from cklang.emulator.debugger.code import Code
from cklang.emulator.debugger.expressions import Reader, Registers
from cklang.emulator.debugger.session import Session
from cklang.emulator.debugger.values import decoded, format_of, tensor_text
from cklang.emulator.debugger.wire import Reason, Stop, WaveState
from cklang.emulator.engine.fragments import Fragment, MatrixInstruction, holder, matrix_instruction
from cklang.emulator.engine.recording import RecordedLaunch
from cklang.emulator.profiler.source import Place
from cklang.errors import error

_REASONS = {
    Reason.START: "the beginning of the launch",
    Reason.STEP: "",
    Reason.INTERRUPT: "interrupted",
    Reason.WAVE_ENDED: "the wave has ended",
    Reason.ENDED: "all waves have ended; reverse-continue goes back, continue goes on",
    Reason.FAULT: "the kernel has failed",
    Reason.STUCK: "stopped: the launch has not changed memory for a long time",
}
_AROUND = 5
"""Lines or instructions that are shown before and behind the present one."""
_SCALARS_IN_LINE = 8
_FORMATS = {"f16": "f16", "bf16": "bf16", "f32": "f32", "xf32": "f32", "f64": "f64"}
_FORMATS |= {"i8": "i8", "u8": "u8", "i32": "i32", "fp8": "fp8", "bf8": "bf8"}


def _extents(extents: Sequence[int]) -> str:
    while len(extents) > 1 and extents[-1] == 1:
        extents = extents[:-1]
    return "x".join(map(str, extents))


def launch_text(session: Session) -> str:
    """Return what the launch is, in a line."""
    facts, code = session.controlled().facts, session.listing()
    return (
        f"launch {session.number}: {code.name} on {facts.gpu}, {_extents(facts.groups)} workgroups "
        f"of {_extents(facts.block)} threads, LDS {facts.lds_bytes} bytes"
    )


def workgroup_place(group: int, launch: RecordedLaunch) -> tuple[int, int, int]:
    """Return the place of a workgroup in the grid.

    Example:
        >>> from types import SimpleNamespace
        >>> workgroup_place(5, SimpleNamespace(groups=(2, 2, 2)))
        (1, 0, 1)
    """
    x, y, _ = launch.groups
    return group % x, group // x % y, group // x // y


def _line(place: Place | None) -> str:
    return "" if place is None else f"{place.short}    {place.text}"


def instruction_text(code: Code, dword: int) -> str:
    """Return the pc and the text of an instruction."""
    return f"0x{code.pc(dword):x}: {code.instructions.get(dword, '?')}"


def stop_text(session: Session, stop: Stop) -> str:
    """Return why and where the program has stopped."""
    reason = _REASONS.get(stop.reason, "")
    if stop.reason is Reason.BREAKPOINT:
        known = session.breakpoints.get(stop.breakpoint)
        reason = str(known) if known is not None else f"breakpoint {stop.breakpoint}"
    if stop.message:
        reason = f"{reason}: {stop.message}"
    lines = [reason] if reason else []
    return "\n".join([*lines, *_focus_lines(session)])


def _focus_lines(session: Session) -> list[str]:
    """Where the wave is that is shown."""
    focus, code = session.focus, session.code
    if focus is None or code is None:
        return []
    wave = session.wave()
    place = workgroup_place(focus.group, code.launch)
    lines = [f"workgroup {place}, wave {focus.wave}, instruction {wave.executed} of the wave"]
    source = code.place(wave.dword)
    if source is not None:
        lines.append(_line(source))
    return [*lines, f"=> {instruction_text(code, wave.dword)}"]


def backtrace_text(session: Session) -> str:
    """Return the functions that the wave is in, the innermost first, a line each."""
    frames = session.listing().frames(session.wave().dword)
    rows = (
        f"#{number} {name} at {_line(place) or '?'}" for number, (name, place) in enumerate(frames)
    )
    return "\n".join(rows)


def breakpoints_text(session: Session) -> str:
    """Return the breakpoints, a line each."""
    rows = []
    for breakpoint_ in session.breakpoints.values():
        pending = session.code is not None and not session.is_placed(breakpoint_)
        rows.append(
            f"{breakpoint_}, {breakpoint_.hits} hits{', temporary' * breakpoint_.temporary}"
            f"{', not in this launch' * pending}"
        )
    return "\n".join(rows) or "no breakpoints"


def waves_text(session: Session) -> str:
    """Return the waves that have begun, a line each."""
    code, focus = session.listing(), session.focus
    rows = []
    for wave in session.waves():
        shown = focus is not None and (wave.group, wave.wave) == (focus.group, focus.wave)
        place = code.place(wave.dword)
        rows.append(
            f"{'*' if shown else ' '} workgroup {wave.group} wave {wave.wave}: {wave.state}, "
            f"{wave.executed} instructions, pc 0x{code.pc(wave.dword):x}"
            f"{f', {place.short}' if place is not None else ''}, {_enabled(wave)} lanes"
        )
    return "\n".join(rows) or "no wave has begun, or all have ended"


def _enabled(wave: WaveState) -> int:
    return wave.exec.bit_count()


def registers_text(session: Session) -> str:
    """Return the scalar registers of the wave that is shown, and its masks."""
    focus, launch = session.focused(), session.controlled()
    wave, code = session.wave(), session.listing()
    scalars = launch.scalars(focus.group, focus.wave)[: max(launch.facts.sgprs, 1)]
    masks = f"exec 0x{wave.exec:x} ({_enabled(wave)} lanes), vcc 0x{wave.vcc:x}"
    lines = [f"pc 0x{code.pc(wave.dword):x}, {masks}, scc {wave.scc}, mode 0x{wave.mode:x}"]
    for at in range(0, len(scalars), _SCALARS_IN_LINE):
        row = scalars[at : at + _SCALARS_IN_LINE]
        lines.append(f"s{at:<3} " + " ".join(f"0x{int(value):08x}" for value in row))
    agprs = max(0, launch.facts.vgprs - launch.first_agpr) if launch.first_agpr else 0
    return "\n".join([*lines, f"vector registers: {launch.facts.vgprs - agprs} v, {agprs} a"])


def source_text(session: Session, where: str) -> str:
    """Return source lines around the present one, or around those that are named."""
    here = session.place()
    if where:
        location, _ = parse_breakpoint(where, here)
        path = _path_of(session, location.file)
        center = location.line
    elif here is not None:
        path, center = here.file, here.line
    else:
        raise error("D039", command="list", problem="the present instruction has no source line")
    lines = linecache.getlines(path)
    if not lines:
        raise error("D039", command="list", problem=f"there is no file {path}")
    rows = []
    for number in range(max(1, center - _AROUND), min(len(lines), center + _AROUND) + 1):
        is_here = here is not None and (here.file, here.line) == (path, number)
        rows.append(f"{'=>' if is_here else '  '} {number:4} {lines[number - 1].rstrip()}".rstrip())
    return "\n".join(rows)


def _path_of(session: Session, file: str) -> str:
    """Return the whole path of a file that the code of the launch names."""
    places = session.code.places if session.code is not None else ()
    return next((e.file for e in places if e.file == file or e.file.endswith(f"/{file}")), file)


def disassembly(session: Session, where: str) -> str:
    """Return instructions around the present one, around a pc, or all."""
    code = session.listing()
    now = session.wave().dword if session.focus is not None else None
    if where == "all":
        dwords = list(code.instructions)
    else:
        center = now if not where else _dword(session, where)
        if center is None:
            raise error("D039", command="disassemble", problem=f"no instruction at {where!r}")
        dwords = code.around(center, _AROUND, _AROUND)
    rows, last = [], None
    for dword in dwords:
        place = code.place(dword)
        if place is not None and place != last:
            rows.append(_line(place))
        last = place
        rows.append(f"{'=>' if dword == now else '  '} {instruction_text(code, dword)}")
    return "\n".join(rows)


def _dword(session: Session, where: str) -> int | None:
    location, _ = parse_breakpoint(where if where.startswith("*") else f"*{where}", None)
    return None if location.pc is None else session.listing().dword(location.pc)


def memory_text(session: Session) -> str:
    """Return what the program has allocated, a line each."""
    named = {tensor.address: name for name, tensor in session.tensors().items()}
    rows = [
        f"0x{allocation.address:x}, {allocation.size} bytes, device {allocation.device}"
        f"{f', {named[allocation.address]}' if allocation.address in named else ''}"
        for allocation in session.controlled().allocations()
    ]
    return "\n".join(rows) or "nothing is allocated"


# Matrix instructions


def matrix_at(session: Session, where: str) -> MatrixInstruction:
    """Return the matrix instruction at a pc, or the present one, else the wave's next one."""
    code, launch = session.listing(), session.controlled()
    start = _dword(session, where) if where else session.wave().dword
    if start is None:
        raise error("D038", got=where, problem="no instruction begins there")
    matrices = ("v_mfma", "v_wmma", "v_smfmac", "v_swmmac")
    behind = (
        d for d in code.instructions if d >= start and code.instructions[d].startswith(matrices)
    )
    dword = start if where else next(behind, None)
    if dword is None:
        problem = "no matrix instruction comes behind it"
        raise error("D038", got=code.instructions[start], problem=problem)
    return matrix_instruction(launch.facts.gpu, code.instructions[dword], launch.facts.lanes)


def _span(fragment: Fragment) -> Registers:
    return Registers(fragment.file, fragment.first, fragment.registers)


def layout_text(instruction: MatrixInstruction, operand: str) -> str:
    """Return which lane and register hold each element of an operand."""
    fragment = _operand(instruction, operand)
    blocks, rows, columns = fragment.shape
    lines = [
        instruction.text,
        f"{fragment.name} is {rows}x{columns} {fragment.type} in {_span(fragment)}"
        + (f", {blocks} blocks" if blocks > 1 else ""),
        "element: lane of the wave, register; rows down, columns across",
    ]
    for block in range(blocks):
        names = [
            [_holder_text(fragment, row, column, block) for column in range(columns)]
            for row in range(rows)
        ]
        width = max(len(name) for row in names for name in row)
        lines += [" ".join(f"{name:>{width}}" for name in row) for row in names]
    return "\n".join(lines)


def _operand(instruction: MatrixInstruction, operand: str) -> Fragment:
    fragment = instruction.operands.get(operand.upper())
    if fragment is None:
        problem = f"it has operands {', '.join(instruction.operands)}"
        raise error("D038", got=f"{operand} of {instruction.text}", problem=problem)
    return fragment


def _holder_text(fragment: Fragment, row: int, column: int, block: int) -> str:
    holders = holder(fragment, row, column, block)
    if not holders:
        return "-"
    lane, element = holders[0]
    in_register = element * fragment.bits % 32 // fragment.bits if fragment.bits < 32 else 0
    part = f".{in_register}" if fragment.bits < 32 else ""
    return f"{lane}:{fragment.file}{fragment.register(element)}{part}"


def who_text(instruction: MatrixInstruction, operand: str, row: int, column: int) -> str:
    """Return who holds one element."""
    fragment = _operand(instruction, operand)
    blocks, rows, columns = fragment.shape
    if not (0 <= row < rows and 0 <= column < columns):
        raise error("D039", command="who", problem=f"{fragment.name} is {rows}x{columns}")
    lines = []
    for block in range(blocks):
        for lane, element in holder(fragment, row, column, block):
            register = Registers(
                fragment.file, fragment.register(element), max(1, fragment.bits // 32)
            )
            part = (
                f", value {element * fragment.bits % 32 // fragment.bits} of it"
                if fragment.bits < 32
                else ""
            )
            where = f" of block {block}" if blocks > 1 else ""
            lines.append(f"{fragment.name}[{row}, {column}]{where}: lane {lane}, {register}{part}")
    return "\n".join(lines)


def tile_values(
    reader: Reader, instruction: MatrixInstruction, operand: str
) -> npt.NDArray[np.generic]:
    """Return the values of an operand as matrices, [block, row, column]."""
    fragment = _operand(instruction, operand)
    if fragment.type not in _FORMATS:
        raise error("D038", got=fragment.type, problem="elements of this type share bytes")
    name = _FORMATS[fragment.type]
    if name in ("fp8", "bf8") and arch(reader.session.controlled().facts.gpu).fp8 != "ocp":
        name += "_fnuz"
    values = decoded(reader.registers(_span(fragment)), format_of(name))
    step = fragment.bits // (8 * values.dtype.itemsize)
    tile = np.zeros(fragment.shape, values.dtype)
    block, row, column = (fragment.places[..., axis] for axis in range(3))
    lanes, elements = np.indices(block.shape)
    tile[block, row, column] = values[lanes, elements * step]
    return tile


def tile_text(reader: Reader, instruction: MatrixInstruction, operand: str) -> str:
    """Return an operand as a matrix."""
    fragment = _operand(instruction, operand)
    tile = tile_values(reader, instruction, operand)
    shown = tile[0] if len(tile) == 1 else tile
    head = f"{fragment.name} {_extents(fragment.shape[1:])} {fragment.type} in {_span(fragment)}"
    name = _FORMATS[fragment.type]
    return f"{head}\n{tensor_text(shown, format_of(name))}"
