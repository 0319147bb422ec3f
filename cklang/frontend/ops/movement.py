# SPDX-License-Identifier: MIT
"""Functions that put elements elsewhere and compute nothing: other orders of axes, repetition."""

import math
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from cklang.dims import is_integer
from cklang.frontend import emit
from cklang.frontend.intrinsics import function
from cklang.frontend.ops.axes import read_axis, read_permutation, read_shape, swapped
from cklang.frontend.ops.indexing import part_along
from cklang.frontend.scope import Scope
from cklang.frontend.text import Located
from cklang.frontend.values import Item, Tensor, describe
from cklang.ir.indices import ARANGE
from cklang.ir.joins import CONCAT, JOIN_DTYPE, MOST_PARTS, STACK
from cklang.ir.numeric import Array
from cklang.ir.views import RESHAPE
from cklang.types import Extent, extent_over, plain_dims

__all__ = [
    "arange",
    "broadcast_to",
    "concat",
    "permute",
    "reshape",
    "split",
    "stack",
    "swapaxes",
]


def _permuted(x: Any, axes: Any) -> Array:
    array = np.asarray(x)
    return array.transpose(read_permutation(axes, array.ndim))


@function(
    "the axes in another order: axis i is axis axes[i] of x",
    eager=_permuted,
    example="""
    >>> ck.permute(np.zeros((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """,
    method=True,
    variadic=True,
)
def permute(scope: Scope, node: Located, x: Item, axes: Item) -> Tensor:
    """Permute the axes of a tensor."""
    tensor = emit.expect_tensor(scope, node, "permute", x)
    return emit.permute(scope, node, tensor, read_permutation(axes, len(tensor.shape)))


def _exchanged(x: Any, axis1: Any, axis2: Any) -> Array:
    array = np.asarray(x)
    return array.swapaxes(read_axis(axis1, array.ndim), read_axis(axis2, array.ndim))


@function(
    "two axes exchanged",
    eager=_exchanged,
    example="""
    >>> ck.swapaxes(np.zeros((2, 3, 4)), 0, -1).shape
    (4, 3, 2)
    """,
    method=True,
)
def swapaxes(scope: Scope, node: Located, x: Item, axis1: Item, axis2: Item) -> Tensor:
    """Exchange two axes of a tensor."""
    tensor = emit.expect_tensor(scope, node, "swapaxes", x)
    return emit.permute(scope, node, tensor, swapped(axis1, axis2, len(tensor.shape)))


@function(
    "x repeated to a shape by NumPy's rules of broadcasting",
    eager=lambda x, shape: np.broadcast_to(np.asarray(x), shape),
    example="""
    >>> ck.broadcast_to(np.array([1.0, 2.0]), (2, 2))
    array([[1., 2.],
           [1., 2.]])
    """,
    method=True,
    variadic=True,
)
def broadcast_to(scope: Scope, node: Located, x: Item, shape: Item) -> Tensor:
    """Repeat a tensor to a shape."""
    tensor = emit.expect_tensor(scope, node, "broadcast_to", x)
    return emit.broadcast_to(scope, node, tensor, read_shape(shape))


def _counted(n: Any) -> Array:
    (extent,) = read_shape(n)
    return np.arange(int(str(extent)), dtype=np.int32)


@function(
    "the index of each element along an axis: 0, 1, 2, … as i32",
    eager=_counted,
    example="""
    >>> ck.arange(4)
    array([0, 1, 2, 3], dtype=int32)
    """,
)
def arange(scope: Scope, node: Located, n: Item) -> Tensor:
    """Count along an axis."""
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


