# SPDX-License-Identifier: MIT
"""The identities of kernels around attention: rows appended to a cache, splits combined, sums."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, TypeAlias

from cklang.keys import Key, make_members
from cklang.types import DType, f32


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ReduceSignature:
    """Sums around the gradients of attention, in f32."""

    dot: bool
    """Whether it sums the products of two tensors of ``dtype`` along their rows, or parts of a
    tensor to one of ``dtype``."""
    dtype: DType
    parts: DType = f32
    """What the parts of a sum are."""

    family: ClassVar[str] = "reduce"
    functions: ClassVar[str] = ""

    @property
    def words(self) -> str:
        """What is computed, for messages."""
        return (
            f"products of rows of {self.dtype}" if self.dot else f"a sum of parts to {self.dtype}"
        )

    def label(self, algorithm: None) -> Sequence[str]:
        """Return what the label of a kernel says of it."""
        own = [] if self.parts == f32 else [self.parts.name]
        return [self.family, "dot" if self.dot else "sum", *own, self.dtype.name]


ReduceKey: TypeAlias = Key[ReduceSignature, None]
"""The key of such a kernel: there is one for each signature and GPU."""


def reduce_key(arch: str, dtype: DType, *, dot: bool = False, parts: DType = f32) -> ReduceKey:
    """Return the key of a kernel that sums on a GPU; arguments as the signature's fields."""
    return ReduceKey(ReduceSignature(dot=dot, dtype=dtype, parts=parts), None, arch)
