# SPDX-License-Identifier: MIT
"""Functions that put elements elsewhere and compute nothing: other orders of axes, repetition.

:func:`read_permutation` and :func:`read_axis` are NumPy's rules, which the functions share with
calls outside of programs. They raise ``ValueError`` with a problem and a piece of advice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from types import MappingProxyType

from cklang.frontend import emit
from cklang.frontend.ops.axes import read_axis
from cklang.frontend.ops.indexing import part_along, taken_along
from cklang.frontend.ops.order import argsort, cumprod, cumsum, sort, topk
from cklang.frontend.ops.pooling import max_pool, mean_pool
from cklang.frontend.ops.scatter import scatter, scatter_add, segment_sum
from cklang.frontend.scope import Scope
from cklang.frontend.text import Located
from cklang.frontend.values import Item, Tensor, describe
from cklang.ir.indices import ARANGE
from cklang.ir.joins import CONCAT, JOIN_DTYPE, MOST_PARTS, STACK
from cklang.ir.views import RESHAPE
from cklang.types import Dim, Extent, extent_over, plain_dims

__all__ = [
    "full_shape",
    "movement",
    "permutation_of_method",
    "read_axis",
    "read_parts",
    "read_permutation",
    "read_shape",
]


def read_permutation(axes: object, rank: int) -> tuple[int, ...]:
    """Return axes in another order, each named once."""
    items = axes if isinstance(axes, tuple | list) else (axes,)
    perm = tuple(read_axis(axis, rank) for axis in items)
    if sorted(perm) != list(range(rank)):
        raise ValueError(
            f"the axes {list(items)} do not name each of {rank} axes once",
            f"legal: {tuple(reversed(range(rank)))}, for example",
        )
    return perm


def _swapped(one: object, other: object, rank: int) -> tuple[int, ...]:
    perm = list(range(rank))
    a, b = read_axis(one, rank), read_axis(other, rank)
    perm[a], perm[b] = perm[b], perm[a]
    return tuple(perm)


def permutation_of_method(axes: Sequence[object], rank: int) -> tuple[int, ...]:
    """Return the order that ``x.transpose(...)`` gives: torch's two axes, or all as in NumPy."""
    if len(axes) == 2 and rank != 2:
        return _swapped(axes[0], axes[1], rank)
    return read_permutation(axes[0] if len(axes) == 1 else tuple(axes), rank)


def movement(
    scope: Scope, node: Located, name: str, bound: Mapping[str, Item]
) -> Tensor | tuple[Tensor, ...]:
    """Return what a function that moves elements gives.

    Raises:
        CkTypeError: F066 for something else than tensors.
        CkValueError: F067 for axes or shapes that do not fit; F042 where a shape does not
            broadcast.
    """
    try:
        return _MOVES[name](scope, node, **bound)
    except ValueError as refusal:
        if len(refusal.args) != 2:
            raise
        problem, advice = refusal.args
        raise scope.error("F067", node, op=name, problem=problem, advice=advice) from None


def _expect_tensor(scope: Scope, node: Located, name: str, item: Item) -> Tensor:
    item = emit.number(scope, node, item)
    if isinstance(item, Tensor):
        return item
    problem = f"it takes a tensor, not {describe(item)}"
    advice = "pass a parameter, or what is computed of parameters"
    raise scope.error("F066", node, op=name, problem=problem, advice=advice)


def _permute(scope: Scope, node: Located, x: Item, axes: Item) -> Tensor:
    tensor = _expect_tensor(scope, node, "permute", x)
    return emit.permute(scope, node, tensor, read_permutation(axes, len(tensor.shape)))


def _swapaxes(scope: Scope, node: Located, x: Item, axis1: Item, axis2: Item) -> Tensor:
    tensor = _expect_tensor(scope, node, "swapaxes", x)
    return emit.permute(scope, node, tensor, _swapped(axis1, axis2, len(tensor.shape)))


def _broadcast_to(scope: Scope, node: Located, x: Item, shape: Item) -> Tensor:
    tensor = _expect_tensor(scope, node, "broadcast_to", x)
    return emit.broadcast_to(scope, node, tensor, read_shape(shape))


