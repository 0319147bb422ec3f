# SPDX-License-Identifier: MIT
"""The identity of a kernel that reduces rows: what it computes, and how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, TypeAlias

from cklang.keys import Key, make_members, require_positive
from cklang.types import DType

__all__ = ["Reduction", "RowwiseAlgorithm", "RowwiseKey", "RowwiseSignature"]


class Reduction(Enum):
    """What becomes of the elements of a row."""

    SUM = "sum"
    MAX = "max"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowwiseSignature:
    """What a kernel computes: y = output(reduction of a row of x), in f32."""

    reduction: Reduction
    dtype: DType
    """Of x."""
    dtype_o: DType
    """Of y."""
    output: bool = False
    """Whether a function makes of the reduced row what is stored."""
    functions: str = ""
    """Digest of that function; empty in the key of a stencil."""

    family: ClassVar[str] = "rowwise"

    def __post_init__(self) -> None:
        make_members(self, {"reduction": Reduction})

    @property
    def words(self) -> str:
        """What is computed, for messages."""
        text = f"the {self.reduction.value} of rows of {self.dtype} to {self.dtype_o}"
        return f"{text}, output" if self.output else text

    def label(self, algorithm: RowwiseAlgorithm) -> Sequence[str]:
        """Return what the label of a kernel says of it."""
        dtypes = dict.fromkeys((self.dtype.name, self.dtype_o.name))
        shape = f"{algorithm.threads}x{algorithm.vector}"
        return [self.family, self.reduction.value, *dtypes, shape]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowwiseAlgorithm:
    """How a kernel reduces rows.

    Example:
        >>> ck.RowwiseAlgorithm(threads=64, vector=8)
        RowwiseAlgorithm(threads=64, vector=8)
    """

    threads: int
    """Threads that share a row; a workgroup of 256 has as many rows as fit."""
    vector: int
    """Elements that one access loads."""

    def __post_init__(self) -> None:
        for name in ("threads", "vector"):
            require_positive(name, getattr(self, name))


RowwiseKey: TypeAlias = Key[RowwiseSignature, RowwiseAlgorithm]
"""The identity of a kernel that reduces rows."""
