# SPDX-License-Identifier: MIT
"""CK Tile's headers, parsed once per GPU and kept: a third of the work of every stencil.

The file is an aid, not an artifact: it lies beside the kernel cache, is named by all that it
depends on, and is made again when it is missing.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock

from cklang.runtime.paths import cache_root

__all__ = ["shared"]


def shared(identity: str, make: Callable[[Path], Path]) -> Path:
    """Return the precompiled header named by ``identity``; ``make`` it in a folder if need be.

    Processes that want the same file at once wait for the first. A file is complete when it has
    its name: it is made elsewhere and moved.
    """
    root = cache_root() / "headers"
    final = root / hashlib.sha256(identity.encode()).hexdigest()[:32]
    found = final / "headers.pch"
    if found.is_file():
        return found
    root.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{final}.lock"):
        if not found.is_file():
            folder = Path(tempfile.mkdtemp(prefix="tmp-", dir=root))
            try:
                make(folder)
                shutil.rmtree(final, ignore_errors=True)
                folder.rename(final)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
    return found
