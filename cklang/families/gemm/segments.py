# SPDX-License-Identifier: MIT
"""Products of segments of rows: how far operands move with the rows and with the segments."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from cklang.errors import error
from cklang.families.gemm.key import DKind
from cklang.families.gemm.plan import FusedGemm
from cklang.families.gemm.problem import (
    ComputedMatrix,
    GatheredMatrix,
    Matrix,
    Problem,
    ReadAccess,
)
from cklang.families.gemm.summed_axes import step_along
from cklang.families.tensor_layout import TensorLayout
from cklang.fusion.plan import Read, View

Side: TypeAlias = Matrix | ComputedMatrix


def without_segments(kernel: FusedGemm) -> FusedGemm:
    """Return the product of one segment: its B has no axis of segments."""
    b = kernel.b
    if isinstance(b, View):
        return replace(kernel, ends=None, b=replace(b, perm=b.perm[1:]))
    reads = tuple(replace(read, axes=read.axes[1:]) for read in b.reads)
    return replace(kernel, ends=None, b=replace(b, reads=reads))


def in_segments(
    problem: Problem, kernel: FusedGemm, ends: Read, storage: Mapping[str, TensorLayout]
) -> Problem:
    """Return the problem of one segment as that of all segments of the rows of a kernel."""
    own = storage[ends.value.name]
    if step_along(own, 0) not in (0, 1):
        raise error("A030", name=own.name, shape=own.shape, strides=own.strides)
    steps = [step_along(storage[read.value.name], read.axes[0]) for read in kernel.b.reads]
    return replace(
        problem,
        a=_by_rows(problem.a),
        b=_by_segments(problem.b, steps),
        e=_stored_by_rows(problem.e),
        d=tuple(replace(operand, batch=(operand.stride_m, 0)) for operand in problem.d),
        ends=ReadAccess(
            value=ends.value.name,
            dtype=own.dtype,
            alignment=own.alignment,
            kind=DKind.ROW,
            stride_m=0,
            stride_n=1,
            span=own.shape[0],
        ),
    )


def _by_rows(matrix: Side) -> Side:
    """Return A with its step from one row to the next."""
    if isinstance(matrix, Matrix):
        return _stored_by_rows(matrix)
    reads = tuple(replace(read, batch=(read.stride_m, 0)) for read in matrix.reads)
    return replace(matrix, reads=reads)


def _stored_by_rows(matrix: Matrix) -> Matrix:
    """Return a matrix in memory with its step from one row to the next."""
    if isinstance(matrix, GatheredMatrix):
        # The rows that indices lead to are those of one table.
        indices = replace(matrix.indices, batch=(matrix.indices.stride_m, 0))
        return replace(matrix, batch=(0, 0), indices=indices)
    return replace(matrix, batch=(matrix.stride, 0))


def _by_segments(b: Side, steps: Sequence[int]) -> Side:
    """Return B with its step from one segment to the next."""
    if isinstance(b, ComputedMatrix):
        pairs = zip(b.reads, steps, strict=True)
        return replace(b, reads=tuple(replace(read, batch=(0, step)) for read, step in pairs))
    return replace(b, batch=(0, *steps))
