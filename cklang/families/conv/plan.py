# SPDX-License-Identifier: MIT
"""What fusion decides about a convolution: one kernel with its operands and its epilogue."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from cklang.fusion.explain import kernel_lines
from cklang.fusion.functions import Functions
from cklang.fusion.plan import FusedKernel, Read, View
from cklang.ir.convolution import axis_names
from cklang.ir.nodes import Function, Operation, Value, print_attr
from cklang.source import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedConv(FusedKernel):
    """One kernel: ``result = cast(epilogue(operation(a, b), reads…))`` of a convolution op.

    The fields are those of :class:`cklang.families.gemm.plan.FusedGemm`, but that ``perm`` of
    ``a`` and ``b`` and ``axes`` of the reads are in the order of the axes of ``operation``'s
    operands and result, channels last; ``operation`` has the windows and the extents.
    """

    operation: Operation
    a: View
    b: View
    epilogue: Function
    reads: tuple[Read, ...]
    result: Value
    axes: tuple[int, ...]
    spans: tuple[Span, ...] = field(default=(), compare=False)

    @property
    def anchors(self) -> tuple[str, ...]:
        """The name of the result of ``operation``."""
        return (self.operation.result.name,)

    family: ClassVar[str] = "conv"
    more: ClassVar[tuple[Read, ...]] = ()
    depth: ClassVar[int] = 1
    shares_numbers: ClassVar[bool] = False

    @property
    def results(self) -> tuple[Value, ...]:
        """The values that it writes."""
        return (self.result,)

    @property
    def functions(self) -> Functions:
        """Its one function."""
        return Functions(epilogue=self.epilogue)

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The values it reads, each once, in the order a, b, reads."""
        values = (self.a.value, self.b.value, *(read.value for read in self.reads))
        return tuple(dict.fromkeys(values))

    def lines(self) -> Iterator[str]:
        """Yield what it computes as lines of text."""
        attrs = ", ".join(f"{name} {print_attr(attr)}" for name, attr in self.operation.attrs)
        sums = f"  acc = {self.operation.op}({self.a.tensor}, {self.b.tensor}): {attrs}"
        return kernel_lines(self, axis_names(self.operation), [sums])
