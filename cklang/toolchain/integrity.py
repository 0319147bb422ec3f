# SPDX-License-Identifier: MIT
"""What files in a cache must contain, written beside them when they are built.

A full disk or a process that was killed leaves files cut short, and loading such a library ends the
process. So what is loaded is compared with the record that its builder sealed.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cklang.codec import canonical_digest

RECORD = "record.json"
"""The file in a folder that describes its other files."""

_HASH_LIMIT = 16 << 20


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file's contents, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def files_in(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the size in bytes and the SHA-256 of each file below ``folder``, by relative path."""
    return {
        str(path.relative_to(folder)): {"bytes": path.stat().st_size, "sha256": file_digest(path)}
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def sealed(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record of plain JSON data with a ``seal``, which tells whether it was altered."""
    # The plain form is what a reader will see, so the seal is made over it.
    plain: dict[str, Any] = json.loads(json.dumps(record))
    return plain | {"seal": _seal(plain)}


def read_record(folder: Path) -> dict[str, Any] | None:
    """Return the record in ``folder``; None if it is no JSON object."""
    try:
        record = json.loads((folder / RECORD).read_text(errors="replace"))
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def problem_of(folder: Path, record: Mapping[str, Any] | None, *, every_byte: bool) -> str | None:
    """Say what is wrong with the files in ``folder``, or return None.

    Args:
        folder: Where they are.
        record: As :func:`read_record` returns it: ``files`` as from :func:`files_in`, and a seal.
        every_byte: Whether to read files above 16 MiB too.
    """
    try:
        return _problem_of(folder, record or {}, every_byte=every_byte)
    except (ValueError, KeyError, TypeError, AttributeError):
        return f"{RECORD} is not whole"


def _problem_of(folder: Path, record: Mapping[str, Any], *, every_byte: bool) -> str | None:
    if not record:
        return f"{RECORD} is not whole"
    if record.get("seal") != _seal(record):
        return f"{RECORD} was altered"
    for name, recorded in record["files"].items():
        path = folder / name
        if not path.is_file():
            return f"{name} is missing"
        size = path.stat().st_size
        if size != recorded["bytes"]:
            return f"{name} has {size} bytes, not {recorded['bytes']}"
        if (every_byte or size <= _HASH_LIMIT) and file_digest(path) != recorded["sha256"]:
            return f"{name} has other contents than were built"
    return None


def _seal(record: Mapping[str, Any]) -> str:
    plain = {name: value for name, value in record.items() if name != "seal"}
    return canonical_digest(plain)
