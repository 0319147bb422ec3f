# SPDX-License-Identifier: MIT
"""Which source line each instruction comes from, and which phase of the kernel it is in."""

import linecache
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cklang import places
from cklang.emulator.clock.kernel import LaunchDetail
from cklang.errors import CkBuildError
from cklang.toolchain.compilers import find_ck_tree
from cklang.toolchain.paths import cache_root

_PACKAGE = Path(__file__).parents[2]
_FILL = "ck_fill_"
"""Part of the names of fills, which most lines do not come from."""
_HOT = 2
"""An instruction that waves execute more often than this, on average, is in a loop."""


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A line of a source file."""

    file: str
    line: int

    @property
    def text(self) -> str:
        """The line itself, or '' where the file is not here."""
        return linecache.getline(self.file, self.line).strip()

    @property
    def short(self) -> str:
        """The place with the last part of the path alone."""
        return f"{self.file.rpartition('/')[2]}:{self.line}"

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def places_of(detail: LaunchDetail) -> list[Place | None]:
    """Return the place of each line of the listing; None if the line table has none.

    For the functions of an op it is the user's line of Python.
    """
    launch, sources = detail.launch, detail.launch.sources
    row_of = np.full(len(detail.line_of), -1, np.int64)
    for row, (begin, end, _, _) in enumerate(sources.tolist()):
        row_of[begin:end] = row
    dwords = np.flatnonzero((detail.line_of >= 0) & (row_of >= 0))
    rows = row_of[dwords].tolist()
    named = sources[:, 2:].tolist()
    known = {
        (file, line): _translated(launch.files[file], line)
        for file, line in {tuple(named[row]) for row in set(rows)}
    }
    places: list[Place | None] = [None] * len(detail.listing)
    for line, row in zip(detail.line_of[dwords].tolist(), rows, strict=True):
        places[line] = known[tuple(named[row])]
    return places


def _translated(file: str, line: int) -> Place:
    """Return the user's place of a line of a fill, any other as it is."""
    return user_place(file, line) or Place(here(file), line)


def user_place(file: str, line: int) -> Place | None:
    """Return the user's place of a line of a fill; None of any other line."""
    if _FILL not in file:
        return None
    text = places.translate(f"{file}:{line}").partition(" or ")[0]
    path, _, number = text.rpartition(":")
    return Place(path, int(number)) if number.isdigit() and path != file else None


@cache
def here(file: str) -> str:
    """Return where this machine has a header that a line table names; the name itself if nowhere.

    A kernel may have been built elsewhere. Its address covers the headers, so they are the same.

    Example:
        >>> here("/elsewhere/cklang/places.py") == str(_PACKAGE / "places.py")
        True
    """
    for marker, folder in (("/cklang/", _PACKAGE), ("/include/", _ck_include())):
        _, mark, name = file.partition(marker)
        if mark and folder is not None and (folder / name).is_file():
            return str(folder / name)
    return file


@cache
def is_users(file: str) -> bool:
    """Return whether a file is here, and neither cklang's, CK Tile's nor a kernel's own source.

    Example:
        >>> is_users(str(_PACKAGE / "places.py")), is_users("/nowhere/saxpy.hip")
        (False, False)
    """
    ours = (_PACKAGE, cache_root(), _ck_include())
    path = Path(here(file))
    return path.is_file() and not any(folder and path.is_relative_to(folder) for folder in ours)


@cache
def _ck_include() -> Path | None:
    try:
        return find_ck_tree().include
    except CkBuildError:
        return None


def phases_of(detail: LaunchDetail, executed: npt.NDArray[np.float64], waves: int) -> list[str]:
    """Return ``before``, ``loop`` or ``after`` for each line, by how often waves execute it.

    A kernel without a loop has the phase ``straight`` alone.
    """
    hot = np.flatnonzero(executed > _HOT * waves)
    if len(hot) == 0:
        return ["straight"] * len(detail.listing)
    first, last = int(hot[0]), int(hot[-1])
    return [
        "before" if line < first else "after" if line > last else "loop"
        for line in range(len(detail.listing))
    ]
