# SPDX-License-Identifier: MIT
"""Before a program is partitioned: which values are written where others are stored.

A result is memory of its own, and so is each part of a join, which its kernel writes into the
memory of the whole. Where a value cannot be written there, because it is a parameter, a view, or
has a place already, a transpose that keeps all axes copies it: an operation like any other.

``apart`` asks that a value is in memory. Where it is written there anyway, as a result or a part of
a join, the operation is taken out, and where it is an index array, which a call checks.

Casts and other functions of one operand move from joins and from reshaped values to what these are
made of, where kernels compute them; what is reshaped is not stored wider for that.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from cklang.ir.nodes import Attrs, Function, Operation, Value, make_attrs
from cklang.ir.ops import OPS, Kind
from cklang.ir.rewrite import FreshNames, needed_operations
from cklang.ir.views import APART, RESHAPE
from cklang.source import Span
from cklang.types import DType, TensorType
from cklang.types import Kind as NumberKind

_NOT_WRITTEN = (Kind.VIEW, Kind.SHAPE, Kind.CONSTANT, Kind.EXTENT, Kind.INDEX)
"""What no kernel writes as it is."""


def placed(function: Function) -> Function:
    """Return a function in which every result and every part of a join is a kernel's to write."""
    function = _Mover(_without_idle_aparts(function)).run()
    return _Copier(function).run()


def written_through(function: Function) -> dict[str, Operation]:
    """Return the results that are reshaped values, by the name of the value that is written there.

    A kernel writes the value into the memory of the result, in the shape that it has itself.
    """
    uses = _uses(function)
    definitions = function.definitions()
    through = {}
    for operation in function.body:
        if operation.op == RESHAPE and operation.result in function.results:
            (source,) = operation.operands
            writer = definitions.get(source.name)
            if writer is not None and uses[source.name] == 1 and _is_written(writer):
                through[source.name] = operation
    return through


def copy_operation(value: Value, result: Value, span: Span | None) -> Operation:
    """Return the operation that copies a value: a transpose that keeps all axes."""
    perm = make_attrs(perm=tuple(range(value.type.rank)))
    return Operation(op="transpose", operands=(value,), attrs=perm, result=result, span=span)


def _without_idle_aparts(function: Function) -> Function:
    """Return a function in which every ``apart`` is of a value that would not be in memory."""
    if not any(operation.op == APART for operation in function.body):
        return function
    uses = _uses(function)
    definitions = function.definitions()
    final = set(_written_anyway(function))
    same: dict[str, Value] = {}
    body: list[Operation] = []
    for operation in function.body:
        operands = tuple(same.get(value.name, value) for value in operation.operands)
        operation = operation.of(operands)
        if operation.op == APART:
            (value,) = operands
            writer = definitions.get(value.name)
            is_index = writer is None and value.type.dtype.kind is NumberKind.INT
            is_last = operation.result.name in final and uses[operation.result.name] == 1
            if is_index or (is_last and value.name not in final and writer is not None):
                same[operation.result.name] = value
                final.add(value.name)
                continue
        body.append(operation)
    results = tuple(same.get(value.name, value) for value in function.results)
    return replace(function, body=tuple(body), results=results)


def _written_anyway(function: Function) -> Iterator[str]:
    """Yield the names of what is a result, or becomes one in another shape, or a part of a join."""
    results = {value.name for value in function.results}
    yield from results
    for operation in function.body:
        is_result = operation.op == RESHAPE and operation.result.name in results
        if is_result or _kind(operation) is Kind.JOIN:
            yield from (value.name for value in operation.operands)


def _kind(operation: Operation) -> Kind:
    return OPS[operation.op].kind


def _is_written(operation: Operation) -> bool:
    return _kind(operation) not in _NOT_WRITTEN


def _uses(function: Function) -> Counter[str]:
    """Return how often each value is an operand or a result, by name."""
    operands = [value.name for operation in function.body for value in operation.operands]
    return Counter([*operands, *(value.name for value in function.results)])


