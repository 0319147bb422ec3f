# SPDX-License-Identifier: MIT
"""Products of segments of rows or of K: how far operands move with these and with the segments."""

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
    ScaleAccess,
)
from cklang.families.gemm.summed_axes import step_along
from cklang.families.tensor_layout import TensorLayout
from cklang.fusion.plan import Computed, Read, View

Side: TypeAlias = Matrix | ComputedMatrix


def without_segments(kernel: FusedGemm) -> FusedGemm:
    """Return the product of one segment: its B, or all but the ends, has no axis of segments."""
    scale = kernel.scale_b
    if scale is not None:
        scale = replace(scale, view=replace(scale.view, perm=scale.view.perm[1:]))
    one = replace(kernel, ends=None, b=_without_first(kernel.b), scale_b=scale)
    if not kernel.has_segments_of_k:
        return one
    return replace(
        one,
        a=_without_first(kernel.a),
        axes=kernel.axes[1:],
        reads=tuple(replace(read, axes=read.axes[1:]) for read in kernel.reads),
        more=tuple(replace(read, axes=read.axes[1:]) for read in kernel.more),
    )


def _without_first(side: View | Computed) -> View | Computed:
    """Return an operand without the axis of segments."""
    if isinstance(side, View):
        return replace(side, perm=side.perm[1:])
    return replace(side, reads=tuple(replace(read, axes=read.axes[1:]) for read in side.reads))


def in_segments(
    problem: Problem, kernel: FusedGemm, ends: Read, storage: Mapping[str, TensorLayout]
) -> Problem:
    """Return the problem of one segment as that of all segments of the rows of a kernel."""
    steps = [(0, step_along(storage[read.value.name], read.axes[0])) for read in kernel.b.reads]
    return replace(
        problem,
        a=_by_rows(problem.a),
        b=_with_steps(problem.b, steps),
        e=_stored_by_rows(problem.e),
        d=tuple(replace(operand, batch=(operand.stride_m, 0)) for operand in problem.d),
        scale_a=problem.scale_a and replace(problem.scale_a, batch=(problem.scale_a.stride, 0)),
        scale_b=_scale_in_segments(problem, kernel, storage),
        ends=_ends(ends, storage),
    )


def _scale_in_segments(
    problem: Problem, kernel: FusedGemm, storage: Mapping[str, TensorLayout]
) -> ScaleAccess | None:
    """Return the scales of B: each segment has its own."""
    if problem.scale_b is None or kernel.scale_b is None:
        return None
    view = kernel.scale_b.view
    return replace(problem.scale_b, batch=(0, step_along(storage[view.value.name], view.perm[0])))


def in_segments_of_k(
    problem: Problem, kernel: FusedGemm, ends: Read, storage: Mapping[str, TensorLayout]
) -> Problem:
    """Return the problem of one segment as that of the products of all segments of K."""
    places = _ends(ends, storage)

    def step(read: Read, axis: int) -> int:
        return step_along(storage[read.value.name], read.axes[axis])

    steps_a = [(step(read, -1), 0) for read in kernel.a.reads]
    steps_b = [(step(read, -2), 0) for read in kernel.b.reads]
    operands = zip(problem.d, (*kernel.reads, *kernel.more), strict=True)
    return replace(
        problem,
        batch=(places.span,),
        a=_with_steps(problem.a, steps_a),
        b=_with_steps(problem.b, steps_b),
        e=replace(problem.e, batch=(0, step(kernel.stored, 0))),
        d=tuple(replace(operand, batch=(0, step(read, 0))) for operand, read in operands),
        ends=places,
    )


def _ends(ends: Read, storage: Mapping[str, TensorLayout]) -> ReadAccess:
    """Return the access of where segments end.

    Raises:
        CkValueError: A030, they do not follow each other in memory.
    """
    own = storage[ends.value.name]
    if step_along(own, 0) not in (0, 1):
        raise error("A030", name=own.name, shape=own.shape, strides=own.strides)
    return ReadAccess(
        value=ends.value.name,
        dtype=own.dtype,
        alignment=own.alignment,
        kind=DKind.ROW,
        stride_m=0,
        stride_n=1,
        span=own.shape[0],
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


def _with_steps(side: Side, steps: Sequence[tuple[int, int]]) -> Side:
    """Return A or B with its steps along the axis that is in segments, and between segments."""
    if isinstance(side, Matrix):
        return replace(side, batch=steps[0])
    reads = zip(side.reads, steps, strict=True)
    return replace(side, reads=tuple(replace(read, batch=batch) for read, batch in reads))
