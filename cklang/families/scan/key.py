# SPDX-License-Identifier: MIT
"""The identity of a kernel of cumulative sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, TypeAlias

from cklang.keys import Key, make_members
from cklang.types import DType

__all__ = ["Scan", "ScanKey", "ScanSignature"]


class Scan(Enum):
    """Who sums a line."""

    WAVE = "wave"
    BLOCK = "block"
    LANE = "lane"
    """A thread, where neighbouring lines are neighbours in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanSignature:
    """Cumulative sums along an axis."""

    source: DType
    result: DType
    who: Scan

    family: ClassVar[str] = "scan"
    functions: ClassVar[str] = ""

    def __post_init__(self) -> None:
        make_members(self, {"who": Scan})

    @property
    def words(self) -> str:
        """What is computed, for messages."""
        return f"cumulative sums of {self.source} as {self.result}, a {self.who.value} a line"

    def label(self, algorithm: None) -> Sequence[str]:
        """Return what the label of a kernel says of it."""
        return [self.family, self.source.name, self.result.name, self.who.value]


ScanKey: TypeAlias = Key[ScanSignature, None]
"""The key of such a kernel: there is one for each signature and GPU."""
