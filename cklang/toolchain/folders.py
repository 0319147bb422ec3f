# SPDX-License-Identifier: MIT
"""Folders of the cache, and files in them, put away and copied.

A process that finds everything in the cache does neither, so :mod:`shutil`, whose import takes
longer than such a process reads, is imported here when it is needed.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def remove(folder: Path) -> None:
    """Delete a folder with all that is in it; what the system refuses to delete stays."""
    import shutil

    shutil.rmtree(folder, ignore_errors=True)


def linked(source: Path, target: Path) -> None:
    """Make ``target`` the same file as ``source``, or a copy of it where that cannot be."""
    try:
        os.link(source, target)
    except OSError:
        import shutil

        shutil.copyfile(source, target)


def copy_folder(source: Path, target: Path, *without: str) -> None:
    """Copy a folder; files whose names fit one of the patterns ``without`` are left out."""
    import shutil

    shutil.copytree(source, target, ignore=shutil.ignore_patterns(*without))
