# SPDX-License-Identifier: MIT
"""Make the kernel of one root: evaluate its backward slice, and note each edge passed.

:data:`MAKERS` has a row for each op that kernels are made of, the anchors.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from cklang.errors import error
from cklang.fusion.flow import Flow, Occurrence
from cklang.fusion.parts import joined
from cklang.fusion.plan import (
    MAX_READS,
    AnyKernel,
    BlockScale,
    Computed,
    Decision,
    Edge,
    FusedConv,
    FusedGemm,
    Read,
    View,
)
from cklang.fusion.region import Region, RegionWriter
from cklang.fusion.sites import Axes, compose, identity, ints
from cklang.ir.contraction import Contraction
from cklang.ir.nodes import Function, Operation, Value
from cklang.ir.ops import Kind
from cklang.ir.views import APART
from cklang.ir.windows import DIRECTIONS
from cklang.source import Span
from cklang.types import Kind as NumberKind
from cklang.types import f32, i32

__all__ = [
    "CONVOLUTION_MAKERS",
    "MAKERS",
    "PRODUCT_MAKERS",
    "RULES",
    "Epilogue",
    "KernelMaker",
    "Maker",
    "is_transposed",
]

RULES: Mapping[str, str] = MappingProxyType(
    {
        "accumulator": "the epilogue of {anchor} reads its accumulator in registers",
        "epilogue": "{value} is computed in the epilogue of {anchor}",
        "constant": "{value} is compiled into the kernel of {anchor}",
        "extent": "{value} is an extent of the call: {anchor} loads it as a number",
        "index": "{value} is an index map: no data moves",
        "numbers": "{value} are the indices along an axis: {anchor} loads them from a table",
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
        "partial": "{value} are log-sum-exps of parts of rows: the kernel of {anchor} reads these",
        "reduced": "{value} is never stored: its kernel stores the log-sum-exp of each row and "
        "block of columns",
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
        "accumulator",
        "epilogue",
        "constant",
        "index",
        "view",
        "recompute",
        "prologue",
        "shared",
    }
)


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

        Args:
            root: What the kernel writes.
            more: Nodes that it writes too: results of its epilogue.

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

    def product(self, walk: Epilogue) -> FusedGemm:
        """Return the kernel of a root whose anchor is a matrix product."""
        anchor, root = walk.anchor, self.flow.value(walk.root)
        space = _Space.of(self.flow, walk.root, anchor)
        functions: list[Function] = []
        sides: list[View | Computed] = []
        operands = self.flow.operands(walk.colour)
        for letter, index in zip("ab", (1, 0) if space.transposed else (0, 1), strict=True):
            if self.flow.is_computed(operands[index]):
                prologue = _Prologue(self, walk.colour, index, letter)
                functions.append(prologue.run())
                sides.append(prologue.operand(space))
            else:
                sides.append(self._view(walk.colour, index, space, of_a=index == 0))
        scales = self._scales(walk.colour, space)
        if space.transposed and anchor.op == "gemm24":
            raise error("X010", at=anchor.span, root=root, anchor=anchor.result)
        epilogue = joined([walk.run(), *functions])
        reads = _reads(walk, space.order)
        partner = walk.partner if walk.is_pair else None
        return FusedGemm(
            name=self.flow.function.name,
            a=sides[0],
            b=sides[1],
            epilogue=epilogue,
            reads=reads,
            result=root,
            log_sums=self.is_reduced(walk.root),
            b2=None if partner is None else self._second(partner, space),
            more=tuple(
                Read(value=self.flow.value(use.node), axes=compose(space.order, use.axes))
                for use in walk.more
            ),
            anchor=anchor.result.name,
            op=anchor.op,
            axes=space.order,
            depth=space.depth,
            transposed=space.transposed,
            scale_a=scales[0],
            scale_b=scales[1],
            spans=_spans([anchor, *epilogue.body]),
        )

    def is_reduced(self, root: int) -> bool:
        """Tell whether log-sum-exps are stored in the place of a root."""
        readers = self.flow.graph.successors(root)
        return any(self.flow.kind(reader) is Kind.PARTIAL for reader in readers)

    def _second(self, partner: int, space: _Space) -> View:
        """Return the second B of a pair; its A is that of the anchor, which is stored."""
        left, _ = self.stored(partner, 0)
        first = self.flow.value(self.flow.pairs[partner])
        both = f"{self.flow.value(partner)} and {first}"
        self.notes.append(f"pair {both}: one kernel multiplies {left} by both right operands")
        return self._view(partner, 1, space, of_a=False)

    def convolution(self, walk: Epilogue) -> FusedConv:
        """Return the kernel of a root whose anchor is a convolution."""
        anchor = walk.anchor
        axes = self.flow.orientation(walk.root)
        order = tuple(axes.index(axis) for axis in range(anchor.result.type.rank))
        stored = (self.stored(walk.colour, index) for index in (0, 1))
        left, right = (View(value=value, perm=perm) for value, perm in stored)
        epilogue = walk.run()
        return FusedConv(
            name=self.flow.function.name,
            operation=anchor,
            a=left,
            b=right,
            epilogue=epilogue,
            reads=_reads(walk, order),
            result=self.flow.value(walk.root),
            axes=order,
            spans=_spans([anchor, *epilogue.body]),
        )

    def decide(self, rule: str, edge: Edge, anchor: int | None, other: int | None = None) -> None:
        """Note what ``rule`` says about an edge, for the kernel of ``anchor``."""
        self.decisions[
            Decision(
                edge=edge,
                fused=rule in _FUSED,
                rule=rule,
                reason=RULES[rule].format(
                    value=self.flow.value(edge.source),
                    anchor=self._name(anchor),
                    other=self._name(other),
                    op=self._op(anchor),
                    maker=self._op(other),
                ),
            )
        ] = None

    def decide_views(self) -> None:
        """Note the edges to what views are of, and to the parts of joins."""
        for place in self.flow.places():
            node = place
            while self.flow.kind(node) in (Kind.SHAPE, Kind.VIEW):
                (below,) = self.flow.operands(node)
                is_apart = self.flow.expect_operation(node).op == APART
                rule = "apart" if is_apart else "memory"
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
        decided = {(each.edge.target, each.edge.operand) for each in self.decisions}
        for source, target, operand in self.flow.graph.edges(keys=True):
            if (target, operand) not in decided:
                self.decide("dead", Edge(source=source, target=target, operand=operand), None)

    def _name(self, node: int | None) -> str:
        return "%" if node is None else str(self.flow.value(node))

    def _op(self, node: int | None) -> str:
        return "" if node is None else self.flow.expect_operation(node).op

    def _scales(self, anchor: int, space: _Space) -> list[BlockScale | None]:
        """Return the scales of A and of B; its operands after the matrices are those there are."""
        operation = self.flow.expect_operation(anchor)
        if len(operation.operands) == 2:
            return [None, None]
        scales: list[BlockScale | None] = []
        index = 2
        for name in ("block_a", "block_b"):
            block = ints(operation, name)
            scales.append(None)
            if block:
                rows, columns = reversed(block) if space.transposed else block
                view = self._view(anchor, index, space, of_a=name == "block_a")
                scales[-1] = BlockScale(view=view, block=(rows, columns))
                index += 1
        return scales[::-1] if space.transposed else scales

    def _view(self, anchor: int, index: int, space: _Space, *, of_a: bool) -> View:
        stored, axes = self.stored(anchor, index)
        return View(value=stored, perm=space.of_operand(axes, of_a=of_a))

    def stored(self, anchor: int, index: int) -> tuple[Value, Axes]:
        """Return what is stored of an operand and the operand's map to it; note the path."""
        path = self.flow.view(self.flow.operands(anchor)[index])
        target, operand = anchor, index
        for use in path[:-1]:
            self.decide("view", Edge(source=use.node, target=target, operand=operand), anchor)
            target, operand = use.node, 0
        stored, axes = path[-1]
        colour = self.flow.colour(stored)
        rule = "operand" if colour is None else "materialise"
        rule = _RULE_OF_INPUT.get(self.flow.kind(stored), rule)
        self.decide(rule, Edge(source=stored, target=target, operand=operand), anchor, colour)
        return self.flow.value(stored), axes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Space:
    """How the kernel of a root counts: over batch axes, rows and columns."""

    order: tuple[int | None, ...]
    """The root's axes in the kernel's order: batch axes, then the rows and the columns, None for
    rows or columns that the product does not have."""
    batch: tuple[int, ...]
    """The anchor's axis that each batch axis is."""
    transposed: bool
    """Whether the kernel's rows are the anchor's columns."""
    contraction: Contraction

    @classmethod
    def of(cls, flow: Flow, node: int, anchor: Operation) -> _Space:
        """Return the space of the kernel of a root: its columns are the root's last axis.

        If that is a batch axis, a product of a vector has no columns, and one of matrices has its
        own, which memory then has elsewhere.
        """
        axes = flow.orientation(node)
        contraction = Contraction.of(anchor)
        count = anchor.result.type.rank - contraction.rows - contraction.columns
        row = count if contraction.rows else None
        column = count + contraction.rows if contraction.columns else None
        last = axes[-1] if axes else None
        # Of a vector the one axis that there is becomes the columns if it can be stored so.
        transposed = last == row if row is not None else column not in (None, last)
        outer = (column, row) if transposed else (row, column)
        places = {axis: place for place, axis in enumerate(axes)}
        batch = [place for place, axis in enumerate(axes) if axis not in (row, column)]
        return cls(
            order=(*batch, *(None if axis is None else places[axis] for axis in outer)),
            batch=tuple(_known(axes[place]) for place in batch),
            transposed=transposed,
            contraction=contraction,
        )

    @property
    def depth(self) -> int:
        """How many axes the kernel sums over; one of extent 1 if the product has none."""
        return max(self.contraction.summed, 1)

    def of_operand(self, axes: Axes, *, of_a: bool) -> Axes:
        """Return the map from the kernel's axes of an operand to a value.

        Args:
            axes: The map from the operand's own axes.
            of_a: Whether these are the axes of the anchor's A; else they are those of its B.
        """
        if of_a:
            own, outer, summed = self.contraction.split_a(axes)
        else:
            own, summed, outer = self.contraction.split_b(axes)
        # The operand's batch axes stand at the end of the anchor's, as in NumPy's broadcasts.
        missing = len(self.batch) - len(own)
        batch = [own[axis - missing] if axis >= missing else None for axis in self.batch]
        outer, summed = tuple(outer) or (None,), tuple(summed) or (None,)
        if of_a != self.transposed:
            return (*batch, *outer, *summed)
        return (*batch, *summed, *outer)


