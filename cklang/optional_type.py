# SPDX-License-Identifier: MIT
"""The annotation of a tensor that a call may leave out: ``bias: ck.f16[N] | None = None``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING


@dataclass(frozen=True, slots=True)
class OptionalType:
    """An annotation whose argument may be None."""

    of: object
    """The annotation of an argument that is given."""


class AllowsNone:
    """What is an annotation: with ``| None`` it is that of an argument that may be left out."""

    __slots__ = ()

    if not TYPE_CHECKING:
        # Type checkers read `| None` as a union.
        def __or__(self, other: object) -> OptionalType:
            return OptionalType(self) if other is None else NotImplemented

        __ror__ = __or__
