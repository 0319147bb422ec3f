# SPDX-License-Identifier: MIT
"""The identity of a kernel of cumulative sums or products."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, TypeAlias

from cklang.keys import Key, make_members
from cklang.types import DType

_PRODUCT = "_product"


class Scan(Enum):
    """The threads that sum or multiply a line."""

    WAVE = "wave"
    BLOCK = "block"
    LANE = "lane"
    """A thread, where neighbouring lines are neighbours in memory."""
    WAVE_PRODUCT = "wave_product"
    BLOCK_PRODUCT = "block_product"
    LANE_PRODUCT = "lane_product"

    @property
    def worker(self) -> str:
        """The threads that share a line: ``wave``, ``block`` or ``lane``."""
        return self.value.removesuffix(_PRODUCT)

    @property
    def multiplies(self) -> bool:
        """Whether elements are multiplied, not added."""
        return self.value.endswith(_PRODUCT)

    def product(self) -> Scan:
        """Return who multiplies a line in the place of who sums it."""
        return Scan(self.worker + _PRODUCT)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanSignature:
    """Cumulative sums or products along an axis."""

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
        what = "products" if self.who.multiplies else "sums"
        return f"cumulative {what} of {self.source} as {self.result}, a {self.who.worker} a line"

    def label(self, algorithm: None) -> Sequence[str]:
        """Return what the label of a kernel says of it."""
        return [self.family, self.source.name, self.result.name, self.who.value]


ScanKey: TypeAlias = Key[ScanSignature, None]
"""The key of such a kernel: there is one for each signature and GPU."""
