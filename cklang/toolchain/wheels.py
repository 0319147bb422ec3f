# SPDX-License-Identifier: MIT
"""Installed wheels, found by the names of their folders.

:mod:`importlib.metadata` finds them too, but its import takes a tenth of the time that a process
needs to its first result.
"""

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

_INFO = ".dist-info"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """A wheel that is installed."""

    folder: Path
    """Where its packages are."""
    version: str
    info: Path
    """Its ``.dist-info`` folder."""

    def record(self) -> bytes:
        """Return its list of files and their digests; nothing if it has none."""
        path = self.info / "RECORD"
        return path.read_bytes() if path.is_file() else b""


def installed_wheel(name: str) -> Wheel | None:
    """Return the wheel of that name that Python imports; None if there is none.

    Example:
        >>> installed_wheel("NumPy").version == np.__version__
        True
        >>> installed_wheel("no-such-wheel")
    """
    start = re.sub(r"[-_.]+", "_", name).lower() + "-"
    for place in sys.path:
        try:
            entries = os.listdir(place or ".")
        except OSError:
            continue  # an archive, or nothing
        for entry in entries:
            if entry.endswith(_INFO) and entry.lower().startswith(start):
                folder = Path(place or ".")
                version = entry[len(start) : -len(_INFO)]
                return Wheel(folder=folder, version=version, info=folder / entry)
    return None
