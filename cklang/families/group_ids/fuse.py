# SPDX-License-Identifier: MIT
"""Make the kernel of ``group_order`` and ``group_ends``: one of the same ids gives both."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

from cklang.fusion.flow import Flow
from cklang.fusion.kernel import Epilogue, KernelMaker, Maker, spans_of
from cklang.fusion.plan import FusedKernel, Read
from cklang.ir.grouped import GROUP_ENDS, GROUP_ORDER
from cklang.ir.nodes import Value
from cklang.types import Extent


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedGroupIds(FusedKernel):
    """One kernel: the places of ids in the order of their groups, where these end, or both."""

    anchors: tuple[str, ...]
    ids: Read
    count: Extent
    """How many groups there are."""
    order: Value | None
    ends: Value | None

    family: ClassVar[str] = "group_ids"

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The value that it reads."""
        return (self.ids.value,)

    @property
    def results(self) -> tuple[Value, ...]:
        """The values that it writes."""
        return tuple(value for value in (self.order, self.ends) if value is not None)

    def lines(self) -> Iterator[str]:
        """Yield what it computes as lines of text."""
        written = ", ".join(f"{value.type} {value}" for value in self.results)
        yield f"kernel {self.name}: {written}"
        yield f"  {self.ids.value} by their {self.count} groups"


def _is_of(flow: Flow, node: int, op: str, *operands: int) -> bool:
    """Tell whether a node is an operation on these operands."""
    operation = flow.operation(node)
    return operation is not None and operation.op == op and flow.operands(node) == operands


def _fuse(maker: KernelMaker, walk: Epilogue) -> FusedGroupIds | None:
    """Return the kernel of an operation; None if that of another one gives its result."""
    flow, anchor = maker.flow, walk.anchor
    walk.note_store()
    value, axes = maker.stored(walk.colour, 0)
    ids, *others = flow.operands(walk.colour)
    ends = others[0] if others else walk.colour
    own = _is_of(flow, ends, GROUP_ENDS, ids)
    if others and own:
        maker.stored(walk.colour, 1)
        return None
    orders = (
        [walk.colour]
        if others
        else [node for node in maker.roots if _is_of(flow, node, GROUP_ORDER, ids, ends)]
    )
    order = flow.value(orders[0]) if orders else None
    written = None if others else flow.value(ends)
    return FusedGroupIds(
        name=flow.function.name,
        anchors=tuple(value.name for value in (order, written) if value is not None),
        ids=Read(value=value, axes=axes),
        count=flow.value(ends).type.shape[0],
        order=order,
        ends=written,
        spans=spans_of([anchor]),
    )


_MAKER = Maker(make=_fuse, operand=lambda _anchor, _index: "the ids")
MAKERS: Mapping[str, Maker] = MappingProxyType(dict.fromkeys((GROUP_ORDER, GROUP_ENDS), _MAKER))
"""How kernels that put places of ids into the order of their groups are made."""
