# SPDX-License-Identifier: MIT
"""The index of an extreme as reductions that kernels have: of the row, then of its indices.

The least index whose element equals the greatest element is the first of equal ones. Where the
greatest element is nan it is the least index of a nan, as in NumPy; without elements it is 0.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from cklang.ir.indices import ARANGE
from cklang.ir.nodes import Attr, Function, Operation, Value
from cklang.ir.reductions import reduced_axes
from cklang.ir.rewrite import FreshNames, applied
from cklang.ir.rules import Shape
from cklang.types import f32, i32
from cklang.widths import I32_MAX

_EXTREMES: Mapping[str, str] = MappingProxyType(
    {"reduce_argmax": "reduce_max", "reduce_argmin": "reduce_min"}
)
"""The reductions whose results are indices, with those of the elements."""


def with_extremes(function: Function) -> Function:
    """Return a function that computes indices of extremes by other reductions.

    Example:
        >>> from cklang.ir.parser import parse_function
        >>> f = parse_function("func @f(%x: i32[M, K]) -> i32[M] { "
        ...                    "%0: i32[M] = reduce_argmax(%x) {axes = [1]} return %0 }")
        >>> [each.op for each in with_extremes(f).body if each.op.startswith("reduce")]
        ['reduce_max', 'reduce_min']
    """
    if not any(step.op in _EXTREMES for step in function.body):
        return function
    body: list[Operation] = []
    names = FreshNames(function)
    for operation in function.body:
        if operation.op in _EXTREMES:
            body += _Index(operation, names).run()
        else:
            body.append(operation)
    return replace(function, body=tuple(body))


class _Index:
    """Writes the operations that compute one index."""

    def __init__(self, operation: Operation, names: FreshNames) -> None:
        """Begin."""
        self.operation = operation
        self.names = names
        self.body: list[Operation] = []

    def run(self) -> Iterator[Operation]:
        """Yield the operations; the last one has the name of the reduction's result."""
        operation = self.operation
        (x,), (axis,) = operation.operands, reduced_axes(operation)
        shape = x.type.shape
        rows = tuple(place for place in range(len(shape)) if place != axis)
        if x.type.dtype not in (f32, i32):
            x = self.apply("cast", x, to=f32)
        extreme = self.apply(_EXTREMES[operation.op], x, axes=(axis,))
        extreme = self.apply("broadcast", extreme, shape=shape, dims=rows)
        is_extreme = self.apply("eq", x, extreme)
        if x.type.dtype == f32:
            is_nan = self.apply("isnan", x)
            is_extreme = self.apply("logical_or", is_extreme, is_nan)
        index = self.apply(ARANGE, shape=(shape[axis],))
        index = self.apply("broadcast", index, shape=shape, dims=(axis,))
        none = self.filled(I32_MAX, shape)
        first = self.apply("where", is_extreme, index, none)
        first = self.apply("reduce_min", first, axes=(axis,))
        left = operation.result.type.shape
        is_none = self.apply("eq", first, self.filled(I32_MAX, left))
        result = self.apply("where", is_none, self.filled(0, left), first)
        last = self.body.pop()
        yield from self.body
        yield replace(last, result=Value(name=operation.result.name, type=result.type))

    def filled(self, number: int, shape: Shape) -> Value:
        """Return a number repeated to a shape."""
        constant = self.apply("constant", value=number)
        return self.apply("broadcast", constant, shape=shape, dims=()) if shape else constant

    def apply(self, op: str, *operands: Value, shape: Shape | None = None, **attrs: Attr) -> Value:
        """Add an operation and return its result."""
        at = self.operation
        self.body.append(applied(self.names, "extreme", op, *operands, at=at, shape=shape, **attrs))
        return self.body[-1].result
