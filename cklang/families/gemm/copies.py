# SPDX-License-Identifier: MIT
"""Copies of what a product cannot read or write as it lies in memory.

A kernel reads rows and columns of one stride each; one of them is contiguous. An operand whose
summed axes are not one axis of memory, or whose contiguous axis is one of the batch, is copied
before the product, with K contiguous. A result whose last axis is one of the batch is written in
rows and copied after it.
"""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace

from cklang.device.arrays import alignment_of
from cklang.families.gemm.memory_order import collapsible_order
from cklang.families.gemm.plan import FusedGemm
from cklang.families.gemm.summed_axes import SummedAxes, split_axes, step_along, summed_axes_of
from cklang.families.layout_copy.plan import LayoutCopy, WithCopies
from cklang.families.tensor_layout import (
    TensorLayout,
    packed_strides,
    refuse_negative,
    refuse_overlap,
)
from cklang.fusion.plan import Computed, Gathered, Read, View
from cklang.fusion.sites import Axes
from cklang.ir.nodes import Value
from cklang.types import TensorType


@dataclass(frozen=True, slots=True, kw_only=True)
class _Copied:
    """An operand or a result in new memory: what takes its place, and the copy to or from it."""

    read: Read
    layout: TensorLayout
    copy: LayoutCopy


def insert_operand_copies(
    kernel: FusedGemm, layouts: Mapping[str, TensorLayout], dims: Mapping[str, int]
) -> WithCopies[FusedGemm]:
    """Return a product with the copies that its operands and its result need."""
    unchanged = WithCopies(kernel=kernel, storage=layouts)
    if 0 in layouts[kernel.stored.value.name].shape:
        return unchanged
    summed = summed_axes_of(kernel, layouts, dims)
    sides: list[View | Computed] = []
    copied: dict[str, _Copied] = {}
    is_by_rows = kernel.ends is not None and not kernel.has_segments_of_k
    place = 0
    for of_a, side in ((True, kernel.a), (False, kernel.b)):
        reads = []
        for read in side.reads:
            layout = layouts[read.value.name]
            batch, own, k = split_axes(read.axes, kernel.depth, of_a=of_a)
            blocked = place in summed.obstacles
            # Rows that are read at indices have no stride, and those are the family's to copy.
            is_stored = isinstance(side, View) and not isinstance(side, Gathered)
            scattered = is_stored and (
                _is_scattered(layout, batch, own, k, summed)
                or (of_a and is_by_rows and step_along(layout, k[0]) > 1)
            )
            if (blocked or scattered) and _can_be_copied(layout):
                new = _copied(layout, read.value, batch, own, k, summed, layouts, of_a=of_a)
                copied[new.read.value.name] = new
                read = new.read
            reads.append(read)
            place += 1
        sides.append(_with_reads(side, reads))
    result = _result(kernel, layouts)
    if not copied and result is None:
        return unchanged
    # Tuning takes a copy for the operand, unless the copy repeats it.
    ranks = {name: len(layouts[new.copy.source].shape) for name, new in copied.items()}
    origins = {
        name: new.copy.source
        for name, new in copied.items()
        if len(new.layout.shape) == ranks[name]
    }
    storage = {**layouts, **{name: new.layout for name, new in copied.items()}}
    placed = replace(kernel, a=sides[0], b=sides[1])
    if result is not None:
        name = result.read.value.name
        storage[name], origins[name] = result.layout, kernel.result.name
        placed = replace(placed, result=result.read.value)
    return WithCopies(
        kernel=placed,
        storage=storage,
        before=tuple(new.copy for new in copied.values()),
        after=() if result is None else (result.copy,),
        origins=origins,
    )


def _result(kernel: FusedGemm, layouts: Mapping[str, TensorLayout]) -> _Copied | None:
    """Return what is written in the place of a result whose columns are not contiguous.

    Only a program that has them elsewhere than last asks for that.
    """
    value, column = kernel.result, kernel.axes[-1]
    if kernel.scatter is not None:
        return None
    layout = layouts[value.name]
    last = len(layout.shape) - 1
    if column in (None, last) or step_along(layout, column) in (0, 1):
        return None
    refuse_overlap(layout)
    refuse_negative(layout)
    order = collapsible_order(kernel)
    name = _fresh(value.name, map(str, order), layouts)
    own = replace(layout, strides=packed_strides(layout.shape, order), alignment=alignment_of(0))
    return _Copied(
        read=Read(value=Value(name=name, type=value.type), axes=kernel.axes),
        layout=own,
        copy=_copy(name, own, value.name, layout),
    )


