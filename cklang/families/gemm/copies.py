# SPDX-License-Identifier: MIT
"""Copies of operands that a product cannot read as they lie in memory.

A kernel reads rows and columns of one stride each, of which one is contiguous. An operand whose
summed axes are not one axis of memory, or whose contiguous axis is one of the batch, is copied
before the product, with K contiguous.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from cklang.device.arrays import alignment_of
from cklang.families.gemm.layout import refuse_negative
from cklang.families.gemm.summed_axes import SummedAxes, split_axes, step_along, summed_axes_of
from cklang.families.layout_copy.plan import LayoutCopy, WithCopies
from cklang.families.tensor_layout import TensorLayout, packed_strides
from cklang.fusion.plan import Computed, FusedGemm, Read, View
from cklang.fusion.sites import Axes
from cklang.ir.nodes import Value
from cklang.types import TensorType

__all__ = ["insert_operand_copies"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Copied:
    """An operand in new memory: what takes its place, and the copy that writes it."""

    read: Read
    layout: TensorLayout
    copy: LayoutCopy


def insert_operand_copies(
    kernel: FusedGemm, layouts: Mapping[str, TensorLayout], dims: Mapping[str, int]
) -> WithCopies[FusedGemm]:
    """Return a product with the copies that its operands need.

    Args:
        kernel: The product.
        layouts: How each value lies in memory, by name.
        dims: The extent of each dim of the program.

    Raises:
        CkValueError: A031, an operand to be copied has a negative stride.
    """
    unchanged = WithCopies(kernel=kernel, storage=layouts)
    if 0 in layouts[kernel.result.name].shape:
        return unchanged
    summed = summed_axes_of(kernel, layouts, dims)
    sides: list[View | Computed] = []
    copied: dict[str, _Copied] = {}
    place = 0
    for of_a, side in ((True, kernel.a), (False, kernel.b)):
        reads = []
        for read in side.reads:
            layout = layouts[read.value.name]
            batch, own, k = split_axes(read.axes, kernel.depth, of_a=of_a)
            blocked = place in summed.obstacles
            scattered = isinstance(side, View) and _is_scattered(layout, batch, own, k, summed)
            if (blocked or scattered) and _can_be_copied(layout):
                new = _copied(layout, read.value, batch, own, k, summed, layouts, of_a=of_a)
                copied[new.read.value.name] = new
                read = new.read
            reads.append(read)
            place += 1
        sides.append(_with_reads(side, reads))
    if not copied:
        return unchanged
    # Tuning takes a copy for the operand, unless the copy repeats it.
    ranks = {name: len(layouts[new.copy.source].shape) for name, new in copied.items()}
    origins = {
        name: new.copy.source
        for name, new in copied.items()
        if len(new.layout.shape) == ranks[name]
    }
    return WithCopies(
        kernel=replace(kernel, a=sides[0], b=sides[1]),
        storage={**layouts, **{name: new.layout for name, new in copied.items()}},
        before=tuple(new.copy for new in copied.values()),
        origins=origins,
    )


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
    name = "_".join([value.name, "by", *words])
    while name in taken:
        name += "_"
    dtype, types = value.type.dtype, (*value.type.shape, *extents)
    axes = (*batch, *own, *full_k) if of_a else (*batch, *full_k, *own)
    return _Copied(
        read=Read(value=Value(name=name, type=TensorType(dtype=dtype, shape=types)), axes=axes),
        layout=replace(layout, shape=shape, strides=strides, alignment=alignment_of(0)),
        copy=LayoutCopy(
            source=value.name,
            target=name,
            shape=shape,
            bytes=layout.dtype.bytes,
            source_strides=(*layout.strides, *(0 for _ in extents)),
            target_strides=strides,
            source_alignment=layout.alignment,
            target_alignment=alignment_of(0),
        ),
    )


def _with_reads(side: View | Computed, reads: list[Read]) -> View | Computed:
    if isinstance(side, Computed):
        return replace(side, reads=tuple(reads))
    (read,) = reads
    return View(value=read.value, perm=read.axes)
