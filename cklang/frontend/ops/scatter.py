# SPDX-License-Identifier: MIT
"""Rows read, written or added at indices: ``ck.take``, ``ck.scatter`` and sums of rows."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cklang.dims import is_extent
from cklang.frontend import emit
from cklang.frontend.intrinsics import function
from cklang.frontend.ops.arrays import checked_indices
from cklang.frontend.ops.axes import read_axis, read_flag, read_shape
from cklang.frontend.ops.indexing import taken_along
from cklang.frontend.scope import Scope
from cklang.frontend.text import Located
from cklang.frontend.values import Item, Tensor, describe
from cklang.ir.indices import INDEX_DTYPES, TAKE_ALONG
from cklang.ir.nodes import Attr
from cklang.ir.numeric import Array
from cklang.ir.ops import OPS
from cklang.ir.scatter import (
    IN_PLACE,
    MOST_AXES,
    SCATTER,
    SCATTER_ADD,
    UNORDERED,
    scattered,
    scattered_sum,
)
from cklang.types import Extent, i8, i32, plain_dims

__all__ = ["scatter", "scatter_add", "segment_sum", "take", "take_along_axis"]

_SEGMENTS = "segment_sum"


def _taken_array(x: Any, indices: Any, axis: Any) -> Array:
    array = np.asarray(x)
    along = read_axis(axis, array.ndim)
    return np.take(array, checked_indices(indices, array.shape[along], along), along)


@function(
    "x at indices along an axis, which the axes of the indices replace",
    eager=_taken_array,
    example="""
    >>> ck.take(np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), np.array([2, 0]))
    array([[5., 6.],
           [1., 2.]])
    """,
)
def take(scope: Scope, node: Located, x: Item, indices: Item, axis: Item = 0) -> Tensor:
    """Read a tensor at indices of an axis.

    Raises:
        CkTypeError: F066 for something else than tensors, or indices that are no integers.
        CkValueError: F067 for an axis that there is not.
    """
    tensor = emit.expect_tensor(scope, node, "take", x)
    places = emit.expect_tensor(scope, node, "take", indices)
    return taken_along(scope, node, tensor, places, read_axis(axis, len(tensor.shape)))


def _along_array(x: Any, indices: Any, axis: Any) -> Array:
    array = np.asarray(x)
    along = read_axis(axis, array.ndim)
    return np.take_along_axis(array, checked_indices(indices, array.shape[along], along), along)


@function(
    "an element of x for each index along an axis; other axes of both have the same extents",
    eager=_along_array,
    example="""
    >>> ck.take_along_axis(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1], [0]]))
    array([[2.],
           [3.]])
    """,
)
def take_along_axis(scope: Scope, node: Located, x: Item, indices: Item, axis: Item = -1) -> Tensor:
    """Read an element of a tensor for each index.

    Raises:
        CkTypeError: F066 for something else than tensors, indices that are no integers, or other
            shapes.
        CkValueError: F067 for an axis that there is not.
    """
    name, row = "take_along_axis", OPS[TAKE_ALONG]
    tensor = emit.expect_tensor(scope, node, name, x)
    places = emit.widened(scope, node, emit.expect_tensor(scope, node, name, indices))
    attrs: dict[str, Attr] = {"axis": read_axis(axis, len(tensor.shape))}
    is_read = row.dtype.apply((tensor.dtype, places.dtype), attrs) is not None
    if not is_read or row.shape.apply((tensor.shape, places.shape), attrs, None) is None:
        problem = f"{tensor.type} at indices {places.type} is not read"
        advice = row.shape.text if is_read else row.dtype.text
        raise scope.error("F066", node, op=name, problem=problem, advice=advice)
    operands = (emit.materialise(scope, node, operand) for operand in (tensor, places))
    value = scope.unit.append(TAKE_ALONG, *operands, attrs=attrs, span=scope.span(node))
    return Tensor.plain(value, places.origins)


def _placed(x: Any, indices: Any, rows: Any, axis: Any) -> tuple[Array, Array, Array, int]:
    """Return arrays, the indices checked and the rows broadcast, and the axis."""
    array = np.asarray(x)
    along = read_axis(axis, array.ndim)
    places = checked_indices(indices, array.shape[along], along)
    shape = (*array.shape[:along], *places.shape, *array.shape[along + 1 :])
    return array, places, np.broadcast_to(rows, shape), along


def _written(x: Any, indices: Any, rows: Any, axis: Any, ordered: Any) -> Array:
    array, places, terms, along = _placed(x, indices, rows, axis)
    return scattered(places, terms, array, axis=along, shape=array.shape)


@function(
    "x with rows written at indices along an axis; of equal indices, the last row stays, or "
    "any of them unless ordered",
    eager=_written,
    example="""
    >>> ck.scatter(np.zeros((3, 2)), np.array([2, 0]), np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[3., 4.],
           [0., 0.],
           [1., 2.]])
    """,
)
def scatter(
    scope: Scope,
    node: Located,
    x: Item,
    indices: Item,
    rows: Item,
    axis: Item = 0,
    ordered: Item = True,
) -> Tensor:
    """Write rows at indices of an axis of ``x``.

    Raises:
        CkTypeError: F066 for indices that are no integers, or tensors of dtypes that differ.
        CkValueError: F067 for an axis that there is not, or an order that is no constant; F042 for
            rows of another shape.
    """
    base, places = (
        emit.expect_tensor(scope, node, SCATTER, x),
        _indices(scope, node, SCATTER, indices),
    )
    along = _axis(axis, len(base.shape))
    terms = _rows(scope, node, SCATTER, rows, _taken(base.shape, places, along))
    if terms.dtype != base.dtype:
        problem = f"rows of {terms.dtype} are not written into a tensor of {base.dtype}"
        advice = f"cast the rows: rows.to(ck.{base.dtype})"
        raise scope.error("F066", node, op=SCATTER, problem=problem, advice=advice)
    return _appended(scope, node, SCATTER, (places, terms, base), along, base, ordered)


def _added(x: Any, indices: Any, rows: Any, axis: Any, ordered: Any = True) -> Array:
    array, places, terms, along = _placed(x, indices, rows, axis)
    dtype = np.result_type(array, terms, np.float32 if array.dtype.kind == "f" else np.int32)
    return scattered_sum(
        places, terms.astype(dtype), array.astype(dtype), axis=along, shape=array.shape
    )


@function(
    "x with rows added at indices along an axis, in order or in any, in f32 (integers in i32)",
    eager=_added,
    example="""
    >>> ck.scatter_add(np.ones(3), np.array([2, 0, 2]), np.array([1.0, 2.0, 3.0]))
    array([3., 1., 5.])
    """,
)
def scatter_add(
    scope: Scope,
    node: Located,
    x: Item,
    indices: Item,
    rows: Item,
    axis: Item = 0,
    ordered: Item = True,
) -> Tensor:
    """Add rows at indices of an axis of ``x``; errors as of :func:`scatter`."""
    base = _counted(scope, node, emit.expect_tensor(scope, node, SCATTER_ADD, x))
    places = _indices(scope, node, SCATTER_ADD, indices)
    along = _axis(axis, len(base.shape))
    terms = _rows(scope, node, SCATTER_ADD, rows, _taken(base.shape, places, along))
    terms = _counted(scope, node, terms)
    return _appended(scope, node, SCATTER_ADD, (places, terms, base), along, base, ordered)


def _summed(rows: Any, indices: Any, count: Any, axis: Any, ordered: Any) -> Array:
    terms, places = np.asarray(rows), np.asarray(indices)
    along = read_axis(axis, terms.ndim - places.ndim + 1)
    (extent,) = (int(str(size)) for size in read_shape(count))
    rest = (*terms.shape[:along], extent, *terms.shape[along + places.ndim :])
    dtype = np.result_type(terms, np.float32 if terms.dtype.kind == "f" else np.int32)
    return scattered_sum(places, terms.astype(dtype), axis=along, shape=rest)


@function(
    "the sum of the rows of each index from 0 to count - 1, in order or in any, in f32 "
    "(integers in i32)",
    eager=_summed,
    example="""
    >>> ck.segment_sum(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1, 1]), 3)
    array([[0., 0.],
           [4., 6.],
           [0., 0.]])
    """,
)
def segment_sum(
    scope: Scope,
    node: Located,
    rows: Item,
    indices: Item,
    count: Item,
    axis: Item = 0,
    ordered: Item = True,
) -> Tensor:
    """Sum the rows of each index from 0 to below ``count``; errors as of :func:`scatter`."""
    terms = _counted(scope, node, emit.expect_tensor(scope, node, _SEGMENTS, rows))
    places = _indices(scope, node, _SEGMENTS, indices)
    new = len(places.shape)
    rank = len(terms.shape) - new + 1
    if rank < 1:
        raise ValueError(
            f"the rows have {len(terms.shape)} axes and the indices {new}",
            "the first axes of the rows are those of the indices",
        )
    along = _axis(axis, rank)
    extent = read_count_of(scope, count)
    shape = (*terms.shape[:along], extent, *terms.shape[along + new :])
    terms = _rows(scope, node, _SEGMENTS, terms, _taken(shape, places, along))
    origins = ["ck.segment_sum"] * rank
    like = Tensor(value=terms.value, shape=shape, axes=tuple(range(rank)), origins=tuple(origins))
    return _appended(scope, node, SCATTER_ADD, (places, terms), along, like, ordered)


def read_count_of(scope: Scope, count: Item) -> Extent:
    """Return how many rows a result has: a number, or a dim."""
    if not is_extent(count) or (isinstance(count, int) and count < 0):
        raise ValueError(f"the count is {describe(count)}", "legal: an integer from 0, or a dim")
    return scope.unit.derived.extent(count)


def _taken(shape: Sequence[Extent], indices: Tensor, axis: int) -> tuple[Extent, ...]:
    """Return the shape of the rows that are written at indices of an axis."""
    return (*shape[:axis], *indices.shape, *shape[axis + 1 :])


def _axis(axis: Item, rank: int) -> int:
    if not 1 <= rank <= MOST_AXES:
        raise ValueError(f"the tensor has {rank} axes", f"legal: 1 to {MOST_AXES}")
    return read_axis(axis, rank)


def _indices(scope: Scope, node: Located, name: str, item: Item) -> Tensor:
    indices = emit.widened(scope, node, emit.expect_tensor(scope, node, name, item))
    if indices.dtype not in INDEX_DTYPES:
        problem = f"the indices are {indices.dtype}"
        raise scope.error("F066", node, op=name, problem=problem, advice="legal: i32, i64")
    return indices


def _rows(scope: Scope, node: Located, name: str, item: Item, shape: tuple[Extent, ...]) -> Tensor:
    return emit.broadcast_to(scope, node, emit.expect_tensor(scope, node, name, item), shape)


def _counted(scope: Scope, node: Located, tensor: Tensor) -> Tensor:
    """Return a tensor in a dtype that is added: 8-bit floats in f32, other integers in i32."""
    if tensor.dtype.encoding:
        return emit.widened(scope, node, tensor)
    return emit.cast(scope, node, tensor, i32) if tensor.dtype == i8 else tensor


def _appended(
    scope: Scope,
    node: Located,
    op: str,
    operands: Sequence[Tensor],
    axis: int,
    like: Tensor,
    ordered: Item,
) -> Tensor:
    dtypes = tuple(operand.dtype for operand in operands)
    if OPS[op].dtype.apply(dtypes, {}) is None:
        problem = f"tensors of {' and '.join(map(str, dtypes[1:]))} are not taken"
        raise scope.error("F066", node, op=op, problem=problem, advice=OPS[op].dtype.text)
    for dim in {dim for extent in like.shape for dim in plain_dims(extent)}:
        emit.number(scope, node, dim)
    value = scope.unit.append(
        op,
        *(emit.materialise(scope, node, operand) for operand in operands),
        attrs={
            "axis": axis,
            IN_PLACE: int(operands[-1].value in scope.unit.in_place),
            UNORDERED: int(not read_flag("ordered", ordered)),
        },
        shape=tuple(like.shape),
        span=scope.span(node),
    )
    return Tensor.plain(value, like.origins)