def _copy(source: str, one: TensorLayout, target: str, other: TensorLayout) -> LayoutCopy:
    """Return the copy of a value from one layout to another."""
    return LayoutCopy(
        source=source,
        target=target,
        shape=other.shape,
        bytes=one.dtype.bytes,
        source_strides=one.strides,
        target_strides=other.strides,
        source_alignment=one.alignment,
        target_alignment=other.alignment,
    )


def _fresh(value: str, words: Iterable[str], taken: Container[str]) -> str:
    """Return a name for a value in another order of axes that no other value has."""
    name = "_".join([value, "by", *words])
    while name in taken:
        name += "_"
    return name


def _can_be_copied(layout: TensorLayout) -> bool:
    return layout.prepared is None and not layout.dtype.packed and 0 not in layout.shape


def _is_scattered(
    layout: TensorLayout, batch: Axes, own: Axes, k: Axes, summed: SummedAxes
) -> bool:
    """Tell whether a matrix has no contiguous axis where its product asks for strides as these.

    One axis K that takes steps is no such product, unless the batch has the contiguous axis: users
    hear of it then (A030).
    """
    asked = len(k) > 1 or any(_is_contiguous(layout, axis) for axis in batch)
    (outer,) = own
    short = outer is None or layout.shape[outer] <= 1 or layout.strides[outer] == 1
    inner = k[summed.order[-1]] if summed.order else None
    return asked and not short and inner is not None and step_along(layout, inner) != 1


def _is_contiguous(layout: TensorLayout, axis: int | None) -> bool:
    return axis is not None and layout.shape[axis] > 1 and layout.strides[axis] == 1


def _copied(
    layout: TensorLayout,
    value: Value,
    batch: Axes,
    own: Axes,
    k: Axes,
    summed: SummedAxes,
    taken: Mapping[str, TensorLayout],
    *,
    of_a: bool,
) -> _Copied:
    """Return an operand with K contiguous, then its rows or columns, then the batch.

    Along an axis of K that it does not have, the copy repeats it.
    """
    refuse_negative(layout)
    repeated = [axis for axis in summed.order if k[axis] is None]
    rank = len(layout.shape)
    new_axes = {axis: rank + index for index, axis in enumerate(repeated)}
    full_k = tuple(new_axes.get(axis, k[axis]) for axis in range(len(k)))
    inner = [full_k[axis] for axis in summed.order]
    chosen = [axis for axis in (*batch, *own) if axis is not None]
    single = [axis for axis in range(rank) if axis not in chosen and axis not in inner]
    order = [*single, *chosen, *(axis for axis in inner if axis is not None)]
    extents = tuple(summed.extents[axis] for axis in repeated)
    shape = (*layout.shape, *extents)
    strides = packed_strides(shape, order)
    words = [str(axis) if axis < rank else f"x{shape[axis]}" for axis in order]
    name = _fresh(value.name, words, taken)
    dtype, types = value.type.dtype, (*value.type.shape, *extents)
    axes = (*batch, *own, *full_k) if of_a else (*batch, *full_k, *own)
    own_layout = replace(layout, shape=shape, strides=strides, alignment=alignment_of(0))
    source = replace(layout, shape=shape, strides=(*layout.strides, *(0 for _ in extents)))
    return _Copied(
        read=Read(value=Value(name=name, type=TensorType(dtype=dtype, shape=types)), axes=axes),
        layout=own_layout,
        copy=_copy(value.name, source, name, own_layout),
    )


def _with_reads(side: View | Computed, reads: list[Read]) -> View | Computed:
    if isinstance(side, Computed):
        return replace(side, reads=tuple(reads))
    if isinstance(side, Gathered):
        return side
    (read,) = reads
    return View(value=read.value, perm=read.axes)
