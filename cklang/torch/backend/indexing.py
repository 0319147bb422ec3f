# SPDX-License-Identifier: MIT
"""aten ops that add at indices, and those that put a tensor's parts in other places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import torch

from cklang.ir.indices import ARANGE, TAKE, TAKE_ALONG
from cklang.ir.nodes import Value
from cklang.ir.scatter import IN_PLACE, SCATTER, SCATTER_ADD, UNORDERED
from cklang.torch.backend.call import Call, Emission
from cklang.torch.backend.emitter import Scalar, Tensor
from cklang.torch.backend.extents import Shape, Unsupported, product
from cklang.torch.backend.movement import joined, part_of
from cklang.torch.backend.pointwise import Item, filled, written_where
from cklang.types import Extent, bool_, f32, i32, i64

aten = torch.ops.aten


def _added(
    call: Call, axis: int, indices: Tensor, rows: Tensor, base: Tensor | None = None
) -> Tensor:
    """Return rows added to a tensor, or to zeros, at indices of an axis, in their order."""
    _expect_indices(indices)
    dtype = f32 if call.dtype.is_floating_point else i32
    tensors = [rows] if base is None else [rows, base]
    values = [call.emitter.cast(call.emitter.plain(tensor), dtype) for tensor in tensors]
    attrs: dict[str, Any] = {"axis": axis, IN_PLACE: 0, UNORDERED: 0}
    index = call.emitter.plain(indices)
    shape = call.shape if base is None else base.shape
    value = call.emitter.append(SCATTER_ADD, index, *values, shape=shape, **attrs)
    return Tensor(value, call.shape)


def _expect_indices(indices: Tensor) -> None:
    if indices.dtype not in (i32, i64):
        raise Unsupported("its indices are no int32 or int64")


def _gather(call: Call, x: Tensor, axis: int, indices: Tensor, **_options: Any) -> Tensor:
    _expect_indices(indices)
    if not x.shape:
        raise Unsupported("a number has no axis")
    axis %= len(x.shape)
    x = _within(call, x, indices.shape, axis)
    values = call.emitter.plain(x), call.emitter.plain(indices)
    return Tensor(call.emitter.append(TAKE_ALONG, *values, axis=axis), call.shape)


def _within(call: Call, x: Tensor, shape: Shape, axis: int = -1) -> Tensor:
    """Return the part of a tensor that has a shape, from the first element of each axis but one."""
    for place, extent in enumerate(shape):
        if place != axis and x.shape[place] != extent:
            x = part_of(call, x, place, 0, extent)
    return x


def _scattered(call: Call, x: Tensor, axis: int, indices: Tensor, source: Item) -> Tensor:
    """Return a tensor with elements of a source, or a number, written at indices of an axis."""
    _expect_indices(indices)
    axis %= max(len(x.shape), 1)
    is_whole = [indices.shape[place] == extent for place, extent in enumerate(x.shape)]
    if isinstance(source, Tensor):
        source = _within(call, source, indices.shape)
    if indices.shape[axis : axis + 1] == (1,) and all(is_whole[:axis] + is_whole[axis + 1 :]):
        return written_where(call, _is_at(call, axis, indices), source, x)
    if not isinstance(source, Tensor):
        source = filled(call, source, indices.shape)
    places, rows, base = _flat(call, x, axis, indices, source)
    return _put(call, 0, places, rows, base)


def _is_at(call: Call, axis: int, indices: Tensor) -> Tensor:
    """Return which elements of the result are those at an index, of one along the axis."""
    places = Tensor(call.emitter.cast(_places(call, axis), indices.dtype), call.shape)
    return call.emitter.pointwise("eq", [places, indices])


def _scatter_add(call: Call, x: Tensor, axis: int, indices: Tensor, source: Tensor) -> Tensor:
    _expect_indices(indices)
    source = _within(call, source, indices.shape)
    return call.rounded(_added(call, 0, *_flat(call, x, axis % len(x.shape), indices, source)))


def _flat(
    call: Call, x: Tensor, axis: int, indices: Tensor, source: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the places of elements in memory, a source and a tensor, each with one axis."""
    places: Tensor | None = None
    for place, extent in enumerate(x.shape):
        here = indices
        if place != axis:
            line = call.emitter.append(ARANGE, shape=(indices.shape[place],))
            shape = [1] * len(x.shape)
            here = Tensor(
                call.emitter.cast(line, indices.dtype),
                (*shape[:place], indices.shape[place], *shape[place + 1 :]),
            )
        places = here if places is None else _behind(call, places, here, extent)
    if places is None:
        raise Unsupported("a number has no axis")
    tensors = (places, source, x)
    one, other, base = (Tensor(t.value, (product(t.shape),)) for t in tensors)
    return one, other, base


