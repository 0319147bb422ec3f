# SPDX-License-Identifier: MIT
"""Make the kernel of ``sort`` and ``argsort``: one of the same operand gives both."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

from cklang.fusion.kernel import Epilogue, KernelMaker, Maker, spans_of
from cklang.fusion.plan import FusedKernel, Read
from cklang.fusion.sites import ints
from cklang.ir.nodes import Value
from cklang.ir.order import ARGSORT, COUNT, DESCENDING, SORT
from cklang.types import TensorType


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedSort(FusedKernel):
    """One kernel: lines of a tensor along an axis in order, their indices, or both."""

    anchors: tuple[str, ...]
    source: Read
    type: TensorType
    """The type of the operand; memory may lack some of its axes."""
    values: Value | None
    indices: Value | None
    axis: int
    count: int
    """How many elements of a line are wanted; 0: all."""
    descending: bool

    family: ClassVar[str] = "sort"

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The value that it reads."""
        return (self.source.value,)

    @property
    def results(self) -> tuple[Value, ...]:
        """The values that it writes."""
        return tuple(value for value in (self.values, self.indices) if value is not None)

    def lines(self) -> Iterator[str]:
        """Yield what it computes as lines of text."""
        written = ", ".join(f"{value.type} {value}" for value in self.results)
        order = "descending" if self.descending else "ascending"
        which = f"the first {self.count}" if self.count else "all"
        yield f"kernel {self.name}: {written}"
        yield f"  {which} of {self.source.value} along axis {self.axis}, {order}"


def _fuse(maker: KernelMaker, walk: Epilogue) -> FusedSort | None:
    """Return the kernel of an operation; None if that of another one gives its result."""
    flow, anchor = maker.flow, walk.anchor
    walk.note_store()
    value, axes = maker.stored(walk.colour, 0)
    twins = maker.twins(walk.colour)
    if walk.colour != min(twins.values()):
        return None
    written = {op: flow.value(node) for op, node in twins.items()}
    return FusedSort(
        name=flow.function.name,
        anchors=tuple(value.name for value in written.values()),
        source=Read(value=value, axes=axes),
        type=anchor.operands[0].type,
        values=written.get(SORT),
        indices=written.get(ARGSORT),
        axis=ints(anchor, "axis")[0],
        count=ints(anchor, COUNT)[0],
        descending=bool(ints(anchor, DESCENDING)[0]),
        spans=spans_of([anchor]),
    )


_MAKER = Maker(make=_fuse, operand=lambda _anchor, _index: "the operand")
MAKERS: Mapping[str, Maker] = MappingProxyType(dict.fromkeys((SORT, ARGSORT), _MAKER))
"""How kernels that put lines in order are made."""
