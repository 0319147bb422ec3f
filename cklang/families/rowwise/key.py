# SPDX-License-Identifier: MIT
"""The identity of a kernel of rows: what it joins and writes, and how it runs over a row.

Stencils know no i64 and no bool: a stencil takes numbers as words of 32 bits and stores those of a
dtype of its own. An i64 is two words, its low half first, and two outputs of i32, each with every
other dword of the tensor. A bool is stored as an i8.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, TypeAlias

from cklang.dims import require_integer
from cklang.keys import Key
from cklang.types import DType, bool_, i8, i32, i64

_PARTS = {bool_: (i8,), i64: (i32, i32)}


def parts_of(dtype: DType) -> tuple[DType, ...]:
    """Return the dtypes as which a stencil stores an element of ``dtype``, in memory's order.

    Example:
        >>> parts_of(ck.i64), parts_of(ck.f16)
        ((ck.i32, ck.i32), (ck.f16,))
    """
    return _PARTS.get(dtype, (dtype,))


MOST_STAGES = 4
"""Stages that a kernel has at most: its functions ``part0`` to ``part3``."""


class Reduction(Enum):
    """What becomes of the elements of a row."""

    SUM = "sum"
    MAX = "max"
    MIN = "min"
    PROD = "prod"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowwiseSignature:
    """What a kernel computes; the rest stands in its functions (:mod:`.stages`).

    Neither the number nor the types nor the strides of what it reads are part of it.
    """

    reductions: tuple[tuple[Reduction, ...], ...] = ()
    """The reductions of each stage."""
    integers: tuple[int, ...] = ()
    """The reductions of i32, by their number through all stages."""
    kept: int = 0
    """Words of values of an element that more than one pass needs."""
    common: int = 0
    """Words of operands that have an element for each of a row's, the same ones in every row."""
    elements: tuple[DType, ...] = ()
    """The outputs that have an element for each of a row's."""
    rows: tuple[DType, ...] = ()
    """The outputs that have one for each row."""
    row_axes: int = 1
    """How many axes count rows."""
    functions: str = ""
    """Digest of the functions; empty in the key of a stencil."""

    family: ClassVar[str] = "rowwise"

    @property
    def is_map(self) -> bool:
        """Whether each element is computed by itself, and nothing of a row."""
        return not self.reductions and not self.rows

    @property
    def words(self) -> str:
        """What is computed, for messages."""
        stages = [" and ".join(step.value for step in stage) for stage in self.reductions]
        joined = ", then ".join(stages) or "no reduction"
        written = [
            *(str(element) for element in self.elements),
            *(f"{row} a row" for row in self.rows),
        ]
        return f"{joined}; writes {', '.join(written)}"

    def label(self, algorithm: RowwiseAlgorithm) -> Sequence[str]:
        """Return what the label of a kernel says of it."""
        stages = ["".join(step.value for step in stage) for stage in self.reductions] or ["map"]
        rows = ["rows", *map(str, self.rows)] if self.rows else []
        shape = f"{algorithm.threads}x{algorithm.vector}x{algorithm.chunks}"
        kept = [f"k{self.kept}"] if self.kept else []
        kept += [f"w{self.common}"] if self.common else []
        kept += [f"r{self.row_axes}"] if self.row_axes != 1 else []
        return [self.family, *stages, *kept, *map(str, self.elements), *rows, shape]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowwiseAlgorithm:
    """How a kernel runs over a row.

    Example:
        >>> ck.dispatch.RowwiseAlgorithm(threads=64, vector=8, chunks=1).longest
        512
    """

    threads: int
    """Threads that share a row; a workgroup of 256 or more has as many rows as fit."""
    vector: int
    """Elements that a thread computes at once, and that one access loads where they are
    contiguous."""
    chunks: int = 0
    """Vectors of a row that each thread keeps in registers from pass to pass, and those of operands
    that all rows have in common from row to row; 0 computes what is kept from memory in each pass,
    for rows of any length."""

    def __post_init__(self) -> None:
        for name in ("threads", "vector"):
            require_integer(name, getattr(self, name))
        if self.chunks:
            require_integer("chunks", self.chunks)

    @property
    def longest(self) -> int:
        """The longest row that registers hold, in elements."""
        return self.threads * self.vector * self.chunks


RowwiseKey: TypeAlias = Key[RowwiseSignature, RowwiseAlgorithm]
"""The identity of a kernel of rows."""
