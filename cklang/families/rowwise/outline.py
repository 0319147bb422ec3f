# SPDX-License-Identifier: MIT
"""Put what kernels of rows compute into operations of their own, before a program is partitioned.

Products, convolutions and attentions compute what follows them, and products what their operands
are made of. What is left is outlined: reductions, what is computed of them, and pointwise values
that nothing else can compute. The parts that share a space of rows (:mod:`.space`) are one kernel:

1. *Demand*, from the results backwards: a value that must be in memory and that no other family's
   kernel gives is an output of a kernel of rows. What an epilogue needs of reduced rows is stored
   where it is smallest: a number for each row.
2. *Slices*: what an output is computed from, down to values in memory. A reduction over other axes
   than those of the slice's space is an output of another kernel.
3. *Joining*: outputs of one space are one kernel if one is on the way to the other, or if they
   reduce or read the same values, unless something between them is computed elsewhere.

An outlined operation has the values that it reads as operands, the computation as the function
``body``, and ``result``, which of the body's results it is.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from itertools import product
from typing import TypeAlias

from cklang.families.rowwise.cuts import best_cut
from cklang.families.rowwise.host import MAX_OUTPUTS, MAX_READS
from cklang.families.rowwise.key import MOST_STAGES, parts_of
from cklang.families.rowwise.space import (
    RowSpace,
    conflicts,
    is_reduction,
    operands_of,
    reaches,
    slice_of,
    space_of,
)
from cklang.fusion.flow import Flow, Occurrence
from cklang.fusion.kernel import Maker
from cklang.fusion.passes import Draft
from cklang.fusion.sites import Axes, identity
from cklang.ir.extents import EXTENT
from cklang.ir.nodes import Function, Operation, Value, make_attrs
from cklang.ir.ops import Kind
from cklang.ir.rewrite import needed_operations
from cklang.types import bool_

OUTLINED = "rowwise"
"""The op of what is outlined."""


def outlined(draft: Draft, *, cuts: bool = False) -> Draft:
    """Return a draft in which kernels of rows are operations.

    What is left to them and not written by one, its readers compute.

    ``cuts`` says of each reduction whether it is stored for what follows it.
    """
    others = {op: maker for op, maker in draft.makers.items() if op != OUTLINED}
    flow = Flow(draft.function, others)
    left = conflicts(flow)
    cut = {node for node in flow.graph if cuts and is_reduction(flow.operation(node))}
    stored: frozenset[int] = frozenset()
    while True:
        demand = _Demand(flow, others, left, stored, cut, draft.strict)
        demand.run()
        further, outputs = demand.repeated(), frozenset(demand.outputs)
        if not further and outputs <= stored and demand.excess <= cut:
            function, unwritten = _rewritten(demand)
            return replace(draft, outlined=function, unwritten=unwritten)
        # What is stored for one kernel is read by all, and not computed again.
        left, stored, cut = left | further, stored | outputs, cut | demand.excess


@dataclass(frozen=True, slots=True)
class _Part:
    """An output, its space, and its slice."""

    node: int
    space: RowSpace
    axes: Axes
    """The map from the space to the output."""
    uses: tuple[Occurrence, ...]
    """The slice, operands before users."""
    leaves: frozenset[Occurrence]
    reductions: frozenset[tuple[Occurrence, Occurrence]]
    """The reductions of the slice, each with its operand."""

    def levels(self, flow: Flow) -> dict[Occurrence, int]:
        """Return each reduction of the slice with how many of it follow from one another up to it.

        A kernel runs over a row once for each.
        """
        below: dict[Occurrence, int] = {}
        own: dict[Occurrence, int] = {}
        for use in self.uses:
            inputs = () if use in self.leaves else operands_of(flow, use, self.space)
            below[use] = max((below[input_] for input_ in inputs), default=0)
            if use not in self.leaves and is_reduction(flow.operation(use.node)):
                below[use] += 1
                own[use] = below[use]
        return own


class _Demand:
    """Finds the values that kernels of rows must write."""

    def __init__(
        self,
        flow: Flow,
        makers: Mapping[str, Maker],
        left: frozenset[int],
        stored: frozenset[int],
        cut: Collection[int] = (),
        strict: Collection[str] = (),
    ) -> None:
        """Begin.

        Args:
            flow: The graph.
            makers: The anchors of the other families.
            left: What they could compute but is left to kernels of rows.
            stored: What kernels of rows store for some kernel.
            cut: What is stored in any case.
            strict: Results of anchors that may not rely on what others store.
        """
        self.flow = flow
        self._known = stored
        self._strict = frozenset(strict)
        self.makers = makers
        self.outputs: dict[int, _Part] = {}
        self._stored: set[int] = set()
        self._cut = set(cut)
        """What is stored for kernels of rows: reductions, and values of too many reads."""
        self._misfits: set[int] = set()
        """Reductions over other axes than the values computed from them."""
        self._early: set[int] = set()
        """Reductions followed by more reductions than a kernel has stages."""
        self.excess: set[int] = set()
        """What is stored since the kernel of another value would read too much."""
        self._tables = {
            flow.operands(node)[0] for node in flow.graph if flow.kind(node) is Kind.GATHER
        }
        """What is read at indices, and so must be in memory."""
        self._by_rows: set[int] = set()
        """What kernels of rows read of other kernels."""
        self._by_others: set[int] = set()
        """What results and other kernels read of other kernels."""
        self.left = left
        self.left |= self._refused()

    def run(self) -> None:
        """Find all outputs."""
        for value in self.flow.function.results:
            node = self.flow.id(value)
            if self.flow.operation(node) is not None:
                self._by_others.add(node)
                self.store(node)

    def repeated(self) -> frozenset[int]:
        """Return what kernels of rows can compute of another value of the same anchor.

        So an anchor's kernel stores one value for all of them, and does not run once for each.
        """
        import networkx as nx

        flow = self.flow
        repeated: set[int] = set()
        for colour in {self.colour(node) for node in self._by_rows} - {None}:
            region = flow.graph.subgraph(
                member for member in flow.graph if self.colour(member) == colour
            )
            before = nx.immediate_dominators(region, colour)
            rows = (self._by_rows - self._by_others) & before.keys()
            stored = (self._by_rows | self._by_others) & before.keys()
            for node in rows:
                first = next(
                    (dominator for dominator in _dominators(before, node) if dominator in stored),
                    None,
                )
                if first is not None:
                    between = nx.descendants(region, first) & ({node} | nx.ancestors(region, node))
                    repeated |= between - self._by_others
        return frozenset(repeated)

    def _refused(self) -> frozenset[int]:
        """Return the values of an anchor's colour that its kernel cannot store."""
        flow = self.flow
        refused = set()
        for node in flow.graph:
            colour = self.colour(node)
            if colour is None or node == colour:
                continue
            maker = self._maker(colour)
            is_strict = flow.value(colour).name in self._strict
            reads = self._read_for(node, colour, is_strict)
            is_bool = flow.value(node).type.dtype == bool_
            if is_bool or len(reads) > maker.most_reads or not maker.can_store(flow, node):
                refused.add(node)
        return frozenset(refused)

    def _maker(self, anchor: int) -> Maker:
        return self.makers[self.flow.expect_operation(anchor).op]

    def colour(self, node: int) -> int | None:
        """Return the anchor whose kernel computes ``node``; None if that is no other family's."""
        return None if node in self.left else self.flow.colour(node)

    def is_stored(self, node: int) -> bool:
        """Tell whether a kernel of rows finds ``node`` in memory."""
        flow = self.flow
        if flow.kind(node) is Kind.INDEX:
            return False
        if flow.is_input(node) or node in self._cut or node in self._tables:
            return True
        return self.colour(node) is not None and not flow.is_readers_work(node)

    def store(self, node: int) -> None:
        """Demand ``node`` in memory."""
        flow = self.flow
        for base in flow.bases(node):
            if base != node:
                self.store(base)
        if node in self._stored or flow.is_input(node):
            return
        self._stored.add(node)
        is_view = node in self._tables and flow.kind(node) is Kind.SHAPE
        if is_view and flow.value(node) not in flow.function.results:
            # Readers take its axes in any order.
            self.store(flow.operands(node)[0])
            return
        colour = self.colour(node)
        if colour is None:
            self._add(node)
        elif node == colour:
            for index, operand in enumerate(flow.operands(node)):
                self._operand(node, index, flow.view(operand)[-1].node)
        else:
            self.store(colour)
            self._function(node, colour)

    def _operand(self, anchor: int, index: int, stored: int) -> None:
        flow = self.flow
        maker = self._maker(anchor)
        if flow.kind(stored) is Kind.CONSTANT and maker.constants:
            return
        if flow.is_input(stored) or self.colour(stored) is not None:
            self._by_others.add(stored)
            self.store(stored)
            return
        is_known = stored in self._known
        if not is_known and maker.gathers(flow, anchor, index):
            for operand in flow.operands(stored):
                self._by_others.add(operand)
                self.store(operand)
        elif index in maker.prologues and not is_known and self._is_prologue(stored, maker):
            self._function(stored, None)
        else:
            self.store(stored)

    def _is_prologue(self, node: int, maker: Maker) -> bool:
        """Tell whether a kernel can compute ``node`` as it loads it."""
        if next(reaches(self.flow, node, self.flow.is_anchor), None) is not None:
            return False
        # Constants alone are nothing that a kernel could load.
        return 0 < len(self._read_for(node, None)) <= maker.most_reads

    def _function(self, node: int, colour: int | None) -> None:
        """Demand what the kernel of another family reads to compute ``node``."""
        for reader in self._read_for(node, colour):
            self._by_others.add(reader)
            self.store(reader)

    def _read_for(self, node: int, colour: int | None, strict: bool = False) -> set[int]:
        """Return what the kernel of another family reads to compute ``node``.

        ``colour`` is the anchor that the node follows; None for what an operand of one is computed
        as. If ``strict``, values of other anchors are computed again.
        """
        flow = self.flow
        reads: set[int] = set()
        pending, visited = [node], {node}
        while pending:
            reached = pending.pop()
            if reached == colour:
                continue
            is_again = strict and self.colour(reached) not in (None, reached)
            if not is_again and self._is_read_for(reached, node, colour):
                reads.add(reached)
            else:
                operands = [below for below in flow.operands(reached) if below not in visited]
                visited.update(operands)
                pending += operands
        return reads

    def _is_read_for(self, candidate: int, node: int, colour: int | None) -> bool:
        """Tell whether the kernel that computes ``node`` reads a value that it is computed of."""
        flow, own = self.flow, self.colour(candidate)
        if flow.is_input(candidate) or is_reduction(flow.operation(candidate)):
            return True
        if flow.is_of_rows(candidate) or own not in (None, colour):
            return True
        if own is not None or flow.is_readers_work(candidate):
            return False
        if candidate != node and self._is_known(candidate, colour):
            return True
        is_smaller = _axes_of(flow.value(candidate)) < _axes_of(flow.value(node))
        return is_smaller and next(reaches(flow, candidate, flow.is_anchor), None) is not None

    def _is_known(self, node: int, colour: int | None) -> bool:
        """Tell whether a kernel of rows has stored ``node`` before the kernel of an anchor runs."""
        if node not in self._known:
            return False
        return colour is None or not (node == colour or self.flow.depends(node, colour))

    def _add(self, node: int) -> None:
        """Take ``node`` as an output, and demand what it is computed from."""
        self.outputs[node] = part = self._part(node)
        for use in part.leaves:
            self._by_rows.add(use.node)
            self.store(use.node)

    def _part(self, node: int) -> _Part:
        """Return the slice of an output; reductions that do not fit its space are cut off it."""
        part, wrong = self._sliced(node)
        while wrong:
            self._cut |= wrong
            for other in wrong:
                self.store(other)
            part, wrong = self._sliced(node)
        return part

    def _sliced(self, node: int) -> tuple[_Part, set[int]]:
        """Return the slice of an output, and the reductions in it that do not fit its space."""
        flow = self.flow

        def is_memory(candidate: int) -> bool:
            return candidate != node and self.is_stored(candidate)

        first = reaches(
            flow, node, lambda candidate: is_memory(candidate) or flow.is_anchor(candidate)
        )
        # A reduction that was cut off another slice still has a row of its own.
        own = [use for use in first if use.node == node or use.node not in self._cut]
        space, axes = space_of(flow, node, own)
        wrong: set[int] = set()

        def is_leaf(use: Occurrence) -> bool:
            # Reductions that another slice needs stored are still one kernel where they can be.
            shared = {node, use.node} <= self._misfits - self._early
            return is_memory(use.node) and not (shared and self._computes(space, use))

        def ends(use: Occurrence) -> bool:
            if is_leaf(use) or flow.is_input(use.node):
                return True
            if is_reduction(flow.operation(use.node)) and not self._computes(space, use):
                wrong.add(use.node)
            return use.node in wrong

        uses = slice_of(flow, Occurrence(node, axes), space, ends)
        leaves = frozenset(use for use in uses if is_leaf(use))
        computed = () if wrong else [use for use in uses if use not in leaves]
        reductions = frozenset(_reductions(flow, space, computed))
        part = _Part(node, space, axes, tuple(uses), leaves, reductions)
        self._misfits |= wrong
        excess = None if wrong else best_cut(flow, space, uses, leaves, self._may_store)
        if excess is not None:
            self.excess.add(excess)
            return part, {excess}
        early = set() if wrong else self._too_early(part)
        self._early |= early
        return part, wrong | early

    def _may_store(self, node: int) -> bool:
        """Tell whether a kernel of rows computes a value that readers do not make themselves."""
        return self.colour(node) is None and not self.flow.is_readers_work(node)

    def _computes(self, space: RowSpace, use: Occurrence) -> bool:
        """Tell whether a kernel of this space can compute a reduction seen from there."""
        return space.computes(self.flow.expect_operation(use.node), use.axes)

    def _too_early(self, part: _Part) -> set[int]:
        """Return the reductions of a slice that too many others follow for one kernel."""
        levels = part.levels(self.flow)
        excess = max(levels.values(), default=0) - MOST_STAGES
        return {use.node for use, level in levels.items() if level == excess > 0}


