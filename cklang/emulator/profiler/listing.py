# SPDX-License-Identifier: MIT
"""The instructions of a built kernel, each with its line of C++ and the user's line of Python."""

import linecache
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import starmap
from pathlib import Path
from typing import TypeVar

from cklang.device.artifact import Artifact
from cklang.emulator.engine.library import LineRow, disassemble, line_table
from cklang.emulator.profiler.inlining import InlinedCall, inlined_calls
from cklang.emulator.profiler.source import Place, here, user_place
from cklang.places import FILL_NAME

_Range = TypeVar("_Range", LineRow, InlinedCall)

_STENCIL = "stencil.hip"
_FILL = "fill.c"
_ISA_WIDTH, _CODE_WIDTH = 60, 64
"""Widths of the columns of instructions and of C++, in letters."""


@dataclass(frozen=True, slots=True, order=True)
class CodeLine:
    """A line of C++ or C that a kernel was compiled from."""

    file: str
    """A header, or ``stencil`` or ``fill`` for the generated texts."""
    line: int
    text: str

    @property
    def short(self) -> str:
        """The line's place, with the last part of the path alone."""
        return f"{self.file.rpartition('/')[2]}:{self.line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedInstruction:
    """An instruction, and where it comes from."""

    address: int
    """In the code object's text section, in bytes."""
    text: str
    code: CodeLine | None
    """The innermost line where functions are inlined; None if the line table has no row."""
    user: Place | None
    """The user's line, for an instruction of the user's function or of what that calls."""
    calls: tuple[str, ...] = ()
    """The lines of the inlined calls around it, the innermost first, as ``gemm.hpp:109``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelListing:
    """The instructions of a kernel, and the generated function that they call."""

    label: str
    rows: tuple[ListedInstruction, ...]
    fill: tuple[tuple[CodeLine, Place | None], ...]
    """The lines of the generated C, each with the user's line that it computes."""


def listing_of(artifact: Artifact) -> KernelListing:
    """Return the instructions of a built kernel.

    The kernel should have been built, or taken from the cache, by this process: that is when the
    user's lines of its function become known.
    """
    image = artifact.code_object.read_bytes()
    texts = _Texts(_lines(artifact.source), _lines(artifact.folder / _FILL))
    row_of = _by_address(line_table(artifact.key.arch, image))
    calls_of = _by_address(sorted(inlined_calls(image), key=lambda call: -call.depth))
    rows = []
    for row in disassemble(artifact.key.arch, image).splitlines():
        offset, _, text = row.partition(":")
        address = int(offset, 16)
        lines, calls = row_of.get(address, [])[:1], calls_of.get(address, [])
        around = [(line.file, line.line) for line in lines]
        around += [(call.file, call.line) for call in calls]
        rows.append(
            ListedInstruction(
                address=address,
                text=text.strip(),
                code=texts.code_line(lines[0]) if lines else None,
                user=next(filter(None, starmap(user_place, around)), None),
                calls=tuple(f"{call.file.rpartition('/')[2]}:{call.line}" for call in calls),
            )
        )
    return KernelListing(label=artifact.key.label, rows=tuple(rows), fill=tuple(texts.placed()))


def _lines(path: Path) -> Sequence[str]:
    return path.read_text("utf-8").splitlines() if path.is_file() else ()


def _by_address(ranges: Sequence[_Range]) -> dict[int, list[_Range]]:
    """Return the ranges that hold each address of an instruction, in the given order."""
    holding: dict[int, list[_Range]] = {}
    for range_ in ranges:
        for address in range(range_.begin, range_.end, 4):
            holding.setdefault(address, []).append(range_)
    return holding


@dataclass(frozen=True, slots=True)
class _Texts:
    """The generated texts of a kernel. The first line of a fill gives it its name."""

    stencil: Sequence[str]
    fill: Sequence[str]

    def code_line(self, row: LineRow) -> CodeLine:
        """Return the line that a row of the line table names."""
        if FILL_NAME.fullmatch(f"{row.file}:{row.line}"):
            return CodeLine("fill", row.line, _at(self.fill, row.line))
        if row.file.endswith(f"/{_STENCIL}"):
            return CodeLine("stencil", row.line, _at(self.stencil, row.line - 1))
        file = here(row.file)
        return CodeLine(file, row.line, linecache.getline(file, row.line).strip())

    def placed(self) -> Iterator[tuple[CodeLine, Place | None]]:
        """Yield the lines of the fill that have text, with the user's places."""
        name = self.fill[0].split('"')[1] if self.fill else ""
        for line, text in enumerate(self.fill[1:], start=1):
            if text.strip():
                yield CodeLine("fill", line, text), user_place(name, line)


def _at(lines: Sequence[str], index: int) -> str:
    return lines[index].strip() if 0 <= index < len(lines) else ""


def lines_of(listing: KernelListing) -> Iterator[str]:
    """Yield a kernel's instructions beside their lines of C++ and of Python.

    A place is named at the first of the instructions that come from it.
    """
    yield f"{listing.label}:"
    yield f"{'instruction':{_ISA_WIDTH}}  {'C++':{_CODE_WIDTH}}  Python"
    before: tuple[CodeLine | None, Place | None] = (None, None)
    for row in listing.rows:
        code, user = row.code, row.user
        middle = "" if code is None or code == before[0] else _cut(f"{code.short}: {code.text}")
        right = "" if user is None or user == before[1] else f"{user.short}: {user.text}"
        left = f"{row.address:6x}: {row.text}"
        yield f"{left:{_ISA_WIDTH}}  {middle:{_CODE_WIDTH}}  {right}".rstrip()
        before = code, user


def _cut(text: str) -> str:
    return text if len(text) <= _CODE_WIDTH else f"{text[: _CODE_WIDTH - 1]}…"
