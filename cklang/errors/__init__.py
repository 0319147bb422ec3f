# SPDX-License-Identifier: MIT
"""Every error a user can meet: one row each, with its code, its sentence and what to do about it.

Raise with ``raise error("F003", at=span, name="x", got="int")``. The row's templates are filled
from the named values; a missing value is an internal error, so tests meet it first. Each module
beside this one holds the rows of one part of cklang.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from cklang.errors import (
    arrays,
    building,
    choosing,
    emulating,
    frontend,
    general,
    gradients,
    ir,
    lowering,
    values,
)
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
    "RULES",
    "TABLE",
    "CkAttributeError",
    "CkBuildError",
    "CkDeviceError",
    "CkError",
    "CkInternalError",
    "CkMismatchError",
    "CkSyntaxError",
    "CkTypeError",
    "CkUnsupportedError",
    "CkValueError",
    "Rule",
    "error",
]

_PARTS = (
    *(arrays, building, emulating, frontend, ir, choosing, gradients, values, lowering),
    general,
)
TABLE: tuple[Rule, ...] = tuple(rule for part in _PARTS for rule in part.TABLE)
"""Every row, part by part."""

RULES: Mapping[str, Rule] = MappingProxyType({rule.code: rule for rule in TABLE})
"""All rules by code."""


def error(
    code: str, *, at: Span | None = None, notes: Sequence[str] = (), **values: object
) -> CkError:
    """Make the error of rule ``code`` with its templates filled from ``values``."""
    rule = RULES[code]
    return rule.kind(
        code, rule.message.format(**values), rule.hint.format(**values), at, tuple(notes)
    )