def _reductions(
    flow: Flow, space: RowSpace, uses: Sequence[Occurrence]
) -> Iterator[tuple[Occurrence, Occurrence]]:
    """Yield the reductions among what a kernel computes, each with its operand."""
    for use in uses:
        if is_reduction(flow.operation(use.node)):
            yield use, operands_of(flow, use, space)[0]


def _dominators(before: Mapping[int, int | None], node: int) -> Iterator[int]:
    """Yield the nodes through which every path to ``node`` leads, the nearest first."""
    # The first node dominates itself or is not listed, as versions of networkx have it.
    above = before.get(node)
    while above is not None and above != node:
        yield above
        node, above = above, before.get(above)


def _axes_of(value: Value) -> int:
    """Return how many axes a value has that are longer than 1."""
    return sum(extent != 1 for extent in value.type.shape)


_Cluster: TypeAlias = list[_Part]
"""The outputs of one kernel."""


def _clusters(demand: _Demand) -> list[_Cluster]:
    """Return the outputs by kernel."""
    clusters = _joined(demand, careful=False)
    # Two kernels that wait for each other are rare, and each step is dear to check.
    return clusters if _are_ordered(demand, clusters) else _joined(demand, careful=True)


def _joined(demand: _Demand, *, careful: bool) -> list[_Cluster]:
    clusters: list[_Cluster] = []
    for part in sorted(demand.outputs.values(), key=lambda output: output.node):
        for cluster in clusters:
            if not _joins(demand.flow, cluster, part):
                continue
            cluster.append(part)
            if not careful or _are_ordered(demand, clusters):
                break
            cluster.pop()
        else:
            clusters.append([part])
    return clusters


