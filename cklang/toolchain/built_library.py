# SPDX-License-Identifier: MIT
"""Shared libraries that cklang builds for itself, in folders of the cache.

A library is compared with what was built before it is loaded: one that is cut short ends the
process.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from cklang.toolchain.integrity import RECORD, files_in, problem_of, read_record, sealed
from cklang.toolchain.log import logger

__all__ = ["intact", "problem_of_library", "seal"]


def intact(folder: Path, build: Callable[[Path], None]) -> Path:
    """Return ``folder`` with the library as it was built, by ``build`` if it is not there as such.

    ``build`` makes the folder, or one in its place, and seals it. A damaged one is logged.
    """
    if problem_of_library(folder) is None:
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    from filelock import FileLock

    with FileLock(f"{folder}.lock"):
        problem = problem_of_library(folder)
        if problem is not None:
            if folder.exists():
                message = "%s: %s; it will be built again"
                logger("toolchain").warning(message, folder, problem)
            build(folder)
    return folder


def seal(folder: Path, library: str) -> None:
    """Write down what the file ``library`` in ``folder`` contains."""
    record = sealed({"files": {library: files_in(folder)[library]}})
    (folder / RECORD).write_text(json.dumps(record, indent=1))


def problem_of_library(folder: Path) -> str | None:
    """Say why the library in ``folder`` must not be loaded, or return None."""
    try:
        return problem_of(folder, read_record(folder), every_byte=True)
    except OSError as problem:
        return f"{RECORD} cannot be read ({problem.strerror})"
