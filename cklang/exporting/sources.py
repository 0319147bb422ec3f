# SPDX-License-Identifier: MIT
"""The C interface of exported calls and its implementation, from templates."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cklang.lowering.render import template

_SHORT = 10**9
_WIDEST = 1 << 63
_FOLDER = Path(__file__).parent / "templates"


def header_text(manifest: Mapping[str, Any]) -> str:
    """Return the text of the C header."""
    words = list(map(_free_words, manifest["free"]))
    return template("interface.h.j2", _FOLDER).render(manifest=manifest, gpus_words=words)


def launcher_text(manifest: Mapping[str, Any]) -> str:
    """Return the text of the C++ that implements it."""
    return template("launcher.cpp.j2", _FOLDER).render(
        manifest=manifest, rows=_rows, braces=_braces, text=_text
    )


def _free_words(free: Mapping[str, Any]) -> str:
    """Return the free extents of a call as a line of text."""
    dims = (
        f"{d['name']} from {d['first']} to {d['last']}{_steps(d['step'])}" for d in free["dims"]
    )
    return f"{free['gpu']}: {', '.join(dims)}"


def _steps(step: int) -> str:
    return "" if step == 1 else f" in steps of {step}"


def _text(value: str | None) -> str:
    """Return a literal of C, in which JSON's escapes of what is printable mean the same."""
    return "nullptr" if value is None else json.dumps(value)


def _braces(value: Any) -> str:
    """Return nested lists of integers, and records of them, as an initialiser of C++."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        return "{" + ", ".join(map(_braces, value)) + "}"
    return str(value) if value < _WIDEST else hex(value)


def _rows(rows: Sequence[Sequence[int]]) -> str:
    """Return rows of numbers as the initialisers of C structs."""
    return ", ".join(f"{{{', '.join(map(_number, row))}}}" for row in rows)


def _number(value: int) -> str:
    # A decimal literal is signed, which the largest 64-bit words are too great for.
    return str(value) if abs(value) < _SHORT else hex(value)