def _are_ordered(demand: _Demand, clusters: Sequence[_Cluster]) -> bool:
    """Tell whether no kernel waits for itself by way of others."""
    flow = demand.flow
    kernel = {part.node: -1 - at for at, parts in enumerate(clusters) for part in parts}
    before = {
        node: {kernel.get(source, source) for source in flow.operands(node)}
        for node in flow.graph
        if node not in kernel
    }
    for parts in clusters:
        leaves = {use.node for part in parts for use in part.leaves}
        before[kernel[parts[0].node]] = {kernel.get(leaf, leaf) for leaf in leaves}
    try:
        TopologicalSorter(before).prepare()
    except CycleError:
        return False
    return True


def _joins(flow: Flow, cluster: _Cluster, part: _Part) -> bool:
    """Tell whether a kernel may write an output beside its others, and what it saves by that."""
    if not any(_shares(flow, member, part) for member in cluster):
        return False
    parts = (*cluster, part)
    spaces = {member.space for member in parts if member.space.row}
    leaves = {use for member in parts for use in member.leaves}
    uses = {use for member in parts for use in member.uses if use not in member.leaves}
    # An index is a read without memory, and an axis that is read at indices takes a read's place.
    places = [use for use in uses if flow.kind(use.node) in (Kind.INDEX, Kind.GATHER)]
    written = sum(len(parts_of(flow.value(output.node).type.dtype)) for output in parts)
    if len(spaces) > 1 or len(leaves) + len(places) > MAX_READS or written > MAX_OUTPUTS:
        return False
    outputs = {member.node for member in parts}
    # What the kernel reads must not follow what it writes.
    read = {use.node for use in leaves}
    return not (read & outputs or any(flow.depends(*pair) for pair in product(read, outputs)))


