# SPDX-License-Identifier: MIT
"""One part of a graph as a program of the IR."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch.fx import Node
from torch.fx.node import map_aggregate

from cklang.errors import CkError
from cklang.forks import cached_property
from cklang.fusion.plan import Plan
from cklang.ir.nodes import Function, Value
from cklang.ir.rewrite import needed_operations
from cklang.ir.verifier import verify
from cklang.runtime.ir_text import op_from_ir
from cklang.runtime.op import Op
from cklang.source import Source, Span
from cklang.torch.backend.aten import EMISSIONS, ITEM, KEEP_ORDER
from cklang.torch.backend.call import Call
from cklang.torch.backend.emitter import Emitter, Tensor, dtype_of
from cklang.torch.backend.extents import Shape, Unsupported, extent_of, hint_of, shape_of
from cklang.torch.backend.partition import Part, is_free
from cklang.types import Dim, plain_dims


@dataclass(frozen=True, slots=True)
class Listing:
    """The text of a graph, a line for each node: where errors of a program point."""

    source: Source
    lines: Mapping[str, int]
    """The line of each node, by its name."""

    @classmethod
    def of(cls, graph: torch.fx.Graph, name: str) -> Listing:
        """Return the listing of a graph."""
        nodes = list(graph.nodes)
        text = "\n".join(str(node.format_node()) for node in nodes)
        lines = {node.name: number for number, node in enumerate(nodes, start=1)}
        return cls(Source(name=name, text=text), lines)

    def span(self, node: Node) -> Span:
        """Return the place of a node."""
        line = self.lines[node.name]
        width = len(self.source.line(line) or "")
        return Span(source=self.source, line=line, column=0, end_line=line, end_column=width)

    def name_at(self, span: Span | None) -> str | None:
        """Return the name of the node at a place; None if it is no place of this graph."""
        if span is None or span.source is not self.source:
            return None
        names = {number: name for name, number in self.lines.items()}
        return names.get(span.line)


@dataclass(frozen=True, slots=True)
class Output:
    """One result of a program: the node, and the number of its result."""

    node: Node
    place: int | None
    """Which of a node's several results it is."""
    shape: Shape
    """What the program's result is reshaped to."""
    order: tuple[int, ...] = ()
    """How its axes are permuted then; () if they are not."""

    @property
    def fake(self) -> Any:
        """The tensor as torch traced it."""
        value = self.node.meta["val"]
        return value if self.place is None else value[self.place]


@dataclass(frozen=True, eq=False)
class Program:
    """A part of a graph as an op of the language."""

    part: Part
    op: Op
    inputs: tuple[Node, ...]
    outputs: tuple[Output, ...]
    weights: frozenset[str] = field(default=frozenset())
    """The names of inputs that convolutions read as weights."""

    @property
    def function(self) -> Function:
        """The program."""
        return self.op.program.specialise()

    @cached_property
    def plan(self) -> Plan:
        """Its kernels."""
        return self.op._plan_for(self.function)

    @cached_property
    def example(self) -> tuple[Any, ...]:
        """Descriptions of the arguments of the call that was traced, for ``op.check``."""
        return tuple(_described(node) for node in self.inputs)

    def mistakes(self, device: str | None) -> tuple[CkError, ...]:
        """Return why kernels do not compute the program in the call that was traced."""
        return self.op.check(*self.example, device=device).mistakes


def _described(node: Node) -> tuple[tuple[int, ...], str, tuple[int, ...]]:
    fake = node.meta["val"]
    shape, strides = (tuple(map(hint_of, sizes)) for sizes in (fake.shape, fake.stride()))
    return shape, dtype_of(fake.dtype).name, strides


