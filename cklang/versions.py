# SPDX-License-Identifier: MIT
"""The versions of packages whose insides cklang uses: it was tested with the first and the last."""

import re
from collections.abc import Mapping
from types import MappingProxyType

from cklang.errors import error

Version = tuple[int, int]

KNOWN: Mapping[str, tuple[Version, Version]] = MappingProxyType(
    {"torch": ((2, 11), (2, 14)), "triton": ((3, 6), (3, 9))}
)
"""The first and the last version of each package. The extras of ``pyproject.toml`` say the same."""


def check_version(package: str, version: str) -> None:
    """Refuse a version that nobody has tested.

    Example:
        >>> check_version("triton", "3.9.1")
        >>> check_version("torch", "2.6.0+cpu")
        Traceback (most recent call last):
        ...
        cklang.errors.kinds.CkUnsupportedError: CK-E009 torch 2.6.0+cpu is installed, ...
    """
    first, last = KNOWN[package]
    major, minor = map(int, re.findall(r"\d+", version)[:2])
    if not first <= (major, minor) <= last:
        known = " to ".join(f"{major}.{minor}" for major, minor in (first, last))
        raise error("E009", package=package, version=version, known=known)
