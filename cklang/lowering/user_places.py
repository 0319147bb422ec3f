# SPDX-License-Identifier: MIT
"""Messages about a fill in the user's lines.

A kernel may come from the cache, built when its op stood elsewhere, so its debug information names
lines of the fill. They are translated when a message is shown, by the ops of this process.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from cklang import forks, knobs
from cklang.lowering.places import FILL_NAME

_MOST = 4
"""How many ops with one fill are remembered: the last ones."""

_known: dict[str, tuple[tuple[str, ...], ...]] = {}
_lock = forks.lock()


def note(name: str, places: tuple[str, ...]) -> None:
    """Remember the places of a fill that this process is about to use.

    Args:
        name: The fill, as debug information names it.
        places: The user's place of each of its lines.
    """
    if latest(name) == places:
        return
    profile = knobs.PROFILE.get()
    asking = (knobs.DEBUGGER.get(), None if profile is None else profile.partition(":")[2])
    for other in filter(None, asking):
        with notes_of(other).open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps([name, places])}\n")
    with _lock:
        others = tuple(each for each in _known.get(name, ()) if each != places)
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
