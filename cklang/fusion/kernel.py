# SPDX-License-Identifier: MIT
"""Make the kernel of one root: evaluate its backward slice, and note each edge passed.

Families say how the kernels of their anchors are made: :class:`Maker`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from cklang.errors import error
from cklang.fusion.flow import Flow, Occurrence
from cklang.fusion.plan import MAX_READS, AnyKernel, Decision, Edge, Read
from cklang.fusion.region import Region, RegionWriter
from cklang.fusion.sites import Axes, compose
from cklang.ir.nodes import Function, Operation, Value
from cklang.ir.ops import Kind
from cklang.ir.views import APART, BY_COST
from cklang.source import Span
from cklang.types import Kind as NumberKind
from cklang.types import f32, i32

RULES: Mapping[str, str] = MappingProxyType(
    {
        "accumulator": "the epilogue of {anchor} reads its accumulator in registers",
        "epilogue": "{value} is computed in the epilogue of {anchor}",
        "constant": "{value} is compiled into the kernel of {anchor}",
        "extent": "{value} is an extent of the call: {anchor} loads it as a number",
        "index": "{value} is an index map: no data moves",
        "numbers": "{value} are the indices along an axis: {anchor} loads them from a table",
        "gathered": "{value} is read at indices: {anchor} loads its rows where they lie",
        "scattered": "{value} is never stored: the epilogue stores its rows at the indices",
        "view": "{value} is a view: {op} reads what is stored with its axes exchanged",
        "load": "{value} is a parameter, loaded once per element by the epilogue of {anchor}",
        "prologue": "{value} follows no product, so no kernel writes it: the prologue of {anchor} "
        "computes it, again for each tile that loads it",
        "shared": "{value} follows no product, so no kernel writes it for its readers: the "
        "prologue of {anchor} computes it by itself",
        "read": "{value} is a parameter, loaded by the prologue of {anchor}",
        "part": "{value} is a view of what is stored: the kernel of {anchor} reads it there",
        "whole": "{value} is written part by part: the kernel of {anchor} reads the whole",
        "memory": "{value} is in memory: a view of it is read there, or copied if no strides give "
        "it the shape",
        "apart": "{value} is in memory: an op that is called apart has kernels of its own",
        "predicted": "{value} is in memory: the cost model predicts less for that",
        "partial": "{value} has a number for each part of a row: the kernel of {anchor} reads it",
        "reduced": "{value} is never stored: its kernel stores a number for each row and block of "
        "columns",
        "joined": "{value} is a part: its kernel writes it to its place in the whole",
        "written": "{value} is the result: kernels write it there",
        "operand": "{value} is stored: {op} {anchor} loads it",
        "materialise": "{value} comes from {maker} {other}: its kernel writes it, "
        "{anchor} loads it",
        "recompute": "{value} is computed again for {anchor}: another kernel stores it",
        "store": "{value} is the result: the kernel of {anchor} writes it",
        "dead": "nothing that is returned depends on it",
    }
)
"""The rules of fusion by id, with the sentence that a decision fills in."""


def _rule_of_view(operation: Operation) -> str:
    if operation.op != APART:
        return "memory"
    return "predicted" if operation.attr("call") == BY_COST else "apart"


_RULE_OF_INPUT: Mapping[Kind | None, str] = {
    Kind.CONSTANT: "constant",
    Kind.EXTENT: "extent",
    Kind.INDEX: "numbers",
    Kind.VIEW: "part",
    Kind.JOIN: "whole",
    Kind.PARTIAL: "partial",
}
_FUSED = frozenset(
    {
        "accumulator", "epilogue", "constant", "index", "gathered", "scattered", "view",
        "recompute", "prologue", "shared",
    }
)  # fmt: skip


def decision_of(rule: str, edge: Edge, **words: object) -> Decision:
    """Return what a rule says about an edge; ``words`` fill its sentence in."""
    return Decision(edge=edge, fused=rule in _FUSED, rule=rule, reason=RULES[rule].format(**words))


class KernelMaker:
    """Makes kernels of a function whose roots are known, and collects decisions."""

    def __init__(self, flow: Flow, roots: Collection[int], makers: Mapping[str, Maker]) -> None:
        self.flow = flow
        self.roots = frozenset(roots)
        self.makers = makers
        self.decisions: dict[Decision, None] = {}
        self.notes: list[str] = []
        """What else was decided, as sentences."""
        self.anchor = ""
        """The result of the anchor whose kernel was made last."""

    def make(self, root: int, *more: int) -> AnyKernel | None:
        """Return the kernel that writes the node ``root``; None if that of another root does.

        It writes ``more`` nodes too: results of its epilogue.

        Raises:
            CkUnsupportedError: One of its functions reads more than :data:`MAX_READS` values
                (X004), that of an operand none (X003); it writes the transpose of a sparse
                product (X010).
        """
        walk = Epilogue(self, root, more)
        self.anchor = walk.anchor.result.name
        if more:
            written = ", ".join(str(self.flow.value(node)) for node in (root, *more))
            self.notes.append(f"results {written}: one kernel of {walk.anchor.result} writes them")
        return self.makers[walk.anchor.op].make(self, walk)

    def twins(self, anchor: int) -> dict[str, int]:
        """Return the anchors that one kernel can compute together with ``anchor``, by op.

        They are those of the same family with the same operands and attributes, whose values are
        wanted: of an operation that only its extents are asked of, nothing is.
        """
        own, flow = self.flow.expect_operation(anchor), self.flow
        wanted = {flow.colour(root) for root in self.roots}
        operations = ((node, flow.operation(node)) for node in flow.graph if node in wanted)
        return {
            operation.op: node
            for node, operation in operations
            if operation is not None
            and self.makers.get(operation.op) is self.makers[own.op]
            and (operation.operands, operation.attrs) == (own.operands, own.attrs)
        }

    def parts_of(self, root: int) -> str:
        """Return the op whose numbers are stored in the place of a root; empty if it is stored."""
        return partial_of(self.flow, root)

    def decide(self, rule: str, edge: Edge, anchor: int | None, other: int | None = None) -> None:
        """Note what ``rule`` says about an edge, for the kernel of ``anchor``."""
        decision = decision_of(
            rule,
            edge,
            value=self.flow.value(edge.source),
            anchor=self._name(anchor),
            other=self._name(other),
            op=self._op(anchor),
            maker=self._op(other),
        )
        self.decisions[decision] = None

    def decide_views(self) -> None:
        """Note the edges to what views are of, and to the parts of joins."""
        for place in self.flow.places():
            node = place
            while self.flow.kind(node) in (Kind.SHAPE, Kind.VIEW):
                (below,) = self.flow.operands(node)
                rule = _rule_of_view(self.flow.expect_operation(node))
                self.decide(rule, Edge(source=below, target=node, operand=0), None)
                node = below
            if self.flow.kind(place) is Kind.JOIN:
                for index, part in enumerate(self.flow.operands(place)):
                    self.decide("joined", Edge(source=part, target=place, operand=index), None)
            if self.flow.kind(place) is Kind.PARTIAL:
                (elements,) = self.flow.operands(place)
                self.decide("reduced", Edge(source=elements, target=place, operand=0), None)
            for target in self.flow.graph.successors(place):
                if self.flow.payload(target).kind == "result":
                    self.decide("written", Edge(source=place, target=target, operand=0), None)

    def decide_dead(self) -> None:
        """Note the edges that no kernel passed."""
        decided = {(decision.edge.target, decision.edge.operand) for decision in self.decisions}
        for source, target, operand in self.flow.graph.edges(keys=True):
            if (target, operand) not in decided:
                self.decide("dead", Edge(source=source, target=target, operand=operand), None)

    def _name(self, node: int | None) -> str:
        return "%" if node is None else str(self.flow.value(node))

    def _op(self, node: int | None) -> str:
        return "" if node is None else self.flow.expect_operation(node).op

    def stored(self, anchor: int, index: int) -> tuple[Value, Axes]:
        """Return what is stored of an operand and the operand's map to it; note the path."""
        (stored, axes), edge = self._viewed(anchor, index)
        self._read_stored(anchor, edge)
        return self.flow.value(stored), axes

    def gathered(self, anchor: int, index: int) -> tuple[Occurrence, Occurrence, Occurrence]:
        """Return an operand that is read at indices, its table and the indices; note the path."""
        use, edge = self._viewed(anchor, index)
        self.decide("gathered", edge, anchor)
        table, indices = self.flow.below(use)
        for place, operand in enumerate((table, indices)):
            self._read_stored(anchor, Edge(source=operand.node, target=use.node, operand=place))
        return use, table, indices

    def _viewed(self, anchor: int, index: int) -> tuple[Occurrence, Edge]:
        """Return what an operand is a view of, and the last edge to it; note those before."""
        path = self.flow.view(self.flow.operands(anchor)[index])
        target, operand = anchor, index
        for use in path[:-1]:
            self.decide("view", Edge(source=use.node, target=target, operand=operand), anchor)
            target, operand = use.node, 0
        return path[-1], Edge(source=path[-1].node, target=target, operand=operand)

    def _read_stored(self, anchor: int, edge: Edge) -> None:
        """Note that the kernel of an anchor reads what is in memory."""
        colour = self.flow.colour(edge.source)
        rule = "operand" if colour is None else "materialise"
        rule = _RULE_OF_INPUT.get(self.flow.kind(edge.source), rule)
        self.decide(rule, edge, anchor, colour)


