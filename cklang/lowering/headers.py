# SPDX-License-Identifier: MIT
"""The headers that kernels include: our templates over CK Tile, and HIP without ROCm."""

import hashlib
import re
from functools import cache
from pathlib import Path

from cklang.emulator.hip.headers import KERNELS

PRECOMPILED = "precompiled.hip"
"""What is precompiled once for each GPU for all matrix products, in this module's folder."""

PRECOMPILED_ATTENTION = "precompiled_attention.hip"
"""The same for attention."""

PRECOMPILED_MASKED = "precompiled_masked.hip"
"""The same for products whose masked loads are moved out of range."""


_SAME_CODE = {"cklang/distribution.hpp": (b"parts[1 + xs]", b"parts[]")}
"""Edits from which compilers make the code that they made before, by header: what the text is now
and was. Digests are of the text as it was, so that kernels in caches stay; whoever changes a header
that all kernels include empties this table."""


def folders() -> tuple[Path, ...]:
    """Return the include folders: our templates, and HIP with the mathematical functions."""
    return Path(__file__).parent / "include", KERNELS


def include_flags() -> tuple[str, ...]:
    """Return the compiler's flags for :func:`folders`."""
    return tuple(word for folder in folders() for word in ("-I", str(folder)))


def precompiled(name: str) -> Path:
    """Return the file :data:`PRECOMPILED` or one of the others."""
    return Path(__file__).with_name(name)


def identity(*texts: str, as_written: bool = False) -> str:
    """Return a hex digest of the headers that C++ texts include, for cache keys.

    That is each file of ``cklang/`` that they include, directly or through others, and all of
    ``hip/`` with what that includes, since CK Tile's headers include it. A precompiled header
    needs them ``as_written``; edits that leave the code as it was do not count for others.
    """
    names = frozenset(name for text in texts for name in _INCLUDE.findall(text))
    return _digest(names, as_written=as_written)


def identity_of_all() -> str:
    """Return a hex digest of all headers: what any kernel depends on."""
    return _digest(_names("cklang"))


_INCLUDE = re.compile(r"""^[ \t]*#[ \t]*include[ \t]*["<](cklang/[^">]+)""", re.MULTILINE)


@cache
def _digest(names: frozenset[str], *, as_written: bool = False) -> str:
    digest = hashlib.sha256()
    for name in sorted(frozenset[str]().union(*map(_closure, names | _names("hip")))):
        text = file(name).read_bytes()
        if name in _SAME_CODE and not as_written:
            text = text.replace(*_SAME_CODE[name])
        digest.update(name.encode() + b"\0" + hashlib.sha256(text).digest())
    return digest.hexdigest()


def _names(part: str) -> frozenset[str]:
    """Return the headers below ``hip`` or ``cklang``, as they are included."""
    return frozenset(
        str(path.relative_to(folder))
        for folder in folders()
        for path in (folder / part).rglob("*")
        if path.is_file()
    )


def file(name: str) -> Path:
    """Return the header that is included by a name such as ``cklang/math.h``."""
    return next(path for folder in folders() if (path := folder / name).is_file())


@cache
def _closure(name: str) -> frozenset[str]:
    """Return a header and all that it includes."""
    reached, ahead = set[str](), [name]
    while ahead:
        header = ahead.pop()
        if header not in reached:
            reached.add(header)
            ahead += _INCLUDE.findall(file(header).read_text("utf-8"))
    return frozenset(reached)