def read_shape(shape: Item) -> tuple[Extent, ...]:
    """Return a shape of extents: a tuple of integers and dims, or one of them."""
    items = shape if isinstance(shape, tuple | list) else (shape,)
    for item in items:
        if not isinstance(item, Dim | int) or isinstance(item, bool):
            raise ValueError(  # noqa: TRY004 - becomes F067, a value error
                f"the shape has {describe(item)}", "legal: integers from 0 and dims, as in (M, 4)"
            )
    return tuple(items)


def _arange(scope: Scope, node: Located, n: Item) -> Tensor:
    extents = read_shape(n)
    if len(extents) != 1 or (isinstance(extents[0], int) and extents[0] < 0):
        raise ValueError(
            f"the number of indices is {describe(n)}", "legal: an integer from 0, or a dim"
        )
    # No operand tells a call what was written here: the extent stays what it is.
    extent = scope.unit.derived.resolve(extents[0])
    for dim in plain_dims(extent):
        emit.number(scope, node, dim)
    value = scope.unit.append(ARANGE, shape=(extent,), span=scope.span(node))
    return Tensor.plain(value, ["ck.arange"])


def _take(scope: Scope, node: Located, x: Item, indices: Item, axis: Item) -> Tensor:
    tensor = _expect_tensor(scope, node, "take", x)
    places = _expect_tensor(scope, node, "take", indices)
    return taken_along(scope, node, tensor, places, read_axis(axis, len(tensor.shape)))


def _tensors(scope: Scope, node: Located, name: str, parts: Item) -> list[Tensor]:
    """Return the parts of a join, all of one dtype."""
    items = parts if isinstance(parts, tuple) else ()
    if not 1 <= len(items) <= MOST_PARTS:
        raise ValueError(
            f"it joins 1 to {MOST_PARTS} tensors, and there are {len(items)}",
            f"pass them as a tuple or a list: ck.{name}([a, b], axis=-1)",
        )
    tensors = [_expect_tensor(scope, node, name, item) for item in items]
    if len({tensor.dtype for tensor in tensors}) > 1:
        tensors = [emit.widened(scope, node, tensor) for tensor in tensors]
    dtypes = tuple(tensor.dtype for tensor in tensors)
    if JOIN_DTYPE.apply(dtypes, {}) is None:
        raise ValueError(
            f"the parts are {' and '.join(map(str, dtypes))}", "cast them: x.to(ck.f16)"
        )
    return tensors


def _concat(scope: Scope, node: Located, parts: Item, axis: Item) -> Tensor:
    tensors = _tensors(scope, node, "concat", parts)
    first = tensors[0]
    place = read_axis(axis, len(first.shape))
    for other in tensors[1:]:
        pairs = list(zip_longest(first.shape, other.shape))
        # The joined axis is left out: to compare derived extents is to learn that they are equal.
        rest = [*pairs[:place], *pairs[place + 1 :]]
        if not all(None not in pair and scope.unit.derived.same(*pair) for pair in rest):
            raise ValueError(
                f"the parts are {first.type} and {other.type}",
                f"shapes are the same but for axis {place}",
            )
    total: Extent = sum((tensor.shape[place] for tensor in tensors[1:]), first.shape[place])
    extent = scope.unit.derived.extent(total)
    shape = (*first.shape[:place], extent, *first.shape[place + 1 :])
    origins = list(first.origins)
    origins[place] = "the parts of ck.concat together"
    return _join(scope, node, CONCAT, tensors, place, shape, origins)


def _stack(scope: Scope, node: Located, parts: Item, axis: Item) -> Tensor:
    tensors = _tensors(scope, node, "stack", parts)
    first = tensors[0]
    place = read_axis(axis, len(first.shape) + 1)
    for other in tensors[1:]:
        same = len(first.shape) == len(other.shape) and all(
            scope.unit.derived.same(*pair) for pair in zip(first.shape, other.shape, strict=True)
        )
        if not same:
            raise ValueError(f"the parts are {first.type} and {other.type}", "pass equal shapes")
    shape = (*first.shape[:place], len(tensors), *first.shape[place:])
    origins = [*first.origins[:place], "the parts of ck.stack", *first.origins[place:]]
    return _join(scope, node, STACK, tensors, place, shape, origins)


def _join(
    scope: Scope,
    node: Located,
    op: str,
    tensors: Sequence[Tensor],
    axis: int,
    shape: tuple[Extent, ...],
    origins: Sequence[str],
) -> Tensor:
    values = [emit.materialise(scope, node, tensor) for tensor in tensors]
    value = scope.unit.append(op, *values, attrs={"axis": axis}, shape=shape, span=scope.span(node))
    return Tensor.plain(value, origins)


