# SPDX-License-Identifier: MIT
"""How fusion makes the kernel of a pooling, and what of it no window kernel takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import ClassVar

from cklang.families.conv.plan import FusedWindows, fused_windows
from cklang.fusion.explain import kernel_lines
from cklang.fusion.kernel import Maker
from cklang.fusion.unfuse import kernel_function, matrix_of
from cklang.ir.builder import Builder
from cklang.ir.emitter import Emitter
from cklang.ir.nodes import Function, Value
from cklang.ir.pooling import AVG_POOL, MAX_POOL, expanded


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedPool(FusedWindows):
    """One kernel: ``result = cast(epilogue(operation(a), reads…))`` of windows.

    ``perm`` of ``a`` and ``axes`` are in the order of the axes of ``operation``.
    """

    family: ClassVar[str] = "windows"

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The values it reads, each once."""
        return tuple(dict.fromkeys((self.a.value, *(read.value for read in self.reads))))

    def lines(self) -> Iterator[str]:
        """Yield what it computes as lines of text."""
        sums = f"  acc = {self.operation.op}({self.a.tensor}): {self.attrs}"
        names = tuple(f"i{axis}" for axis in range(len(self.axes)))
        return kernel_lines(self, names, [sums])


MAKERS: Mapping[str, Maker] = MappingProxyType(
    dict.fromkeys(
        (MAX_POOL, AVG_POOL),
        Maker(
            make=partial(fused_windows, FusedPool, ("a",)),
            epilogue=True,
            operand=lambda _anchor, _index: "the operand",
        ),
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
