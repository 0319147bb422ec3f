# SPDX-License-Identifier: MIT
"""Where cklang keeps files on this machine."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cklang import knobs
from cklang.errors import error

_NOT_WRITABLE = frozenset(
    {
        *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT),
        *(errno.ENOENT, errno.ENOTDIR),
    }
)
"""What the system says of folders that cannot be made or written; of programs also ENOENT."""


def cache_root() -> Path:
    """Return the folder of the kernel cache: ``CKLANG_CACHE_DIR`` or the user's cache folder."""
    chosen = knobs.CACHE_DIR.get()
    if chosen is not None:
        return chosen
    return knobs.user_cache() / "cklang"


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Name the folder of the cache and the remedy where the system refuses to write to it."""
    try:
        yield
    except OSError as problem:
        place = Path(os.fspath(problem.filename)) if problem.filename else folder
        is_inside = place.is_relative_to(folder) or folder.is_relative_to(place)
        if problem.errno not in _NOT_WRITABLE or not is_inside:
            raise
        raise error("C001", folder=folder, problem=problem.strerror) from problem
