# SPDX-License-Identifier: MIT
"""Rows are taken of tensors as they are stored: before these repeat along other axes, not after."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from cklang.ir.emitter import repeated_axes
from cklang.ir.indices import GATHER_AXES, TAKE, TAKE_ALONG, take_axes
from cklang.ir.nodes import Function, Operation
from cklang.ir.rewrite import FreshNames, applied, needed_operations


def with_taken_first(function: Function) -> Function:
    """Return a function that takes rows first and repeats them then.

    Where the tensor repeats along the axis of its rows, all of them are equal and none is taken.

    Example:
        >>> from cklang.ir.parser import parse_function
        >>> f = parse_function("func @f(%x: f32[N], %ids: i32[R]) -> f32[R, C] { "
        ...                    "%0: f32[N, C] = broadcast(%x) {dims = [0]} "
        ...                    "%1: f32[R, C] = take(%0, %ids) {axis = 0} return %1 }")
        >>> [operation.op for operation in with_taken_first(f).body]
        ['take', 'broadcast']
    """
    definitions, names = function.definitions(), FreshNames(function)
    body: list[Operation] = []
    for operation in function.body:
        body += _with_taken_first(operation, definitions, names)
    if all(new is old for new, old in zip(body, function.body, strict=False)):
        return function
    return replace(function, body=tuple(needed_operations(body, function.results)))


def _with_taken_first(
    operation: Operation, definitions: Mapping[str, Operation], names: FreshNames
) -> Iterator[Operation]:
    cast, broadcast = _repetition(operation, definitions)
    if broadcast is None:
        yield operation
        return
    (rows,), (repeated, indices) = broadcast.operands, operation.operands
    axis, dims = int(str(operation.attr("axis"))), repeated_axes(broadcast)
    if operation.op == TAKE_ALONG:
        if dims == (axis,):  # all rows are this one
            last = applied(names, "taken", TAKE, rows, indices, at=operation, axis=0)
            yield from _as_result(last, operation, cast, names)
        else:
            yield operation
        return
    if axis in dims:
        take = applied(names, "taken", TAKE, rows, indices, at=operation, axis=dims.index(axis))
        yield take
        rows = take.result
    elif indices.name in definitions:  # a computed index may be outside: of no rows, 0 is taken
        yield operation
        return
    of_table, of_indices = take_axes(repeated.type.rank, indices.type.rank, axis)
    kept = tuple(
        place
        for place, (table_axis, index_axis) in enumerate(zip(of_table, of_indices, strict=True))
        if table_axis in dims or (axis in dims and index_axis is not None)
    )
    shape = operation.result.type.shape
    last = applied(names, "taken", "broadcast", rows, at=operation, shape=shape, dims=kept)
    yield from _as_result(last, operation, cast, names)


def _as_result(
    last: Operation, operation: Operation, cast: Operation | None, names: FreshNames
) -> Iterator[Operation]:
    """Yield an operation that gives the result of another one, and the cast of its elements."""
    if cast is not None:
        yield last
        dtype = operation.result.type.dtype
        last = applied(names, "taken", "cast", last.result, at=operation, to=dtype)
    yield replace(last, result=operation.result)


def _repetition(
    operation: Operation, definitions: Mapping[str, Operation]
) -> tuple[Operation | None, Operation | None]:
    """Return the cast and the broadcast that made the tensor whose rows are taken."""
    if operation.op not in GATHER_AXES:
        return None, None
    cast, source = None, definitions.get(operation.operands[0].name)
    if source is not None and source.op == "cast":
        cast, source = source, definitions.get(source.operands[0].name)
    if source is None or source.op != "broadcast":
        return None, None
    (value,), shape = source.operands, source.result.type.shape
    is_whole = value.type.shape == tuple(shape[axis] for axis in repeated_axes(source))
    return (cast, source) if value.type.rank and is_whole else (None, None)
