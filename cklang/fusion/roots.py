# SPDX-License-Identifier: MIT
"""Which values kernels must write: the roots of a program's graph."""

from collections.abc import Iterable, Mapping, Sequence

from cklang.errors import CkError, error
from cklang.fusion.flow import Flow, Occurrence
from cklang.fusion.kernel import Maker
from cklang.ir.ops import Kind
from cklang.source import Span
from cklang.types import DTYPES, DType, bool_, i64

STORABLE: tuple[DType, ...] = tuple(
    dtype
    for dtype in DTYPES.values()
    if dtype.name not in ("f64", "i64", "bool", "e8m0", "i4", "fp4")
)
"""What a kernel can write; kernels without epilogues write i64 and bool too."""


class Roots:
    """Finds the nodes of a graph that kernels write."""

    def __init__(self, flow: Flow, makers: Mapping[str, Maker]) -> None:
        self.flow = flow
        self.makers = makers
        results = (flow.bases(flow.id(value)) for value in flow.function.results)
        self.results = [node for bases in results for node in bases]
        live = {
            *self.results,
            *(node for result in self.results for node in flow.ancestors(result)),
        }
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
            if not self._is_storable(root):
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
        is_stored = node == colour or flow.maker(colour).can_store(flow, node)
        return is_own and is_stored and self._is_storable(node)

    def _is_storable(self, node: int) -> bool:
        """Tell whether kernels of the colour of ``node`` store its dtype."""
        dtype, colour = self.flow.value(node).type.dtype, self.flow.colour(node)
        if dtype not in (bool_, i64):
            return dtype in STORABLE
        return colour is not None and not self.flow.maker(colour).epilogue