def partial_of(flow: Flow, root: int) -> str:
    """Return the op whose numbers a kernel stores in the place of a node; empty for none."""
    return next((operation.op for operation in partials_of(flow, root)), "")


def partials_of(flow: Flow, root: int) -> Iterator[Operation]:
    """Yield the operations that take numbers for parts of rows from what a kernel computes."""
    for reader in flow.graph.successors(root):
        operation = flow.operation(reader)
        if operation is not None and flow.kind(reader) is Kind.PARTIAL:
            yield operation


def known_axis(axis: int | None) -> int:
    """Return an axis of an anchor that an axis of its root runs with."""
    if axis is None:
        raise error("Z002", what="an axis of a root runs with none of its anchor's")
    return axis


def spans_of(operations: Iterable[Operation]) -> tuple[Span, ...]:
    """Return the user's places in operations, each once."""
    spans = (operation.span for operation in operations)
    return tuple(dict.fromkeys(span for span in spans if span is not None))


class Walk:
    """The evaluation of a slice of pointwise ops: a postorder, operands before their use."""

    def __init__(self, maker: KernelMaker, anchor: int, region: RegionWriter) -> None:
        self.maker = maker
        self.flow = maker.flow
        self.colour = anchor
        self.anchor = self.flow.expect_operation(anchor)
        self.region = region
        self.is_pair = False
        """Whether the kernel computes two products."""

    def tree(self, *uses: Occurrence) -> Function:
        """Return the region that gives ``uses``, but for the rounding that their memory does."""
        return self.region.finish(*map(self._unrounded, uses))

    def _unrounded(self, use: Occurrence) -> Value:
        start, last = self._skip_rounding(use)
        result = self.evaluate(start)
        span = last.span if last is not None else None
        stored = self.flow.value(use.node).type.dtype
        wide = f32 if stored.kind is NumberKind.FLOAT else i32
        return self.region.cast(result, wide, span)

    def _skip_rounding(self, use: Occurrence) -> tuple[Occurrence, Operation | None]:
        """Return what is below the cast that writing does, and that cast if there is one."""
        node = use.node
        while self.flow.kind(use.node) is Kind.SHAPE:
            use = self._note(use)[0]
        # Writing rounds floats; integers saturate, which is the region's work.
        operation = self.flow.operation(use.node)
        is_float = self.flow.value(node).type.dtype.kind is NumberKind.FLOAT
        if is_float and operation is not None and operation.op == "cast":
            return self._note(use)[0], operation
        return use, None

    def evaluate(self, start: Occurrence) -> Value:
        """Return the region's value for ``start``, after those of its slice."""
        import networkx as nx

        cone = self.flow.slice(start, self.is_leaf)
        values: dict[Occurrence, Value] = {}
        for use in nx.dfs_postorder_nodes(cone, start):
            if self.is_leaf(use):
                values[use] = self.leaf(use)
            else:
                values[use] = self.apply(use, [values[node] for node in self._note(use)])
        return values[start]

    def is_leaf(self, use: Occurrence) -> bool:
        """Tell whether the region has a value for ``use`` that needs no operands."""
        return self.flow.is_input(use.node) or self.flow.is_anchor(use.node) or self.is_loaded(use)

    def leaf(self, use: Occurrence) -> Value:
        """Return the region's value for a leaf of the slice."""
        value = self.flow.value(use.node)
        if self.flow.is_input(use.node) or self.is_loaded(use):
            return self.region.read(value, use.axes)
        raise error("Z002", what=f"{value} is neither written nor an accumulator")

    def is_loaded(self, use: Occurrence) -> bool:
        """Tell whether another kernel has written ``use``."""
        return use.node in self.maker.roots and self.is_outer(use)

    def is_outer(self, use: Occurrence) -> bool:
        """Tell whether ``use`` belongs to another kernel."""
        return self.flow.colour(use.node) is not None

    def apply(self, use: Occurrence, operands: list[Value]) -> Value:
        """Return the region's value for an operation."""
        operation, kind = self.flow.expect_operation(use.node), self.flow.kind(use.node)
        if kind is Kind.SHAPE:
            return operands[0]
        if kind is Kind.CAST:
            result = operation.result
            return self.region.cast(operands[0], result.type.dtype, operation.span, result.name)
        return self.region.apply(operation, tuple(operands))

    def check_reads(self, what: str) -> None:
        """Refuse a function of more reads than a kernel takes."""
        reads = self.region.reads
        # Where no kernel serves a pair, the sums of one product are one read more.
        count = len(reads) + self.is_pair
        if count > MAX_READS:
            raise error(
                "X004",
                at=self.anchor.span,
                what=what,
                count=count,
                limit=MAX_READS,
                reads=", ".join(str(read) for read in reads),
            )

    def _note(self, use: Occurrence) -> tuple[Occurrence, ...]:
        """Decide on the edges to the operands of ``use``, and return these."""
        operands = self.flow.below(use)
        for index, operand in enumerate(operands):
            self.decide(self.rule(operand), operand.node, use.node, index)
        return operands

    def rule(self, use: Occurrence) -> str:
        """Return the rule by which a region has ``use``."""
        kind = self.flow.kind(use.node)
        if kind is None:
            return self.of_parameter()
        if self.is_loaded(use):
            return "materialise"
        if kind is Kind.POINTWISE or kind is Kind.CAST:
            return self.of_value(use.node)
        return "accumulator" if self.flow.is_anchor(use.node) else _RULE_OF_KIND[kind]

    def of_parameter(self) -> str:
        """Return the rule by which a parameter is read."""
        return "load"

    def of_value(self, node: int) -> str:
        """Return the rule by which a pointwise value is computed."""
        return "recompute" if node in self.maker.roots else "epilogue"

    def decide(self, rule: str, source: int, target: int, operand: int) -> None:
        """Note what ``rule`` says about an edge."""
        edge = Edge(source=source, target=target, operand=operand)
        self.maker.decide(rule, edge, self.colour, self.flow.colour(source))