def _behind(call: Call, places: Tensor, here: Tensor, extent: Extent) -> Tensor:
    """Return places on two axes as places on the one that they make, the second inner."""
    if not isinstance(extent, int):
        raise Unsupported("the extent of an indexed axis varies")
    rows = call.emitter.pointwise("mul", [places, extent])
    return call.emitter.pointwise("add", [rows, here])


def _put(call: Call, axis: int, indices: Tensor, rows: Tensor, base: Tensor) -> Tensor:
    """Return a tensor with rows written at indices of an axis, the last one of equal indices."""
    values = [call.emitter.plain(call.rounded(tensor)) for tensor in (rows, base)]
    attrs: dict[str, Any] = {"axis": axis, IN_PLACE: 0, UNORDERED: 0}
    index = call.emitter.plain(indices)
    value = call.emitter.append(SCATTER, index, *values, shape=base.shape, **attrs)
    return Tensor(value, call.shape)


def _indexed(
    call: Call, x: Tensor, places: Sequence[Tensor | None]
) -> tuple[Tensor, Tensor, int, Shape]:
    """Return a tensor with its indexed axes as one, the index of that, which, and the rows' shape.

    Negative indices count from the end.
    """
    axes = [axis for axis, index in enumerate(places) if index is not None]
    if axes != list(range(axes[0], axes[0] + len(axes))):
        raise Unsupported("other axes are between those that it indexes")
    first, last = axes[0], axes[-1] + 1
    index: Tensor | None = None
    for axis, part in zip(axes, places[first:last], strict=True):
        here = _from_start(call, part, x.shape[axis])
        index = here if index is None else _behind(call, index, here, x.shape[axis])
    if index is None:
        raise Unsupported("it indexes no axis")
    shape = (*x.shape[:first], product(x.shape[first:last]), *x.shape[last:])
    rows = (*x.shape[:first], *index.shape, *x.shape[last:])
    return Tensor(x.value, shape), index, first, rows


def _from_start(call: Call, index: Tensor | None, extent: Extent) -> Tensor:
    if index is None or index.dtype not in (i32, i64):
        raise Unsupported("its indices are no int32 or int64")
    if not isinstance(extent, int):
        raise Unsupported("the extent of an indexed axis varies")
    is_negative = call.emitter.pointwise("lt", [index, 0])
    other = call.emitter.pointwise("add", [index, extent])
    return call.emitter.pointwise("where", [is_negative, other, index])


def _index(call: Call, x: Tensor, places: Sequence[Tensor | None]) -> Tensor:
    table, index, axis, _ = _indexed(call, x, places)
    values = call.emitter.plain(table), call.emitter.plain(index)
    return Tensor(call.emitter.append(TAKE, *values, axis=axis), call.shape)


def _index_put(
    call: Call,
    x: Tensor,
    places: Sequence[Tensor | None],
    values: Tensor,
    accumulate: bool = False,
    *_: object,
) -> Tensor:
    mask = places[0]
    if mask is not None and mask.dtype == bool_:
        if accumulate or len(places) > 1 or product(values.shape) != 1:
            raise Unsupported("its rows are those where a tensor is true, whose number varies")
        padded = (*mask.shape, *[1] * (len(x.shape) - len(mask.shape)))
        return written_where(call, Tensor(mask.value, padded), Tensor(values.value, ()), x)
    base, index, axis, shape = _indexed(call, x, places)
    rows = Tensor(call.emitter.spread(call.emitter.settled(values), shape, shape), shape)
    if accumulate:
        return call.rounded(_added(call, axis, index, rows, base))
    return _put(call, axis, index, rows, base)


def _index_add(
    call: Call, x: Tensor, axis: int, indices: Tensor, rows: Tensor, *, alpha: Scalar = 1
) -> Tensor:
    if alpha != 1:
        rows = call.emitter.pointwise("mul", [call.emitter.wide(rows), alpha])
    return call.rounded(_added(call, axis % len(x.shape), indices, rows, x))


