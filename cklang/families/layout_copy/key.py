# SPDX-License-Identifier: MIT
"""The identity of a kernel that copies a tensor into another order of axes in memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from cklang.keys import Key


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutCopySignature:
    """A copy of a tensor so that another axis of it is contiguous."""

    bytes: int
    """Bytes per element, which is moved as it is: 1, 2 or 4."""
    source_vector: int
    """Elements that one load moves along the axis that is contiguous in the source."""
    target_vector: int
    """The same for a store, in the target."""

    family: ClassVar[str] = "layout_copy"
    functions: ClassVar[str] = ""

    @property
    def words(self) -> str:
        """What is computed, for messages."""
        return f"a copy of {self.bytes}-byte elements into another order of axes"

    def label(self, algorithm: None) -> Sequence[str]:
        """Return what the label of a kernel says of it."""
        return [self.family, f"{self.bytes}B", f"{self.source_vector}x{self.target_vector}"]


LayoutCopyKey: TypeAlias = Key[LayoutCopySignature, None]
"""The key of such a kernel: there is one for each signature and GPU."""


def layout_copy_key(
    arch: str, bytes_: int, source_vector: int, target_vector: int
) -> LayoutCopyKey:
    """Return the key of such a kernel on a GPU; arguments as the signature's fields."""
    return LayoutCopyKey(
        LayoutCopySignature(bytes=bytes_, source_vector=source_vector, target_vector=target_vector),
        None,
        arch,
    )
