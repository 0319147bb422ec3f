# SPDX-License-Identifier: MIT
"""What rewrites of a function share: names for new values, and operations that results need."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from cklang.ir.infer import infer
from cklang.ir.nodes import Attr, Function, Operation, Value, make_attrs
from cklang.ir.rules import Shape


class FreshNames:
    """Gives names that no value of a function has.

    >>> from cklang.ir.parser import parse_function
    >>> names = FreshNames(parse_function("func @f(%copy0: f32[]) -> f32[] { return %copy0 }"))
    >>> names.new("copy"), names.new("copy")
    ('copy1', 'copy2')
    """

    def __init__(self, function: Function) -> None:
        self._taken = {value.name for value in function.values()}

    def new(self, stem: str) -> str:
        """Return a name of ``stem`` and a number, which is then taken."""
        count = 0
        while f"{stem}{count}" in self._taken:
            count += 1
        self._taken.add(f"{stem}{count}")
        return f"{stem}{count}"


def applied(
    names: FreshNames,
    stem: str,
    op: str,
    *operands: Value,
    at: Operation,
    shape: Shape | None = None,
    **attrs: Attr,
) -> Operation:
    """Return an operation in the place of ``at``, whose result has a new name of ``stem``."""
    types = [operand.type for operand in operands]
    type_ = infer(op, types, attrs, shape=shape, at=at.span)
    return Operation(
        op=op,
        operands=operands,
        attrs=make_attrs(**attrs),
        result=Value(name=names.new(stem), type=type_),
        span=at.span,
    )


def needed_operations(body: Sequence[Operation], results: Iterable[Value]) -> list[Operation]:
    """Return the operations that ``results`` depend on, in their order."""
    needed = {value.name for value in results}
    operations = []
    for operation in reversed(body):
        if operation.result.name in needed:
            needed |= {value.name for value in operation.operands}
            operations.append(operation)
    return operations[::-1]


def renamed(function: Function, result: Value) -> Function:
    """Return a function with another value in the place of its one result.

    The names of the other values that it computes begin with the result's, so that they are not
    those of a program that has the result.
    """
    names = {value.name for value in function.params}
    (last,) = function.results

    def own(value: Value) -> Value:
        if value == last:
            return result
        return value if value.name in names else replace(value, name=f"{result.name}_{value.name}")

    body = tuple(
        replace(
            operation,
            operands=tuple(map(own, operation.operands)),
            result=own(operation.result),
        )
        for operation in function.body
    )
    return replace(function, body=body, results=(result,))
