# SPDX-License-Identifier: MIT
"""The identity of a kernel that puts lines in order."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from cklang.keys import Key
from cklang.types import DType

SIZES = (64, 256, 1024, 4096)
"""Items that a workgroup sorts at once, of 8 bytes of LDS each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SortSignature:
    """Lines in order, or their first elements."""

    source: DType
    size: int
    """Items that a workgroup sorts at once: a power of two."""
    values: bool
    """Whether the elements are written; so for their indices."""
    indices: bool
    descending: bool

    family: ClassVar[str] = "sort"
    functions: ClassVar[str] = ""

    @property
    def words(self) -> str:
        """What is computed, for messages."""
        written = [name for name in ("values", "indices") if getattr(self, name)]
        order = "descending" if self.descending else "ascending"
        return f"{' and '.join(written)} of lines of {self.source} in {order} order"

    def label(self, algorithm: None) -> Sequence[str]:
        """Return what the label of a kernel says of it."""
        written = [name for name in ("values", "indices") if getattr(self, name)]
        order = ["descending"] if self.descending else []
        return [self.family, self.source.name, str(self.size), *written, *order]


SortKey: TypeAlias = Key[SortSignature, None]
"""The key of such a kernel: there is one for each signature and GPU."""
