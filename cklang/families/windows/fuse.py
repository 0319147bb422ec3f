# SPDX-License-Identifier: MIT
"""How fusion makes the kernel of a pooling, and what of it no window kernel takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import ClassVar

from cklang.fusion.explain import kernel_lines
from cklang.fusion.functions import Functions
from cklang.fusion.kernel import Epilogue, KernelMaker, Maker, spans_of
from cklang.fusion.plan import FusedKernel, Read, View
from cklang.fusion.unfuse import kernel_function, matrix_of
from cklang.ir.builder import Builder
from cklang.ir.emitter import Emitter
from cklang.ir.nodes import Function, Operation, Value, print_attr
from cklang.ir.pooling import AVG_POOL, MAX_POOL, expanded
from cklang.source import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedPool(FusedKernel):
    """One kernel: ``result = cast(epilogue(operation(a), reads…))`` of windows.

    ``perm`` of ``a`` and ``axes`` are in the order of the axes of ``operation``.
    """

    operation: Operation
    a: View
    epilogue: Function
    reads: tuple[Read, ...]
    result: Value
    axes: tuple[int, ...]
    spans: tuple[Span, ...] = field(default=(), compare=False)

    family: ClassVar[str] = "windows"

    @property
    def anchors(self) -> tuple[str, ...]:
        """The name of the result of ``operation``."""
        return (self.operation.result.name,)

    @property
    def results(self) -> tuple[Value, ...]:
        """The value that it writes."""
        return (self.result,)

    @property
    def functions(self) -> Functions:
        """Its one function."""
        return Functions(epilogue=self.epilogue)

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The values it reads, each once."""
        return tuple(dict.fromkeys((self.a.value, *(read.value for read in self.reads))))

    def lines(self) -> Iterator[str]:
        """Yield what it computes as lines of text."""
        attrs = ", ".join(f"{name} {print_attr(attr)}" for name, attr in self.operation.attrs)
        sums = f"  acc = {self.operation.op}({self.a.tensor}): {attrs}"
        names = tuple(f"i{axis}" for axis in range(len(self.axes)))
        return kernel_lines(self, names, [sums])


def _pooled(maker: KernelMaker, walk: Epilogue) -> FusedPool:
    """Return the kernel of a root whose anchor has windows."""
    anchor = walk.anchor
    axes = maker.flow.orientation(walk.root)
    order = tuple(axes.index(axis) for axis in range(anchor.result.type.rank))
    value, perm = maker.stored(walk.colour, 0)
    epilogue = walk.run()
    return FusedPool(
        name=maker.flow.function.name,
        operation=anchor,
        a=View(value=value, perm=perm),
        epilogue=epilogue,
        reads=walk.reads(order),
        result=maker.flow.value(walk.root),
        axes=order,
        spans=spans_of([anchor, *epilogue.body]),
    )


MAKERS: Mapping[str, Maker] = MappingProxyType(
    dict.fromkeys(
        (MAX_POOL, AVG_POOL),
        Maker(make=_pooled, epilogue=True, operand=lambda _anchor, _index: "the operand"),
    )
)
"""The anchors of windows, by op."""


def pool_function(kernel: FusedPool) -> Function:
    """Return the function whose parameters are ``kernel.inputs``, with the kernel's result."""
    return kernel_function(kernel, partial(_windows, kernel), [kernel.axes])


def by_axes(kernel: FusedPool) -> Function:
    """Return the same function with windows along one axis after the other."""
    return kernel_function(kernel, partial(_by_axes, kernel), [kernel.axes])


def _windows(kernel: FusedPool, builder: Builder, params: Mapping[str, Value]) -> list[Value]:
    operation = kernel.operation
    x, shape = matrix_of(builder, params, kernel.a), operation.result.type.shape
    return [builder.apply(operation.op, [x], dict(operation.attrs), shape=shape)]


def _by_axes(kernel: FusedPool, builder: Builder, params: Mapping[str, Value]) -> list[Value]:
    return [expanded(Emitter(builder), kernel.operation, matrix_of(builder, params, kernel.a))]
