# SPDX-License-Identifier: MIT
"""The globals that a program took in when it was decorated, and whether they are still the same.

A program keeps the value that a name had at decoration. A name that has another value at a call is
an error, because the caller would expect the new value. The check of a call is one dict lookup and
one comparison of identity for each name.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from types import CellType, ModuleType
from typing import Any

from cklang.errors import error
from cklang.frontend.values import Helper, program_of
from cklang.source import Span

ABSENT: Any = object()
"""What a name has that is not defined."""

# Modules whose attributes nobody assigns to.
_FIXED_MODULES = ("cklang", "math")


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """A name from outside a program and the object that it had at decoration."""

    words: str
    value: object
    read: Callable[[], object]
    span: Span

    def expect_unchanged(self, program: str) -> None:
        """Raise an error if the name stands for something else now."""
        now = self.read()
        program_now = program_of(now)
        if program_now is not None and program_now is program_of(self.value):
            # Other choices of kernels for the same program.
            return
        # The same text run again makes equal numbers and dims, which change nothing.
        if (
            type(now) is type(self.value)
            and not (isinstance(now, Helper | ModuleType) or program_of(now) is not None)
            and repr(now) == repr(self.value)
        ):
            return
        raise error(
            "F017",
            at=self.span,
            words=self.words,
            then=_shown(self.value),
            now=_shown(now),
            name=program,
            advice=_advice(self.words.rpartition(".")[2], self.value),
        )


def expect_unchanged(captures: Iterable[Capture], program: str) -> None:
    """Raise an error if a captured name has another value than at decoration."""
    for capture in captures:
        if capture.read() is not capture.value:
            capture.expect_unchanged(program)


def of_global(words: str, space: dict[str, Any], value: object, span: Span) -> Capture:
    """Return the capture of a global; of a builtin, that no global hides it."""
    value = value if words in space else ABSENT
    return Capture(words=words, value=value, read=partial(space.get, words, ABSENT), span=span)


def of_cell(words: str, cell: CellType, value: object, span: Span) -> Capture:
    """Return the capture of a variable of an enclosing function."""

    def read() -> object:
        try:
            return cell.cell_contents
        except ValueError:
            return ABSENT

    return Capture(words=words, value=value, read=read, span=span)


def of_attribute(
    words: str, module: ModuleType, name: str, value: object, span: Span
) -> Capture | None:
    """Return the capture of a module's attribute, or None if nobody assigns to it."""
    if module.__name__.partition(".")[0] in _FIXED_MODULES:
        return None
    # A module may compute an attribute that is not in its namespace.
    read = partial(getattr, module, name, ABSENT)
    return Capture(words=words, value=value, read=read, span=span)


def of_path(words: str, read: Callable[[], object], value: object, span: Span) -> Capture:
    """Return the capture of what attributes and keys lead to, which ``read`` follows again."""
    return Capture(words=words, value=value, read=read, span=span)


def _shown(value: object) -> str:
    if value is ABSENT:
        return "not defined"
    if isinstance(value, Helper):
        return f"the helper at {value.place}"
    program = program_of(value)
    return repr(value) if program is None else f"the op at {program.place}"


def _advice(name: str, value: object) -> str:
    again = "decorate it again after the change"
    if type(value) not in (bool, int, float, str):
        return again
    kind = type(value).__name__
    return f"make it a parameter, {name}: ck.const[{kind}] (compiled in), or {again}"
