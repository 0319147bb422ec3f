# SPDX-License-Identifier: MIT
"""Sums of products over any number of axes: the op ``contract``, which includes ``gemm``.

An operand has batch axes, which broadcast as in NumPy, an axis of its own or none, and the axes
that are summed over: those of A are its last, in B they stand before its own axis.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np

from cklang.ir.nodes import Attr, Operation
from cklang.ir.numeric import Array
from cklang.ir.rules import Shape, ShapeRule, common_shape

T = TypeVar("T")


Product: TypeAlias = Callable[[Array, Array], Array]
"""Multiplies stacks of matrices, as ``numpy.matmul`` does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contraction:
    """Which axes the operands of a product have after those of the batch."""

    rows: int = 1
    """1 if A has an axis of its own, which the result has too; 0 if A is a vector."""
    columns: int = 1
    """The same for B."""
    summed: int = 1
    """How many axes of A, and of B, are summed over."""

    @classmethod
    def of(cls, operation: Operation) -> Contraction:
        """Return that of a product: the attributes of ``contract``, else those of matrices."""
        return cls.of_attrs(dict(operation.attrs)) if operation.op == "contract" else cls()

    @classmethod
    def of_attrs(cls, attrs: Mapping[str, Attr]) -> Contraction:
        """Return that of the attributes of ``contract``."""
        rows, columns, summed = (attrs[name] for name in ("rows", "columns", "summed"))
        return cls(rows=int(rows), columns=int(columns), summed=int(summed))  # type: ignore[arg-type]

    def split_a(self, axes: Sequence[T]) -> tuple[Sequence[T], Sequence[T], Sequence[T]]:
        """Take the axes of A apart: those of the batch, its own, those summed over.

        Example:
            >>> Contraction(summed=2).split_a("bmhd")
            ('b', 'm', 'hd')
        """
        last = len(axes) - self.summed
        first = last - self.rows
        return axes[:first], axes[first:last], axes[last:]

    def split_b(self, axes: Sequence[T]) -> tuple[Sequence[T], Sequence[T], Sequence[T]]:
        """Take the axes of B apart: those of the batch, those summed over, its own."""
        last = len(axes) - self.columns
        first = last - self.summed
        return axes[:first], axes[first:last], axes[last:]

    @property
    def ranks(self) -> tuple[int, int]:
        """The axes of A and of B beside those of the batch."""
        return self.rows + self.summed, self.columns + self.summed

    def sum_of_products(self, a: Array, b: Array, product: Product) -> Array:
        """Return the contraction of two arrays by a product of stacks of matrices."""
        batch_a, rows, summed = self.split_a(a.shape)
        batch_b, _, columns = self.split_b(b.shape)
        m, k, n = (math.prod(extents) for extents in (rows, summed, columns))
        result = product(a.reshape(*batch_a, m, k), b.reshape(*batch_b, k, n))
        return result.reshape((*result.shape[:-2], *rows, *columns))


def contract(a: Array, b: Array, rows: int, columns: int, summed: int) -> Array:
    """Return the meaning of the op ``contract``; integers wrap at 32 bits."""

    def product(left: Array, right: Array) -> Array:
        sums: Array = np.matmul(left, right)
        return sums if sums.dtype.kind == "f" else sums.astype(np.int32).astype(np.int64)

    return Contraction(rows=rows, columns=columns, summed=summed).sum_of_products(a, b, product)


def _shape(
    shapes: tuple[Shape, ...], attrs: Mapping[str, Attr], _declared: Shape | None
) -> Shape | None:
    contraction, (a, b) = Contraction.of_attrs(attrs), shapes
    own = (contraction.rows, contraction.columns)
    short = any(len(shape) < rank for shape, rank in zip(shapes, contraction.ranks, strict=True))
    if not set(own) <= {0, 1} or contraction.summed < 0 or short:
        return None
    batch_a, rows, summed_a = contraction.split_a(a)
    batch_b, summed_b, columns = contraction.split_b(b)
    batch = common_shape(tuple(batch_a), tuple(batch_b))
    if batch is None or summed_a != summed_b:
        return None
    return (*batch, *rows, *columns)


CONTRACTION_SHAPE = ShapeRule(
    text="[M, K...] and [K..., N] give [M, N], where K... are as many axes as summed says, M is "
    "there if rows is 1 and N if columns is 1; axes before them are broadcast as in NumPy",
    apply=_shape,
)
