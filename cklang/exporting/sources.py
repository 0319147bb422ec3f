# SPDX-License-Identifier: MIT
"""The C interface of exported calls and its implementation, from templates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cklang.lowering.render import template

__all__ = ["header_text", "launcher_text"]

_SHORT = 10**9
_FOLDER = Path(__file__).parent / "templates"


def header_text(manifest: Mapping[str, Any]) -> str:
    """Return the text of the C header."""
    return template("interface.h.j2", _FOLDER).render(manifest=manifest)


def launcher_text(manifest: Mapping[str, Any]) -> str:
    """Return the text of the C++ that implements it."""
    return template("launcher.cpp.j2", _FOLDER).render(manifest=manifest, rows=_rows)


def _rows(rows: Sequence[Sequence[int]]) -> str:
    """Return rows of numbers as the initialisers of C structs."""
    return ", ".join(f"{{{', '.join(map(_number, row))}}}" for row in rows)


def _number(value: int) -> str:
    # A decimal literal is signed, which the largest 64-bit words are too great for.
    return str(value) if abs(value) < _SHORT else hex(value)
