# SPDX-License-Identifier: MIT
"""The kinds of error, and the row that describes one."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from cklang.source import Span


class CkError(Exception):
    """Base of all cklang errors: a stable code, a message, a place and notes.

    Example:
        >>> try:
        ...     ck.dispatch.problem(128, 256, -1)
        ... except ck.CkError as mistake:
        ...     print(mistake)
        CK-K011 k must be an integer of 0 or more, not -1
           = write a whole number without a fraction or a unit; True and False are none
    """

    def __init__(
        self,
        code: str,
        message: str,
        hint: str = "",
        at: Span | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        super().__init__(code, message, hint, at, tuple(notes))
        self.code = code
        self.message = message
        self.hint = hint
        self.at = at
        self.notes = tuple(notes)

    def __str__(self) -> str:
        place = [self.at.render()] if self.at is not None else []
        hint = [f"   = {line}" for line in self.hint.splitlines()]
        notes = [f"   = {line}" for note in self.notes for line in note.splitlines()]
        return "\n".join([f"CK-{self.code} {self.message}", *place, *notes, *hint])

    def __reduce__(self) -> tuple[Any, ...]:
        # Errors cross process borders when kernels are built in workers.
        return type(self), (self.code, self.message, self.hint, self.at, self.notes)

    def to_json(self) -> dict[str, Any]:
        """Return the error as plain data for editors and logs.

        Example:
            >>> try:
            ...     ck.dispatch.problem(128, 256, -1)
            ... except ck.CkError as mistake:
            ...     print(mistake.to_json()["code"])
            CK-K011
        """
        return {
            "code": f"CK-{self.code}",
            "message": self.message,
            "hint": self.hint,
            "at": str(self.at) if self.at is not None else None,
            "notes": list(self.notes),
        }


class CkSyntaxError(CkError, SyntaxError):
    """The program text is outside the language."""

    def __init__(
        self,
        code: str,
        message: str,
        hint: str = "",
        at: Span | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        super().__init__(code, message, hint, at, notes)
        # Python's traceback module shows nothing of a SyntaxError but its msg.
        self.msg = str(self)


class CkTypeError(CkError, TypeError):
    """A value has the wrong type, dtype or rank."""


class CkAttributeError(CkError, AttributeError):
    """A module or an object has no such name."""


class CkValueError(CkError, ValueError):
    """A value is of the right type but not legal."""


class CkUnsupportedError(CkError, NotImplementedError):
    """A legal request that no kernel of this installation can serve; the message says why."""


class CkBuildError(CkError, RuntimeError):
    """A compiler, a linker or the cache failed."""


class CkDeviceError(CkError, RuntimeError):
    """The device or the emulator refused or faulted."""


class CkMismatchError(CkError, AssertionError):
    """A result differs from its reference by more than its bound."""


class CkInternalError(CkError, RuntimeError):
    """cklang is wrong, not its user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One row of the table: what is said when the rule ``code`` is broken."""

    code: str
    kind: type[CkError]
    message: str
    hint: str = ""


def rules(table: str) -> tuple[Rule, ...]:
    r"""Return the rows of a table in text.

    A row begins with its code, kind and message. Each line of its hint begins with ``=``, and lines
    that are indented go on where the one before ends.

    Example:
        >>> rules("K999 CkTypeError {name} is\n    no array\n    = pass an array")[0].message
        '{name} is no array'
    """
    lines: list[str] = []
    for line in table.splitlines():
        text = line.strip()
        if line.startswith(" ") and not text.startswith("="):
            lines[-1] += f" {text}"
        elif text and not text.startswith("#"):
            lines.append(text)
    rows: list[Rule] = []
    for line in lines:
        if line.startswith("="):
            hint = f"{rows[-1].hint}\n{line[2:]}" if rows[-1].hint else line[2:]
            rows[-1] = replace(rows[-1], hint=hint)
        else:
            code, kind, message = line.split(" ", 2)
            rows.append(Rule(code=code, kind=_KINDS[kind], message=message))
    return tuple(rows)


_KINDS = {
    kind.__name__: kind
    for kind in (
        *(CkSyntaxError, CkTypeError, CkAttributeError, CkValueError, CkUnsupportedError),
        *(CkBuildError, CkDeviceError, CkMismatchError, CkInternalError),
    )
}