def _tensors(scope: Scope, node: Located, name: str, parts: Item) -> list[Tensor]:
    """Return the parts of a join, all of one dtype."""
    items = parts if isinstance(parts, tuple) else ()
    if not 1 <= len(items) <= MOST_PARTS:
        raise ValueError(
            f"it joins 1 to {MOST_PARTS} tensors, and there are {len(items)}",
            f"pass them as a tuple or a list: ck.{name}([a, b], axis=-1)",
        )
    tensors = [emit.expect_tensor(scope, node, name, item) for item in items]
    if len({tensor.dtype for tensor in tensors}) > 1:
        tensors = [emit.widened(scope, node, tensor) for tensor in tensors]
    dtypes = tuple(tensor.dtype for tensor in tensors)
    if JOIN_DTYPE.apply(dtypes, {}) is None:
        raise ValueError(
            f"the parts are {' and '.join(map(str, dtypes))}", "cast them: x.to(ck.f16)"
        )
    return tensors


@function(
    "tensors one after the other along an axis",
    eager=lambda parts, axis: np.concatenate(parts, axis),
    example="""
    >>> ck.concat([np.array([1.0, 2.0]), np.array([3.0])])
    array([1., 2., 3.])
    """,
)
def concat(scope: Scope, node: Located, parts: Item, axis: Item = 0) -> Tensor:
    """Join tensors along an axis."""
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


@function(
    "tensors one after the other along a new axis",
    eager=lambda parts, axis: np.stack(parts, axis),
    example="""
    >>> ck.stack([np.array([1.0, 2.0]), np.array([3.0, 4.0])], axis=-1)
    array([[1., 3.],
           [2., 4.]])
    """,
)
def stack(scope: Scope, node: Located, parts: Item, axis: Item = 0) -> Tensor:
    """Join tensors along a new axis."""
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


def _parted(x: Any, parts: Any, axis: Any) -> tuple[Array, ...]:
    array = np.asarray(x)
    along = read_axis(axis, array.ndim)
    sizes = [int(str(size)) for size in read_parts(parts, array.shape[along])]
    return tuple(np.split(array, np.cumsum(sizes)[:-1], along))


@function(
    "parts along an axis: a number of equal ones, or a tuple of extents",
    eager=_parted,
    example="""
    >>> ck.split(np.arange(6.0), 2)
    (array([0., 1., 2.]), array([3., 4., 5.]))
    >>> ck.split(np.arange(6.0), (1, 5))
    (array([0.]), array([1., 2., 3., 4., 5.]))
    """,
    method=True,
)
def split(scope: Scope, node: Located, x: Item, parts: Item, axis: Item = 0) -> tuple[Tensor, ...]:
    """Cut a tensor along an axis."""
    tensor = emit.expect_tensor(scope, node, "split", x)
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
    if is_integer(parts):
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


def _reshaped(x: Any, shape: Any) -> Array:
    array = np.asarray(x)
    return array.reshape([int(str(n)) for n in full_shape(array.shape, read_shape(shape))])


@function(
    "the elements in order in another shape; -1 in it is the extent that is left",
    eager=_reshaped,
    example="""
    >>> ck.reshape(np.arange(6.0), (2, -1))
    array([[0., 1., 2.],
           [3., 4., 5.]])
    """,
    method=True,
    variadic=True,
)
def reshape(scope: Scope, node: Located, x: Item, shape: Item) -> Tensor:
    """Give a tensor another shape."""
    tensor = emit.expect_tensor(scope, node, "reshape", x)
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
    total = math.prod(shape)
    rest = math.prod(extent for extent in wanted if extent != -1)
    if places:
        return (*wanted[: places[0]], _left(total, rest), *wanted[places[0] + 1 :])
    difference = total - rest
    if isinstance(difference, int) and difference:
        raise ValueError(
            f"{total} elements cannot have the shape {tuple(wanted)}, which has {rest}",
            "give a shape with as many elements, or -1 for the extent that is left",
        )
    return tuple(wanted)


def _left(total: Extent, rest: Extent) -> Extent:
    left = extent_over(total, rest)
    if left is None:
        raise ValueError(
            f"{total} elements over {rest} are no extent", "write it in the place of -1"
        )
    return left
