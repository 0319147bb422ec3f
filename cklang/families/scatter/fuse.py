# SPDX-License-Identifier: MIT
"""Make the kernel of ``scatter`` and ``scatter_add``: its operands, and the cast that follows."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

from cklang.fusion.flow import Flow
from cklang.fusion.kernel import Epilogue, KernelMaker, Maker, spans_of
from cklang.fusion.plan import FusedKernel, Read
from cklang.fusion.sites import Axes, ints
from cklang.ir.nodes import Operation, Value
from cklang.ir.ops import Kind
from cklang.ir.scatter import IN_PLACE, SCATTER, SCATTER_ADD, UNORDERED
from cklang.types import TensorType, bf16, f16, f32

_ROUNDED = (f16, bf16, f32)
"""What sums may be rounded to as they are stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedScatter(FusedKernel):
    """One kernel: a tensor, or zeros, with rows written or added at indices of an axis.

    The axes of each operand say which axis of the stored value runs with each of its own.
    """

    anchors: tuple[str, ...]
    indices: Read
    rows: Read
    base: Read | None
    result: Value
    places: TensorType
    """The type of the indices; memory may lack some of its axes."""
    axis: int
    adds: bool
    in_order: bool
    """Whether equal indices are taken in order, each after those before."""
    in_place: bool
    """Whether the result is in the memory of ``base``, a parameter."""

    family: ClassVar[str] = "scatter"

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The values that it reads, each once."""
        reads = (self.indices, self.rows, *([] if self.base is None else [self.base]))
        return tuple(dict.fromkeys(read.value for read in reads))

    @property
    def results(self) -> tuple[Value, ...]:
        """The value that it writes."""
        return (self.result,)

    def result_axes(self, rows: Axes) -> Axes:
        """Return the axes of the result that run with axes of the rows; None for indices."""
        last = self.axis + self.places.rank

        def own(axis: int | None) -> int | None:
            if axis is None or self.axis <= axis < last:
                return None
            return axis if axis < self.axis else axis - (last - self.axis) + 1

        return tuple(map(own, rows))

    def index_axes(self, rows: Axes) -> Axes:
        """Return the axes of the stored indices that run with axes of the rows."""
        places = range(self.axis, self.axis + self.places.rank)
        own = dict(zip(places, self.indices.axes, strict=True))
        return tuple(None if axis is None else own.get(axis) for axis in rows)

    @property
    def place(self) -> str:
        """Where rows go, in words."""
        base = "zeros" if self.base is None else str(self.base.value)
        how = f"{'added to' if self.adds else 'in'} {base}"
        order = "" if self.in_order else ", in any order"
        return f"{self.indices.value} of axis {self.axis}, {how}{order}"

    def lines(self) -> Iterator[str]:
        """Yield what it computes as lines of text."""
        yield f"kernel {self.name}: {self.result.type} {self.result}"
        yield f"  {self.rows.value} at {self.place}"


def _fuse(maker: KernelMaker, walk: Epilogue) -> FusedScatter:
    """Return the kernel of an operation; a cast of its result is part of it."""
    anchor = walk.anchor
    walk.run()
    reads = []
    for index in range(len(anchor.operands)):
        value, axes = maker.stored(walk.colour, index)
        reads.append(Read(value=value, axes=axes))
    indices, rows, *base = reads
    return FusedScatter(
        name=maker.flow.function.name,
        anchors=(anchor.result.name,),
        indices=indices,
        rows=rows,
        base=base[0] if base else None,
        result=maker.flow.value(walk.root),
        places=anchor.operands[0].type,
        axis=ints(anchor, "axis")[0],
        adds=anchor.op == SCATTER_ADD,
        in_order=not ints(anchor, UNORDERED)[0],
        in_place=bool(ints(anchor, IN_PLACE)[0]),
        spans=spans_of([anchor]),
    )


def _stores(flow: Flow, node: int) -> bool:
    """Tell whether the kernel can store a value that follows: sums, rounded once.

    What was there before is rounded with the sum, so it must have the dtype that is stored.
    """
    operation = flow.expect_operation(node)
    if flow.kind(node) is not Kind.CAST or operation.result.type.dtype not in _ROUNDED:
        return False
    (anchor,) = flow.operands(node)
    sums = flow.expect_operation(anchor)
    if sums.op != SCATTER_ADD or sums.result.type.dtype != f32:
        return False
    return all(operand.type.dtype == operation.result.type.dtype for operand in sums.operands[2:])


def _operand(_anchor: Operation, index: int) -> str:
    return ("the indices", "the rows", "the tensor")[index]


_MAKER = Maker(make=_fuse, operand=_operand, stores=_stores)
MAKERS: Mapping[str, Maker] = MappingProxyType(dict.fromkeys((SCATTER, SCATTER_ADD), _MAKER))
"""How kernels that write at indices are made."""
