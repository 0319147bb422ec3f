# SPDX-License-Identifier: MIT
"""Operations of the IR with what lowering knows of them: no cast, broadcast or view without need.

Two transposes in a row are one, and so are two reshapes.
"""

from typing import TypeAlias

from cklang.ir.builder import Builder
from cklang.ir.emitter import Emitter
from cklang.ir.nodes import Value
from cklang.ir.views import VIEWS
from cklang.torch.backend.extents import Shape
from cklang.types import DType, TensorType, bool_, f32, i32, i64

Scalar: TypeAlias = bool | int | float


_SHARED = ("broadcast", "cast", "constant", *VIEWS, "transpose")
"""Operations that are not repeated, so that kernels see that they read the same."""


class Operations(Emitter):
    """Builds a function of the IR."""

    def __init__(self, name: str) -> None:
        super().__init__(Builder(name), _SHARED)
        self._params: set[str] = set()

    def parameter(self, name: str, tensor: TensorType) -> Value:
        """Add a parameter."""
        self._params.add(name)
        return self.builder.param(name, tensor)

    def constant(self, number: Scalar, dtype: DType, shape: Shape = ()) -> Value:
        """Return a number of f32, i32, i64 or bool, repeated to a shape."""
        kinds = {f32: float, i32: int, i64: int, bool_: bool}
        value = self.cast(self.append("constant", value=kinds[dtype](number)), dtype)
        return self.broadcast(value, shape, ())

    def reshaped(self, value: Value, shape: Shape) -> Value:
        """Return the elements of a value in another shape."""
        source = self.source(value)
        if value.type.shape == shape or source is None:
            return super().reshaped(value, shape)
        if source.op == "reshape":
            return self.reshaped(source.operands[0], shape)
        if source.op == "cast" and source.operands[0].name in self._params:
            # A view of a parameter needs no memory, one of what is computed of it does.
            return self.cast(self.reshaped(source.operands[0], shape), value.type.dtype)
        return super().reshaped(value, shape)

    @property
    def params(self) -> frozenset[str]:
        """The names of the parameters."""
        return frozenset(self._params)
