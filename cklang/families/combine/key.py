# SPDX-License-Identifier: MIT
"""The identity of a kernel that combines what splits of an attention's keys gave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from cklang.keys import Key
from cklang.types import DType


@dataclass(frozen=True, slots=True, kw_only=True)
class CombineSignature:
    """The sum of what splits of the keys gave, each weighed by its log-sum."""

    dtype_o: DType
    lse: bool
    """Whether it stores the lse of all keys too."""
    output: bool = False
    """Whether a function makes of o what is stored."""
    functions: str = ""
    """Digest of that function; empty in the key of a stencil."""

    family: ClassVar[str] = "combine"

    @property
    def words(self) -> str:
        """What is computed, for messages."""
        return f"splits of an attention combined to {self.dtype_o}"

    def label(self, algorithm: None) -> Sequence[str]:
        """Return what the label of a kernel says of it."""
        return [self.family, self.dtype_o.name, *(["lse"] if self.lse else [])]


CombineKey: TypeAlias = Key[CombineSignature, None]
"""The key of such a kernel: there is one for each signature and GPU."""


def combine_key(
    arch: str, dtype_o: DType, *, lse: bool = False, output: bool = False, functions: str = ""
) -> CombineKey:
    """Return the key of such a kernel on a GPU; arguments as the signature's fields."""
    return CombineKey(
        CombineSignature(dtype_o=dtype_o, lse=lse, output=output, functions=functions), None, arch
    )
