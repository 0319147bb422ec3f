# SPDX-License-Identifier: MIT
"""Sections and symbols of ELF files of 64 bits: code objects, and objects of the host."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

MAGIC = b"\x7fELF\x02\x01"
"""How a file of 64 bits in little-endian order begins."""
SYMBOLS, NOTE, _NO_BITS = 2, 7, 8
_ALLOCATED = 2

_OFFSET_OF_HEADERS = 0x28
_FILE = struct.Struct("<Q10xHHH")
"""From there: where the headers of sections are, their size and number, the section of names."""
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")


@dataclass(frozen=True, slots=True)
class Section:
    """One section."""

    name: str
    kind: int
    flags: int
    address: int
    offset: int
    """In the file."""
    size: int
    link: int
    """The number of the section that this one refers to, such as its strings."""
    alignment: int
    image: bytes
    header: bytes

    @property
    def is_loaded(self) -> bool:
        """Whether a loader copies it into memory."""
        return bool(self.flags & _ALLOCATED) and self.kind != _NO_BITS

    @property
    def content(self) -> bytes:
        """Its bytes in the file."""
        return b"" if self.kind == _NO_BITS else self.image[self.offset : self.offset + self.size]

    def header_at(self, offset: int, size: int) -> bytes:
        """Return its header for another place in the file."""
        fields = list(_SECTION.unpack(self.header))
        fields[4:6] = offset, size
        return _SECTION.pack(*fields)


@dataclass(frozen=True, slots=True)
class Symbol:
    """One symbol."""

    name: str
    kind: int
    """2: a function."""
    section: int
    """The number of the section that it is in; 0: another file defines it."""
    value: int
    size: int


def sections_of(image: bytes) -> list[Section]:
    """Return the sections of an ELF file in order, so that numbers of sections are indices."""
    table, size, count, names = _FILE.unpack_from(image, _OFFSET_OF_HEADERS)
    starts = [table + number * size for number in range(count)]
    headers = [image[at : at + _SECTION.size] for at in starts]
    rows = [_SECTION.unpack(header) for header in headers]
    strings = rows[names][4] if rows else 0
    return [
        Section(
            name=text_at(image, strings + row[0]), kind=row[1], flags=row[2], address=row[3],
            offset=row[4], size=row[5], link=row[6], alignment=row[8], image=image, header=header,
        )
        for row, header in zip(rows, headers, strict=True)
    ]  # fmt: skip


def symbols_of(table: Section, sections: Sequence[Section]) -> list[Symbol]:
    """Return the symbols of a table in order."""
    strings = sections[table.link].content
    return [
        Symbol(text_at(strings, name), info & 0xF, section, value, size)
        for name, info, _, section, value, size in _SYMBOL.iter_unpack(table.content)
    ]


def text_at(data: bytes, at: int) -> str:
    """Return the text from byte ``at`` to the next 0.

    >>> text_at(bytes([65, 0, 66, 67, 0]), 2)
    'BC'
    """
    return data[at : data.index(b"\0", at)].decode(errors="replace")


def with_headers(image: bytes, headers: Sequence[bytes]) -> bytes:
    """Return a file with these headers of its sections at its end, where it names them."""
    start = len(image) + -len(image) % 8
    place = struct.pack("<Q", start)
    named = image[:_OFFSET_OF_HEADERS] + place + image[_OFFSET_OF_HEADERS + len(place) :]
    return named.ljust(start, b"\0") + b"".join(headers)
