# SPDX-License-Identifier: MIT
"""Every error a user can meet: one row each, with its code, its sentence and what to do about it.

Raise with ``raise error("F003", at=span, name="x", got="int")``. The row's templates are filled
from the named values; a missing value is an internal error, so tests meet it first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from cklang.source import Span

__all__ = [
    "RULES",
    "CkBuildError",
    "CkDeviceError",
    "CkError",
    "CkInternalError",
    "CkSyntaxError",
    "CkTypeError",
    "CkUnsupportedError",
    "CkValueError",
    "Rule",
    "error",
]


class CkError(Exception):
    """Base of all cklang errors: a stable code, a message, a place and notes."""

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
        """Return the error as plain data for editors and logs."""
        return {
            "code": f"CK-{self.code}",
            "message": self.message,
            "hint": self.hint,
            "at": str(self.at) if self.at is not None else None,
            "notes": list(self.notes),
        }


class CkSyntaxError(CkError, SyntaxError):
    """The program text is outside the language."""


class CkTypeError(CkError, TypeError):
    """A value has the wrong type, dtype or rank."""


class CkValueError(CkError, ValueError):
    """A value is of the right type but not legal."""


class CkUnsupportedError(CkError, NotImplementedError):
    """A legal request that no kernel of this installation can serve; the message says why."""


class CkBuildError(CkError, RuntimeError):
    """A compiler, a linker or the cache failed."""


class CkDeviceError(CkError, RuntimeError):
    """The device or the emulator refused or faulted."""


class CkInternalError(CkError, RuntimeError):
    """cklang is wrong, not its user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One row of the table: what is said when the rule ``code`` is broken."""

    code: str
    kind: type[CkError]
    message: str
    hint: str = ""


def _row(code: str, kind: type[CkError], message: str, hint: str = "") -> Rule:
    return Rule(code=code, kind=kind, message=message, hint=hint)


_TABLE: tuple[Rule, ...] = (
    # A: arrays and binding (runtime)
    # B: build and toolchain
    # C: kernel cache
    # D: device
    # E: emulator
    # F: frontend
    # I: mini-IR
    # K: keys, rules, selection
    _row("K001", CkValueError, "{what} {got!r} is unknown", "known: {known}\nnearest: {nearest}"),
    _row("K002", CkValueError, "{what} must be {want}, not {got!r}"),
    _row(
        "K003",
        CkValueError,
        "the {what} record has schema version {got!r}; this cklang reads version {want}",
        "export it again with this version, or rebuild",
    ),
    _row(
        "K004",
        CkValueError,
        "GPU {got!r} has no entry in arch_specs",
        "known GPUs: {known}",
    ),
    _row("K005", CkValueError, "arch_specs/{name}.json: {problem}"),
    # L: lowering
    # T: testing
    # X: fusion
    # Z: knobs and internal errors
    _row("Z001", CkValueError, "{name}={got!r}: {problem}", "{doc}"),
    _row("Z002", CkInternalError, "internal error: {what}", "please report it with this text"),
)

RULES: Mapping[str, Rule] = MappingProxyType({rule.code: rule for rule in _TABLE})
"""All rules by code."""


def error(
    code: str, *, at: Span | None = None, notes: Sequence[str] = (), **values: object
) -> CkError:
    """Make the error of rule ``code`` with its templates filled from ``values``."""
    rule = RULES[code]
    return rule.kind(
        code, rule.message.format(**values), rule.hint.format(**values), at, tuple(notes)
    )
