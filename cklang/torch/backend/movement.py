# SPDX-License-Identifier: MIT
"""aten ops that move no number: views, parts of tensors, joins, rows of a table.

A reshaping changes only the shape in which torch sees a tensor (:mod:`.emitter`).
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import torch

from cklang.ir.joins import MOST_PARTS
from cklang.ir.nodes import Value
from cklang.torch.backend.call import Call, Emission
from cklang.torch.backend.emitter import Tensor
from cklang.torch.backend.extents import Shape, Unsupported, aligned
from cklang.torch.backend.joined import part
from cklang.types import Extent, i32, i64

aten = torch.ops.aten


def _reshape(call: Call, x: Tensor, *_: object, **_options: Any) -> Tensor:
    return call.emitter.viewed(x, call.shape)


def _permute(call: Call, x: Tensor, axes: Sequence[int]) -> Tensor:
    return call.emitter.permuted(x, [axis % len(x.shape) for axis in axes])


def _transpose(call: Call, x: Tensor, one: int, other: int) -> Tensor:
    rank = len(x.shape)
    order = list(range(rank))
    if rank:
        order[one], order[other] = order[other], order[one]
    return call.emitter.permuted(x, order)


def _t(call: Call, x: Tensor) -> Tensor:
    return call.emitter.permuted(x, range(len(x.shape))[::-1])


def _expand(call: Call, x: Tensor, *_: object, **_options: Any) -> Tensor:
    shape = call.shape
    if x.shape == shape:
        return x
    return Tensor(call.emitter.spread(x, shape, shape), shape)


def part_of(
    call: Call, x: Tensor, axis: int, start: Extent, count: Extent, step: int = 1
) -> Tensor:
    """Return ``count`` elements of an axis from ``start`` on, every ``step``-th."""
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    return _taken(call, x, axis, (start, count, step), shape)


def _taken(
    call: Call, x: Tensor, axis: int, elements: tuple[Extent, Extent, int], shape: Shape
) -> Tensor:
    """Return part of an axis as a tensor of a shape, which lacks the axis if one is taken."""
    value, at = _with_axis(call, x, axis)
    keep = len(shape) == len(x.shape)
    return Tensor(part(call.emitter, value, at, elements, keep=keep), shape)


def _with_axis(call: Call, x: Tensor, axis: int) -> tuple[Value, int]:
    """Return a value that has an axis of a tensor as an axis of its own, and which one."""
    for group in aligned(x.own, x.shape):
        if axis in group.theirs and len(group.ours) == len(group.theirs) == 1:
            return x.value, group.ours[0]
    return call.emitter.plain(x), axis


def _start(x: Tensor, axis: int, start: Any) -> Extent:
    """Return where a part begins, counted from the first element."""
    extent = x.shape[axis]
    if start is None:
        return 0
    if not isinstance(start, int):
        return start  # type: ignore[no-any-return]
    if start < 0:
        return max(extent + start, 0) if isinstance(extent, int) else extent + start
    return min(start, extent) if isinstance(extent, int) else start


def _slice(
    call: Call, x: Tensor, axis: int = 0, start: Any = None, _stop: Any = None, step: Any = 1
) -> Tensor:
    axis %= len(x.shape)
    count = call.shape[axis]
    if count == x.shape[axis]:
        return x
    return part_of(call, x, axis, _start(x, axis, start), count, step)


def _select(call: Call, x: Tensor, axis: int, index: Any) -> Tensor:
    axis %= len(x.shape)
    return _taken(call, x, axis, (_start(x, axis, index), 1, 1), call.shape)


def _split(call: Call, x: Tensor, _sizes: object, axis: int = 0) -> list[Tensor]:
    axis %= len(x.shape)
    parts: list[Tensor] = []
    start: Extent = 0
    for output in call.outputs:
        count = Call(call.emitter, (output,)).shape[axis]
        parts.append(part_of(call, x, axis, start, count))
        start = start + count
    return parts


def _unbind(call: Call, x: Tensor, axis: int = 0) -> list[Tensor]:
    axis %= len(x.shape)
    places = range(len(call.outputs))
    return [_taken(call, x, axis, (place, 1, 1), call.shape) for place in places]


def _cat(call: Call, tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    parts = [tensor for tensor in tensors if tensor.shape != (0,)]
    if len(parts) > MOST_PARTS:
        raise Unsupported(f"it joins {len(parts)} tensors, and programs up to {MOST_PARTS}")
    return joined(call, parts, axis % len(call.shape), call.shape)


def joined(call: Call, parts: Sequence[Tensor], axis: int, shape: Shape) -> Tensor:
    """Return tensors one behind the other along an axis."""
    values = [call.emitter.plain(call.rounded(tensor)) for tensor in parts]
    if len(values) == 1:
        return Tensor(values[0], shape)
    return Tensor(call.emitter.append("concat", *values, shape=shape, axis=axis), shape)


def _rows(call: Call, table: Tensor, indices: Tensor, axis: int = 0) -> Tensor:
    """Return parts of a table at indices along an axis."""
    if indices.dtype not in (i32, i64):
        raise Unsupported("its indices are no int32 or int64")
    values = call.emitter.plain(table), call.emitter.plain(indices)
    return Tensor(call.emitter.append("take", *values, axis=axis % len(table.shape)), call.shape)


def _embedding(call: Call, table: Tensor, indices: Tensor, *_: object) -> Tensor:
    return _rows(call, table, indices)


def _index_select(call: Call, x: Tensor, axis: int, indices: Tensor) -> Tensor:
    return _rows(call, x, indices, axis)


def _arange(call: Call, start: Any, _stop: Any, step: Any = 1, **_options: Any) -> Tensor:
    if not isinstance(start, int) or not isinstance(step, int):
        raise Unsupported("kernels count in integers, from a number")
    places = Tensor(call.emitter.append("arange", shape=call.shape), call.shape)
    if (start, step) != (0, 1) and call.dtype != torch.int32:
        places = Tensor(call.emitter.cast(places.value, i64), call.shape)
    for op, number, neutral in (("mul", step, 1), ("add", start, 0)):
        if number != neutral:
            places = call.emitter.pointwise(op, [places, number])
    return call.rounded(places)


_RESHAPED = ("view", "reshape", "_unsafe_view", "unsqueeze", "squeeze", "alias", "detach")

REORDERED = frozenset(
    {
        *(getattr(aten, name).default for name in _RESHAPED),
        aten.squeeze.dim,
        aten.squeeze.dims,
        aten.permute.default,
        aten.transpose.int,
    }
)
"""Views that take a tensor whose own axes are in another order."""

VIEWS: Mapping[Any, Emission] = MappingProxyType(
    {
        **{getattr(aten, name).default: _reshape for name in _RESHAPED}, aten.squeeze.dim: _reshape,
        aten.squeeze.dims: _reshape, aten.permute.default: _permute, aten.transpose.int: _transpose,
        aten.t.default: _t, aten.expand.default: _expand, aten.slice.Tensor: _slice,
        aten.select.int: _select, aten.split.Tensor: _split, aten.split_with_sizes.default: _split,
        aten.unbind.int: _unbind,
    }
)  # fmt: skip
"""The emissions of torch's views: what they return needs no kernel."""

MOVEMENT: Mapping[Any, Emission] = MappingProxyType(
    {
        **VIEWS,
        aten.cat.default: _cat,
        aten.embedding.default: _embedding,
        aten.index_select.default: _index_select,
        aten.arange.start_step: _arange,
    }
)
"""The emission of each op that moves elements."""
