# SPDX-License-Identifier: MIT
"""Messages about a fill in the user's lines.

A kernel may come from the cache, built when its op stood elsewhere, so its debug information names
lines of the fill. They are translated when a message is shown, by the ops of this process.
"""

from __future__ import annotations

import re

from cklang import forks
from cklang.lowering.places import FILL_NAME, PlacedFill

__all__ = ["note", "translate"]

_MOST = 4
"""How many ops with one fill are remembered: the last ones."""

_known: dict[str, tuple[tuple[str, ...], ...]] = {}
_lock = forks.lock()


def note(fill: PlacedFill) -> None:
    """Remember the places of a fill that this process is about to use."""
    known = _known.get(fill.name, ())
    if known[-1:] == (fill.places,):
        return
    with _lock:
        others = tuple(each for each in _known.get(fill.name, ()) if each != fill.places)
        _known[fill.name] = (*others, fill.places)[-_MOST:]


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