def _shares(flow: Flow, a: _Part, b: _Part) -> bool:
    """Tell whether two outputs of one space are computed from the same."""
    if a.space.extents != b.space.extents:
        return False
    if a.space.row != b.space.row:
        # A pointwise value lies in the space of reduced ones axis by axis.
        pointwise = a if not a.space.row else b
        return not pointwise.space.row and _is_shared(flow, pointwise, b if pointwise is a else a)
    return bool(a.reductions & b.reductions) or _is_shared(flow, a, b)


def _is_shared(flow: Flow, early: _Part, late: _Part) -> bool:
    """Tell whether one output is on the way to another, or both read the same."""
    here = Occurrence(early.node, identity(len(early.axes)))
    if not early.space.row and here in late.uses:
        return True
    leaves = early.leaves | late.leaves
    if all(flow.kind(use.node) is Kind.EXTENT for use in leaves):
        # Computing indices costs less than a launch.
        return any(flow.kind(use.node) is Kind.INDEX for use in {*early.uses} & {*late.uses})
    # Reading a vector twice costs nothing.
    return any(None not in use.axes for use in early.leaves & late.leaves)


def _rewritten(demand: _Demand) -> tuple[Function, frozenset[str]]:
    """Return the function with an operation for each output, and what no kernel writes."""
    flow = demand.flow
    outputs = {flow.value(node).name for node in demand.outputs}
    unwritten = frozenset(flow.value(node).name for node in demand.left) - outputs
    if not demand.outputs:
        return flow.function, unwritten
    function = flow.function
    items: list[Operation] = []
    replaced: set[str] = set()
    for cluster in _clusters(demand):
        body = _body(demand, cluster)
        reads = tuple(body.params)
        for place, node in enumerate(_written(cluster)):
            operation = flow.expect_operation(node)
            replaced.add(operation.result.name)
            items.append(
                Operation(
                    op=OUTLINED,
                    operands=reads,
                    attrs=make_attrs(body=body, result=place),
                    result=operation.result,
                    span=operation.span,
                )
            )
    kept = [step for step in function.body if step.result.name not in replaced]
    return _ordered(function, [*kept, *items]), unwritten


