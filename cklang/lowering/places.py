# SPDX-License-Identifier: MIT
"""The C of a fill without the user's places, which do not belong to a kernel's identity.

Each statement of a fill carries the file and the line of the user's code. Two ops that compute the
same at different lines are one kernel, so what is compiled names its own lines, in a file called
after the text. :class:`PlacedFill` knows which place of the user's code each of these lines is.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

FILL_NAME = re.compile(r"(?:[^\s\"'(),:]*/)?(ck_fill_[0-9a-f]{16}):(\d+)(:\d+)?")
"""A line of a fill (and its column) as compilers and the emulator name it."""

_LINE = re.compile(r'#line (\d+) "((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedFill:
    """A fill as it is compiled, and the user's places of its lines."""

    text: str
    name: str
    """The file that debug information and messages of the compiler name."""
    places: tuple[str, ...]
    """``file:line`` of each line of the text; empty for a line that belongs to no statement."""


def place_fill(fill: str) -> PlacedFill:
    r"""Return a fill without the ``#line`` directives of the user's code.

    Example:
        >>> placed = place_fill('float f(float x) {\n#line 7 "user.py"\nreturn x + x;\n}')
        >>> placed.places[2]
        'user.py:7'
    """
    lines: list[str] = []
    places: list[str] = []
    place = ""
    for line in fill.splitlines():
        directive = _LINE.fullmatch(line)
        if directive is not None:
            place = f"{_unquoted(directive[2])}:{directive[1]}"
        elif line == "}":
            place = ""
        lines.append("" if directive is not None else line)
        places.append(place)
    body = "\n".join(lines) + "\n"
    name = f"ck_fill_{hashlib.sha256(body.encode()).hexdigest()[:16]}"
    return PlacedFill(text=f'#line 1 "{name}"\n{body}', name=name, places=tuple(places))


def name_of_fill(text: str) -> str:
    """Return the name of a placed fill; empty if the text is none.

    Example:
        >>> placed = place_fill("float f(float x) {")
        >>> name_of_fill(placed.text) == placed.name
        True
    """
    first = _LINE.match(text)
    return "" if first is None else first[2]


def _unquoted(name: str) -> str:
    return re.sub(r"\\(.)", r"\1", name)
