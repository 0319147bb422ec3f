# SPDX-License-Identifier: MIT
"""The identity of a kernel that writes or adds rows at indices."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, TypeAlias

from cklang.keys import Key, make_members
from cklang.types import DType, i32


class Scatter(Enum):
    """What becomes of a row."""

    SET = "set"
    ADD = "add"
    LINK = "link"
    """Nothing: the kernel notes which rows have the same index."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScatterSignature:
    """Rows written or added at indices."""

    how: Scatter
    index: DType
    rows: DType = i32
    result: DType = i32
    linked: bool = False
    """Whether a kernel before it has noted which rows have the same index."""

    family: ClassVar[str] = "scatter"
    functions: ClassVar[str] = ""

    def __post_init__(self) -> None:
        make_members(self, {"how": Scatter})

    @property
    def words(self) -> str:
        """What is computed, for messages."""
        if self.how is Scatter.LINK:
            return f"the rows that have the same index of {self.index}"
        verb = "written" if self.how is Scatter.SET else "added"
        return f"rows of {self.rows} {verb} at indices of {self.index}, as {self.result}"

    def label(self, algorithm: None) -> Sequence[str]:
        """Return what the label of a kernel says of it."""
        dtypes = () if self.how is Scatter.LINK else (self.rows.name, self.result.name)
        linked = ["linked"] if self.linked else []
        return [self.family, self.how.value, self.index.name, *dtypes, *linked]


ScatterKey: TypeAlias = Key[ScatterSignature, None]
"""The key of such a kernel: there is one for each signature and GPU."""


def link_key(arch: str, index: DType) -> ScatterKey:
    """Return the key of the kernel that notes which rows have the same index."""
    return ScatterKey(ScatterSignature(how=Scatter.LINK, index=index), None, arch)