_RULE_OF_KIND = {
    Kind.SHAPE: "index", Kind.CONSTANT: "constant", Kind.EXTENT: "extent", Kind.INDEX: "numbers",
    Kind.VIEW: "part", Kind.JOIN: "whole", Kind.PARTIAL: "partial", Kind.BLOCK: "epilogue",
}  # fmt: skip


class Epilogue(Walk):
    """The evaluation of a root from its accumulator."""

    def __init__(self, maker: KernelMaker, root: int, more: Sequence[int] = ()) -> None:
        own = maker.flow.colour(root)
        if own is None:
            raise error("Z002", what=f"{maker.flow.value(root)} is a root without an anchor")
        anchor = maker.flow.expect_operation(own)
        super().__init__(maker, own, maker.makers[anchor.op].region(anchor))
        self.root = root
        self.more = tuple(self._seen_from_root(node) for node in more)
        """The other roots of the kernel, with its root's axes."""
        self.partner = next((a for a, other in self.flow.pairs.items() if other == own), None)
        """The anchor that the same kernel may compute beside its own."""

    def _seen_from_root(self, node: int) -> Occurrence:
        straight, own = self.flow.orientation(self.root), self.flow.orientation(node)
        return Occurrence(node, tuple(own.index(axis) for axis in straight))

    def run(self) -> Function:
        """Return the epilogue."""
        self.note_store()
        return self.tree(self.flow.occurrence(self.root), *self.more)

    def reads(self, order: Axes) -> tuple[Read, ...]:
        """Return what the epilogue reads, with axes in the order of the kernel's."""
        self.check_reads(f"the epilogue of {self.anchor.result}")
        return tuple(
            Read(value=read.value, axes=compose(order, read.axes)) for read in self.region.reads
        )

    def note_store(self) -> None:
        """Note which results of the function the kernel writes."""
        for root in (self.root, *(use.node for use in self.more)):
            for target in self.flow.graph.successors(root):
                if self.flow.payload(target).kind == "result":
                    self.decide("store", root, target, 0)

    def of_value(self, node: int) -> str:
        """Return the rule by which a pointwise value is computed."""
        own = node == self.root or any(node == use.node for use in self.more)
        return "epilogue" if own else super().of_value(node)

    def is_leaf(self, use: Occurrence) -> bool:
        """Tell whether ``use`` is read, or is the accumulator."""
        return super().is_leaf(use) or use.node in (self.colour, self.partner)

    def leaf(self, use: Occurrence) -> Value:
        """Return what is read or, for the anchor, the accumulator."""
        if use.node == self.colour and not self.is_loaded(use):
            return self.region.accumulator
        if use.node == self.partner and isinstance(self.region, Region):
            self.is_pair = True
            return self.region.add_second()
        return super().leaf(use)

    def is_outer(self, use: Occurrence) -> bool:
        """Tell whether ``use`` belongs to another kernel, or to this one turned round."""
        return self.flow.is_outer(self.root, use)


