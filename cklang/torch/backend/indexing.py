# SPDX-License-Identifier: MIT
"""aten ops that add at indices, and those that put a tensor's parts in other places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import torch

from cklang.ir.indices import ARANGE, TAKE
from cklang.ir.nodes import Value
from cklang.ir.scatter import IN_PLACE, SCATTER_ADD, UNORDERED
from cklang.torch.backend.call import Call, Emission
from cklang.torch.backend.emitter import Scalar, Tensor
from cklang.torch.backend.movement import joined, part_of
from cklang.torch.backend.pointwise import filled
from cklang.torch.backend.refusal import Unsupported
from cklang.types import Extent, bool_, f32, i32, i64

aten = torch.ops.aten


def _added(
    call: Call, axis: int, indices: Tensor, rows: Tensor, base: Tensor | None = None
) -> Tensor:
    """Return rows added to a tensor, or to zeros, at indices of an axis, in their order."""
    if indices.dtype not in (i32, i64):
        raise Unsupported("its indices are no int32 or int64")
    dtype = f32 if call.dtype.is_floating_point else i32
    tensors = [rows] if base is None else [rows, base]
    values = [call.emitter.cast(call.emitter.plain(tensor), dtype) for tensor in tensors]
    attrs: dict[str, Any] = {"axis": axis, IN_PLACE: 0, UNORDERED: 0}
    index = call.emitter.plain(indices)
    value = call.emitter.append(SCATTER_ADD, index, *values, shape=call.shape, **attrs)
    return Tensor(value, call.shape)


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
        aten.flip.default: _flip,
        aten.roll.default: _roll,
        aten.constant_pad_nd.default: _pad,
    }
)
"""The emission of each op."""
