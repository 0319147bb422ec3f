# SPDX-License-Identifier: MIT
"""The identity of a kernel that writes rows behind those of a cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, TypeAlias

from cklang.keys import Key, make_members
from cklang.types import DType


class Rotary(Enum):
    """How the first elements of a row are turned by its position."""

    NONE = "none"
    INTERLEAVED = "interleaved"
    """Neighbours turn together."""
    HALF = "half"
    """An element turns with the one that is half of the turned width further."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendSignature:
    """Rows written behind those of a cache, turned by their positions."""

    dtype: DType
    """The dtype of the rows."""
    dtype_cache: DType
    """The dtype of the cache; if it differs, rows are divided by a scale before they are stored."""
    rotary: Rotary
    paged: bool

    family: ClassVar[str] = "append"
    functions: ClassVar[str] = ""

    def __post_init__(self) -> None:
        make_members(self, {"rotary": Rotary})

    @property
    def words(self) -> str:
        """What is computed, for messages."""
        cache = "" if self.dtype_cache == self.dtype else f" of {self.dtype_cache}"
        return f"rows of {self.dtype} written behind those of a cache{cache}"

    def label(self, algorithm: None) -> Sequence[str]:
        """Return what the label of a kernel says of it."""
        dtypes = dict.fromkeys((self.dtype.name, self.dtype_cache.name))
        return [self.family, *dtypes, self.rotary.value, *(["paged"] if self.paged else [])]


AppendKey: TypeAlias = Key[AppendSignature, None]
"""The key of such a kernel: there is one for each signature and GPU."""


def append_key(
    arch: str, dtype: DType, rotary: Rotary, *, paged: bool = False, cache: DType | None = None
) -> AppendKey:
    """Return the key of such a kernel on a GPU; arguments as the signature's fields.

    The cache has the dtype of the rows if left out.
    """
    signature = AppendSignature(dtype=dtype, dtype_cache=cache or dtype, rotary=rotary, paged=paged)
    return AppendKey(signature, None, arch)
