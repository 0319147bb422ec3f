# SPDX-License-Identifier: MIT
"""Make the kernel of an outlined operation: its space, its stages, and what it writes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import ClassVar

from cklang.errors import error
from cklang.families.rowwise.host import MAX_OUTPUTS, MAX_READS
from cklang.families.rowwise.key import parts_of
from cklang.families.rowwise.outline import OUTLINED
from cklang.families.rowwise.space import RowSpace, reaches, space_of
from cklang.families.rowwise.stages import Stages, stages_of
from cklang.fusion.flow import Flow, Occurrence
from cklang.fusion.functions import Functions
from cklang.fusion.kernel import Epilogue, KernelMaker, Maker, spans_of
from cklang.fusion.plan import FusedKernel, Read
from cklang.fusion.sites import Axes, compose, identity
from cklang.ir.indices import ARANGE
from cklang.ir.nodes import Function, Value, print_function
from cklang.source import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedRows(FusedKernel):
    """One kernel over rows, or over the elements of a tensor where nothing is reduced."""

    body: Function
    """What it computes, as a program."""
    space: RowSpace
    stages: Stages
    """The same, cut at its reductions."""
    reads: tuple[Read, ...]
    """What the stages read, as ``d0``...: values of the program and maps from the space."""
    gathered: tuple[int | None, ...]
    """For each of them: the axis of the value along which it is read at computed indices."""
    results: tuple[Value, ...]
    places: tuple[Axes, ...]
    """The map from the space to each result."""

    family: ClassVar[str] = "rowwise"
    leaves_to_readers: ClassVar[bool] = True

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The values that it reads from memory, each once."""
        indices = self.indices
        values = (read.value for read in self.reads if read.value.name not in indices)
        return tuple(dict.fromkeys(values))

    @property
    def indices(self) -> Mapping[str, Value]:
        """The values that are indices of elements, by name: no memory has them."""
        own = (operation.result for operation in self.body.body if operation.op == ARANGE)
        return {value.name: value for value in own}

    @property
    def anchors(self) -> tuple[str, ...]:
        """The names of its reductions."""
        return self.stages.reduced

    @property
    def functions(self) -> Functions:
        """What fills its stencil, but for how its reads lie in memory."""
        return self.stages.functions

    def lines(self) -> Iterator[str]:
        """Yield what it computes as lines of text."""
        written = ", ".join(f"{value.type} {value}" for value in self.results)
        extents = ", ".join(map(str, self.space.extents))
        row = ", ".join(str(self.space.extents[axis]) for axis in self.space.row)
        yield f"kernel {self.name}: {written}"
        yield f"  for rows of {row} in [{extents}]" if row else f"  for each of [{extents}]"
        yield from (f"  {line}" for line in print_function(self.body).splitlines()[1:-1])


def _fuse(maker: KernelMaker, walk: Epilogue) -> FusedRows | None:
    """Return the kernel of an outlined operation; None if that of another result gives it."""
    flow, anchor = maker.flow, walk.anchor
    walk.note_store()
    stored = [maker.stored(walk.colour, index) for index in range(len(anchor.operands))]
    twins = _twins(flow, walk.colour)
    if walk.colour != twins[0]:
        return None
    body = anchor.attr("body")
    if not isinstance(body, Function):
        raise error("Z002", what="an outlined operation has no body")
    space, places, stages = _cut(body, tuple(step.span for step in body.body))
    by_name = {param.name: access for param, access in zip(body.params, stored, strict=True)}
    reads, gathered = [], []
    for read, place in zip(stages.reads, stages.gathered, strict=True):
        itself = read.value, identity(read.value.type.rank)
        value, axes = by_name.get(read.value.name, itself)
        reads.append(Read(value=value, axes=compose(read.axes, axes)))
        gathered.append(None if place is None else axes[place])
    for what, count, limit in (
        ("reads", len(reads) + sum(axis is not None for axis in gathered), MAX_READS),
        ("writes", sum(len(parts_of(x.type.dtype)) for x in body.results), MAX_OUTPUTS),
    ):
        if count > limit:
            values = [str(read.value) for read in reads] if what == "reads" else twins
            raise error(
                "X004",
                at=anchor.span,
                what=f"the kernel of {anchor.result}",
                count=count,
                limit=limit,
                reads=", ".join(map(str, values)),
            )
    return FusedRows(
        name=flow.function.name,
        body=body,
        space=space,
        stages=stages,
        reads=tuple(reads),
        gathered=tuple(gathered),
        results=body.results,
        places=places,
        spans=spans_of(body.body),
    )


@lru_cache(maxsize=256)
def _cut(
    body: Function, _spans: tuple[Span | None, ...]
) -> tuple[RowSpace, tuple[Axes, ...], Stages]:
    """Return the space of a body, the map from there to each result, and its stages.

    Plans that are compared with each other have most bodies in common. Equal bodies of other lines
    are told apart by their spans.
    """
    flow = Flow(body, makers={})
    space, places = _spaces(flow, body)
    nodes = [flow.id(value) for value in body.results]
    outputs = [Occurrence(node, axes) for node, axes in zip(nodes, places, strict=True)]
    return space, places, stages_of(flow, space, outputs)


def _twins(flow: Flow, node: int) -> list[int]:
    """Return the operations that give the results of one kernel, in the function's order."""
    operation = flow.expect_operation(node)
    same = (operation.operands, operation.attr("body"))
    outlined = ((other, flow.expect_operation(other)) for other in flow.nodes_of(OUTLINED))
    return [other for other, step in outlined if (step.operands, step.attr("body")) == same]


def _spaces(flow: Flow, body: Function) -> tuple[RowSpace, tuple[Axes, ...]]:
    """Return the space of all results of a body, and the map from there to each."""
    nodes = [flow.id(value) for value in body.results]
    pairs = [space_of(flow, node, list(reaches(flow, node, lambda _node: False))) for node in nodes]
    space = max((one for one, _ in pairs), key=lambda one: len(one.row))
    # A pointwise result beside reduced ones is seen as it is (outline.py, *Joining*).
    places = [axes if one.row else identity(len(axes)) for one, axes in pairs]
    return space, tuple(places)


_MAKER = Maker(make=_fuse, operand=lambda _anchor, _index: "the operand")
MAKERS: Mapping[str, Maker] = MappingProxyType({OUTLINED: _MAKER})
"""How kernels of rows are made."""
