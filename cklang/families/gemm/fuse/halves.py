# SPDX-License-Identifier: MIT
"""Two parts of the columns of one product, as products by two parts of its right operand.

``y = x @ w.T + b`` and ``ck.silu(y[:, :n]) * y[:, n:]`` are ``ck.silu(x @ w[:n].T + b[:n]) * (x @
w[n:].T + b[n:])``: a pair (:mod:`.pairs`), which one kernel computes without storing y. Every
other column, ``y[:, ::2]`` and ``y[:, 1::2]``, likewise. What is done here is only where

- nothing reads y, or what leads from the product to it, but two slices of its last axis of one
  shape, and
- pointwise operations that nothing else reads lead from both to one value: else two products are
  no pair, and one product of all columns loads the left operand once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from cklang.families.gemm.fuse.pairs import PRODUCTS
from cklang.ir.nodes import Function, Operation, Value, make_attrs
from cklang.ir.ops import OPS, Kind
from cklang.ir.rewrite import FreshNames, needed_operations
from cklang.ir.views import SLICE, bounds_of, steps_of, written


def _is_elementwise(operation: Operation) -> bool:
    return OPS[operation.op].kind in (Kind.POINTWISE, Kind.CAST)


def with_halves(function: Function) -> Function:
    """Return a function in which products whose two halves meet are two products."""
    if not any(operation.op == SLICE for operation in function.body):
        return function
    graph = _Graph.of(function)
    replaced: dict[str, list[Operation]] = {}
    names = FreshNames(function)
    for slices in graph.pairs():
        parts = {piece.result.name: _Part(graph, piece, names) for piece in slices}
        if all(part.is_of_a_product() for part in parts.values()):
            replaced |= {name: part.body for name, part in parts.items()}
    if not replaced:
        return function
    body = [
        operation for own in function.body for operation in replaced.get(own.result.name, [own])
    ]
    return replace(function, body=tuple(needed_operations(body, function.results)))


@dataclass(frozen=True, slots=True)
class _Graph:
    """The operation that defines each value, and its readers."""

    makers: Mapping[str, Operation]
    readers: Mapping[str, Sequence[Operation]]
    results: frozenset[str]

    @classmethod
    def of(cls, function: Function) -> _Graph:
        readers: dict[str, list[Operation]] = {}
        for operation in function.body:
            for name in {operand.name for operand in operation.operands}:
                readers.setdefault(name, []).append(operation)
        results = frozenset(value.name for value in function.results)
        return cls(function.definitions(), readers, results)

    def pairs(self) -> Iterator[tuple[Operation, Operation]]:
        """Yield two slices that are all that is read of a value, and that meet."""
        for name, readers in self.readers.items():
            if name in self.results or len(readers) != 2:
                continue
            one, other = readers
            is_pair = one.result.type == other.result.type and all(map(_is_of_columns, readers))
            if is_pair and set(self.ahead(one)) & set(self.ahead(other)):
                yield one, other

    def ahead(self, operation: Operation) -> Iterator[str]:
        """Yield the values to which elementwise operations lead that nothing else reads."""
        name = operation.result.name
        while name not in self.results and len(self.readers.get(name, ())) == 1:
            (reader,) = self.readers[name]
            if not _is_elementwise(reader):
                return
            name = reader.result.name
            yield name

    def is_read(self, value: Value, times: int) -> bool:
        """Whether a value is no result and has so many readers."""
        return value.name not in self.results and len(self.readers.get(value.name, ())) == times


def _is_of_columns(operation: Operation) -> bool:
    """Whether an operation takes part of the last axis, and the others as they are."""
    if operation.op != SLICE:
        return False
    shape = operation.operands[0].type.shape
    starts, stops = (bounds_of(operation, name) for name in ("start", "stop"))
    taken = list(zip(starts, stops, steps_of(operation), strict=True))[:-1]
    is_whole = taken == [(0, extent, 1) for extent in shape[:-1]]
    return is_whole and operation.attr("axes") == tuple(range(len(shape)))


class _Part:
    """The operations that compute part of the columns of a value."""

    def __init__(self, graph: _Graph, part: Operation, names: FreshNames) -> None:
        self.body: list[Operation] = []
        self._graph = graph
        self._slice = part
        self._names = names
        self._products = 0

    def is_of_a_product(self) -> bool:
        """Make the operations; tell whether they are those of one product."""
        (source,) = self._slice.operands
        result = self._of(source, self._slice.result)
        return result is not None and self._products == 1

    def _of(self, value: Value, result: Value | None = None) -> Value | None:
        """Return part of a value; None if more than the two slices read its product."""
        maker = self._graph.makers.get(value.name)
        if maker is None or not (_is_elementwise(maker) or maker.op in ("broadcast", *PRODUCTS)):
            return self._part(value, result)
        if maker.op == "broadcast":
            return self._repeated(maker, result)
        before = self._products
        if maker.op in PRODUCTS:
            left, right, *ends = maker.operands
            self._products += 1
            operands: tuple[Value, ...] = (left, self._part(right), *ends)
        else:
            parts = [self._of(operand) for operand in maker.operands]
            operands = tuple(part for part in parts if part is not None)
            if len(operands) < len(parts):
                return None
        readers = 1 if result is None else 2
        if self._products > before and not self._graph.is_read(value, readers):
            return None
        return self._append(maker, operands, value, result)

    def _repeated(self, maker: Operation, result: Value | None) -> Value | None:
        (source,) = maker.operands
        dims = maker.attr("dims")
        last = maker.result.type.rank - 1
        part: Value | None = source
        # Axes rise: the columns are the last one of the source too, if it has them.
        if isinstance(dims, tuple) and last in dims and source.type.shape[-1] != 1:
            part = self._of(source)
        return None if part is None else self._append(maker, (part,), maker.result, result)

    def _part(self, value: Value, result: Value | None = None) -> Value:
        """Return the slice of a value along its last axis."""
        rank = value.type.rank
        start, stop = (bounds_of(self._slice, name)[-1] for name in ("start", "stop"))
        attrs = make_attrs(
            axes=tuple(range(rank)),
            start=(*(0,) * (rank - 1), written(start)),
            stop=(*map(written, value.type.shape[:-1]), written(stop)),
            step=(*(1,) * (rank - 1), steps_of(self._slice)[-1]),
        )
        part = replace(self._slice, attrs=attrs)
        return self._append(part, (value,), value, result)

    def _append(
        self, maker: Operation, operands: tuple[Value, ...], value: Value, result: Value | None
    ) -> Value:
        """Return the result of an operation like ``maker``, as ``value`` with fewer columns."""
        if result is None:
            shape = (*value.type.shape[:-1], self._slice.result.type.shape[-1])
            name = self._names.new("part")
            result = Value(name=name, type=replace(value.type, shape=shape))
        self.body.append(replace(maker, operands=operands, result=result))
        return result
