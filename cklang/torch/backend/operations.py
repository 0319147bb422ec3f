# SPDX-License-Identifier: MIT
"""Operations of the IR with what lowering knows of them: no cast, broadcast or view without need.

Two transposes in a row are one, and so are two reshapes.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from cklang.ir.builder import Builder
from cklang.ir.nodes import Attr, Operation, Value, attr_key
from cklang.ir.views import VIEWS
from cklang.source import Span
from cklang.torch.backend.extents import Shape
from cklang.torch.backend.refusal import Unsupported
from cklang.types import DType, TensorType, bool_, f32, i32, i64

Scalar: TypeAlias = bool | int | float


_SHARED = ("broadcast", "cast", "constant", *VIEWS, "transpose")
"""Operations that are not repeated, so that kernels see that they read the same."""


class Operations:
    """Builds a function of the IR; remembers what computes each value."""

    def __init__(self, name: str) -> None:
        self.builder = Builder(name)
        self.span: Span | None = None
        """The place of the node that is being lowered."""
        self._sources: dict[str, Operation] = {}
        self._params: set[str] = set()
        self._known: dict[object, Value] = {}

    def append(self, op: str, *operands: Value, shape: Shape | None = None, **attrs: Attr) -> Value:
        """Append an operation of the IR; a view or a cast that is there already is that one."""
        key = op, operands, shape, attr_key(tuple(sorted(attrs.items())))
        known = self._known.get(key)
        if known is not None:
            return known
        value = self.builder.append(op, *operands, shape=shape, span=self.span, **attrs)
        self._sources[value.name] = Operation(
            op=op, operands=operands, attrs=tuple(sorted(attrs.items())), result=value
        )
        if op in _SHARED:
            self._known[key] = value
        return value

    def parameter(self, name: str, tensor: TensorType) -> Value:
        """Add a parameter."""
        self._params.add(name)
        return self.builder.param(name, tensor)

    def cast(self, value: Value, to: DType) -> Value:
        """Convert a value; itself if it has the dtype."""
        if value.type.dtype == to:
            return value
        if i64 in (value.type.dtype, to):
            raise Unsupported("kernels only read int64 as indices")
        return self.append("cast", value, to=to)

    def constant(self, number: Scalar, dtype: DType, shape: Shape = ()) -> Value:
        """Return a number of f32, i32 or bool, repeated to a shape."""
        kinds = {f32: float, i32: int, bool_: bool}
        value = self.append("constant", value=kinds[dtype](number))
        return self.broadcast(value, shape, ())

    def broadcast(self, value: Value, shape: Shape, dims: tuple[int, ...]) -> Value:
        """Repeat a value to a shape; ``dims`` has the result axis of each of its axes."""
        if value.type.shape == shape:
            return value
        return self.append("broadcast", value, shape=shape, dims=dims)

    def transposed(self, value: Value, perm: tuple[int, ...]) -> Value:
        """Put axes in another order; of two orders one after the other, the one that both make."""
        source = self._sources.get(value.name)
        if source is not None and source.op == "transpose":
            first: Any = source.attr("perm")
            return self.transposed(source.operands[0], tuple(first[axis] for axis in perm))
        if perm == tuple(range(len(perm))):
            return value
        return self.append("transpose", value, perm=perm)

    def reshaped(self, value: Value, shape: Shape) -> Value:
        """Return the elements of a value in another shape."""
        if value.type.shape == shape:
            return value
        source = self._sources.get(value.name)
        if source is not None and source.op == "reshape":
            return self.reshaped(source.operands[0], shape)
        if source is not None and source.op == "cast" and source.operands[0].name in self._params:
            # A view of a parameter needs no memory, one of what is computed of it does.
            return self.cast(self.reshaped(source.operands[0], shape), value.type.dtype)
        return self.append("reshape", value, shape=shape)

    @property
    def params(self) -> frozenset[str]:
        """The names of the parameters."""
        return frozenset(self._params)

    def source(self, value: Value) -> Operation | None:
        """Return the operation that computes a value; None of a parameter."""
        return self._sources.get(value.name)
