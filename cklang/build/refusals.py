# SPDX-License-Identifier: MIT
"""What a compiler says of a kernel, in the words of those who can do something about it.

It refuses a kernel's C++ where cklang has a defect: rules keep out what CK Tile lacks.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import MISSING, fields
from typing import Any

from cklang import places
from cklang.arch import arch
from cklang.codec import encode
from cklang.errors import CkError, error
from cklang.families import FAMILIES
from cklang.keys import AnyKey

_MOST = 300
"""Characters of what a compiler says; templates of CK Tile fill pages."""


@contextmanager
def in_users_lines() -> Iterator[None]:
    """Let a compiler's message about a fill name the user's lines."""
    try:
        yield
    except CkError as problem:
        problem.notes = tuple(places.translate(note) for note in problem.notes)
        raise


@contextmanager
def naming_the_rule(key: AnyKey, code: str = "B010") -> Iterator[None]:
    """Let the failure ``code`` of a kernel that every rule allows name the missing rule."""
    try:
        yield
    except CkError as failure:
        said = _refusal(failure) if failure.code == code else ""
        if said and not _objected(key):
            raise error(
                "B014",
                problem=said[:_MOST],
                family=key.family,
                gpu=key.arch,
                signature=_words(key.stencil.signature),
                algorithm=_words(key.algorithm),
                log=failure.hint,
            ) from None
        raise


def _refusal(failure: CkError) -> str:
    """Return what is wrong with the C++; empty where something else failed, such as the disk."""
    if failure.code == "B011":
        return failure.message
    wrong = (note for note in failure.notes if "error: " in note)
    return next(wrong, "").rpartition("error: ")[2]


def _objected(key: AnyKey) -> bool:
    rules = FAMILIES[key.family].rules
    return not rules.accepts(key.algorithm, key.signature, arch(key.arch))


def _words(record: Any) -> str:
    """Return the fields of a record that do not have their default, with their values."""
    if record is None:
        return "none"
    values = {
        f.name: getattr(record, f.name)
        for f in fields(record)
        if f.default is MISSING or getattr(record, f.name) != f.default
    }
    return ", ".join(f"{name}={encode(value)}" for name, value in values.items())
