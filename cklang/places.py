# SPDX-License-Identifier: MIT
"""The user's lines of what is compiled of an op's functions, and where generated C++ lies.

Each statement of a fill carries the file and the line of the user's code. Two ops that compute the
same at different lines are one kernel, so what is compiled names its own lines, in a file called
after the text. :class:`PlacedFill` knows which place of the user's code each of these lines is.

A kernel may come from the cache, built when its op stood elsewhere, so its debug information names
lines of the fill. They are translated when a message is shown, by the ops of this process; a
debugger or a profiler in another process reads them from a file.
"""

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path

from cklang import forks, knobs

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


_MOST = 4
"""How many ops with one fill are remembered: the last ones."""

_known: dict[str, tuple[tuple[str, ...], ...]] = {}
_lock = forks.lock()


def note(name: str, places: tuple[str, ...]) -> None:
    """Remember the places of a fill that this process is about to use."""
    if latest(name) == places:
        return
    profile = knobs.PROFILE.get()
    asking = (knobs.DEBUGGER.get(), None if profile is None else profile.partition(":")[2])
    for other in filter(None, asking):
        with notes_of(other).open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps([name, places])}\n")
    with _lock:
        others = tuple(text for text in _known.get(name, ()) if text != places)
        _known[name] = (*others, places)[-_MOST:]


def notes_of(other: str) -> Path:
    """Return the file in which processes note places for another one, a line of JSON each.

    Args:
        other: The socket of a debugger, or the folder of the records of a profile.

    Example:
        >>> notes_of("/tmp/debug/socket").name
        'socket.places'
    """
    return Path(f"{other}.places")


def read(file: Path) -> None:
    """Remember the places that other processes have noted."""
    if file.is_file():
        for line in file.read_text(encoding="utf-8").splitlines():
            name, places = json.loads(line)
            note(name, tuple(places))


def latest(name: str) -> tuple[str, ...]:
    """Return the places of a fill that were noted last; none of a fill that nobody noted."""
    known = _known.get(name, ())
    return known[-1] if known else ()


def known() -> dict[str, tuple[str, ...]]:
    """Return the places of all fills, those that were noted last of each."""
    return {name: lists[-1] for name, lists in _known.items()}


def translate(text: str) -> str:
    """Return ``text`` with the user's places where it names lines of fills.

    Several ops that compute the same share a fill; then each of their places is named.
    """
    return FILL_NAME.sub(_place, text)


def _place(match: re.Match[str]) -> str:
    index = int(match[2]) - 1
    lists = _known.get(match[1], ())
    places = (places[index] for places in reversed(lists) if 0 <= index < len(places))
    return " or ".join(dict.fromkeys(filter(None, places))) or match[0]


def _unquoted(name: str) -> str:
    return re.sub(r"\\(.)", r"\1", name)
