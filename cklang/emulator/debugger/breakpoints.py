# SPDX-License-Identifier: MIT
"""Breakpoints as users write them, and what they are in the code of a launch."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from cklang.emulator.debugger.code import Code
from cklang.emulator.debugger.wire import ANY, StopAt, Where
from cklang.emulator.profiler.source import Place
from cklang.errors import error

_PC = re.compile(r"\*(-?0x[0-9a-fA-F]+|\d+)")
_LINE = re.compile(r"(?:(.+):)?(\d+)")
_CONDITIONS = ("workgroup", "wave", "lane")


@dataclass(frozen=True, slots=True)
class Location:
    """What a breakpoint is at: one of these."""

    file: str = ""
    line: int = 0
    pc: int | None = None
    operation: str = ""
    """A pattern of mnemonics."""
    kernel: str = ""
    """A name, or a pattern of names: the beginning of its launches."""
    memory: tuple[int, int] | None = None
    """Addresses before whose change (or access) a wave stops."""
    reads: bool = False

    def __str__(self) -> str:
        if self.memory is not None:
            begin, end = self.memory
            return f"{'access to' if self.reads else 'write to'} 0x{begin:x} ({end - begin} bytes)"
        if self.pc is not None:
            return f"*0x{self.pc:x}"
        if self.operation:
            return f"@{self.operation}"
        return self.kernel or f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Waves:
    """Which waves a breakpoint stops; None: any."""

    workgroup: int | None = None
    """The number of the workgroup in launch order, x fastest."""
    wave: int | None = None
    lane: int | None = None
    """The lane that must be enabled."""

    def __str__(self) -> str:
        parts = ((name, getattr(self, name)) for name in _CONDITIONS)
        return "".join(f", {name} {value}" for name, value in parts if value is not None)


EVERY_WAVE = Waves()
"""No condition."""


@dataclass(frozen=True, slots=True)
class Breakpoint:
    """One breakpoint of the user's."""

    number: int
    location: Location
    waves: Waves = EVERY_WAVE
    temporary: bool = False
    hits: int = 0

    def hit(self) -> Breakpoint:
        """Return it after one more stop."""
        return replace(self, hits=self.hits + 1)

    def __str__(self) -> str:
        return f"breakpoint {self.number}: {self.location}{self.waves}"


def parse_breakpoint(text: str, here: Place | None) -> tuple[Location, Waves]:
    """Read a location and its conditions.

    ``here`` is where the program has stopped: the file of a line without one.

    Example:
        >>> location, waves = parse_breakpoint("saxpy.cpp:18 workgroup 2 lane 5", None)
        >>> f"{location}{waves}"
        'saxpy.cpp:18, workgroup 2, lane 5'
    """
    words = text.split()
    if not words:
        raise error("D032", got=text, problem="it is empty")
    return _location(words[0], here), _waves(text, words[1:])


def _waves(text: str, words: list[str]) -> Waves:
    values: dict[str, int] = {}
    for name, number in zip(words[::2], words[1::2], strict=False):
        if name not in _CONDITIONS or not number.isdigit():
            problem = f"{name} {number} is no condition"
            raise error("D032", got=text, problem=problem)
        values[name] = int(number)
    if len(words) % 2:
        raise error("D032", got=text, problem=f"{words[-1]!r} has no number")
    return Waves(**values)


def _location(word: str, here: Place | None) -> Location:
    if (match := _PC.fullmatch(word)) is not None:
        return Location(pc=int(match[1], 0))
    if word.startswith(("*", "@")) and word[1:2] in ("", "*", "@"):
        raise error("D032", got=word, problem="a number or a name is missing")
    if word.startswith("@"):
        return Location(operation=word[1:])
    if (match := _LINE.fullmatch(word)) is None:
        return Location(kernel=word)
    file = match[1] or (here.file if here is not None else "")
    if not file:
        raise error("D032", got=word, problem="no file is shown yet")
    return Location(file=file, line=int(match[2]))


def stops_of(breakpoint_: Breakpoint, code: Code) -> list[StopAt]:
    """Return where a breakpoint is in the code of a launch; nowhere if nothing fits.

    A line without code means the next one that has some, as debuggers do.
    """
    location, waves = breakpoint_.location, breakpoint_.waves
    if location.kernel and not is_kernel(location.kernel, code):
        return []
    chosen = [ANY if part is None else part for part in (waves.workgroup, waves.wave, waves.lane)]
    places: list[tuple[Where, int, int]]
    if location.memory is not None:
        places = [(Where.ACCESS if location.reads else Where.WRITE, *location.memory)]
    elif location.kernel:
        places = [(Where.CODE, code.entry, 0)]
        if waves == EVERY_WAVE:
            chosen = [0, 0, ANY]  # its beginning, once
    elif location.pc is not None:
        dword = code.dword(location.pc)
        places = [] if dword is None else [(Where.CODE, dword, 0)]
    elif location.operation:
        places = [(Where.CODE, pc, 0) for pc in code.with_operation(location.operation)]
    else:
        line = code.next_line(location.file, location.line)
        numbers = [] if line is None else code.line_numbers(location.file, line)
        places = [(Where.LINE, number, 0) for number in numbers]
    return [StopAt(breakpoint_.number, *place, *chosen) for place in places]


def is_kernel(pattern: str, code: Code) -> bool:
    """Return whether a kernel has a name, or one that a pattern fits."""
    return any(fnmatchcase(name, pattern) for name in (code.name, code.launch.kernel))
