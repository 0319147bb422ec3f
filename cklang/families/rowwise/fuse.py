# SPDX-License-Identifier: MIT
"""Make the kernel of a reduction of rows: a view of what is stored, and what follows the result.

What follows becomes the function ``output``, which sees a reduced row in f32, and where it is: the
axes of the result are the last ones of the indices ``b``, ``h``, ``i`` and ``j``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import ClassVar

from cklang.errors import error
from cklang.families.attention.fuse_output import OutputRegion
from cklang.families.rowwise.host import MAX_AXES, MAX_OPERANDS
from cklang.families.rowwise.key import Reduction
from cklang.fusion.functions import Functions
from cklang.fusion.kernel import Epilogue, KernelMaker, Maker
from cklang.fusion.plan import View
from cklang.ir.nodes import Function, Operation, Value, print_function
from cklang.ir.reductions import MEANINGS, ROW_DTYPES
from cklang.source import Span

__all__ = ["MAKERS", "FusedRows"]

_NAMES = ("b", "h", "i", "j")
INDICES: Mapping[int, tuple[str, ...]] = MappingProxyType(
    {rank: _NAMES[MAX_AXES - rank :] for rank in range(1, MAX_AXES + 1)}
)
"""What the axes of the result are called, by their number."""

_REDUCTIONS = {"reduce_sum": Reduction.SUM, "reduce_max": Reduction.MAX}


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedRows:
    """One kernel: ``result = cast(output(reduction(x)))`` for each row of ``x``."""

    name: str
    reduction: Reduction
    x: View
    """Its axes are those of ``result`` in order, then the one that is reduced."""
    output: Function | None
    """None if the reduced row is stored as it is."""
    reads: tuple[Value, ...]
    """The tensors that ``output`` reads, as parameters d0, d1..."""
    result: Value
    spans: tuple[Span, ...] = field(default=(), compare=False)

    family: ClassVar[str] = "rowwise"

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The values that it reads, each once."""
        return tuple(dict.fromkeys((self.x.value, *self.reads)))

    @property
    def results(self) -> tuple[Value, ...]:
        """The values that it writes."""
        return (self.result,)

    @property
    def functions(self) -> Functions:
        """What fills its stencil."""
        return Functions(output=self.output)

    def renamed(self, name: str) -> FusedRows:
        """Return the same kernel with another name."""
        return replace(self, name=name)

    def lines(self) -> Iterator[str]:
        """Yield what it computes as lines of text."""
        indices = INDICES[self.result.type.rank]
        yield f"kernel {self.name}: {self.result.type} {self.result}[{', '.join(indices)}]"
        yield f"  o = {self.reduction.value} of the rows of {self.x.tensor}"
        yield from (f"  d{place} = {value}: {value.type}" for place, value in enumerate(self.reads))
        if self.output is not None:
            yield from (f"  {line}" for line in print_function(self.output).splitlines())


def _region(anchor: Operation) -> OutputRegion:
    return OutputRegion(anchor, indices=INDICES)


def _fuse(maker: KernelMaker, walk: Epilogue) -> FusedRows:
    """Return the kernel of a root whose anchor is a reduction.

    Raises:
        CkUnsupportedError: X004, X018, what follows reads too much or what functions cannot.
    """
    flow, anchor, result = maker.flow, walk.anchor, maker.flow.value(walk.root)
    operand = anchor.operands[0].type
    rows_of = anchor.op in _REDUCTIONS and operand.dtype in ROW_DTYPES
    if not rows_of or operand.rank < 2 or anchor.attr("axes") != (operand.rank - 1,):
        anchors = "reduce_sum and reduce_max of the last axis of floats"
        raise error("X002", at=anchor.span, op=anchor.op, anchors=anchors)
    stored, axes = maker.stored(walk.colour, 0)
    rows = (axes[axis] for axis in flow.orientation(walk.root) if axis is not None)
    output = walk.run()
    tensors = walk.region.tensors if isinstance(walk.region, OutputRegion) else []
    if len(tensors) > MAX_OPERANDS:
        raise error(
            "X004",
            at=anchor.span,
            what=f"the kernel of {anchor.result}",
            count=len(tensors),
            limit=MAX_OPERANDS,
            reads=", ".join(map(str, tensors)),
        )
    spans = (operation.span for operation in (anchor, *output.body))
    return FusedRows(
        name=flow.function.name,
        reduction=_REDUCTIONS[anchor.op],
        x=View(value=stored, perm=(*rows, axes[-1])),
        output=output if output.body else None,
        reads=tuple(tensors),
        result=result,
        spans=tuple(dict.fromkeys(span for span in spans if span is not None)),
    )


_MAKER = Maker(make=_fuse, region=_region, operand=lambda _anchor, _index: "the operand")
MAKERS: Mapping[str, Maker] = MappingProxyType(dict.fromkeys(MEANINGS, _MAKER))
"""How kernels that reduce rows are made."""
