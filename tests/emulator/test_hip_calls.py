# SPDX-License-Identifier: MIT
"""The list of HIP calls in the documentation is that of the library."""

from __future__ import annotations

import re
import struct
from pathlib import Path

from cklang import emulator

_DOCUMENT = Path(__file__).parents[2] / "docs" / "hip.md"
_DYNAMIC_SYMBOLS = 11  # SHT_DYNSYM


def exported(image: bytes) -> set[str]:
    """Names that a shared library defines."""
    (table,) = struct.unpack_from("<Q", image, 0x28)
    size, count = struct.unpack_from("<HH", image, 0x3A)
    headers = [struct.unpack_from("<IIQQQQII", image, table + n * size) for n in range(count)]
    (symbols,) = (header for header in headers if header[1] == _DYNAMIC_SYMBOLS)
    strings, names = headers[symbols[6]][4], set()
    for at in range(symbols[4], symbols[4] + symbols[5], 24):
        name, _, _, section = struct.unpack_from("<IBBH", image, at)
        if section:
            names.add(image[strings + name : image.index(b"\0", strings + name)].decode())
    return names


def test_every_call_is_documented() -> None:
    calls = {name for name in exported(emulator.library_path().read_bytes()) if "hip" in name}
    section = _DOCUMENT.read_text().partition("\n## ")[0]
    rows = [line.split("|")[2] for line in section.splitlines() if line.startswith("| ")]
    listed = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert sorted(listed) == sorted(calls)
