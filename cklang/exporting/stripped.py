# SPDX-License-Identifier: MIT
"""Code objects without their debug information, most of their bytes: for profiles, not launches."""

from __future__ import annotations

import struct

__all__ = ["without_debug_information"]

_SECTION = struct.Struct("<IIQQQQIIQQ")
_ALLOCATED = 2
_NO_BITS = 8
_OFFSET_OF_HEADERS, _COUNT = 0x28, 0x3C


def without_debug_information(code: bytes) -> bytes:
    """Return an ELF file of 64 bits whose ``.debug`` sections are empty.

    All sections keep their numbers and names; what is loaded keeps its place in the file.
    """
    (headers,) = struct.unpack_from("<Q", code, _OFFSET_OF_HEADERS)
    count, names = struct.unpack_from("<HH", code, _COUNT)
    sections = [
        list(_SECTION.unpack_from(code, headers + _SECTION.size * index)) for index in range(count)
    ]
    text = sections[names][4]
    loaded = max(
        (each[4] + each[5] for each in sections if each[2] & _ALLOCATED and each[1] != _NO_BITS),
        default=0,
    )
    result = bytearray(code[:loaded])
    for each in sections:
        name, kind, flags, _, offset, size, *_, alignment, _ = each
        if flags & _ALLOCATED or kind == _NO_BITS or not size:
            continue
        start = text + name
        if code[start : code.index(b"\0", start)].startswith(b".debug"):
            each[4:6] = 0, 0
            continue
        result += bytes(-len(result) % max(alignment, 1))
        each[4] = len(result)
        result += code[offset : offset + size]
    result += bytes(-len(result) % 8)
    struct.pack_into("<Q", result, _OFFSET_OF_HEADERS, len(result))
    return bytes(result) + b"".join(_SECTION.pack(*each) for each in sections)