class _Copier:
    """Puts copies where a value cannot be written to its place."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.definitions = function.definitions()
        self.names = FreshNames(function)
        self.through = {operation.result.name for operation in written_through(function).values()}
        self.written = {value.name for value in function.results}
        """Values with a place of their own."""

    def run(self) -> Function:
        """Return the function with copies."""
        body: list[Operation] = []
        for operation in self.function.body:
            copies = self._parts(operation) if _kind(operation) is Kind.JOIN else {}
            body += copies.values()
            operands = tuple(
                copies[place].result if place in copies else value
                for place, value in enumerate(operation.operands)
            )
            body.append(operation.of(operands))
        results: list[Value] = []
        for value in self.function.results:
            writer = self.definitions.get(value.name)
            is_stored = writer is None or _kind(writer) in (Kind.VIEW, Kind.INDEX)
            if is_stored and value.name not in self.through:
                body.append(self._copy(value, writer))
                value = body[-1].result
            results.append(value)
        return replace(self.function, body=tuple(body), results=tuple(results))

    def _parts(self, join: Operation) -> dict[int, Operation]:
        """Return copies of the parts of a join that are not written for it."""
        copies = {}
        for place, value in enumerate(join.operands):
            writer = self.definitions.get(value.name)
            if writer is None or not _is_written(writer) or value.name in self.written:
                copies[place] = self._copy(value, join)
            self.written.add(value.name)
        return copies

    def _copy(self, value: Value, at: Operation | None) -> Operation:
        result = Value(name=self.names.new("copy"), type=value.type)
        return copy_operation(value, result, self.function.span if at is None else at.span)


class _Mover:
    """Moves functions of one operand through joins and views of what kernels compute."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.uses = _uses(function)
        self.names = FreshNames(function)
        self.definitions = function.definitions()

    def run(self) -> Function:
        """Return the function with what is moved, and without what nothing needs any more."""
        body: list[Operation] = []
        moved = False
        for operation in self.function.body:
            if self._is_function(operation) and self._leads_to_parts(operation):
                own = list(self._moved(operation, operation.operands[0], operation.result.name))
                self.definitions |= {operation.result.name: operation for operation in own}
                body += own
                moved = True
            else:
                body.append(operation)
        if not moved:
            return self.function
        return replace(self.function, body=tuple(needed_operations(body, self.function.results)))

    def _is_function(self, operation: Operation) -> bool:
        return len(operation.operands) == 1 and _kind(operation) in (Kind.CAST, Kind.POINTWISE)

    def _leads_to_parts(self, operation: Operation) -> bool:
        """Tell whether an operation should be applied to what its operand is made of."""
        (value,) = operation.operands
        widens = operation.result.type.dtype.bits > value.type.dtype.bits
        while True:
            writer = self.definitions.get(value.name)
            if writer is None or self.uses[value.name] != 1:
                return False
            if _kind(writer) is Kind.JOIN:
                return True
            if writer.op == RESHAPE:
                source = self.definitions.get(writer.operands[0].name)
                is_alone = self.uses[writer.operands[0].name] == 1
                if source is not None and is_alone and not widens and _is_written(source):
                    return True
            elif _kind(writer) is not Kind.SHAPE:
                return False
            (value,) = writer.operands

    def _moved(self, function: Operation, value: Value, name: str) -> Iterator[Operation]:
        """Yield what computes a function of ``value`` under a name."""
        dtype = function.result.type.dtype
        writer = self.definitions.get(value.name)
        passes = writer is not None and self.uses[value.name] == 1 and _passes(writer)
        if writer is None or not passes:
            yield _renamed(function, (value,), _of(name, dtype, value), function.attrs)
            return
        operands = []
        for operand in writer.operands:
            own = self.names.new("moved")
            self.uses[own] = 1
            yield from self._moved(function, operand, own)
            operands.append(_of(own, dtype, operand))
        yield _renamed(writer, operands, _of(name, dtype, value), writer.attrs)


def _passes(operation: Operation) -> bool:
    """Tell whether a function of one element may be applied before an operation."""
    return _kind(operation) in (Kind.JOIN, Kind.SHAPE) or operation.op == RESHAPE


def _of(name: str, dtype: DType, like: Value) -> Value:
    return Value(name=name, type=TensorType(dtype=dtype, shape=like.type.shape))


def _renamed(
    operation: Operation, operands: Sequence[Value], result: Value, attrs: Attrs
) -> Operation:
    return replace(operation, operands=tuple(operands), result=result, attrs=attrs)
