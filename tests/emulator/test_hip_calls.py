# SPDX-License-Identifier: MIT
"""The list of HIP calls in the documentation is that of the library, and tests call each."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest

from cklang import emulator

pytestmark = pytest.mark.usefixtures("emulator")

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


def documented() -> list[str]:
    section = _DOCUMENT.read_text().partition("\n## ")[0]
    rows = [line.split("|")[2] for line in section.splitlines() if line.startswith("| ")]
    return [name for row in rows for name in re.findall(r"`(\w+)`", row)]


def test_every_call_is_documented() -> None:
    calls = {name for name in exported(emulator.library_path().read_bytes()) if "hip" in name}
    assert sorted(documented()) == sorted(calls)


def test_every_call_is_called() -> None:
    """By its name, in a test in Python or in a program that a test builds."""
    root = Path(__file__).parents[1]
    paths = [path for end in ("py", "cpp", "hip") for path in root.rglob(f"*.{end}")]
    texts = " ".join(path.read_text("utf-8") for path in paths)
    assert not set(documented()) - set(re.findall(r"\w+", texts))
