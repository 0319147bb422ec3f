# SPDX-License-Identifier: MIT
"""Problems without arrays: what a product of packed matrices would ask of a kernel."""

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import TypeAlias

from cklang.codec import enum_of
from cklang.device.preshuffle import Arrangement
from cklang.dims import require_integer
from cklang.errors import error
from cklang.families.gemm.key import GROUP_KINDS, DKind, Layout, Scale
from cklang.families.gemm.problem import (
    ComputedMatrix,
    GatheredMatrix,
    Matrix,
    Problem,
    ReadAccess,
    ScaleAccess,
)
from cklang.types import DType, f16
from cklang.widths import packed_row

Reads: TypeAlias = Sequence[tuple[DType, DKind]]
"""Element type and kind of each operand of a function."""


def problem(
    m: int,
    n: int,
    k: int,
    *,
    a: DType = f16,
    b: DType | None = None,
    e: DType | None = None,
    layouts: str = "rcr",
    strides: Sequence[int | None] = (None, None, None),
    alignment: int = 4,
    d: Reads = (),
    reads_a: Reads = (),
    reads_b: Reads = (),
    scale_a: Scale | None = None,
    scale_b: Scale | None = None,
    sparse: bool = False,
    prepared: Arrangement | None = None,
    gather: DType | None = None,
    scatter: DType | None = None,
    adds: bool = False,
    functions: str = "",
) -> Problem:
    """Make a problem without arrays: packed operands, or with leading strides of your own.

    Args:
        m: Rows of the result.
        n: Columns of the result.
        k: Length of the sums.
        a: Element type of A.
        b: Of B; that of A if left out.
        e: Of the result; that of A if left out.
        layouts: Of A, B and E: ``r`` if the rows are contiguous, ``c`` if the columns are.
        strides: Leading strides of A, B and E in elements; None for a packed operand.
        alignment: Of every address, in bytes.
        d: Element type and kind of each epilogue operand, further results last; all packed.
        reads_a: The same of what a function computes A from; none if A is stored. A full operand
            lies as ``layouts`` says of A, a row runs along the axis that is contiguous there.
        reads_b: The same of B.
        scale_a: Of A's blocks of rows and K; packed, those of a row next to one another.
        scale_b: Of B's blocks of columns and K; those of a column next to one another.
        sparse: Whether A is in 2:4 form.
        prepared: The order of B in layout ``p``.
        gather: Type of packed indices at which the rows of A are read, in a table of ``m`` rows.
        scatter: Type of packed indices to which rows of the result go, in a table of ``m`` rows.
        adds: Whether they are added to those of the table, not written.
        functions: Digest of the epilogue and of the functions of A and B.

    Example:
        >>> print(ck.dispatch.problem(256, 512, 64, a=ck.f16, e=ck.f32, layouts="rrr"))
        M=256 N=512 K=64 rrr strides A=64 B=512 E=512

    Raises:
        CkValueError: K001, K011, K031, K032, a layout or an extent that does not exist.
    """
    require_integer("m", m)
    require_integer("n", n)
    require_integer("k", k, 0)
    types = (a, b or a, e or a)
    shapes = ((m, k), (k, n), (m, n))
    a_, b_, e_ = (
        _dense(name, dtype, shape, layout, stride, alignment)
        for name, dtype, shape, layout, stride in zip(
            "ABE", types, shapes, _layouts(layouts), strides, strict=True
        )
    )
    reads = tuple(
        _packed_read(f"D{i}", dtype, kind, m, n, alignment) for i, (dtype, kind) in enumerate(d)
    )
    if (b_.layout is Layout.PREPARED) != (prepared is not None):
        raise error("K032", got=prepared, layouts=layouts)
    if prepared is not None:
        b_ = replace(b_, prepared=prepared, stride=prepared.extents(n, k)[1])
    return Problem(
        m=m,
        n=n,
        k=k,
        a=_computed(a_, reads_a) if gather is None else _gathered(a_, gather),
        b=_computed(b_, reads_b),
        e=e_ if scatter is None else _scattered(e_, scatter, adds=adds),
        d=reads,
        scale_a=_packed_scale("scale of A", scale_a, m, k, alignment),
        scale_b=_packed_scale("scale of B", scale_b, n, k, alignment),
        sparse=sparse,
        functions=functions,
    )


