# SPDX-License-Identifier: MIT
"""Every error a user can meet: one row each, with its code, its sentence and what to do about it.

Raise with ``raise error("F003", at=span, name="x", got="int")``. The row's templates are filled
from the named values; a missing value is an internal error, so tests meet it first. Each module
beside this one holds the rows of one part of cklang; :mod:`cklang.errors.table` holds all.
"""

from collections.abc import Sequence

from cklang.errors.kinds import (
    CkAttributeError,
    CkBuildError,
    CkDeviceError,
    CkError,
    CkInternalError,
    CkMismatchError,
    CkSyntaxError,
    CkTypeError,
    CkUnsupportedError,
    CkValueError,
    Rule,
)
from cklang.source import Span

__all__ = [
    "CkAttributeError", "CkBuildError", "CkDeviceError", "CkError", "CkInternalError",
    "CkMismatchError", "CkSyntaxError", "CkTypeError", "CkUnsupportedError", "CkValueError", "Rule",
    "error",
]  # fmt: skip


def error(
    code: str, *, at: Span | None = None, notes: Sequence[str] = (), **values: object
) -> CkError:
    """Make the error of rule ``code`` with its templates filled from ``values``."""
    from cklang.errors.table import RULES

    rule = RULES[code]
    return rule.kind(
        code, rule.message.format(**values), rule.hint.format(**values), at, tuple(notes)
    )
