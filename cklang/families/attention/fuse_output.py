# SPDX-License-Identifier: MIT
"""What follows o becomes one more function of an attention's kernel, called as o is stored.

The function sees an element of o before it is rounded, in f32, and where it is: the axes of o as
the indices ``b``, ``h``, ``i`` and ``j``, of packed sequences without ``b``. It reads stored values
of the program at these, as a score function reads tensors.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from cklang.errors import error
from cklang.fusion.plan import Read
from cklang.fusion.sites import Axes
from cklang.ir.attention import region_params
from cklang.ir.builder import Builder
from cklang.ir.nodes import Function, Operation, Value
from cklang.source import Span
from cklang.types import DType, f32

INDICES: Mapping[int, tuple[str, ...]] = MappingProxyType(
    {4: ("b", "h", "i", "j"), 3: ("i", "h", "j")}
)
"""What the axes of o are called, by their number."""


class OutputRegion:
    """The region ``output`` under construction.

    Args:
        anchor: What gives the element: an attention, or an op of another family with this hole.
        tensors: What other functions of the kernel read; the region's own tensors follow them.
        indices: The names of the result's axes, by their number.
    """

    def __init__(
        self,
        anchor: Operation,
        tensors: Sequence[Value] = (),
        indices: Mapping[int, tuple[str, ...]] = INDICES,
    ) -> None:
        self.tensors = list(tensors)
        self.reads: list[Read] = []
        self._indices = indices
        self._anchor = anchor
        self._builder = Builder("output")
        self._params = {
            param.name: self._builder.param(param.name, param.type)
            for param in region_params("output", [])
        }

    @property
    def accumulator(self) -> Value:
        """An element of o."""
        return self._params["o"]

    def read(self, value: Value, axes: Axes) -> Value:
        """Return a tensor at the indices that its axes run with, 0 for those of extent 1."""
        if value.type.dtype.encoding:
            raise error(
                "X018",
                at=self._anchor.span,
                operation=self._anchor.op,
                operand=value,
                dtype=value.type.dtype,
            )
        if value not in self.tensors:
            self.tensors.append(value)
        name = f"d{self.tensors.index(value)}"
        if name not in self._params:
            self._params[name] = self._builder.param(name, value.type)
        names = self._indices[len(axes)]
        at = [
            self._params[names[axes.index(axis)]] if axis in axes else self._builder.constant(0)
            for axis in range(value.type.rank)
        ]
        return self._builder.append("element", self._params[name], *at)

    def apply(self, operation: Operation, operands: tuple[Value, ...]) -> Value:
        """Return the result of an operation of the program on rank-0 values."""
        return self._builder.apply(
            operation.op,
            operands,
            dict(operation.attrs),
            span=operation.span,
            origins=(operation.result.name,),
        )

    def cast(self, value: Value, to: DType, span: Span | None, origin: str = "") -> Value:
        """Return ``value`` as ``to``; itself when it has that dtype."""
        if value.type.dtype == to:
            return value
        origins = (origin,) if origin else ()
        return self._builder.apply("cast", [value], {"to": to}, span=span, origins=origins)

    def finish(self, *results: Value) -> Function:
        """Return the region as a function that gives ``results`` as f32."""
        return self._builder.finish(*(self.cast(result, f32, None) for result in results))
