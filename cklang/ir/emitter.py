# SPDX-License-Identifier: MIT
"""Append operations to a function without repeating them: the base of what emits the IR."""

from collections.abc import Collection, Mapping

from cklang.ir.builder import Builder
from cklang.ir.nodes import Attr, Operation, Value, attr_key, make_attrs
from cklang.ir.rules import Shape
from cklang.source import Span
from cklang.types import DType


class Emitter:
    """Appends operations to a function; equal operations are appended once.

    ``shared`` are the ops that are not repeated; all of them if it is None.
    """

    def __init__(self, builder: Builder, shared: Collection[str] | None = None) -> None:
        self.builder = builder
        self.span: Span | None = None
        """The place in the user's program that operations are appended for."""
        self._shared = shared
        self._appended: dict[object, Value] = {}
        self._sources: dict[str, Operation] = {}

    def append(self, op: str, *operands: Value, shape: Shape | None = None, **attrs: Attr) -> Value:
        """Return the value of ``op``; arguments as those of :meth:`Builder.append`."""
        return self.apply(op, operands, attrs, shape)

    def apply(
        self,
        op: str,
        operands: tuple[Value, ...],
        attrs: Mapping[str, Attr],
        shape: Shape | None = None,
        span: Span | None = None,
    ) -> Value:
        """Return the value of ``op`` with its attributes in a mapping."""
        key = (op, operands, attr_key(make_attrs(**attrs)), shape)
        value = self._appended.get(key)
        if value is None:
            value = self.builder.apply(op, operands, attrs, shape=shape, span=span or self.span)
            self._sources[value.name] = self.builder.last
            if self._shared is None or op in self._shared:
                self._appended[key] = value
        return value

    def source(self, value: Value, op: str | None = None) -> Operation | None:
        """Return the operation that computes a value, if it is ``op``; None of a parameter."""
        operation = self._sources.get(value.name)
        return operation if operation is None or op in (None, operation.op) else None

    def cast(self, value: Value, to: DType) -> Value:
        """Convert a value; itself if it has the dtype."""
        return value if value.type.dtype == to else self.append("cast", value, to=to)

    def broadcast(self, value: Value, shape: Shape, dims: tuple[int, ...]) -> Value:
        """Repeat a value to a shape; ``dims`` has the result axis of each of its axes."""
        if value.type.shape == shape:
            return value
        return self.append("broadcast", value, shape=shape, dims=dims)

    def transposed(self, value: Value, perm: tuple[int, ...]) -> Value:
        """Put axes in another order; of two orders one after the other, the one that both make."""
        source = self.source(value, "transpose")
        if source is not None:
            first = permutation(source)
            return self.transposed(source.operands[0], tuple(first[axis] for axis in perm))
        if perm == tuple(range(len(perm))):
            return value
        return self.append("transpose", value, perm=perm)

    def reshaped(self, value: Value, shape: Shape) -> Value:
        """Return the elements of a value in another shape."""
        return value if value.type.shape == shape else self.append("reshape", value, shape=shape)


def permutation(transpose: Operation) -> tuple[int, ...]:
    """Return the order of axes that a transpose makes."""
    perm = transpose.attr("perm")
    return tuple(int(str(axis)) for axis in perm) if isinstance(perm, tuple) else ()


def repeated_axes(broadcast: Operation) -> tuple[int, ...]:
    """Return which axes of its result a broadcast's operand has; along the others it repeats."""
    dims = broadcast.attr("dims")
    return tuple(int(str(axis)) for axis in dims) if isinstance(dims, tuple) else ()
