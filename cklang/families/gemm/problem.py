# SPDX-License-Identifier: MIT
"""One launch as numbers: extents, layouts, strides and alignments of the arrays of a fused GEMM.

``strides.py`` makes problems of arrays, ``arrayless.py`` makes them without.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from cklang.device.preshuffle import Arrangement
from cklang.families.gemm.key import (
    DKind,
    DOperand,
    Layout,
    ProductKind,
    Scale,
    Signature,
    accumulator,
)
from cklang.ir.log_sums import COLUMNS
from cklang.types import DType
from cklang.widths import packed_row


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand:
    """What is common to all operands of a launch: whose memory it is."""

    value: str
    """Name of the value in the program."""
    dtype: DType
    alignment: int
    batch: tuple[int, ...] = ()
    """Elements from one matrix to the next along each batch axis of the problem."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix(Operand):
    """A [M, K], B [K, N] or E [M, N] with one contiguous axis."""

    layout: Layout
    rows: int
    columns: int
    stride: int
    """Elements from one row (row layout) or column (column layout) to the next; of a prepared B
    from one row of warp tiles to the next."""
    prepared: Arrangement | None = None
    """The order of a prepared B."""

    @property
    def contiguous(self) -> int:
        """Extent of the contiguous axis."""
        if self.prepared is not None or self.dtype.packed:
            return self.stride
        if self.layout.of_blocks:
            return -(-self.columns // COLUMNS)
        return self.rows if self.layout is Layout.COL else self.columns

    @property
    def span(self) -> int:
        """Elements from the first to the last, gaps included."""
        by_columns = self.layout is Layout.COL
        other, row = self.columns if by_columns else self.rows, self.contiguous
        if self.prepared is not None:
            other, row = self.prepared.extents(self.columns, self.rows)
        elif self.dtype.packed:
            row = packed_row(row)
        return max(other - 1, 0) * self.stride + row

    @property
    def arrays(self) -> tuple[Array, ...]:
        """What of it lies in memory: itself."""
        return (self,)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadAccess(Operand):
    """An operand of a function, or a further result, at (m, n): m * stride_m + n * stride_n.

    Of a function that computes A or B, n counts along the axis that is contiguous in its layout.
    """

    kind: DKind
    stride_m: int
    stride_n: int
    span: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GatheredMatrix(Matrix):
    """A [M, K] or E [M, N] whose rows are those of a table at indices.

    ``stride`` is the table's.
    """

    table: int
    """The rows of the table."""
    indices: ReadAccess
    """The index of each row."""

    @property
    def span(self) -> int:
        """Elements of the table from the first to the last, gaps included."""
        return max(self.table - 1, 0) * self.stride + self.columns

    @property
    def arrays(self) -> tuple[Array, ...]:
        """What of it lies in memory: the table and the indices."""
        return (self, self.indices)


Array: TypeAlias = Matrix | ReadAccess
"""What lies in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputedMatrix:
    """A [M, K] or B [K, N] that a function computes from ``reads`` as it is loaded."""

    value: str
    """Name of the value in the program."""
    dtype: DType
    layout: Layout
    """Which of its axes accesses run along: ROW for the columns, COL for the rows."""
    rows: int
    columns: int
    reads: tuple[ReadAccess, ...]
    prepared: None = None
    """There is no order in which it stands anywhere."""

    @property
    def contiguous(self) -> int:
        """Extent of the axis that accesses run along."""
        return self.columns if self.layout is Layout.ROW else self.rows

    @property
    def arrays(self) -> tuple[Array, ...]:
        """What of it lies in memory: what it is computed from."""
        return self.reads


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleAccess(Operand):
    """The scales of A or B: that of block (i, j) at pointer + i * stride + j * stride_k."""

    block: tuple[int, int]
    """Rows of A or columns of B, and elements along K."""
    stride: int
    stride_k: int
    span: int

    @property
    def scale(self) -> Scale:
        """What a kernel's signature says of it."""
        return Scale(dtype=self.dtype, block=self.block)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One launch of a fused GEMM: all that rules and the host shim need to know.

    Example:
        >>> problem = ck.dispatch.problem(256, 512, 64)
        >>> print(problem)
        M=256 N=512 K=64 rcr strides A=64 B=64 E=512
    """

    batch: tuple[int, ...] = ()
    """Extents of the batch axes, the first one outermost: one product for each index of them."""
    m: int
    n: int
    k: int
    a: Matrix | ComputedMatrix
    b: Matrix | ComputedMatrix
    e: Matrix
    d: tuple[ReadAccess, ...]
    functions: str
    """Digest of the epilogue, and of the functions of A and B."""
    scale_a: ScaleAccess | None = None
    """What the sums over blocks of K are multiplied by."""
    scale_b: ScaleAccess | None = None
    grouped: bool = False
    """Whether it shares its launch with others."""
    sparse: bool = False
    """Whether only the first two of each four of A along K count that are not zero."""
    ends: ReadAccess | None = None
    """Where segments of rows, or of K, end. The batch of each operand is its steps then: from one
    row, or place along K, and from one segment, to the next. The batch of the problem counts the
    products of segments of K; segments of rows have none."""
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Selections are remembered by problem: a call must not hash thirty fields each time.
        extents = (self.batch, self.m, self.n, self.k)
        flags = (self.grouped, self.sparse, self.scales, self.ends)
        parts = (extents, self.a, self.b, self.e, self.d, self.functions, *flags)
        object.__setattr__(self, "_hash", hash(parts))

    def __hash__(self) -> int:
        return self._hash

    @property
    def scales(self) -> tuple[ScaleAccess, ...]:
        """The scales of A and B that the problem has.

        Example:
            >>> problem.scales
            ()
        """
        return tuple(scale for scale in (self.scale_a, self.scale_b) if scale is not None)

    @property
    def inputs(self) -> tuple[Array | ScaleAccess, ...]:
        """All that a kernel reads or writes, in order: A, B, E, D, scales, ends of segments.

        A matrix that is computed stands there with what it is computed from.

        Example:
            >>> [matrix.value for matrix in problem.inputs]
            ['A', 'B', 'E']
        """
        arrays = (*self.a.arrays, *self.b.arrays, *self.e.arrays, *self.d, *self.scales)
        return arrays if self.ends is None else (*arrays, self.ends)

    @property
    def segments(self) -> int:
        """How many segments the rows, or K, have; 0 if they have none.

        Example:
            >>> problem.segments
            0
        """
        return 0 if self.ends is None else self.ends.span

    @property
    def has_segments_of_k(self) -> bool:
        """Whether each product sums over a part of K of its own.

        Example:
            >>> problem.has_segments_of_k
            False
        """
        return self.ends is not None and bool(self.batch)

    @property
    def kind(self) -> ProductKind:
        """Whether kernels for one product, a batch or a group compute it.

        Example:
            >>> problem.kind.value
            'gemm'
        """
        if self.ends is not None:
            return ProductKind.SEGMENTED_K if self.batch else ProductKind.SEGMENTED
        if self.grouped:
            return ProductKind.GROUPED
        return ProductKind.BATCHED if self.batch else ProductKind.GEMM

    @property
    def sums(self) -> int:
        """How many sums the epilogue takes for each element: two for a pair of products.

        Example:
            >>> problem.sums
            1
        """
        return 1

    @property
    def written(self) -> frozenset[str]:
        """The names of the values that a kernel writes.

        Example:
            >>> sorted(problem.written)
            ['E']
        """
        return frozenset((self.e.value, *(d.value for d in self.d if d.kind.written)))

    @property
    def products(self) -> int:
        """The number of matrix products.

        Example:
            >>> problem.products
            1
        """
        return math.prod(self.batch)

    @property
    def signature(self) -> Signature:
        """The signature of the kernels that can compute it.

        Example:
            >>> print(problem.signature.words)
            f16 by f16 to f16, layouts rcr, epilogue operands none
        """
        return Signature(
            kind=self.kind,
            dtype_a=self.a.dtype,
            dtype_b=self.b.dtype,
            dtype_acc=accumulator(self.a.dtype, scaled=bool(self.scales)),
            dtype_e=self.e.dtype,
            layout_a=self.a.layout,
            layout_b=self.b.layout,
            layout_e=self.e.layout,
            d=_operands(self.d),
            a=_operands(self.a.reads) if isinstance(self.a, ComputedMatrix) else (),
            b=_operands(self.b.reads) if isinstance(self.b, ComputedMatrix) else (),
            scale_a=self.scale_a.scale if self.scale_a else None,
            scale_b=self.scale_b.scale if self.scale_b else None,
            sparse=self.sparse,
            gather=_index_type(self.a),
            scatter=_index_type(self.e),
            functions=self.functions,
        )

    def __str__(self) -> str:
        a, b, e = self.a, self.b, self.e
        batch = f"batch={'x'.join(map(str, self.batch))} " if self.batch else ""
        batch += f"groups={self.segments} " if self.ends else ""
        strides = (("A", a), ("B", b), ("E", e))
        stored = (f"{n}={x.stride}" for n, x in strides if isinstance(x, Matrix))
        return (
            f"{batch}M={self.m} N={self.n} K={self.k} {self.signature.layouts} "
            f"strides {' '.join(stored)}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PairProblem(Problem):
    """Two products of one A: E = f(A B, A B2, D...), all in one launch."""

    b2: Matrix

    def __post_init__(self) -> None:
        Problem.__post_init__(self)
        object.__setattr__(self, "_hash", hash((self._hash, self.b2)))

    # A dataclass defines its own hash, which would be that of all fields.
    def __hash__(self) -> int:
        return self._hash

    @property
    def kind(self) -> ProductKind:
        """A pair, or one of a group of pairs, or pairs of segments."""
        if self.ends is not None:
            return ProductKind.SEGMENTED_PAIR
        return ProductKind.GROUPED_PAIR if self.grouped else ProductKind.PAIR

    @property
    def sums(self) -> int:
        """How many sums the epilogue takes for each element."""
        return 2

    @property
    def inputs(self) -> tuple[Array | ScaleAccess, ...]:
        """All that a kernel reads or writes, in order: A, both B, E, D, ends of segments."""
        ends = () if self.ends is None else (self.ends,)
        return (*self.a.arrays, *self.b.arrays, self.b2, self.e, *self.d, *ends)

    def __str__(self) -> str:
        return f"a pair of {Problem.__str__(self)} second B={self.b2.stride}"


def _index_type(matrix: Matrix | ComputedMatrix) -> DType | None:
    """Return the type of the indices of a matrix's rows; None if they follow each other."""
    return matrix.indices.dtype if isinstance(matrix, GatheredMatrix) else None


def _operands(reads: Sequence[ReadAccess]) -> tuple[DOperand, ...]:
    return tuple(DOperand(dtype=read.dtype, kind=read.kind) for read in reads)
