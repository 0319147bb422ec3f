# SPDX-License-Identifier: MIT
"""From arrays to a problem: what the strides decide is decided here.

Which layout A and B have, how each epilogue operand is read, and which batch axes become rows or
columns. Axes of extent 1 and their arbitrary strides are made regular first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cklang.errors import error
from cklang.families.gemm.key import GROUP_KINDS, PARTS, DKind, Layout
from cklang.families.gemm.loop_nest import Axis, Blocks, LoopNest, collapse_loops
from cklang.families.gemm.problem import (
    ComputedMatrix,
    GatheredMatrix,
    Matrix,
    Problem,
    ReadAccess,
    ScaleAccess,
)
from cklang.families.gemm.segments import in_segments, in_segments_of_k, without_segments
from cklang.families.gemm.summed_axes import merge_summed_axes, step_along
from cklang.families.tensor_layout import TensorLayout, refuse_negative, refuse_overlap
from cklang.fusion.plan import Computed, Gathered, Read, View
from cklang.ir.log_sums import COLUMNS
from cklang.types import extents_of

if TYPE_CHECKING:
    from cklang.families.gemm.plan import FusedGemm
    from cklang.families.scatter.fuse import FusedScatter
    from cklang.fusion.plan import BlockScale


def problem_of(
    kernel: FusedGemm, storage: Mapping[str, TensorLayout], dims: Mapping[str, int], functions: str
) -> Problem | None:
    """Return the problem of one launch, or None if its result has no element."""
    if kernel.ends is None:
        return _single(kernel, storage, dims, functions)
    by_rows = not kernel.has_segments_of_k
    one = _single(without_segments(kernel), storage, dims, functions, by_rows=by_rows)
    segmented = in_segments if by_rows else in_segments_of_k
    return one and segmented(one, kernel, kernel.ends, storage)


def _single(
    kernel: FusedGemm,
    storage: Mapping[str, TensorLayout],
    dims: Mapping[str, int],
    functions: str,
    *,
    by_rows: bool = False,
) -> Problem | None:
    """Return a problem without segments; ``by_rows`` of an A that is computed along its rows."""
    extents = kernel.result.type.extents(dims)
    shape = [1 if axis is None else extents[axis] for axis in kernel.axes]
    if 0 in (*shape, *storage[kernel.stored.value.name].shape):
        return None
    kernel, layouts_a, layouts_b = merge_summed_axes(kernel, storage, dims)
    pairs_a, pairs_b = _with_axes(layouts_a, kernel.a), _with_axes(layouts_b, kernel.b)
    operands = (*kernel.reads, *kernel.more)
    after_e = operands if kernel.places is None else (*operands, kernel.places)
    accesses = _accesses(kernel, storage, pairs_a, pairs_b, after_e)
    _refuse_unreadable(accesses, layouts_b[0] if isinstance(kernel.b, View) else None)
    axes = [
        Axis(extent=extent, strides=tuple(step_along(layout, runs[i]) for layout, runs in accesses))
        for i, extent in enumerate(shape)
    ]
    k = _depth(kernel.a, layouts_a, dims)
    steps_a, steps_b = _steps(pairs_a, -1), _steps(pairs_b, -2)
    counts = len(pairs_a), len(pairs_b)
    last = sum(counts)
    first = last + 1 + len(after_e)
    nest = collapse_loops(
        LoopNest(
            batch=tuple(axes[:-2]),
            rows=axes[-2],
            columns=axes[-1],
            whole_k=(_is_whole_k(kernel.a, k, steps_a), _is_whole_k(kernel.b, k, steps_b)),
            counts=counts,
            blocks=_blocks(kernel, first, axes),
        )
    )
    batches = list(zip(*(axis.strides for axis in nest.batch), strict=True)) or [()] * len(accesses)
    places = _places(accesses, batches, nest)
    m, n = nest.rows.extent, nest.columns.extent
    scale_a = _scale(kernel.scale_a, storage, nest.rows, 1, first, batches)
    scale_b = _scale(
        kernel.scale_b, storage, nest.columns, -1, first + (scale_a is not None), batches
    )
    return Problem(
        batch=tuple(axis.extent for axis in nest.batch),
        m=m,
        n=n,
        k=k,
        a=_side(kernel.a, (m, k), _along(0, places[: counts[0]], steps_a), Layout.ROW, by_rows),
        b=_side(kernel.b, (k, n), _along(1, places[counts[0] : last], steps_b), Layout.COL),
        e=_stored(kernel, nest, places[last], places[first - 1]),
        d=tuple(
            _operand(kernel, read, (m, n), place)
            for read, place in zip(operands, places[last + 1 :][: len(operands)], strict=True)
        ),
        functions=functions,
        scale_a=scale_a,
        scale_b=scale_b,
        sparse=kernel.op == "gemm24",
    )


_Side = View | Computed
_Access = tuple[TensorLayout, tuple[int | None, ...]]
"""A tensor, and its axis that runs with each axis of the kernel."""


def _with_axes(layouts: Sequence[TensorLayout], side: _Side) -> list[_Access]:
    return list(zip(layouts, (read.axes for read in side.reads), strict=True))


def _accesses(
    kernel: FusedGemm,
    storage: Mapping[str, TensorLayout],
    pairs_a: Sequence[_Access],
    pairs_b: Sequence[_Access],
    after_e: Sequence[Read],
) -> list[_Access]:
    """Return what a launch accesses: A, B, E, what comes after it, and the scales."""
    scales = [scale.view for scale in (kernel.scale_a, kernel.scale_b) if scale]
    return [
        *((layout, (*axes[:-1], None)) for layout, axes in pairs_a),
        *((layout, (*axes[:-2], None, axes[-1])) for layout, axes in pairs_b),
        *((storage[read.value.name], read.axes) for read in (kernel.stored, *after_e)),
        *zip((storage[view.value.name] for view in scales), _scale_maps(kernel), strict=True),
    ]


def _refuse_unreadable(accesses: Sequence[_Access], plain_b: TensorLayout | None) -> None:
    for layout, _ in accesses:
        refuse_negative(layout)
        if layout.prepared is not None and layout is not plain_b:
            raise error("A052", name=layout.name)


def _steps(pairs: Sequence[_Access], axis: int) -> list[int]:
    return [step_along(layout, axes[axis]) for layout, axes in pairs]


def _is_whole_k(side: _Side, k: int, steps: Sequence[int]) -> bool:
    return k <= 1 or isinstance(side, Computed) or steps[0] == 1


def _places(
    accesses: Sequence[_Access], batches: Sequence[tuple[int, ...]], nest: LoopNest
) -> list[_Place]:
    return [
        _Place(storage=layout, batch=batch, steps=(by_row, by_column))
        for (layout, _), batch, by_row, by_column in zip(
            accesses, batches, nest.rows.strides, nest.columns.strides, strict=True
        )
    ]


def _along(axis: int, places: Sequence[_Place], steps: Sequence[int]) -> list[_Place]:
    return [place.along(axis, step) for place, step in zip(places, steps, strict=True)]


def _scale_maps(kernel: FusedGemm) -> list[tuple[int | None, ...]]:
    """Return the axis of each scale that runs with each axis of the kernel.

    Blocks of several rows or columns run with none: how far a step goes depends on the row.
    """
    maps: list[tuple[int | None, ...]] = []
    if kernel.scale_a:
        *batch, row, _ = kernel.scale_a.view.perm
        maps.append((*batch, row if kernel.scale_a.block[0] == 1 else None, None))
    if kernel.scale_b:
        *batch, _, column = kernel.scale_b.view.perm
        maps.append((*batch, None, column if kernel.scale_b.block[1] == 1 else None))
    return maps


def _blocks(
    kernel: FusedGemm, first: int, axes: Sequence[Axis]
) -> tuple[Blocks | None, Blocks | None]:
    """Return what folding must know of the scales; the first is operand ``first``.

    A table that the batch moves through is read at the indices of rows alone.
    """
    a, b = kernel.scale_a, kernel.scale_b
    moves = any(axis.strides[0] for axis in axes[:-2] if axis.extent != 1)
    is_apart = isinstance(kernel.a, Gathered) and moves
    single = not is_apart and (a is None or a.block[0] == 1)
    return (
        Blocks(operand=first if a else 0, single=single) if a or is_apart else None,
        Blocks(operand=first + bool(a), single=b.block[1] == 1) if b else None,
    )


def _scale(
    scale: BlockScale | None,
    storage: Mapping[str, TensorLayout],
    loop: Axis,
    turn: int,
    index: int,
    batches: Sequence[tuple[int, ...]],
) -> ScaleAccess | None:
    """Return the access of scales, operand ``index`` of a launch.

    ``loop`` has the rows of A or the columns of B. ``turn`` is 1 for A, whose axes are (rows, K),
    and -1 for B: (K, columns).
    """
    if scale is None:
        return None
    stored = storage[scale.view.value.name]
    outer, along_k = scale.view.perm[-2:][::turn]
    block, block_k = scale.block[::turn]
    # Rows that a batch was joined to go on from one another; blocks of several rows are never so.
    stride = loop.strides[index] if block == 1 else step_along(stored, outer)
    stride_k = step_along(stored, along_k)
    count_k = 1 if along_k is None else stored.shape[along_k]
    last = (-(-loop.extent // block) - 1) * stride + max(count_k - 1, 0) * stride_k
    return ScaleAccess(
        value=scale.view.value.name,
        dtype=stored.dtype,
        alignment=stored.alignment,
        batch=batches[index],
        block=(block, block_k),
        stride=stride,
        stride_k=stride_k,
        span=last + 1,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """How an operand is stepped through along the batch, and from row to row, column to column."""

    storage: TensorLayout
    batch: tuple[int, ...]
    steps: tuple[int, int]

    def along(self, own: int, step: int) -> _Place:
        """Return it as part of a matrix that has axis ``own`` of the result, and K."""
        steps = (self.steps[0], step) if own == 0 else (step, self.steps[1])
        return replace(self, steps=steps)

    def matrix(self, value: str, layout: Layout, shape: tuple[int, int], stride: int) -> Matrix:
        """Return it as a matrix."""
        return Matrix(
            value=value,
            dtype=self.storage.dtype,
            alignment=self.storage.alignment,
            batch=self.batch,
            layout=layout,
            rows=shape[0],
            columns=shape[1],
            stride=stride,
        )

    def table(
        self, value: str, layout: Layout, shape: tuple[int, int], axis: int, indices: ReadAccess
    ) -> GatheredMatrix:
        """Return it as a matrix whose rows are those of a table at indices, along ``axis``."""
        storage, (rows, columns) = self.storage, shape
        return GatheredMatrix(
            value=value,
            dtype=storage.dtype,
            alignment=storage.alignment,
            batch=self.batch,
            layout=layout,
            rows=rows,
            columns=columns,
            stride=storage.strides[axis] if storage.shape[axis] > 1 else columns,
            table=storage.shape[axis],
            indices=indices,
        )

    def access(self, value: str, kind: DKind, steps: tuple[int, int], reach: int) -> ReadAccess:
        """Return it as an operand whose last element is ``reach`` beyond the first."""
        return ReadAccess(
            value=value,
            dtype=self.storage.dtype,
            alignment=self.storage.alignment,
            batch=self.batch,
            kind=kind,
            stride_m=steps[0],
            stride_n=steps[1],
            span=1 + reach,
        )


def _depth(side: _Side, layouts: Sequence[TensorLayout], dims: Mapping[str, int]) -> int:
    """Return the extent of K, the columns of A."""
    if isinstance(side, Computed):
        return extents_of(side.extents, dims)[1]
    axis = side.perm[-1]
    return 1 if axis is None else layouts[0].shape[axis]


def _side(
    side: _Side,
    shape: tuple[int, int],
    places: Sequence[_Place],
    usual: Layout,
    by_rows: bool = False,
) -> Matrix | ComputedMatrix:
    if isinstance(side, Gathered):
        return _gathered(side, shape, places)
    if isinstance(side, View):
        return _matrix(side, shape, places[0])
    layout = usual if by_rows else _common_layout(shape, places, usual)
    turned = layout is Layout.COL
    accesses = []
    for read, place in zip(side.reads, places, strict=True):
        axes, extents, (by_row, by_column) = read.axes, shape, place.steps
        if turned:
            axes, extents = (*axes[:-2], axes[-1], axes[-2]), (shape[1], shape[0])
            place = replace(place, steps=(by_column, by_row))
        accesses.append(_access(replace(read, axes=axes), extents, place))
    rows, columns = shape
    return ComputedMatrix(
        value=side.value.name,
        dtype=side.value.type.dtype,
        layout=layout,
        rows=rows,
        columns=columns,
        reads=tuple(accesses),
    )


def _gathered(side: Gathered, shape: tuple[int, int], places: Sequence[_Place]) -> GatheredMatrix:
    """Return a matrix whose rows are read at indices."""
    (table, indices), (rows, columns) = places, shape
    storage = table.storage
    if columns > 1 and table.steps[1] != 1:
        raise error("A030", name=storage.name, shape=storage.shape, strides=storage.strides)
    if not storage.shape[side.axis]:
        raise error("A072", name=storage.name)
    access = _indices(side.indices.value.name, rows, indices)
    return table.table(side.value.name, Layout.ROW, shape, side.axis, access)


def _common_layout(shape: tuple[int, int], places: Sequence[_Place], usual: Layout) -> Layout:
    """Return the axis along which most matrices that are read are contiguous."""
    rows, columns = shape
    votes = {Layout.ROW: 0, Layout.COL: 0}
    for place in places:
        by_row, by_column = place.steps
        if by_row and by_column:
            votes[Layout.ROW] += columns > 1 and by_column == 1
            votes[Layout.COL] += rows > 1 and by_row == 1
    other = Layout.COL if usual is Layout.ROW else Layout.ROW
    return other if votes[other] > votes[usual] else usual


def _matrix(view: View, shape: tuple[int, int], place: _Place) -> Matrix:
    storage, strides = place.storage, place.steps
    rows, columns = shape
    by_row, by_column = strides
    first, second = view.perm[-2:]
    turned = first is not None and second is not None and first > second
    if storage.prepared is not None:
        return _prepared(storage, view, shape)
    if storage.dtype.packed:
        return _packed(view, shape, place)
    layout = _layout(shape, strides, Layout.COL if turned else Layout.ROW)
    if layout is None:
        raise error("A030", name=storage.name, shape=storage.shape, strides=storage.strides)
    if rows == 0 or columns == 0:
        stride = 0
    elif layout is Layout.ROW:
        stride = by_row if rows > 1 else columns
    else:
        stride = by_column if columns > 1 else rows
    return place.matrix(view.value.name, layout, shape, stride)


def _packed(view: View, shape: tuple[int, int], place: _Place) -> Matrix:
    """Return a packed matrix. Its rows have room for whole accesses, be there one or many."""
    storage = place.storage
    by_rows = view.perm[-1] == storage.strides.index(1)
    outer = 0 if by_rows else 1
    axis = view.perm[-2:][outer]
    # A single row has no step; where loops were collapsed, the step is theirs.
    stride = place.steps[outer] if axis is None or shape[outer] > 1 else storage.strides[axis]
    return place.matrix(view.value.name, Layout.ROW if by_rows else Layout.COL, shape, stride)


def _prepared(storage: TensorLayout, view: View, shape: tuple[int, int]) -> Matrix:
    """Return a prepared weight as B."""
    k, n = shape
    if storage.prepared is None or view.perm != (storage.k_axis, 1 - storage.k_axis):
        raise error("A052", name=storage.name)
    return Matrix(
        value=view.value.name,
        dtype=storage.dtype,
        alignment=storage.alignment,
        layout=Layout.PREPARED,
        rows=k,
        columns=n,
        stride=storage.prepared.extents(n, k)[1],
        prepared=storage.prepared,
    )


def _layout(shape: tuple[int, int], strides: tuple[int, int], written: Layout) -> Layout | None:
    """Return the layout of a matrix, or None if neither axis is contiguous.

    Axes of extent 1 fit both: then the axis that is really contiguous decides, so that it is read
    in vectors, and last how the matrix was written down.
    """
    legal = {
        Layout.ROW: shape[1] <= 1 or strides[1] == 1,
        Layout.COL: shape[0] <= 1 or strides[0] == 1,
    }
    really = {
        Layout.ROW: shape[1] > 1 and strides[1] == 1,
        Layout.COL: shape[0] > 1 and strides[0] == 1,
    }
    other = Layout.COL if written is Layout.ROW else Layout.ROW
    for facts in (really, legal):
        for layout in (written, other):
            if facts[layout] and legal[layout]:
                return layout
    return None


def _result(value: str, nest: LoopNest, place: _Place) -> Matrix:
    storage, (by_row, by_column) = place.storage, place.steps
    rows, columns = nest.rows.extent, nest.columns.extent
    if columns > 1 and by_column != 1:
        raise error("A032", name=storage.name, shape=storage.shape, strides=storage.strides)
    stride = by_row if rows > 1 else columns
    if stride < columns:
        raise error("A033", name=storage.name, stride=stride, columns=columns)
    refuse_overlap(storage)
    return place.matrix(value, Layout.ROW, (rows, columns), stride)


def _stored(kernel: FusedGemm, nest: LoopNest, place: _Place, indices: _Place) -> Matrix:
    """Return the matrix of what a kernel stores in the place of its first result."""
    if kernel.scatter is not None:
        return _scattered(kernel.scatter, nest, place, indices)
    if not kernel.parts:
        return _result(kernel.result.name, nest, place)
    return _of_blocks(kernel.result.name, PARTS[kernel.parts], nest, place)


def _scattered(
    scatter: FusedScatter, nest: LoopNest, table: _Place, indices: _Place
) -> GatheredMatrix:
    """Return the matrix of a result whose rows go to those of a table at indices."""
    rows, columns = nest.rows.extent, nest.columns.extent
    refuse_overlap(table.storage)
    layout = Layout.ADDED if scatter.adds else Layout.WRITTEN
    access = _indices(scatter.indices.value.name, rows, indices)
    return table.table(scatter.result.name, layout, (rows, columns), scatter.axis, access)


def _indices(name: str, rows: int, place: _Place) -> ReadAccess:
    """Return the access of the index of each row."""
    step = place.steps[0] if rows > 1 else 1
    return place.access(name, DKind.COLUMN, (step, 0), max(rows - 1, 0) * step)


def _of_blocks(value: str, layout: Layout, nest: LoopNest, place: _Place) -> Matrix:
    """Return the matrix of a result that stores a number for each block of columns."""
    rows, columns = nest.rows.extent, nest.columns.extent
    stride = place.steps[0] if rows > 1 else -(-columns // COLUMNS)
    return place.matrix(value, layout, (rows, columns), stride)


def _access(read: Read, extents: tuple[int, int], place: _Place) -> ReadAccess:
    (m, n), (stride_m, stride_n) = extents, place.steps
    along_m = stride_m != 0 or (m == 1 and read.axes[-2] is not None)
    along_n = stride_n != 0 or (n == 1 and read.axes[-1] is not None)
    if along_n and n == 1:
        stride_n = 1
    if along_m and m == 1:
        stride_m = n if along_n else 1
    reach = max(m - 1, 0) * stride_m + max(n - 1, 0) * stride_n
    kind = _kind(along_m, along_n, stride_n)
    return place.access(read.value.name, kind, (stride_m, stride_n), reach)


def _operand(
    kernel: FusedGemm, operand: Read, extents: tuple[int, int], place: _Place
) -> ReadAccess:
    """Return what an epilogue reads, or writes beside its first result."""
    if operand not in kernel.more:
        return _access(operand, extents, place)
    if operand.value.name not in kernel.numbers:
        return _further_result(operand, extents, place)
    (m, n), (stride_m, stride_n) = extents, place.steps
    reach = max(m - 1, 0) * stride_m + (n // kernel.group - 1) * stride_n
    return place.access(operand.value.name, GROUP_KINDS[kernel.group], place.steps, reach)


def _further_result(result: Read, extents: tuple[int, int], place: _Place) -> ReadAccess:
    refuse_overlap(place.storage)
    access = _access(result, extents, place)
    strided = access.kind in (DKind.STRIDED, DKind.COLUMN)
    return replace(access, kind=DKind.STRIDED_RESULT if strided else DKind.RESULT)


def _kind(along_m: bool, along_n: bool, stride_n: int) -> DKind:
    if along_n and stride_n != 1:
        return DKind.STRIDED
    return {
        (True, True): DKind.FULL,
        (False, True): DKind.ROW,
        (True, False): DKind.COLUMN,
        (False, False): DKind.SCALAR,
    }[along_m, along_n]