def is_transposed(flow: Flow, root: int) -> bool:
    """Tell whether the kernel of a root computes the transpose of its product."""
    return _Space.of(flow, root, flow.expect_operation(_known(flow.colour(root)))).transposed


def _reads(walk: _Walk, order: Axes) -> tuple[Read, ...]:
    """Return what an epilogue reads, with axes in the order of the kernel's."""
    walk.check_reads(f"the epilogue of {walk.anchor.result}")
    return tuple(
        Read(value=read.value, axes=compose(order, read.axes)) for read in walk.region.reads
    )


def _known(axis: int | None) -> int:
    if axis is None:
        raise error("Z002", what="an axis of a root runs with none of its anchor's")
    return axis


def _spans(operations: list[Operation]) -> tuple[Span, ...]:
    spans = (operation.span for operation in operations)
    return tuple(dict.fromkeys(span for span in spans if span is not None))


class _Walk:
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
                values[use] = self.apply(use, [values[each] for each in self._note(use)])
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
            return self.region.cast(operands[0], operation.result.type.dtype, operation.span)
        return self.region.apply(operation.op, tuple(operands), operation.attrs, operation.span)

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
    Kind.SHAPE: "index",
    Kind.CONSTANT: "constant",
    Kind.EXTENT: "extent",
    Kind.INDEX: "numbers",
    Kind.VIEW: "part",
    Kind.JOIN: "whole",
    Kind.PARTIAL: "partial",
}