class _Lowering:
    """Lowers the nodes of one part, in order."""

    def __init__(self, part: Part, name: str, listing: Listing) -> None:
        self.part = part
        self.emitter = Emitter(name)
        self.listing = listing
        self.refusals: dict[Node, str] = {}
        self._values: dict[Node, Any] = {}

    def run(self, carriers: Sequence[Node]) -> tuple[tuple[Output, ...], list[Value]]:
        """Append all nodes; return the results that others read, with their values."""
        for node in (*self.part.inputs, *carriers):
            fake = node.meta["val"]
            shape = self._shape(fake, node)
            self._values[node] = self.emitter.param(node.name, dtype_of(fake.dtype), shape)
        for node in self.part.nodes:
            self._values[node] = self._lowered(node)
        results = tuple(self._results())
        self._refuse_copies(results)
        return tuple(output for output, _ in results), [value for _, value in results]

    def _refuse_copies(self, results: Sequence[tuple[Output, Value]]) -> None:
        """Refuse nodes that return an input or another node's result: torch copies those."""
        known = set(self.emitter.params)
        for output, value in results:
            if value.name in known:
                self.refusals.setdefault(output.node, "it copies a tensor, which torch does")
            known.add(value.name)

    def _shape(self, fake: Any, node: Node) -> Shape:
        try:
            return shape_of(fake)
        except Unsupported as refusal:
            for user in self.part.nodes:
                if node in user.all_input_nodes:
                    self.refusals[user] = str(refusal)
            return tuple(hint_of(size) for size in fake.shape)

    def _results(self) -> Iterator[tuple[Output, Value]]:
        """Yield the results that others read."""
        for node in self.part.outputs:
            value = self._values[node]
            if isinstance(value, Tensor):
                yield self._result(node, None, value)
                continue
            for place in sorted(_places_read(node)):
                tensor = value[place]
                if tensor is None:
                    self.refusals[node] = "a result is read that inference does not compute"
                else:
                    yield self._result(node, place, tensor)

    def _result(self, node: Node, place: int | None, tensor: Tensor) -> tuple[Output, Value]:
        return Output(node, place, tensor.inner, tensor.order), tensor.value

    def _lowered(self, node: Node) -> Any:
        """Return a node's tensor, or its tensors."""
        self.emitter.span = self.listing.span(node)
        value = node.meta["val"]
        outputs = tuple(value) if isinstance(value, tuple | list) else (value,)
        try:
            return self._emitted(node, outputs)
        except (Unsupported, CkError) as refusal:
            self.refusals[node] = str(refusal)
        stubs = [None if output is None else self._stub(output) for output in outputs]
        return stubs if isinstance(value, tuple | list) else stubs[0]

    def _stub(self, fake: Any) -> Tensor | None:
        """Return a stand-in for a refused node, so that the nodes after it are examined too."""
        try:
            shape, dtype = shape_of(fake), dtype_of(fake.dtype)
        except Unsupported:
            shape, dtype = (), dtype_of(torch.float32)
        return self.emitter.param(f"refused{len(self.emitter.builder.values)}", dtype, shape)

    def _argument(self, item: Any) -> Any:
        """Return an argument of a node as emissions take it."""
        if not isinstance(item, Node):
            return item
        if not isinstance(item.meta.get("val"), torch.Tensor | tuple | list):
            return extent_of(item.meta["val"])
        if item not in self._values and is_free(item):
            self._values[item] = self._view(item)
        return self._values[item]

    def _view(self, node: Node) -> Any:
        if node.target is ITEM:
            source, place = node.args
            tensor = self._argument(source)[place]
            if tensor is None:
                raise Unsupported("it reads a result that inference does not compute")
            return tensor
        value = node.meta["val"]
        return self._emitted(node, tuple(value) if isinstance(value, tuple | list) else (value,))

    def _emitted(self, node: Node, outputs: tuple[Any, ...]) -> Any:
        """Append a node; return its tensor, or its tensors."""

        def argument(item: Any) -> Any:
            value = self._argument(item)
            is_moved = isinstance(value, Tensor) and node.target not in KEEP_ORDER
            return self.emitter.settled(value) if is_moved else value

        arguments = map_aggregate(node.args, argument)
        options = map_aggregate(dict(node.kwargs), argument)
        return EMISSIONS[node.target](Call(self.emitter, outputs), *arguments, **options)


def _places_read(node: Node) -> set[int]:
    """Return which results of a node with several are read."""
    return {user.args[1] for user in node.users if user.target is ITEM}  # type: ignore[misc]


def lower(
    part: Part, name: str, listing: Listing, inputs: Sequence[Node]
) -> Program | dict[Node, str]:
    """Return a part as a program, or why it is none: a reason for each node that is refused.

    An input of the graph that has a dim is read for its extent if nothing else has it.
    """
    carriers: tuple[Node, ...] = ()
    for _ in range(2):
        lowering = _Lowering(part, name, listing)
        outputs, values = lowering.run(carriers)
        if lowering.refusals:
            return lowering.refusals
        missing = _missing_dims(lowering.emitter)
        if not missing:
            function = lowering.emitter.builder.finish(*values)
            body = needed_operations(function.body, function.results)
            function = verify(replace(function, body=tuple(body)))
            return Program(
                part=part,
                op=op_from_ir(function),
                inputs=(*part.inputs, *carriers),
                outputs=outputs,
                weights=_weights(part),
            )
        carriers = tuple(_carriers(missing, inputs, part))
    names = ", ".join(sorted(map(str, missing)))
    return dict.fromkeys(part.nodes, f"no input has the extent {names} as an axis")


def _missing_dims(emitter: Emitter) -> set[Dim]:
    """Return the dims that no parameter has as an axis, so that a call would not know them."""
    values = emitter.builder.values
    used = {dim for value in values for extent in value.type.shape for dim in plain_dims(extent)}
    known = {
        extent for value in values if value.name in emitter.params for extent in value.type.shape
    }
    return used - known


def _carriers(missing: set[Dim], inputs: Sequence[Node], part: Part) -> Iterator[Node]:
    """Yield inputs of the graph that have missing dims as axes."""
    left = set(missing)
    for node in inputs:
        fake = node.meta.get("val")
        if left and isinstance(fake, torch.Tensor) and node not in part.inputs:
            axes = {extent_of(size) for size in fake.shape} & left
            if axes:
                left -= axes
                yield node


def _weights(part: Part) -> frozenset[str]:
    """Return the names of inputs that are the weight of a convolution, and nothing else."""
    convolution = torch.ops.aten.convolution.default
    return frozenset(
        node.name
        for node in part.inputs
        if all(user.target is convolution and user.args[1] is node for user in node.users)
    )
