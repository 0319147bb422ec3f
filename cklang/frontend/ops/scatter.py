# SPDX-License-Identifier: MIT
"""Rows written or added at indices: ``ck.scatter``, ``ck.scatter_add`` and ``ck.segment_sum``."""

from __future__ import annotations

from collections.abc import Sequence

from cklang.frontend import emit
from cklang.frontend.ops.axes import read_axis
from cklang.frontend.scope import Scope
from cklang.frontend.text import Located
from cklang.frontend.values import Item, Tensor, describe
from cklang.ir.indices import INDEX_DTYPES
from cklang.ir.ops import OPS
from cklang.ir.scatter import IN_PLACE, MOST_AXES, SCATTER, SCATTER_ADD, UNORDERED
from cklang.types import Dim, Extent, i8, i32, plain_dims

__all__ = ["scatter", "scatter_add", "segment_sum"]

_SEGMENTS = "segment_sum"


def scatter(
    scope: Scope, node: Located, x: Item, indices: Item, rows: Item, axis: Item, ordered: Item
) -> Tensor:
    """Write rows at indices of an axis of ``x``.

    Raises:
        CkTypeError: F066 for indices that are no integers, or tensors of dtypes that differ.
        CkValueError: F067 for an axis that there is not, or an order that is no constant; F042 for
            rows of another shape.
    """
    base, places = _tensor(scope, node, SCATTER, x), _indices(scope, node, SCATTER, indices)
    along = _axis(axis, len(base.shape))
    terms = _rows(scope, node, SCATTER, rows, _taken(base.shape, places, along))
    if terms.dtype != base.dtype:
        problem = f"rows of {terms.dtype} are not written into a tensor of {base.dtype}"
        advice = f"cast the rows: rows.to(ck.{base.dtype})"
        raise scope.error("F066", node, op=SCATTER, problem=problem, advice=advice)
    return _appended(scope, node, SCATTER, (places, terms, base), along, base, ordered)


def scatter_add(
    scope: Scope, node: Located, x: Item, indices: Item, rows: Item, axis: Item, ordered: Item
) -> Tensor:
    """Add rows at indices of an axis of ``x``; errors as of :func:`scatter`."""
    base = _counted(scope, node, _tensor(scope, node, SCATTER_ADD, x))
    places = _indices(scope, node, SCATTER_ADD, indices)
    along = _axis(axis, len(base.shape))
    terms = _rows(scope, node, SCATTER_ADD, rows, _taken(base.shape, places, along))
    terms = _counted(scope, node, terms)
    return _appended(scope, node, SCATTER_ADD, (places, terms, base), along, base, ordered)


def segment_sum(
    scope: Scope,
    node: Located,
    rows: Item,
    indices: Item,
    count: Item,
    axis: Item,
    ordered: Item,
) -> Tensor:
    """Sum the rows of each index from 0 to below ``count``; errors as of :func:`scatter`."""
    terms = _counted(scope, node, _tensor(scope, node, _SEGMENTS, rows))
    places = _indices(scope, node, _SEGMENTS, indices)
    new = len(places.shape)
    rank = len(terms.shape) - new + 1
    if rank < 1:
        raise ValueError(
            f"the rows have {len(terms.shape)} axes and the indices {new}",
            "the first axes of the rows are those of the indices",
        )
    along = _axis(axis, rank)
    extent = _extent(scope, count)
    shape = (*terms.shape[:along], extent, *terms.shape[along + new :])
    terms = _rows(scope, node, _SEGMENTS, terms, _taken(shape, places, along))
    origins = ["ck.segment_sum"] * rank
    like = Tensor(value=terms.value, shape=shape, axes=tuple(range(rank)), origins=tuple(origins))
    return _appended(scope, node, SCATTER_ADD, (places, terms), along, like, ordered)


def _extent(scope: Scope, count: Item) -> Extent:
    if not isinstance(count, Dim | int) or isinstance(count, bool) or _is_negative(count):
        raise ValueError(f"the count is {describe(count)}", "legal: an integer from 0, or a dim")
    return scope.unit.derived.extent(count)


def _is_negative(count: Dim | int) -> bool:
    return isinstance(count, int) and count < 0


def _taken(shape: Sequence[Extent], indices: Tensor, axis: int) -> tuple[Extent, ...]:
    """Return the shape of the rows that are written at indices of an axis."""
    return (*shape[:axis], *indices.shape, *shape[axis + 1 :])


def _axis(axis: Item, rank: int) -> int:
    if not 1 <= rank <= MOST_AXES:
        raise ValueError(f"the tensor has {rank} axes", f"legal: 1 to {MOST_AXES}")
    return read_axis(axis, rank)


def _flag(ordered: Item) -> bool:
    if isinstance(ordered, bool):
        return ordered
    raise ValueError(f"ordered is {describe(ordered)}", "legal: True, False")


def _tensor(scope: Scope, node: Located, name: str, item: Item) -> Tensor:
    if isinstance(item, Tensor):
        return item
    problem = f"it takes a tensor, not {describe(item)}"
    advice = "pass a parameter, or what is computed of parameters"
    raise scope.error("F066", node, op=name, problem=problem, advice=advice)


def _indices(scope: Scope, node: Located, name: str, item: Item) -> Tensor:
    indices = emit.widened(scope, node, _tensor(scope, node, name, item))
    if indices.dtype not in INDEX_DTYPES:
        problem = f"the indices are {indices.dtype}"
        raise scope.error("F066", node, op=name, problem=problem, advice="legal: i32, i64")
    return indices


def _rows(scope: Scope, node: Located, name: str, item: Item, shape: tuple[Extent, ...]) -> Tensor:
    return emit.broadcast_to(scope, node, _tensor(scope, node, name, item), shape)


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
    dtypes = tuple(each.dtype for each in operands)
    if OPS[op].dtype.apply(dtypes, {}) is None:
        problem = f"tensors of {' and '.join(map(str, dtypes[1:]))} are not taken"
        raise scope.error("F066", node, op=op, problem=problem, advice=OPS[op].dtype.text)
    for dim in {dim for extent in like.shape for dim in plain_dims(extent)}:
        emit.number(scope, node, dim)
    value = scope.unit.append(
        op,
        *(emit.materialise(scope, node, each) for each in operands),
        attrs={
            "axis": axis,
            IN_PLACE: int(operands[-1].value in scope.unit.in_place),
            UNORDERED: int(not _flag(ordered)),
        },
        shape=tuple(like.shape),
        span=scope.span(node),
    )
    return Tensor.plain(value, like.origins)
