# SPDX-License-Identifier: MIT
"""What the forward graph of a model saves for the backward graph.

torch can divide the joint graph in two ways: the forward graph saves all that the backward graph
reads, or as few bytes as a minimal cut through the graph needs, and the backward graph computes the
rest again. Here both are lowered, and the one whose kernels are predicted quicker is taken.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from torch._functorch.partitioners import default_partition, min_cut_rematerialization_partition
from torch.fx import GraphModule

from cklang.errors import CkError
from cklang.torch.backend.extents import hint_of
from cklang.torch.backend.program import Program
from cklang.types import DTYPES

AUTO, EVERYTHING, LEAST = "auto", "everything", "least"

SAVED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {AUTO: (EVERYTHING, LEAST), EVERYTHING: (EVERYTHING,), LEAST: (LEAST,)}
)
"""Which divisions each value of the option ``saved`` compares."""

_DIVISIONS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {EVERYTHING: default_partition, LEAST: min_cut_rematerialization_partition}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """One way to divide a joint graph."""

    kind: str
    bytes: int
    """Bytes that are saved, without inputs and results of the model."""
    kernels: int
    microseconds: float | None
    """The predicted time of the kernels of both graphs; None if that of one is not known."""

    def __str__(self) -> str:
        time = "an unknown time" if self.microseconds is None else f"{self.microseconds:.1f} µs"
        return f"{self.kind} saved: {self.bytes} bytes, {self.kernels} kernels, {time}"


Lowered = Callable[[GraphModule], tuple[Program, ...]]
"""Lowers a graph of aten ops."""


def divided_by(
    option: str, lowered: Lowered, device: str | None, note: Callable[[str], None]
) -> Callable[..., tuple[GraphModule, GraphModule]]:
    """Return what AOTAutograd divides a joint graph by.

    ``option`` is a key of :data:`SAVED`, ``lowered`` gives the programs of a graph, and ``note``
    takes the reason for the division.
    """

    def divide(
        joint: GraphModule, inputs: Any, *, num_fwd_outputs: int, **more: Any
    ) -> tuple[GraphModule, GraphModule]:
        kinds = SAVED[option]
        ways = []
        for kind in kinds:
            # A division changes the graph that it divides.
            pair = _DIVISIONS[kind](_copied(joint), inputs, num_fwd_outputs=num_fwd_outputs, **more)
            ways.append((kind, pair))
        if len(ways) == 1:
            note(f"saved={option!r}")
            return ways[0][1]  # type: ignore[no-any-return]
        names = [_names_saved(forward, num_fwd_outputs) for _, (forward, _) in ways]
        if names[1:] == names[:-1]:
            note(f"{' and '.join(kinds)} are the same {len(names[0])} tensors")
            return ways[0][1]  # type: ignore[no-any-return]
        described = [
            _described(kind, pair, num_fwd_outputs, lowered, device) for kind, pair in ways
        ]
        best = min(range(len(ways)), key=lambda place: _rank(described[place]))
        if any(row.microseconds is None for row in described):
            best = 0
        others = ", ".join(str(row) for row in described if row is not described[best])
        note(f"{described[best]}; {others}")
        return ways[best][1]  # type: ignore[no-any-return]

    return divide


def _copied(graph: GraphModule) -> GraphModule:
    """Return a copy of a graph, whose nodes have dictionaries ``meta`` of their own."""
    result = torch.fx.Graph()
    copies: dict[torch.fx.Node, torch.fx.Node] = {}
    for node in graph.graph.nodes:
        copies[node] = result.node_copy(node, copies.__getitem__)
    return GraphModule(graph, result)


def _rank(way: Saved) -> tuple[float, int]:
    return way.microseconds or 0.0, way.bytes


def _described(
    kind: str, pair: tuple[GraphModule, GraphModule], own: int, lowered: Lowered, device: str | None
) -> Saved:
    programs = [program for graph in pair for program in lowered(graph)]
    times = [_time(program, device) for program in programs]
    return Saved(
        kind=kind,
        bytes=_bytes_saved(pair[0], own),
        kernels=sum(len(program.plan.kernels) for program in programs),
        microseconds=None if None in times else sum(filter(None, times)),
    )


def _saved(forward: GraphModule, own: int) -> set[torch.fx.Node]:
    """Return what a forward graph saves beside inputs and results of the model."""
    (output,) = forward.graph.find_nodes(op="output")
    results = output.args[0]
    nodes = {node for node in results[own:] if isinstance(node, torch.fx.Node)}
    return {node for node in nodes - set(results[:own]) if node.op != "placeholder"}


def _names_saved(forward: GraphModule, own: int) -> set[str]:
    return {node.name for node in _saved(forward, own)}


def _bytes_saved(forward: GraphModule, own: int) -> int:
    values = [node.meta.get("val") for node in _saved(forward, own)]
    return sum(_bytes(value) for value in values if isinstance(value, torch.Tensor))


def _bytes(value: torch.Tensor) -> int:
    count = 1
    for size in value.shape:
        count *= hint_of(size)
    return count * value.element_size()


def _time(program: Program, device: str | None) -> float | None:
    arrays = [np.empty(shape, DTYPES[dtype].numpy) for shape, dtype, _ in program.example]
    try:
        return program.op.summary(*arrays, device=device).microseconds
    except CkError:
        return None
