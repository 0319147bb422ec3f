# SPDX-License-Identifier: MIT
"""The headers that ship with cklang: HIP for clang without ROCm, and our templates over CK Tile."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

__all__ = ["PRECOMPILED", "PRECOMPILED_ATTENTION", "folder", "identity"]

PRECOMPILED = "precompiled.hip"
"""What is precompiled once for each GPU for all matrix products, in this module's folder."""

PRECOMPILED_ATTENTION = "precompiled_attention.hip"
"""The same for attention."""


def folder() -> Path:
    """Return the include folder: it holds ``hip/`` and ``cklang/``."""
    return Path(__file__).parent / "include"


@cache
def identity() -> str:
    """Return a hex digest of all header files, for cache keys."""
    digest = hashlib.sha256()
    root = folder()
    for file in sorted(path for path in root.rglob("*") if path.is_file()):
        digest.update(str(file.relative_to(root)).encode() + b"\0")
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()
