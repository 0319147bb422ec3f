# SPDX-License-Identifier: MIT
"""Sections of ELF files, as far as ``cklang hipcc`` reads them."""

from __future__ import annotations

import struct
from dataclasses import dataclass

__all__ = ["Section", "sections_of", "text_at"]


@dataclass(frozen=True, slots=True)
class Section:
    """One section of a 64-bit ELF file."""

    name: bytes
    kind: int
    link: int
    """The number of the section that this one refers to, such as its strings."""
    content: bytes


def sections_of(image: bytes) -> list[Section]:
    """Return the sections of an ELF file in order, so that numbers of sections are indices."""
    table, size, count, names = struct.unpack_from("<Q10xHHH", image, 0x28)
    headers = [struct.unpack_from("<II16xQQI", image, table + n * size) for n in range(count)]
    strings = headers[names][2] if count else 0
    return [
        Section(text_at(image, strings + name), kind, link, image[offset : offset + length])
        for name, kind, offset, length, link in headers
    ]


def text_at(data: bytes, at: int) -> bytes:
    """Return the text from byte ``at`` to the next 0.

    >>> text_at(bytes([65, 0, 66, 67, 0]), 2)
    b'BC'
    """
    return data[at : data.index(b"\0", at)]
