# SPDX-License-Identifier: MIT
"""The code of a launch: its instructions, and the source line of each."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

import numpy as np

from cklang.arch import arch
from cklang.emulator.debugger.wire import ControlledLaunch, Words
from cklang.emulator.engine.library import disassemble
from cklang.emulator.engine.recording import LANES, RecordedLaunch
from cklang.emulator.profiler.inlining import InlinedCall, calls_of_sections
from cklang.emulator.profiler.names import readable
from cklang.emulator.profiler.source import Place
from cklang.forks import cached_property
from cklang.places import FILL_NAME
from cklang.widths import DWORD_BYTES

Fills = Mapping[str, tuple[str, ...]]
"""The user's place of each line of a fill, by its name; and the generated C++ of each kernel."""

_STENCIL = "/stencil.hip"
"""The generated C++ of a kernel, in whatever folder it was compiled, as its line table names it."""
_ROW = re.compile(r"\s*([0-9a-f]+): (.*)")


def read_fills(path: Path) -> dict[str, tuple[str, ...]]:
    """Return the fills that processes have noted in a file; none if there is none."""
    if not path.exists():
        return {}
    rows = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    return {name: tuple(places) for name, places in rows}


def _place(file: str, line: int, fills: Fills) -> Place:
    """Return a row of the line table in the user's lines."""
    match = FILL_NAME.fullmatch(f"{file}:{line}")
    places = fills.get(match[1], ()) if match else ()
    text = places[line - 1] if 0 < line <= len(places) else ""
    path, _, number = text.rpartition(":")
    return Place(path, int(number)) if number.isdigit() else Place(file, line)


@lru_cache(maxsize=16)
def _instructions(gpu: str, code: bytes, wide: bool) -> dict[int, str]:
    """Return the text of each instruction by its dword."""
    text = disassemble(gpu, code, wide_waves=wide)
    rows = (_ROW.fullmatch(line) for line in text.splitlines())
    return {int(row[1], 16) // DWORD_BYTES: row[2] for row in rows if row is not None}


@dataclass(frozen=True)
class Code:
    """The code of one launch."""

    launch: RecordedLaunch
    entry: int
    """The dword at which the kernel begins."""
    fills: Fills

    @classmethod
    def of(cls, launch: ControlledLaunch, fills: Fills) -> Code:
        """Return the code of a launch under control."""
        return cls(launch.facts, launch.entry, fills)

    @property
    def name(self) -> str:
        """The kernel's name without the parameters that its symbol encodes."""
        return readable(self.launch.kernel)

    @cached_property
    def instructions(self) -> dict[int, str]:
        """The text of each instruction by its dword, in order."""
        wide = self.launch.lanes == LANES and arch(self.launch.gpu).wave_size != LANES
        return _instructions(self.launch.gpu, self.launch.code, wide)

    @cached_property
    def lines(self) -> Words:
        """The number of the line of each dword, from 1; 0 where the line table has none."""
        lines = np.zeros(len(self.launch.code) // DWORD_BYTES, np.uint32)
        for begin, end, file, line in self.launch.sources:
            place = self._place(self.launch.files[int(file)], int(line))
            lines[begin:end] = self._numbers.setdefault(place, len(self._numbers) + 1)
        return lines

    def _place(self, file: str, line: int) -> Place:
        sources = self.fills.get(self.launch.kernel, ()) if f"/{file}".endswith(_STENCIL) else ()
        return _place(sources[0] if sources else file, line, self.fills)

    @cached_property
    def _calls(self) -> list[InlinedCall]:
        calls = calls_of_sections(self.launch.debug, self.launch.base)
        return sorted(calls, key=lambda call: -call.depth)

    def frames(self, dword: int) -> list[tuple[str, Place | None]]:
        """Return the function and the place of an instruction, and of each call it is inside of.

        The innermost comes first; the last is the kernel. Calls that are not inlined are missing.
        """
        at = DWORD_BYTES * dword
        calls = [call for call in self._calls if call.begin <= at < call.end]
        places = [self.place(dword), *(self._place(call.file, call.line) for call in calls)]
        names = [*(call.function.partition("<")[0] or "?" for call in calls), self.name]
        return list(zip(names, places, strict=True))

    @cached_property
    def _numbers(self) -> dict[Place, int]:
        return {}

    @cached_property
    def places(self) -> tuple[Place, ...]:
        """The places of the lines, by number from 1 on."""
        _ = self.lines
        return tuple(self._numbers)

    def place(self, dword: int) -> Place | None:
        """Return the source line of an instruction."""
        number = int(self.lines[dword]) if dword < len(self.lines) else 0
        return self.places[number - 1] if number else None

    def line_numbers(self, file: str, line: int) -> list[int]:
        """Return the numbers of the line of each file whose path ends so."""
        return [
            number
            for number, place in enumerate(self.places, 1)
            if place.line == line and _ends_with(place.file, file)
        ]

    def next_line(self, file: str, line: int) -> int | None:
        """Return the first line from ``line`` on that has code."""
        lines = (place.line for place in self.places if _ends_with(place.file, file))
        return min((later for later in lines if later >= line), default=None)

    def with_operation(self, pattern: str) -> list[int]:
        """Return the dwords of the instructions whose mnemonic fits, such as ``v_mfma*``."""
        return [
            dword
            for dword, text in self.instructions.items()
            if fnmatchcase(text.split(maxsplit=1)[0], pattern)
        ]

    def pc(self, dword: int) -> int:
        """Return bytes from the kernel's first instruction, as faults name them."""
        return DWORD_BYTES * (dword - self.entry)

    def dword(self, pc: int) -> int | None:
        """Return the instruction at a pc; None if none begins there."""
        dword = self.entry + pc // DWORD_BYTES
        return dword if pc % DWORD_BYTES == 0 and dword in self.instructions else None

    def around(self, dword: int, before: int, after: int) -> list[int]:
        """Return the dwords of some instructions before one, of itself, and behind it."""
        dwords = list(self.instructions)
        at = dwords.index(dword)
        return dwords[max(0, at - before) : at + after + 1]


def _ends_with(path: str, end: str) -> bool:
    return path == end or path.endswith(f"/{end.removeprefix('./')}")