def _accumulated(anchor: Operation) -> Region:
    return Region("d", anchor.result.type.dtype)


def _operand_of_product(anchor: Operation, index: int) -> str:
    if index > 1 and anchor.operands[index].type.dtype == i32:
        return "the operand ends"
    return ("operand A", "operand B", "the first scale", "the second scale")[index]


@dataclass(frozen=True, slots=True, kw_only=True)
class Maker:
    """How the kernels of one anchor are made."""

    make: Callable[[KernelMaker, Epilogue], AnyKernel | None]
    prologues: frozenset[int] = frozenset()
    """The operands that such a kernel can compute as it loads them, by their index."""
    region: Callable[[Operation], RegionWriter] = _accumulated
    """Gives the region that is written of what follows an anchor."""
    operand: Callable[[Operation, int], str] = _operand_of_product
    """Returns how messages call an operand, by its index."""
    constants: bool = False
    """Whether constants are operands like stored ones."""
    epilogue: bool = False
    """Whether such a kernel computes what follows its anchor, element by element."""
    most_reads: int = MAX_READS
    """How many values one of its functions reads at most."""
    stores: Callable[[Flow, int], bool] | None = None
    """Tells whether such a kernel can store a value that follows its anchor, by the node.

    None: it stores all that an epilogue computes, and without one nothing but the anchor."""
    several: bool = False
    """Whether its epilogue may have several results."""
    is_transposed: Callable[[Flow, int], bool] = lambda _flow, _root: False
    """Tells whether the kernel of a root computes the transpose of what its anchor sums up."""
    gathers: Callable[[Flow, int, int], bool] = lambda _flow, _anchor, _index: False
    """Tells whether such a kernel can read an operand at indices, by anchor and index."""

    def can_store(self, flow: Flow, node: int) -> bool:
        """Tell whether such a kernel can store a value that follows its anchor."""
        return self.epilogue if self.stores is None else self.stores(flow, node)