def _split(scope: Scope, node: Located, x: Item, parts: Item, axis: Item) -> tuple[Tensor, ...]:
    tensor = _expect_tensor(scope, node, "split", x)
    place = read_axis(axis, len(tensor.shape))
    extent = tensor.shape[place]
    sizes = read_parts(parts, extent)
    results = []
    start: Extent = 0
    for number, size in enumerate(sizes, start=1):
        # The last part ends where the axis does: the call checks that it is as long as it says.
        stop = extent if number == len(sizes) else start + size
        results.append(part_along(scope, node, tensor, place, (start, stop), size))
        start = stop
    return tuple(results)


def read_parts(parts: Item, extent: Extent) -> tuple[Extent, ...]:
    """Return the extents of the parts of an axis: equal ones by their number, or those listed."""
    if isinstance(parts, int) and not isinstance(parts, bool):
        if not 1 <= parts <= MOST_PARTS or (isinstance(extent, int) and extent % parts):
            raise ValueError(
                f"an axis of {extent} has no {parts} equal parts",
                f"legal: 1 to {MOST_PARTS} parts that divide the axis, or a tuple of extents",
            )
        return (extent // parts,) * parts
    sizes = read_shape(parts)
    total: Extent = sum(sizes[1:], sizes[0])
    difference = total - extent
    if isinstance(difference, int) and difference:
        raise ValueError(
            f"the parts have {total} elements together, and the axis {extent}",
            "give extents that add up to the axis",
        )
    return sizes


def _reshape(scope: Scope, node: Located, x: Item, shape: Item) -> Tensor:
    tensor = _expect_tensor(scope, node, "reshape", x)
    wanted = tuple(map(scope.unit.derived.extent, full_shape(tensor.shape, read_shape(shape))))
    if wanted == tensor.shape:
        return tensor
    if tensor.dtype.packed:
        raise ValueError(f"two elements of {tensor.dtype} share a byte", "reshape it before")
    source = emit.materialise(scope, node, tensor)
    value = scope.unit.append(RESHAPE, source, shape=wanted, span=scope.span(node))
    return Tensor.plain(value, [f"axis {axis} of the new shape" for axis in range(len(wanted))])


def full_shape(shape: Sequence[Extent], wanted: Sequence[Extent]) -> tuple[Extent, ...]:
    """Return a shape with as many elements in which -1 is the extent that is left."""
    places = [place for place, extent in enumerate(wanted) if extent == -1]
    numbers = [extent for extent in wanted if isinstance(extent, int)]
    if len(places) > 1 or min(numbers, default=0) < -1:
        raise ValueError(
            f"the shape has {' and '.join(str(n) for n in numbers if n < 0)}",
            "legal: one -1, for the extent that is left",
        )
    total = math.prod(shape[1:], start=shape[0]) if shape else 1
    rest = math.prod(extent for extent in wanted if extent != -1)
    if places:
        left = extent_over(total, rest)
        if left is None:
            raise ValueError(
                f"{total} elements over {rest} are no extent", "write it in the place of -1"
            )
        return (*wanted[: places[0]], left, *wanted[places[0] + 1 :])
    difference = total - rest
    if isinstance(difference, int) and difference:
        raise ValueError(
            f"{total} elements cannot have the shape {tuple(wanted)}, which has {rest}",
            "give a shape with as many elements, or -1 for the extent that is left",
        )
    return tuple(wanted)


_MOVES: Mapping[str, Callable[..., Tensor | tuple[Tensor, ...]]] = MappingProxyType(
    {
        "arange": _arange,
        "argsort": argsort,
        "broadcast_to": _broadcast_to,
        "concat": _concat,
        "cumprod": cumprod,
        "cumsum": cumsum,
        "max_pool": max_pool,
        "mean_pool": mean_pool,
        "permute": _permute,
        "reshape": _reshape,
        "scatter": scatter,
        "scatter_add": scatter_add,
        "segment_sum": segment_sum,
        "sort": sort,
        "split": _split,
        "stack": _stack,
        "swapaxes": _swapaxes,
        "take": _take,
        "topk": topk,
    }
)
