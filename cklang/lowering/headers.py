# SPDX-License-Identifier: MIT
"""The headers that ship with cklang: HIP for clang without ROCm, and our templates over CK Tile."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import Path

PRECOMPILED = "precompiled.hip"
"""What is precompiled once for each GPU for all matrix products, in this module's folder."""

PRECOMPILED_ATTENTION = "precompiled_attention.hip"
"""The same for attention."""

PRECOMPILED_MASKED = "precompiled_masked.hip"
"""The same for products whose masked loads are moved out of range."""


def folder() -> Path:
    """Return the include folder: it holds ``hip/`` and ``cklang/``."""
    return Path(__file__).parent / "include"


def hip_version() -> str:
    """Return the version of HIP that these headers describe.

    Example:
        >>> hip_version()
        '7.1.0'
    """
    text = (folder() / "hip" / "hip_version.h").read_text("utf-8")
    return ".".join(re.findall(r"#define HIP_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", text))


def precompiled_text(name: str) -> str:
    """Return the text of :data:`PRECOMPILED` or one of the others."""
    return (folder().parent / name).read_text("utf-8")


def identity(*texts: str) -> str:
    """Return a hex digest of the headers that C++ texts include, for cache keys.

    That is each file of ``cklang/`` that they include, directly or through others, and all of
    ``hip/`` with what that includes, since CK Tile's headers include it.
    """
    return _digest(frozenset(name for text in texts for name in _INCLUDE.findall(text)))


def identity_of_all() -> str:
    """Return a hex digest of all headers: what any kernel depends on."""
    files = (path for path in (folder() / "cklang").rglob("*") if path.is_file())
    return _digest(frozenset(str(path.relative_to(folder())) for path in files))


_INCLUDE = re.compile(r"""^[ \t]*#[ \t]*include[ \t]*["<](cklang/[^">]+)""", re.MULTILINE)


@cache
def _digest(names: frozenset[str]) -> str:
    root, digest = folder(), hashlib.sha256()
    hip = {str(path.relative_to(root)) for path in (root / "hip").rglob("*") if path.is_file()}
    for name in sorted(frozenset[str]().union(*map(_closure, names | hip))):
        digest.update(name.encode() + b"\0" + hashlib.sha256((root / name).read_bytes()).digest())
    return digest.hexdigest()


@cache
def _closure(name: str) -> frozenset[str]:
    """Return a header and all that it includes."""
    reached, ahead = set[str](), [name]
    while ahead:
        header = ahead.pop()
        if header not in reached:
            reached.add(header)
            ahead += _INCLUDE.findall((folder() / header).read_text("utf-8"))
    return frozenset(reached)
