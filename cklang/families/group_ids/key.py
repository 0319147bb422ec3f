# SPDX-License-Identifier: MIT
"""The identity of a kernel that puts places of ids into the order of their groups."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from cklang.keys import Key
from cklang.types import DType


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupIdsSignature:
    """The order of ids by group, where groups end, or both."""

    ids: DType
    order: bool
    """Whether the order is written; so for the ends."""
    ends: bool

    family: ClassVar[str] = "group_ids"
    functions: ClassVar[str] = ""

    @property
    def written(self) -> Sequence[str]:
        """What is written."""
        return [name for name in ("order", "ends") if getattr(self, name)]

    @property
    def words(self) -> str:
        """What is computed, for messages."""
        return f"{' and '.join(self.written)} of groups of ids of {self.ids}"

    def label(self, algorithm: None) -> Sequence[str]:
        """Return what the label of a kernel says of it."""
        return [self.family, self.ids.name, *self.written]


GroupIdsKey: TypeAlias = Key[GroupIdsSignature, None]
"""The key of such a kernel: there is one for each signature and GPU."""