def _written(cluster: _Cluster) -> list[int]:
    return sorted(part.node for part in cluster)


def _body(demand: _Demand, cluster: _Cluster) -> Function:
    """Return what a kernel computes, as a function of what it reads."""
    flow = demand.flow
    nodes = {use.node for part in cluster for use in part.uses}
    inside = {use.node for part in cluster for use in part.uses if use not in part.leaves}
    return Function(
        name=flow.function.name,
        params=tuple(flow.value(node) for node in sorted(nodes - inside)),
        body=tuple(flow.expect_operation(node) for node in sorted(inside)),
        results=tuple(flow.value(node) for node in _written(cluster)),
    )


def _ordered(function: Function, operations: Sequence[Operation]) -> Function:
    """Return a function of these operations, operands first; without those that nothing needs.

    What has an extent may come after it: no data flows.
    """
    import networkx as nx

    places = {value.name: place for place, value in enumerate(function.values())}
    by_name = {operation.result.name: operation for operation in operations}
    graph = nx.DiGraph()
    graph.add_nodes_from(by_name)
    graph.add_edges_from(
        (operand.name, name)
        for name, step in by_name.items()
        for operand in step.operands
        if operand.name in by_name and step.op != EXTENT
    )
    order = nx.lexicographical_topological_sort(graph, key=places.__getitem__)
    body = needed_operations([by_name[name] for name in order], function.results)
    return replace(function, body=tuple(body))
