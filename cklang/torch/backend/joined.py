# SPDX-License-Identifier: MIT
"""Pointwise ops of joined tensors, computed part by part.

torch's rotary embedding joins a half of each head and the other's negative, and multiplies them by
sines. A joined tensor is in memory, so its parts would be copied together first. Therefore an op of
a joined tensor is computed of each part, with the other operands cut likewise, and what it gives is
joined: one kernel writes it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from cklang.ir.joins import CONCAT
from cklang.ir.nodes import Operation, Value
from cklang.ir.ops import OPS, Kind
from cklang.ir.views import VIEWS, written
from cklang.torch.backend.operations import Operations
from cklang.types import Extent

_MOST_PARTS = 4
"""The largest number of parts for which operations are repeated."""


def computed(to: Operations, op: str, operands: Sequence[Value], attrs: Mapping[str, Any]) -> Value:
    """Append a pointwise op of operands of one shape; part by part if one of them is joined."""
    for operand in operands:
        axis, parts = _parts_of(to, operand)
        cuts = [_cut(to, value, axis, parts) for value in operands] if parts else []
        if parts and all(cuts):
            pieces = (to.append(op, *group, **attrs) for group in zip(*cuts, strict=True))
            return to.append(CONCAT, *pieces, shape=operand.type.shape, axis=axis)
    return to.append(op, *operands, **attrs)


def part(
    to: Operations, value: Value, axis: int, elements: tuple[Extent, Extent, int], *, keep: bool
) -> Value:
    """Append a slice of one axis.

    ``elements`` are the first one, how many there are, and the step from one to the next. The axis
    is kept with one element only if ``keep``.
    """
    source = to.source(value)
    if keep and source is not None and source.op == "transpose":
        # Slices come first, so that two of the same part are seen to be the same.
        perm: Any = source.attr("perm")
        return to.transposed(part(to, source.operands[0], perm[axis], elements, keep=True), perm)
    start, count, step = elements
    own = value.type.shape
    stop = start + count if step == 1 else start + (count - 1) * step + 1
    bounds: list[tuple[Extent, Extent, int]] = [(0, extent, 1) for extent in own]
    bounds[axis] = start, stop, step
    extents = [*own[:axis], count, *own[axis + 1 :]]
    axes = tuple(index for index in range(len(own)) if index != axis or keep)
    return to.append(
        "slice",
        value,
        shape=tuple(extents[index] for index in axes),
        axes=axes,
        start=tuple(written(low) for low, _, _ in bounds),
        stop=tuple(written(high) for _, high, _ in bounds),
        step=tuple(step for _, _, step in bounds),
    )


def _parts_of(to: Operations, value: Value) -> tuple[int, list[Value]]:
    """Return the axis and the parts of a joined value; no parts of another one."""
    source = to.source(value)
    if source is not None and source.op == "cast":
        axis, parts = _parts_of(to, source.operands[0])
        return axis, [to.cast(part, value.type.dtype) for part in parts]
    if source is None or source.op != CONCAT or len(source.operands) > _MOST_PARTS:
        return 0, []
    axis_of: Any = source.attr("axis")
    return axis_of, list(source.operands)


def _cut(to: Operations, value: Value, axis: int, parts: Sequence[Value]) -> list[Value]:
    """Return a value cut along an axis as parts are; nothing if that takes memory."""
    own_axis, own = _parts_of(to, value)
    if own and own_axis == axis and _extents(own, axis) == _extents(parts, axis):
        return own
    cuts: list[Value] = []
    start: Extent = 0
    for extent in _extents(parts, axis):
        piece = _sliced(to, value, axis, (start, extent, 1))
        if piece is None:
            return []
        cuts.append(piece)
        start = start + extent
    return cuts


def _extents(values: Sequence[Value], axis: int) -> list[Extent]:
    return [value.type.shape[axis] for value in values]


def _sliced(
    to: Operations, value: Value, axis: int, elements: tuple[Extent, Extent, int]
) -> Value | None:
    """Return part of a value: a view of what is in memory, and computed where the value is.

    None if the value is of a kernel's accumulator, and would have to be in memory first.
    """
    source = to.source(value)
    if source is None or source.op in VIEWS:
        return part(to, value, axis, elements, keep=True)
    if source.op == "broadcast":
        return _sliced_broadcast(to, source, axis, elements)
    if source.op == "transpose":
        perm: Any = source.attr("perm")
        inner = _sliced(to, source.operands[0], perm[axis], elements)
        return None if inner is None else to.transposed(inner, perm)
    if source.op != "cast" and OPS[source.op].kind is not Kind.POINTWISE:
        return None
    operands = [_sliced(to, operand, axis, elements) for operand in source.operands]
    pieces = [operand for operand in operands if operand is not None]
    attrs: dict[str, Any] = dict(source.attrs)
    return to.append(source.op, *pieces, **attrs) if len(pieces) == len(operands) else None


def _sliced_broadcast(
    to: Operations, source: Operation, axis: int, elements: tuple[Extent, Extent, int]
) -> Value | None:
    """Return part of a repeated value."""
    dims: Any = source.attr("dims")
    (operand,) = source.operands
    inner: Value | None = operand
    if axis in dims and operand.type.shape[dims.index(axis)] != 1:
        inner = _sliced(to, operand, dims.index(axis), elements)
    shape = source.result.type.shape
    extents = (*shape[:axis], elements[1], *shape[axis + 1 :])
    return None if inner is None else to.broadcast(inner, extents, dims)