def _embedding_backward(
    call: Call, dy: Tensor, indices: Tensor, _rows: object, padding: int, by_frequency: bool
) -> Tensor:
    if by_frequency:
        raise Unsupported("kernels do not divide by how often an index occurs")
    total = _added(call, 0, indices, dy)
    if padding >= 0:
        row = _places(call, 0)
        is_padding = call.emitter.pointwise("eq", [Tensor(row, call.shape), padding])
        total = call.emitter.pointwise("where", [is_padding, 0.0, total])
    return call.rounded(total)


def _places(call: Call, axis: int) -> Value:
    """Return the place along an axis of each element of the result."""
    shape = call.shape
    line = call.emitter.append(ARANGE, shape=(shape[axis],))
    return call.emitter.broadcast(line, shape, (axis,))


def _triangle(op: str) -> Emission:
    """Return the emission of what is not above, or not below, a diagonal."""

    def emission(call: Call, x: Tensor, diagonal: int = 0) -> Tensor:
        rank = len(call.shape)
        rows, columns = (Tensor(_places(call, axis), call.shape) for axis in (rank - 2, rank - 1))
        distance = call.emitter.pointwise("sub", [columns, rows])
        is_kept = call.emitter.pointwise(op, [distance, diagonal])
        zero = False if x.dtype == bool_ else 0.0 if call.dtype.is_floating_point else 0
        return call.rounded(call.emitter.pointwise("where", [is_kept, call.emitter.wide(x), zero]))

    return emission


def _flip(call: Call, x: Tensor, axes: Sequence[int]) -> Tensor:
    value = call.emitter.plain(x)
    for axis in {axis % len(x.shape) for axis in axes}:
        extent = x.shape[axis]
        if not isinstance(extent, int):
            raise Unsupported("the extent of a reversed axis varies")
        line = call.emitter.append(ARANGE, shape=(extent,))
        last = call.emitter.constant(extent - 1, i32, (extent,))
        value = call.emitter.append(TAKE, value, call.emitter.append("sub", last, line), axis=axis)
    return Tensor(value, call.shape)


def _roll(call: Call, x: Tensor, shifts: Sequence[int], axes: Sequence[int] = ()) -> Tensor:
    if not axes:
        raise Unsupported("it turns all axes as one")
    for shift, axis in zip(shifts, axes, strict=True):
        extent = x.shape[axis]
        if not isinstance(extent, int):
            raise Unsupported("the extent of a turned axis varies")
        first = -shift % max(extent, 1)
        if first:
            parts = [(first, extent - first), (0, first)]
            tensors = [part_of(call, x, axis % len(x.shape), *part) for part in parts]
            x = joined(call, tensors, axis % len(x.shape), x.shape)
    return x


def _pad(call: Call, x: Tensor, sizes: Sequence[Any], number: Scalar = 0) -> Tensor:
    """Return a tensor with numbers before and after its axes, the last one first in ``sizes``."""
    for place in range(len(sizes) // 2):
        axis = len(x.shape) - 1 - place
        before, after = sizes[2 * place : 2 * place + 2]
        cut = [max(-size, 0) for size in (before, after)]
        if any(cut):
            x = part_of(call, x, axis, cut[0], x.shape[axis] - cut[0] - cut[1])
        parts = [_padding(call, x, axis, before, number), x, _padding(call, x, axis, after, number)]
        present = [part for part in parts if part is not None]
        extent = sum((part.shape[axis] for part in present[1:]), start=present[0].shape[axis])
        x = joined(call, present, axis, (*x.shape[:axis], extent, *x.shape[axis + 1 :]))
    return x


def _padding(call: Call, like: Tensor, axis: int, extent: Extent, number: Scalar) -> Tensor | None:
    """Return a number as often as some elements of an axis; None if there are none of them."""
    if isinstance(extent, int) and extent <= 0:
        return None
    return filled(call, number, (*like.shape[:axis], extent, *like.shape[axis + 1 :]))


INDEXING: Mapping[Any, Emission] = MappingProxyType(
    {
        aten.index_add.default: _index_add,
        aten.embedding_dense_backward.default: _embedding_backward,
        aten.triu.default: _triangle("ge"),
        aten.tril.default: _triangle("le"),
        aten.gather.default: _gather,
        **dict.fromkeys((aten.scatter.value, aten.scatter.src), _scattered),
        aten.scatter_add.default: _scatter_add,
        **dict.fromkeys((aten.index.Tensor, aten._unsafe_index.Tensor), _index),
        aten.index_put.default: _index_put,
        aten.flip.default: _flip,
        aten.roll.default: _roll,
        aten.constant_pad_nd.default: _pad,
    }
)
"""The emission of each op."""
