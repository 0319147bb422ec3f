# SPDX-License-Identifier: MIT
"""Which kernels compute a function: each anchor takes the pointwise ops below it.

The partition is computed on the data-flow graph of the function (:mod:`cklang.fusion.graph`):

1. A forward analysis *colours* each node by the anchor whose kernel can compute it
   (:class:`cklang.fusion.flow.Flow`).
2. Values that a kernel must write are *roots*: the function's results, and what anchors take as
   operands, if it follows a gemm. Other operands are computed by the gemm's own kernel as it loads
   them. The leaves of a root's backward slice that have other colours are its *crossings*.
3. Each colour materialises its crossings in one value if it can: the last value that dominates
   them all in the flow from the anchor, at worst the anchor's own result. Crossings that follow
   from roots of the colour need none: without these the anchor does not reach them.
4. A root becomes a kernel: its slice, ending at parameters, roots of other colours and its own
   accumulator, is the epilogue. Kernels that the function's result does not depend on are dropped.

Roots of one product are results of one kernel where they can be (:mod:`cklang.fusion.joint`); an
attention's kernel may have the log-sums beside its result. Else the anchor is computed once for
each root; the decisions say so.

What an anchor is, and what makes its kernels, families say (:class:`cklang.fusion.kernel.Maker`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial

from cklang.errors import CkError, CkUnsupportedError, error
from cklang.fusion.completeness import expect_complete
from cklang.fusion.flow import Flow, Occurrence, Outlined
from cklang.fusion.joint import joined_roots
from cklang.fusion.kernel import KernelMaker, Maker
from cklang.fusion.log_sums import with_log_sums
from cklang.fusion.pairs import pairs_of
from cklang.fusion.picked import with_picked
from cklang.fusion.placement import placed
from cklang.fusion.plan import AnyKernel, Plan, numbered
from cklang.ir.nodes import Function
from cklang.ir.ops import OPS, Kind
from cklang.ir.verifier import verify
from cklang.source import Span
from cklang.types import DTYPES, DType

__all__ = ["STORABLE", "plan"]

STORABLE: tuple[DType, ...] = tuple(
    dtype
    for dtype in DTYPES.values()
    if dtype.name not in ("f64", "i64", "bool", "e8m0", "i4", "fp4")
)
"""What a kernel can write."""


Outline = Callable[[Function, Collection[str]], Outlined]


def plan(
    function: Function,
    makers: Mapping[str, Maker],
    outline: Outline = lambda same, _strict: Outlined(same),
    prepared: Callable[[Function], Function] = lambda same: same,
) -> Plan:
    """Return the kernels that compute ``function`` and the decisions behind them.

    Args:
        function: What is to be computed.
        makers: The anchors, by op: what kernels are made of, and how.
        outline: Puts parts of a function into operations of their own, which become kernels. It is
            told for which anchors it must not rely on what other kernels store.
        prepared: Writes operations as what kernels compute.

    Raises:
        CkUnsupportedError: No kernels compute it: one value is two results (X001), no anchor
            (X002), a gemm operand made of constants alone (X003) or a computed one where only
            stored ones are read (X005), too many reads (X004), a result dtype that cannot be stored
            (X006), or a gemm's result repeated with no gemm of the larger shape (X007).
        CkError: ``function`` breaks a rule of the IR.
        CkInternalError: Z004, the kernels do not compute ``function``.
    """
    verify(function, allow_unused=True)
    if len(set(function.results)) < len(function.results):
        raise error("X001", at=function.span, name=function.name)
    function = prepared(placed(with_log_sums(with_picked(function))))
    strict: set[str] = set()
    while True:
        flow, roots = _paired(outline(function, strict), makers)
        maker = KernelMaker(flow, roots, makers)
        try:
            fused = [maker.make(*each) for each in joined_roots(flow, roots, makers)]
        except CkUnsupportedError as mistake:
            # It would read more than was foreseen: less follows it then.
            if mistake.code != "X004" or maker.anchor in strict:
                raise
            strict.add(maker.anchor)
        else:
            break
    needed = _needed(function, [kernel for kernel in fused if kernel is not None])
    kernels = _in_launch_order(function, needed)
    maker.decide_views()
    maker.decide_dead()
    ordered = sorted(
        maker.decisions, key=lambda each: (each.edge.target, each.edge.operand, each.rule)
    )
    planned = Plan(
        function=function,
        kernels=numbered(function.name, kernels),
        decisions=tuple(ordered),
        notes=tuple(maker.notes),
        graph=flow.graph,
    )
    return expect_complete(planned)


def _paired(outlined: Outlined, makers: Mapping[str, Maker]) -> tuple[Flow, list[int]]:
    """Return the graph in which pairs of products are one anchor, and its roots."""
    graph = partial(Flow, outlined.function, makers, unwritten=outlined.unwritten)
    flow = graph()
    search = _Roots(flow, makers)
    roots = search.find()
    candidates = list(pairs_of(flow, search.readers(search.demanded())))
    while chosen := _apart(candidates):
        paired = graph(pairs=chosen)
        joint, refused = _roots_of_pairs(paired, makers)
        if not refused:
            return paired, joint
        candidates = [pair for pair in candidates if pair[1] not in refused]
    return flow, roots


def _apart(candidates: Iterable[tuple[int, int]]) -> dict[int, int]:
    """Return pairs without a product in common, first come first served."""
    chosen: dict[int, int] = {}
    for first, second in candidates:
        if not {first, second} & {*chosen, *chosen.values()}:
            chosen[first] = second
    return chosen


def _roots_of_pairs(flow: Flow, makers: Mapping[str, Maker]) -> tuple[list[int], set[int]]:
    """Return the roots of a graph, and the pairs whose results no one kernel writes.

    An operand that is seen with its axes exchanged would need a kernel of its own.
    """
    search = _Roots(flow, makers)
    roots = search.find()
    anchors = set(flow.pairs.values())
    own: dict[int | None, set[int]] = {anchor: set() for anchor in anchors}
    needed: dict[int | None, set[int]] = {anchor: set() for anchor in anchors}
    for nodes, by_anchor in ((roots, own), (search.readers(search.demanded()), needed)):
        for node in nodes:
            by_anchor.get(flow.colour(node), set()).add(node)
    refused = {
        anchor
        for anchor in anchors
        if not needed[anchor] <= own[anchor]
        or any(_is_transposed(flow, root, makers) for root in own[anchor])
    }
    if refused:
        return roots, refused  # nothing tells what kernels of these roots would read
    kernels = Counter(flow.colour(first) for first, *_ in joined_roots(flow, roots, makers))
    return roots, {anchor for anchor in anchors if kernels[anchor] != 1}


def _is_transposed(flow: Flow, root: int, makers: Mapping[str, Maker]) -> bool:
    """Tell whether the kernel of a root computes the transpose of its product."""
    anchor = flow.colour(root)
    if anchor is None:
        raise error("Z002", what="a root of a pair has no anchor")
    return makers[flow.expect_operation(anchor).op].is_transposed(flow, root)


def _needed(function: Function, kernels: Sequence[AnyKernel]) -> list[AnyKernel]:
    """Return the kernels that a result of the function depends on."""
    import networkx as nx

    if len(kernels) == 1:
        return list(kernels)
    reads = nx.DiGraph(
        (value.name, result.name)
        for kernel in kernels
        for value in kernel.inputs
        for result in kernel.results
    )
    reads.add_edges_from(
        (operand.name, each.result.name)
        for each in function.body
        if OPS[each.op].kind in (Kind.JOIN, Kind.PARTIAL, Kind.VIEW, Kind.SHAPE)
        for operand in each.operands
    )
    needed = {value.name for value in function.results}
    reads.add_nodes_from(needed)  # constants have no edge
    needed |= {each for name in needed for each in nx.ancestors(reads, name)}
    return [each for each in kernels if needed.intersection(v.name for v in each.results)]


def _in_launch_order(function: Function, kernels: Sequence[AnyKernel]) -> list[AnyKernel]:
    """Return kernels each behind those whose results it reads; else they keep their order.

    A kernel that writes several values, as attention writes its log-sum-exp, may have its place by
    one of them and be needed before.
    """
    import networkx as nx

    views = nx.DiGraph(
        (operand.name, each.result.name)
        for each in function.body
        if OPS[each.op].kind in (Kind.JOIN, Kind.VIEW, Kind.SHAPE)
        for operand in each.operands
    )
    writer = {value.name: place for place, each in enumerate(kernels) for value in each.results}
    order = nx.DiGraph()
    order.add_nodes_from(range(len(kernels)))
    for place, kernel in enumerate(kernels):
        names = {value.name for value in kernel.inputs}
        names |= {base for name in names & set(views) for base in nx.ancestors(views, name)}
        before = {writer[name] for name in names if name in writer} - {place}
        order.add_edges_from((each, place) for each in before)
    return [kernels[place] for place in nx.lexicographical_topological_sort(order)]


class _Roots:
    """Finds the nodes of a graph that kernels write."""

    def __init__(self, flow: Flow, makers: Mapping[str, Maker]) -> None:
        self.flow = flow
        self.makers = makers
        results = (flow.bases(flow.id(value)) for value in flow.function.results)
        self.results = [node for bases in results for node in bases]
        live = {*self.results, *(node for each in self.results for node in flow.ancestors(each))}
        self.anchors = [node for node in sorted(live) if flow.is_anchor(node)]

    def find(self) -> list[int]:
        """Return the roots in launch order."""
        demanded = self.demanded()
        roots = dict.fromkeys(demanded)
        for colour, values in self.crossings(demanded).items():
            fixed = [root for root in demanded if self.flow.colour(root) == colour]
            roots |= dict.fromkeys(self.materialised(colour, values, fixed))
        for root in roots:
            value, operation = self.flow.value(root), self.flow.operation(root)
            if value.type.dtype not in STORABLE:
                raise error(
                    "X006",
                    at=operation.span if operation else self.flow.function.span,
                    dtype=value.type.dtype,
                    name=value.name,
                    type=value.type,
                )
        return sorted(roots)

    def demanded(self) -> list[int]:
        """Return the function's results and the stored operands of the anchors they depend on."""
        for result in self.results:
            self.check_result(result)
        demanded = dict.fromkeys(self.results)
        for anchor in self.anchors:
            for index, operand in enumerate(self.flow.operands(anchor)):
                stored = self.flow.view(operand)[-1].node
                if self.is_computed(anchor, operand):
                    self.check_prologue(anchor, index, stored)
                elif self.flow.colour(stored) is not None:
                    demanded[stored] = None
        bases = (base for place in self.flow.places() for base in self.flow.bases(place))
        return list(demanded | {base: None for base in bases if not self.flow.is_input(base)})

    def is_computed(self, anchor: int, operand: int) -> bool:
        """Tell whether the kernel of an anchor must compute an operand itself."""
        takes_constants = self.makers[self.flow.expect_operation(anchor).op].constants
        stored = self.flow.view(operand)[-1].node
        is_constant = self.flow.kind(stored) is Kind.CONSTANT
        return self.flow.is_computed(operand) and not (takes_constants and is_constant)

    def check_prologue(self, anchor: int, index: int, stored: int) -> None:
        """Refuse a computed operand where the anchor's kernel has no prologue."""
        operation = self.flow.expect_operation(anchor)
        maker = self.makers[operation.op]
        if index not in maker.prologues:
            name, at = self.origin(stored)
            operand = maker.operand(operation, index)
            at = at or operation.span
            raise error("X005", at=at, operand=operand, operation=operation.op, op=name)

    def computed(self) -> list[int]:
        """Return what gemms multiply and no kernel writes."""
        operands = [
            node
            for anchor in self.anchors
            for node in self.flow.operands(anchor)
            if self.is_computed(anchor, node)
        ]
        return list(dict.fromkeys(operands))

    def check_result(self, result: int) -> None:
        """Refuse a result that no kernel computes."""
        if self.flow.colour(result) is not None:
            return
        if self.flow.anchors(result):
            raise self.repeated(result)
        name, at = self.origin(result)
        raise error("X002", at=at or self.flow.function.span, op=name)

    def origin(self, node: int) -> tuple[str, Span | None]:
        """Return what a user would call the maker of ``node``, and its place.

        Casts and broadcasts are mostly the frontend's: the op that they serve is named.
        """
        at = None
        while operation := self.flow.operation(node):
            at = at or operation.span
            if self.flow.kind(node) not in (Kind.SHAPE, Kind.CAST):
                return operation.op, operation.span
            node = self.flow.operands(node)[0]
        return f"a copy of parameter {self.flow.value(node)}", at

    def repeated(self, result: int) -> CkError:
        """Return the error for a result that is an anchor's, repeated along an axis."""
        operation = self.flow.operation(result)
        anchor = min(node for node, _ in self.flow.anchors(result))
        got, want = (self.flow.value(node).type.shape for node in (result, anchor))
        return error(
            "X007",
            at=operation.span if operation else self.flow.function.span,
            op=operation.op if operation else "the result",
            operation=self.flow.expect_operation(anchor).op,
            got=", ".join(str(extent) for extent in got),
            want=", ".join(str(extent) for extent in want),
        )

    def crossings(self, demanded: Iterable[int]) -> dict[int, list[int]]:
        """Return, by colour, the values that some kernel needs from the kernel of that colour."""
        by_colour: dict[int, list[int]] = {}
        for value in self.readers(demanded):
            colour = self.flow.colour(value)
            if colour is not None:
                by_colour.setdefault(colour, []).append(value)
        return by_colour

    def readers(self, demanded: Iterable[int]) -> dict[int, list[int]]:
        """Return the values that some kernel needs from another one, with the nodes that need them.

        They are the nodes with a reader in the graph of demand, the closure of
        :meth:`crossings_of` over what is demanded or computed.
        """
        import networkx as nx

        pending = [*demanded, *self.computed()]
        demand = nx.DiGraph()
        demand.add_nodes_from(pending)
        while pending:
            reader = pending.pop()
            crossings = self.crossings_of(reader)
            pending += [value for value in crossings if value not in demand]
            demand.add_edges_from((reader, value) for value in crossings)
        edges = {value: list(demand.predecessors(value)) for value in demand}
        return {value: nodes for value, nodes in edges.items() if nodes}

    def crossings_of(self, root: int) -> list[int]:
        """Return the values that the kernel of ``root``, or a computed operand, needs from others.

        They are leaves of its slice, which passes through what is the reader's work.
        """
        flow, own = self.flow, self.flow.colour(root)

        def is_crossing(use: Occurrence) -> bool:
            return not flow.is_readers_work(use.node) and flow.is_outer(root, use)

        def is_leaf(use: Occurrence) -> bool:
            return use.node == own or is_crossing(use)

        cone = flow.slice(flow.occurrence(root), is_leaf)
        leaves = (use for use, operands in cone.out_degree() if not operands)
        return list(dict.fromkeys(use.node for use in leaves if is_crossing(use)))

    def materialised(
        self, colour: int, crossings: Sequence[int], fixed: Sequence[int]
    ) -> list[int]:
        """Return what the kernels of ``colour`` write beside the ``fixed`` roots."""
        if set(crossings) <= set(fixed):
            return []
        dominators = self.flow.dominators(colour, crossings, fixed)
        if dominators is None:
            return []
        for node in dominators:
            if self.is_written(colour, node):
                return [node]
        raise error("Z002", what=f"not even {self.flow.value(colour)} serves its readers")

    def is_written(self, colour: int, node: int) -> bool:
        """Tell whether kernels of ``colour`` write ``node`` for readers."""
        flow = self.flow
        is_own = flow.colour(node) == colour and not flow.is_readers_work(node)
        is_storable = node == colour or flow.maker(colour).can_store(flow, node)
        return is_own and is_storable and flow.value(node).type.dtype in STORABLE
