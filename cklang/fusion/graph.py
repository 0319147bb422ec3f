# SPDX-License-Identifier: MIT
"""A function as a data-flow graph: nodes are values, edges their uses.

The graph is a ``networkx.MultiDiGraph``, since ``x * x`` uses a value twice: an edge's key is the
operand's index. A node's id is its place in the function, parameters first, so ids ascend in a
topological order; the last nodes are the function's results.

=========  ==========================================================================
attribute  of
=========  ==========================================================================
``node``   a node: a frozen :class:`Node`
``axes``   an edge: for each axis of the user the axis of the operand that runs with
           it (:mod:`cklang.fusion.sites`); None if the user contracts its operands
=========  ==========================================================================

:class:`cklang.fusion.flow.Flow` adds what the partition derives from these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cklang.fusion.sites import Axes, gather_axes, identity, operand_axes
from cklang.ir.nodes import Function, Operation, Value
from cklang.ir.ops import OPS, Kind

if TYPE_CHECKING:
    import networkx as nx

_ELEMENTWISE = (Kind.POINTWISE, Kind.CAST, Kind.BLOCK)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """What a node stands for.

    ``kind`` is an op's kind in the op table, "parameter" or "result"; ``value`` is the value that
    the node defines, for a result node the one that is returned.
    """

    kind: str
    value: Value
    operation: Operation | None = None

    @property
    def label(self) -> str:
        """A short text for drawings."""
        name = self.kind if self.operation is None else self.operation.op
        return f"{name} {self.value}: {self.value.type}"


def build_graph(function: Function) -> nx.MultiDiGraph:
    """Return the graph of a verified function."""
    import networkx as nx

    graph = nx.MultiDiGraph(name=function.name)
    ids: dict[str, int] = {}
    for value in function.params:
        ids[value.name] = len(ids)
        graph.add_node(ids[value.name], node=Node(kind="parameter", value=value))
    for operation in function.body:
        value = operation.result
        target = ids[value.name] = len(ids)
        kind = kind_of(operation)
        graph.add_node(target, node=Node(kind=kind.value, value=value, operation=operation))
        if kind is Kind.EXTENT:
            continue  # no data flows
        for index, operand in enumerate(operation.operands):
            axes = _axes(operation, index)
            graph.add_edge(ids[operand.name], target, key=index, axes=axes)
    for target, value in enumerate(function.results, start=len(ids)):
        graph.add_node(target, node=Node(kind="result", value=value))
        graph.add_edge(ids[value.name], target, key=0, axes=identity(value.type.rank))
    return graph


def kind_of(operation: Operation) -> Kind:
    """Return what an operation is to fusion.

    Ops outside the op table are kernels that a family has outlined
    (the pass ``rows``): anchors.
    """
    row = OPS.get(operation.op)
    return Kind.ANCHOR if row is None else row.kind


def _axes(operation: Operation, index: int) -> Axes | None:
    """Return the map from the axes of an operation's result to those of an operand."""
    kind = kind_of(operation)
    if kind is Kind.GATHER:
        return gather_axes(operation)[index]
    own = identity(operation.result.type.rank)
    if kind is Kind.SHAPE:
        return operand_axes(operation, own)
    return own if kind in _ELEMENTWISE else None