def _layouts(letters: str) -> list[Layout]:
    # Log-sum-exps are stored of products that fusion has found, with a program around them.
    own = {layout.value for layout in Layout if layout.of_blocks or layout.at_indices}
    known = [layout.value for layout in Layout if layout.value not in own]
    if len(letters) != 3 or own & set(letters):
        raise error("K031", got=letters, known=", ".join(known))
    return [enum_of(Layout, letter) for letter in letters]


def _computed(matrix: Matrix, reads: Reads) -> Matrix | ComputedMatrix:
    """Return the matrix, computed if a function reads something for it."""
    if not reads:
        return matrix
    rows, columns = matrix.rows, matrix.columns
    outer, inner = (rows, columns) if matrix.layout is Layout.ROW else (columns, rows)
    return ComputedMatrix(
        value=matrix.value,
        dtype=matrix.dtype,
        layout=matrix.layout,
        rows=rows,
        columns=columns,
        reads=tuple(
            _packed_read(f"{matrix.value}{i}", dtype, kind, outer, inner, matrix.alignment)
            for i, (dtype, kind) in enumerate(reads)
        ),
    )


def _gathered(matrix: Matrix, indices: DType, name: str = "indices") -> GatheredMatrix:
    """Return the matrix as rows of a table at packed indices."""
    own = {field.name: getattr(matrix, field.name) for field in fields(Matrix)}
    rows = _packed_read(name, indices, DKind.COLUMN, matrix.rows, 1, matrix.alignment)
    return GatheredMatrix(**own, table=matrix.rows, indices=rows)


def _scattered(matrix: Matrix, indices: DType, *, adds: bool) -> GatheredMatrix:
    layout = Layout.ADDED if adds else Layout.WRITTEN
    return replace(_gathered(matrix, indices, "places"), layout=layout)


def _packed_scale(
    name: str, scale: Scale | None, extent: int, k: int, alignment: int
) -> ScaleAccess | None:
    if scale is None:
        return None
    along, along_k = (-(-e // size) for e, size in zip((extent, k), scale.block, strict=True))
    return ScaleAccess(
        value=name,
        dtype=scale.dtype,
        alignment=alignment,
        block=scale.block,
        stride=along_k,
        stride_k=1,
        span=along * along_k,
    )


def _dense(
    name: str,
    dtype: DType,
    shape: tuple[int, int],
    layout: Layout,
    stride: int | None,
    alignment: int,
) -> Matrix:
    rows, columns = shape
    row = columns if layout is Layout.ROW else rows
    row = packed_row(row) if dtype.packed else row
    return Matrix(
        value=name,
        dtype=dtype,
        alignment=alignment,
        layout=layout,
        rows=rows,
        columns=columns,
        stride=row if stride is None else stride,
    )


def _packed_read(
    name: str, dtype: DType, kind: DKind, m: int, n: int, alignment: int
) -> ReadAccess:
    steps = {
        DKind.FULL: (n, 1),
        DKind.ROW: (0, 1),
        DKind.COLUMN: (1, 0),
        DKind.SCALAR: (0, 0),
        DKind.STRIDED: (1, m),
        DKind.RESULT: (n, 1),
        DKind.STRIDED_RESULT: (1, m),
        **{group: (-(-n // columns), 1) for columns, group in GROUP_KINDS.items()},
    }
    by_m, by_n = steps[kind]
    n = -(-n // kind.group) if kind.group else n
    return ReadAccess(
        value=name,
        dtype=dtype,
        alignment=alignment,
        kind=kind,
        stride_m=by_m,
        stride_n=by_n,
        span=1 + (m - 1) * by_m + (n - 1) * by_n,
    )