class Epilogue(_Walk):
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


class _Prologue(_Walk):
    """The evaluation of an anchor's operand from what it is computed from."""

    def __init__(self, maker: KernelMaker, anchor: int, index: int, letter: str) -> None:
        super().__init__(maker, anchor, Region(letter))
        self.node = self.flow.operands(anchor)[index]
        self.index = index

    def run(self) -> Function:
        """Return the function that computes one element."""
        use = self.flow.occurrence(self.node)
        self.decide(self.rule(use), self.node, self.colour, self.index)
        function = self.tree(use)
        which = f"the function of operand {'AB'[self.index]} of {self.anchor.result}"
        self.check_reads(which)
        if not self.region.reads:
            raise error("X003", at=self.anchor.span, operand="AB"[self.index])
        return function

    def operand(self, space: _Space) -> Computed:
        """Return the operand as the kernel of ``space`` sees it, after :meth:`run`."""
        value = self.flow.value(self.node)
        shape = value.type.shape
        places = space.of_operand(identity(len(shape)), of_a=self.index == 0)[len(space.batch) :]
        return Computed(
            value=value,
            extents=tuple(1 if place is None else shape[place] for place in places),
            reads=tuple(
                Read(value=read.value, axes=space.of_operand(read.axes, of_a=self.index == 0))
                for read in self.region.reads
            ),
        )

    def of_parameter(self) -> str:
        """Return the rule by which a parameter is read."""
        return "read"

    def of_value(self, node: int) -> str:
        """Return the rule by which a pointwise value is computed."""
        return "shared" if self.flow.graph.out_degree(node) > 1 else "prologue"


def _accumulated(anchor: Operation) -> Region:
    return Region("d", anchor.result.type.dtype)


def _operand_of_product(anchor: Operation, index: int) -> str:
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
    opaque: bool = False
    """Whether such a kernel computes nothing of what follows it."""
    most_reads: int = MAX_READS
    """How many values one of its functions reads at most."""
    stores: Callable[[Flow, int], bool] = lambda _flow, _node: True
    """Tells whether such a kernel can store a value that follows its anchor, by the node."""
    several: bool = False
    """Whether its epilogue may have several results."""


_PRODUCT = Maker(make=KernelMaker.product, prologues=frozenset({0, 1}), several=True)
_CONVOLUTION = Maker(make=KernelMaker.convolution)

PRODUCT_MAKERS: Mapping[str, Maker] = MappingProxyType(
    dict.fromkeys(("gemm", "contract", "gemm24", "scaled_gemm"), _PRODUCT)
)
CONVOLUTION_MAKERS: Mapping[str, Maker] = MappingProxyType(dict.fromkeys(DIRECTIONS, _CONVOLUTION))

MAKERS: Mapping[str, Maker] = MappingProxyType({**PRODUCT_MAKERS, **CONVOLUTION_MAKERS})
"""The anchors of products, by op: what kernels are made of, and how."""
