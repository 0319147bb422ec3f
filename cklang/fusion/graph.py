# SPDX-License-Identifier: MIT
"""A function as a graph: nodes are values, edges their uses.

The graph is a ``networkx.MultiDiGraph``, since ``x * x`` uses a value twice: an edge's key is the
operand's index. A node's id is its place in the function, parameters first; the last node is the
function's result. A node's attribute ``node`` is a frozen :class:`Node`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cklang.ir.nodes import Function, Operation, Value
from cklang.ir.ops import OPS

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["Node", "build_graph"]


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
        ids[value.name] = len(ids)
        kind = OPS[operation.op].kind.value
        graph.add_node(ids[value.name], node=Node(kind=kind, value=value, operation=operation))
        for index, operand in enumerate(operation.operands):
            graph.add_edge(ids[operand.name], ids[value.name], key=index)
    for index, value in enumerate(function.results):
        graph.add_node(len(ids) + index, node=Node(kind="result", value=value))
        graph.add_edge(ids[value.name], len(ids) + index, key=0)
    return graph
