# SPDX-License-Identifier: MIT
"""Queries on the data-flow graph of a function, by which the partition is computed.

Three analyses of compilers carry them:

- *Reaching anchors*, a forward data-flow analysis: each node learns the anchors that reach it
  through pointwise and shape ops, and through which index map. It gives each node its colour.
- *Backward slices* (:meth:`Flow.slice`): all that a value is computed from, down to given leaves.
- *Dominators* (:meth:`Flow.dominators`): the values through which every path from an anchor to
  some readers leads.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Protocol

from cklang.errors import error
from cklang.fusion.graph import Node, build_graph, kind_of
from cklang.fusion.sites import Axes, compose, identity
from cklang.ir.nodes import Function, Operation, Value
from cklang.ir.ops import Kind
from cklang.types import f32, i64

if TYPE_CHECKING:
    import networkx as nx

_PLACES = (Kind.VIEW, Kind.JOIN, Kind.PARTIAL)
"""What is in memory and has no kernel: others read and write there."""
_INPUTS = (None, Kind.EXTENT, Kind.INDEX, *_PLACES)
"""What is in memory, or a number, before kernels of its readers run."""
_NO_PAIRS: Mapping[int, int] = MappingProxyType({})


class Occurrence(NamedTuple):
    """A node as seen through an index map from where a slice starts.

    Transposes and broadcasts change the map on the way down and vanish; one value at two maps is
    two occurrences.
    """

    node: int
    axes: Axes


class AnchorKernels(Protocol):
    """What the graph asks of the kernels of one anchor (:class:`cklang.fusion.kernel.Maker`)."""

    @property
    def epilogue(self) -> bool:
        """Whether such a kernel computes what follows its anchor, element by element."""
        ...

    def can_store(self, flow: Flow, node: int) -> bool:
        """Tell whether such a kernel can store a value that follows its anchor."""
        ...


class Flow:
    """The graph of a function, each node with the attributes ``anchors`` and ``colour``.

    ``anchors`` is the set of pairs (anchor, map from the node to it) that reach the node. The
    ``colour`` is the anchor whose kernel can compute the node: the last one, in the function's
    order, that reaches it with all axes running, in any order. Values that depend on no anchor,
    or only on parts of one that are repeated, have none. An anchor whose kernels have no epilogue
    (:class:`cklang.fusion.kernel.Maker`) reaches only what they can store.
    """

    def __init__(
        self,
        function: Function,
        makers: Mapping[str, AnchorKernels],
        pairs: Mapping[int, int] = _NO_PAIRS,
        unwritten: Collection[str] = (),
    ) -> None:
        """Build and colour the graph.

        Args:
            function: What is computed.
            makers: The ops that kernels are made of, the anchors, and how.
            pairs: Anchors that are computed by the kernel of another one, which follows them.
            unwritten: The names of values that their anchors' kernels do not write for others: they
                have no colour, so who needs them computes them.
        """
        self.function = function
        self._unwritten = unwritten
        self.pairs = pairs
        self.makers = makers
        self.graph: nx.MultiDiGraph = build_graph(function)
        self._ids = {value.name: node for node, value in enumerate(function.values())}
        self._payloads: dict[int, Node] = dict(self.graph.nodes(data="node"))
        self._operations = {node: known.operation for node, known in self._payloads.items()}
        self._kinds = {
            node: None if operation is None else kind_of(operation)
            for node, operation in self._operations.items()
        }
        self._uses = self._uses_by_node()
        self._operands = {
            node: tuple(source for source, _ in uses) for node, uses in self._uses.items()
        }
        self._below: dict[Occurrence, tuple[Occurrence, ...]] = {}
        self._views: dict[int, list[Occurrence]] = {}
        self._straight = {
            node: Occurrence(node, identity(known.value.type.rank))
            for node, known in self._payloads.items()
        }
        self._above = self._above_by_node()
        self._anchors: dict[int, frozenset[tuple[int, Axes]]] = {}
        self._colours: dict[int, int | None] = {}
        self._colour()

    def _uses_by_node(self) -> dict[int, tuple[tuple[int, Axes | None], ...]]:
        """Return the in-edges of each node in the order of its operands, as (source, axes)."""
        edges: dict[int, dict[int, tuple[int, Axes | None]]] = {node: {} for node in self.graph}
        for source, target, key, axes in self.graph.edges(keys=True, data="axes"):
            edges[target][key] = source, axes
        return {node: tuple(own[key] for key in sorted(own)) for node, own in edges.items()}

    def _above_by_node(self) -> dict[int, int]:
        """Return the nodes that each node depends on, as bits of an integer."""
        above: dict[int, int] = {}
        for node, uses in self._uses.items():
            above[node] = 0
            for source, _ in uses:
                above[node] |= above[source] | 1 << source
        return above

    def _colour(self) -> None:
        """Solve reaching anchors: one pass, for the ids of nodes ascend from operands to users."""
        import networkx as nx

        for node in self.graph:
            reached = self._anchors[node] = frozenset(self._reaching(node))
            covering = (anchor for anchor, axes in reached if self._covers(anchor, axes))
            is_left = self.value(node).name in self._unwritten
            self._colours[node] = None if is_left else max(covering, default=None)
        nx.set_node_attributes(self.graph, self._anchors, "anchors")
        nx.set_node_attributes(self.graph, self._colours, "colour")
        nx.freeze(self.graph)

    def _reaching(self, node: int) -> Iterator[tuple[int, Axes]]:
        if self.is_anchor(node):
            yield self.pairs.get(node, node), identity(self.value(node).type.rank)
            return
        if self.is_of_rows(node):
            return
        for source, axes in self._uses[node]:
            if axes is not None:
                for anchor, inner in self.anchors(source):
                    if self._may_compute(anchor, node):
                        yield anchor, compose(axes, inner)

    def _may_compute(self, anchor: int, node: int) -> bool:
        """Tell whether the kernel of an anchor may compute a value that follows."""
        maker = self.maker(anchor)
        return maker.epilogue or (self.kind(node) is not None and maker.can_store(self, node))

    def _covers(self, anchor: int, axes: Axes) -> bool:
        """Tell whether every axis runs with one of the anchor's, and none of those is missing."""
        rank = self.value(anchor).type.rank
        return len(axes) == rank and set(axes) == set(range(rank))

    def id(self, value: Value) -> int:
        """Return the node that defines ``value``."""
        return self._ids[value.name]

    def payload(self, node: int) -> Node:
        """Return what ``node`` stands for."""
        return self._payloads[node]

    def value(self, node: int) -> Value:
        """Return the value that ``node`` defines."""
        return self._payloads[node].value

    def operation(self, node: int) -> Operation | None:
        """Return the operation that defines ``node``; None for a parameter."""
        return self._operations[node]

    def kind(self, node: int) -> Kind | None:
        """Return the kind of the op that defines ``node``; None for a parameter."""
        return self._kinds[node]

    def nodes_of(self, op: str) -> tuple[int, ...]:
        """Return the nodes that an op defines, in the function's order."""
        operations = self._operations.items()
        return tuple(node for node, known in operations if known is not None and known.op == op)

    def is_input(self, node: int) -> bool:
        """Tell whether ``node`` is in memory and no kernel's own work.

        It is a parameter, an extent of one, an index, a view of something that is stored, or what
        kernels of its parts write.
        """
        return self._kinds[node] in _INPUTS

    def bases(self, node: int) -> tuple[int, ...]:
        """Return what kernels or callers store of a view or of joined parts; else ``node`` itself.

        Views of views, and of transposed and repeated tensors, are places in one memory.
        """
        if self.kind(node) not in _PLACES:
            return (node,)
        bases: dict[int, None] = {}
        for operand in self.operands(node):
            below = operand
            while self.kind(node) is Kind.VIEW and self.kind(below) is Kind.SHAPE:
                below = self.operands(below)[0]
            bases |= dict.fromkeys(self.bases(below))
        return tuple(bases)

    def places(self) -> list[int]:
        """Return the views and joins that a result depends on, in order."""
        results = [self.id(value) for value in self.function.results]
        live = {*results, *(node for result in results for node in self.ancestors(result))}
        return sorted(node for node in live if self.kind(node) in _PLACES)

    def is_anchor(self, node: int) -> bool:
        """Tell whether a kernel is made of the op that defines ``node``."""
        operation = self.operation(node)
        return operation is not None and operation.op in self.makers

    def maker(self, anchor: int) -> AnchorKernels:
        """Return how the kernels of an anchor are made."""
        return self.makers[self.expect_operation(anchor).op]

    def anchors(self, node: int) -> frozenset[tuple[int, Axes]]:
        """Return the anchors that reach ``node``, each with the map from the node to it."""
        return self._anchors[node]

    def colour(self, node: int) -> int | None:
        """Return the anchor whose kernel can compute ``node``."""
        return self._colours[node]

    def orientation(self, node: int) -> Axes:
        """Return how its own anchor is seen from ``node``: straight if it is so at all."""
        own = self.colour(node)
        return min(
            axes for anchor, axes in self.anchors(node) if anchor == own and None not in axes
        )

    def operands(self, node: int) -> tuple[int, ...]:
        """Return the operands of ``node`` in order."""
        return self._operands[node]

    def occurrence(self, node: int) -> Occurrence:
        """Return ``node`` seen from itself."""
        return self._straight[node]

    def below(self, use: Occurrence) -> tuple[Occurrence, ...]:
        """Return the occurrences of an occurrence's operands, in order."""
        known = self._below.get(use)
        if known is None:
            known = self._below[use] = tuple(
                Occurrence(source, compose(use.axes, axes))
                for source, axes in self._uses[use.node]
                if axes is not None
            )
        return known

    def ancestors(self, node: int) -> list[int]:
        """Return the nodes that ``node`` depends on, in the function's order."""
        return [source for source in range(node) if self.depends(node, source)]

    def depends(self, node: int, source: int) -> bool:
        """Tell whether ``node`` depends on ``source``, another node."""
        return bool(self._above[node] >> source & 1)

    def slice(self, start: Occurrence, is_leaf: Callable[[Occurrence], bool]) -> nx.DiGraph:
        """Return the backward slice of ``start``: an edge leads from a user to each operand.

        The slice ends at occurrences without operands and at those that ``is_leaf`` holds for. A
        user's edges are in the order of its operands, so that a postorder is one evaluation order.
        """
        import networkx as nx

        cone = nx.DiGraph()
        cone.add_node(start)
        pending = [start]
        while pending:
            use = pending.pop()
            if is_leaf(use):
                continue
            operands = self.below(use)
            pending += [operand for operand in dict.fromkeys(operands) if operand not in cone]
            cone.add_edges_from((use, operand) for operand in operands)
        return cone

    def dominators(
        self, colour: int, readers: Iterable[int], fixed: Collection[int]
    ) -> list[int] | None:
        """Return what dominates all ``readers`` in the flow from an anchor, the last value first.

        The flow is the part of the graph that the anchor's kernel computes: without values of
        other colours and without ``fixed``, which are stored anyway. Readers that the anchor does
        not reach in it follow from these already. None if it reaches no reader.
        """
        import networkx as nx

        def is_inside(node: int) -> bool:
            return node not in fixed and self.colour(node) in (colour, None)

        if colour in fixed:
            return None
        flow = nx.subgraph_view(self.graph, filter_node=is_inside)
        # Releases of networkx differ in what they say of the start.
        parents = {**nx.immediate_dominators(flow, colour), colour: None}
        chains = [list(_chain(parents, node, colour)) for node in readers if node in parents]
        if not chains:
            return None
        common = set(chains[0]).intersection(*chains[1:])
        return [node for node in chains[0] if node in common]

    def view(self, operand: int) -> list[Occurrence]:
        """Return the path from an anchor's operand to the stored matrix that it is a view of.

        Transposes are passed, and broadcasts that leave rows and columns alone: along a batch axis
        the matrix may repeat.
        """
        known = self._views.get(operand)
        if known is None:
            known = self._views[operand] = self._view(operand)
        return known

    def _view(self, operand: int) -> list[Occurrence]:
        path = [self.occurrence(operand)]
        shape = self.value(operand).type.shape
        while self.kind(path[-1].node) is Kind.SHAPE:
            (below,) = self.below(path[-1])
            ends = zip(below.axes[-2:], shape[-2:], strict=True)
            if any(axis is None and extent != 1 for axis, extent in ends):
                break
            path.append(below)
        return path

    def is_computed(self, operand: int) -> bool:
        """Tell whether an anchor's operand is neither stored nor written by another kernel."""
        stored = self.view(operand)[-1].node
        return not self.is_input(stored) and self.colour(stored) is None

    def is_gathered(self, operand: int) -> bool:
        """Tell whether an anchor's operand is read at indices."""
        return self.kind(self.view(operand)[-1].node) is Kind.GATHER

    def is_outer(self, root: int, use: Occurrence) -> bool:
        """Tell whether the kernel of ``root`` cannot compute ``use``: it belongs to another one.

        So does a value of the root's own colour that sees the anchor with its axes the other way
        round: an element's thread has no such accumulator.
        """
        colour, own = self.colour(use.node), self.colour(root)
        if colour is None or colour != own:
            return colour is not None
        straight = self.orientation(root)
        return all(
            compose(use.axes, axes) != straight
            for anchor, axes in self.anchors(use.node)
            if anchor == own
        )

    def is_of_rows(self, node: int) -> bool:
        """Tell whether only kernels of rows compute ``node``: reads at indices, and i64."""
        operation, kind = self.operation(node), self.kind(node)
        if operation is None or kind not in (Kind.POINTWISE, Kind.CAST):
            return kind is Kind.GATHER
        return any(value.type.dtype == i64 for value in (operation.result, *operation.operands))

    def is_readers_work(self, node: int) -> bool:
        """Tell whether readers of ``node`` make it themselves of what it is made of.

        Transposes, broadcasts and the widening of a narrow float are: a narrow value is half the
        memory.
        """
        operation = self.operation(node)
        if operation is None:
            return False
        widens = operation.op == "cast" and operation.result.type.dtype == f32
        return (widens and not self.is_of_rows(node)) or self.kind(node) is Kind.SHAPE

    def expect_operation(self, node: int) -> Operation:
        """Return the operation that defines ``node``, which is no parameter."""
        operation = self.operation(node)
        if operation is None:
            raise error("Z002", what=f"{self.value(node)} has no operation")
        return operation


def _chain(parents: dict[int, int | None], node: int, start: int) -> Iterator[int]:
    """Yield ``node`` and its dominators up to ``start``, given each one's immediate dominator."""
    yield node
    while node != start:
        parent = parents[node]
        if parent is None:
            raise error("Z002", what=f"node {node} has no dominator")
        node = parent
        yield node
