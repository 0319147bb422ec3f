# SPDX-License-Identifier: MIT
"""Make the kernel of ``cumsum`` or ``cumprod``, and of the cast that follows."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

from cklang.fusion.flow import Flow
from cklang.fusion.kernel import Epilogue, KernelMaker, Maker, spans_of
from cklang.fusion.plan import FusedKernel, Read
from cklang.fusion.sites import ints
from cklang.ir.nodes import Value
from cklang.ir.ops import Kind
from cklang.ir.order import CUMPROD, CUMSUM
from cklang.types import bf16, f16, f32

_ROUNDED = (f16, bf16)
"""What sums of f32 may be rounded to as they are stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedScan(FusedKernel):
    """One kernel: cumulative sums of a tensor along an axis."""

    anchors: tuple[str, ...]
    source: Read
    result: Value
    axis: int
    multiplies: bool = False
    """Whether elements are multiplied, not added."""

    family: ClassVar[str] = "scan"

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The value that it reads."""
        return (self.source.value,)

    @property
    def results(self) -> tuple[Value, ...]:
        """The value that it writes."""
        return (self.result,)

    def lines(self) -> Iterator[str]:
        """Yield what it computes as lines of text."""
        yield f"kernel {self.name}: {self.result.type} {self.result}"
        what = "products" if self.multiplies else "sums"
        yield f"  cumulative {what} of {self.source.value} along axis {self.axis}"


def _fuse(maker: KernelMaker, walk: Epilogue) -> FusedScan:
    """Return the kernel of an operation; a cast of its result is part of it."""
    anchor = walk.anchor
    walk.run()
    value, axes = maker.stored(walk.colour, 0)
    return FusedScan(
        name=maker.flow.function.name,
        anchors=(anchor.result.name,),
        source=Read(value=value, axes=axes),
        result=maker.flow.value(walk.root),
        axis=ints(anchor, "axis")[0],
        multiplies=anchor.op == CUMPROD,
        spans=spans_of([anchor]),
    )


def _stores(flow: Flow, node: int) -> bool:
    """Tell whether the kernel can store a value that follows: sums of f32, rounded once."""
    if flow.kind(node) is not Kind.CAST or flow.value(node).type.dtype not in _ROUNDED:
        return False
    (below,) = flow.operands(node)
    return flow.is_anchor(below) and flow.value(below).type.dtype == f32


_MAKER = Maker(make=_fuse, operand=lambda _anchor, _index: "the operand", stores=_stores)
MAKERS: Mapping[str, Maker] = MappingProxyType(dict.fromkeys((CUMSUM, CUMPROD), _MAKER))
"""How kernels of cumulative sums and products are made."""
