# SPDX-License-Identifier: MIT
"""Which cklang this is: a fingerprint of its files, for what is computed and kept on disk."""

import hashlib
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_SOURCES = (".py", ".json", ".toml", ".lark", ".hpp", ".hip", ".h", ".j2")
"""How the names of the files end that decide what is planned and built."""


@cache
def fingerprint() -> str:
    """Return a hex digest that changes with every edit of cklang: of its files' sizes and times.

    Example:
        >>> len(fingerprint())
        64
    """
    lines = sorted(stamps(str(Path(__file__).parents[1]), _SOURCES))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def stamps(folder: str, endings: tuple[str, ...]) -> Iterator[str]:
    """Yield a line for each file of a folder and those in it: its path, its size, its time."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                yield from stamps(entry.path, endings)
            elif entry.name.endswith(endings):
                stat = entry.stat()
                yield f"{entry.path} {stat.st_size} {stat.st_mtime_ns}"
