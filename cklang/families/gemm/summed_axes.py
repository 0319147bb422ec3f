# SPDX-License-Identifier: MIT
"""Several axes of K as the one axis along which kernels sum.

A product over several axes has an entry for each of them in the map of every operand. They are one
axis where, in one order for all operands, each axis goes on where the next one ends. An operand
that no order suits is copied before the product (``copies.py``).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from cklang.errors import error
from cklang.families.gemm.plan import FusedGemm
from cklang.families.tensor_layout import TensorLayout
from cklang.fusion.plan import Computed, View
from cklang.fusion.sites import Axes
from cklang.types import extents_of


@dataclass(frozen=True, slots=True, kw_only=True)
class SummedAxes:
    """The axes of K in one call."""

    extents: tuple[int, ...]
    order: tuple[int, ...]
    """The axes of extent 2 and more, the outermost first."""
    obstacles: tuple[int, ...]
    """The operands in which they are not one axis in this order, counted from A's first."""

    @property
    def extent(self) -> int:
        """How many products a sum has."""
        return math.prod(self.extents)


def split_axes(axes: Axes, depth: int, *, of_a: bool) -> tuple[Axes, Axes, Axes]:
    """Take a map from a kernel's axes apart: batch, rows of A or columns of B, and K."""
    batch, own = axes[: -1 - depth], axes[-1 - depth :]
    return (batch, own[:1], own[1:]) if of_a else (batch, own[-1:], own[:-1])


def step_along(layout: TensorLayout, axis: int | None) -> int:
    """Return the stride along an axis that runs with a kernel's; an extent of 1 takes no step."""
    return 0 if axis is None or layout.shape[axis] == 1 else layout.strides[axis]


def summed_axes_of(
    kernel: FusedGemm, layouts: Mapping[str, TensorLayout], dims: Mapping[str, int]
) -> SummedAxes:
    """Return the axes of K of a kernel in the order that needs the smallest copies."""
    extents = _extents(kernel, layouts, dims)
    reads = [
        (layouts[read.value.name], split_axes(read.axes, kernel.depth, of_a=of_a)[2])
        for of_a, side in _sides(kernel)
        for read in side.reads
    ]
    steps = [[step_along(layout, axis) for axis in axes] for layout, axes in reads]
    loops = [axis for axis, extent in enumerate(extents) if extent != 1]
    orders = [tuple(sorted(loops, key=lambda axis: -step[axis])) for step in steps]
    choices = [
        SummedAxes(
            extents=extents,
            order=order,
            obstacles=tuple(
                place
                for place, step in enumerate(steps)
                if 0 not in extents and not _is_one_axis(order, extents, step)
            ),
        )
        for order in dict.fromkeys(orders)
    ]
    sizes = [math.prod(layout.shape) * layout.dtype.bytes for layout, _ in reads]
    return min(choices, key=lambda choice: sum(sizes[place] for place in choice.obstacles))


def merge_summed_axes(
    kernel: FusedGemm, layouts: Mapping[str, TensorLayout], dims: Mapping[str, int]
) -> tuple[FusedGemm, tuple[TensorLayout, ...], tuple[TensorLayout, ...]]:
    """Return a product with one axis K, and the layouts in it of what A and B read."""
    a, b = (tuple(layouts[read.value.name] for read in side.reads) for _, side in _sides(kernel))
    if kernel.depth == 1:
        return kernel, a, b
    summed = summed_axes_of(kernel, layouts, dims)
    for layout in (*a, *b):
        if layout.prepared is not None:
            raise error("A052", name=layout.name)
    if summed.obstacles:
        layout = (*a, *b)[summed.obstacles[0]]
        raise error("A057", name=layout.name, shape=layout.shape, strides=layout.strides)
    sides, flat = [], []
    for (of_a, side), stored in zip(_sides(kernel), (a, b), strict=True):
        merged = [
            _merged(layout, *split_axes(read.axes, kernel.depth, of_a=of_a), summed, of_a=of_a)
            for layout, read in zip(stored, side.reads, strict=True)
        ]
        flat.append(tuple(layout for layout, _ in merged))
        sides.append(_with_axes(side, [axes for _, axes in merged], summed.extent, of_a=of_a))
    return replace(kernel, a=sides[0], b=sides[1], depth=1), flat[0], flat[1]


def _sides(kernel: FusedGemm) -> tuple[tuple[bool, View | Computed], ...]:
    """Return A and B, each with whether it is A."""
    return (True, kernel.a), (False, kernel.b)


def _extents(
    kernel: FusedGemm, layouts: Mapping[str, TensorLayout], dims: Mapping[str, int]
) -> tuple[int, ...]:
    """Return the extents of the axes of K; an operand that is stored may lack those of extent 1."""
    known: list[list[int]] = [[] for _ in range(kernel.depth)]
    for of_a, side in _sides(kernel):
        if isinstance(side, Computed):
            extents = extents_of(side.extents, dims)
            for own, extent in zip(known, extents[1:] if of_a else extents[:-1], strict=True):
                own.append(extent)
            continue
        axes = split_axes(side.perm, kernel.depth, of_a=of_a)[2]
        for own, axis in zip(known, axes, strict=True):
            if axis is not None:
                own.append(layouts[side.value.name].shape[axis])
    return tuple(own[0] if own else 1 for own in known)


def _is_one_axis(order: Sequence[int], extents: Sequence[int], steps: Sequence[int]) -> bool:
    return all(steps[outer] == steps[inner] * extents[inner] for outer, inner in pairwise(order))


def _merged(
    layout: TensorLayout, batch: Axes, own: Axes, k: Axes, summed: SummedAxes, *, of_a: bool
) -> tuple[TensorLayout, Axes]:
    """Return a layout whose last axis is K, and the map from the kernel's axes to it."""
    step = step_along(layout, k[summed.order[-1]]) if summed.order else 0
    kept = [axis for axis in range(len(layout.shape)) if axis not in k]
    place = {axis: index for index, axis in enumerate(kept)}
    outer = [None if axis is None else place[axis] for axis in (*batch, *own)]
    runs = any(axis is not None for axis in k)
    last = len(kept) if runs else None
    shape, strides = (tuple(row[axis] for axis in kept) for row in (layout.shape, layout.strides))
    if runs:
        shape, strides = (*shape, summed.extent), (*strides, step)
    head, (row,) = outer[: len(batch)], outer[len(batch) :]
    axes = (*head, row, last) if of_a else (*head, last, row)
    return replace(layout, shape=shape, strides=strides), axes


def _with_axes(
    side: View | Computed, axes: Sequence[Axes], k: int, *, of_a: bool
) -> View | Computed:
    if isinstance(side, View):
        return replace(side, perm=axes[0])
    reads = tuple(replace(read, axes=own) for read, own in zip(side.reads, axes, strict=True))
    extents = (side.extents[0], k) if of_a else (k, side.extents[-1])
    return replace(side, extents=extents, reads=reads)
