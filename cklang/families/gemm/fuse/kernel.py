# SPDX-License-Identifier: MIT
"""How fusion makes the kernel of a product: which side is A, what its prologues compute.

An epilogue that takes the largest of a group of columns is called twice, since an epilogue function
computes one element. The group maximum is passed in as an extra parameter, and its operand is
returned as an extra result. The kernel calls the function once for that result, joins lanes, and
calls it again for the others. Each call is inlined, and the compiler keeps what both compute.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from cklang.errors import error
from cklang.families.gemm.plan import FusedGemm
from cklang.fusion.flow import Flow
from cklang.fusion.kernel import (
    Epilogue,
    KernelMaker,
    Maker,
    Walk,
    known_axis,
    partial_of,
    partials_of,
    spans_of,
)
from cklang.fusion.parts import joined
from cklang.fusion.plan import BlockScale, Computed, Gathered, Read, View
from cklang.fusion.region import Region
from cklang.fusion.sites import Axes, compose, identity, ints
from cklang.ir.block_results import BLOCK_PEAK
from cklang.ir.contraction import Contraction
from cklang.ir.grouped import GROUPED_GEMM_K, GROUPED_ROWS, SCALED_PRODUCTS
from cklang.ir.nodes import Function, Operation, Value
from cklang.ir.ops import Kind
from cklang.types import Kind as NumberKind
from cklang.types import f32


def with_peak(function: Function) -> tuple[Function, int]:
    """Return an epilogue with the maximum of a group as parameter, and the columns of a group.

    A region without ``block_peak`` is returned as it is, with 0 columns.
    """
    peaks = [operation for operation in function.body if operation.op == BLOCK_PEAK]
    columns = {operation.attr("columns") for operation in peaks}
    if len(peaks) != 1:
        return function, 0
    (peak,), (count,) = peaks, columns
    names = {value.name for value in function.params}
    parameter = Value(name=f"d{sum(name.startswith('d') for name in names)}", type=peak.result.type)

    def new(value: Value) -> Value:
        return parameter if value == peak.result else value

    body = tuple(
        replace(step, operands=tuple(map(new, step.operands)))
        for step in function.body
        if step is not peak
    )
    results = (*map(new, function.results), *peak.operands)
    own = replace(function, params=(*function.params, parameter), body=body, results=results)
    return own, count if isinstance(count, int) else 0


def product(maker: KernelMaker, walk: Epilogue) -> FusedGemm:
    """Return the kernel of a root whose anchor is a matrix product."""
    anchor, root = walk.anchor, maker.flow.value(walk.root)
    space = _Space.of(maker.flow, walk.root, anchor)
    functions: list[Function] = []
    sides: list[View | Computed] = []
    operands = maker.flow.operands(walk.colour)
    for letter, index in zip("ab", (1, 0) if space.transposed else (0, 1), strict=True):
        if maker.flow.is_gathered(operands[index]):
            sides.append(_gathered(maker, walk.colour, index, space))
        elif maker.flow.is_computed(operands[index]):
            prologue = _Prologue(maker, walk.colour, index, letter)
            functions.append(prologue.run())
            sides.append(prologue.operand(space))
        else:
            sides.append(_view(maker, walk.colour, index, space, of_a=index == 0))
    maker.notes += _widened(maker.flow, anchor, operands)
    scales = _scales(maker, walk.colour, space)
    if space.transposed and anchor.op in ("gemm24", *GROUPED_ROWS):
        raise error("X010", at=anchor.span, root=root, operation=anchor.result)
    written = walk.run()
    own, group = with_peak(written)
    numbers = frozenset(
        maker.flow.value(use.node).name for use in walk.more if partial_of(maker.flow, use.node)
    )
    if bool(group) != bool(numbers) or (group and walk.is_pair):
        raise error("X030", at=anchor.span, root=root, operation=anchor.result)
    epilogue = joined([own, *functions])
    reads = walk.reads(space.order)
    partner = walk.partner if walk.is_pair else None
    return FusedGemm(
        name=maker.flow.function.name,
        a=sides[0],
        b=sides[1],
        epilogue=epilogue,
        reads=reads,
        result=root,
        parts=maker.parts_of(walk.root),
        ends=_ends(maker, walk.colour),
        b2=None if partner is None else _second(maker, partner, space),
        group=group,
        numbers=numbers,
        more=tuple(
            Read(value=maker.flow.value(use.node), axes=compose(space.order, use.axes))
            for use in walk.more
        ),
        computed=tuple(_computed(maker.flow, walk, sides, written)),
        op=anchor.op,
        axes=space.order,
        depth=space.depth,
        transposed=space.transposed,
        scale_a=scales[0],
        scale_b=scales[1],
        spans=spans_of([anchor, *epilogue.body]),
    )


def _widened(flow: Flow, anchor: Operation, operands: Sequence[int]) -> Iterator[str]:
    """Yield what to cast where one side of a product is f32, so that the other is widened."""
    for side, other in ((0, 1), (1, 0)):
        cast = flow.operation(operands[side])
        if cast is None or cast.op != "cast" or cast.result.type.dtype != f32:
            continue
        narrow, wide = cast.operands[0].type.dtype, flow.value(operands[other])
        wide_cast = flow.operation(operands[other])
        if narrow.kind is NumberKind.FLOAT and (wide_cast is None or wide_cast.op != "cast"):
            yield (
                f"{anchor.result} multiplies f32, as {wide} is: {cast.operands[0]} is widened. "
                f"With .to(ck.{narrow}) of {wide} it multiplies {narrow}, at a higher rate"
            )


def _computed(
    flow: Flow, walk: Epilogue, sides: Sequence[View | Computed], epilogue: Function
) -> Iterator[str]:
    """Yield the names of what the kernel computes without a function."""
    yield walk.anchor.result.name
    if walk.is_pair and walk.partner is not None:
        yield flow.value(walk.partner).name
    yield from (side.copy.value.name for side in sides if isinstance(side, Gathered))
    for operation in epilogue.body:
        if operation.op == BLOCK_PEAK:
            yield from operation.origins
    for root in (walk.root, *(use.node for use in walk.more)):
        yield from (operation.result.name for operation in partials_of(flow, root))


def _second(maker: KernelMaker, partner: int, space: _Space) -> View:
    """Return the second B of a pair; its A is that of the anchor, which is stored."""
    left = _left(maker, partner)
    first = maker.flow.value(maker.flow.pairs[partner])
    both = f"{maker.flow.value(partner)} and {first}"
    maker.notes.append(f"pair {both}: one kernel multiplies {left} by both right operands")
    return _view(maker, partner, 1, space, of_a=False)


def _left(maker: KernelMaker, partner: int) -> Value:
    """Return the left operand of the second product of a pair."""
    if maker.flow.is_gathered(maker.flow.operands(partner)[0]):
        use, _, _ = maker.gathered(partner, 0)
        return maker.flow.value(use.node)
    return maker.stored(partner, 0)[0]


def _scales(maker: KernelMaker, anchor: int, space: _Space) -> list[BlockScale | None]:
    """Return the scales of A and of B; its operands after the matrices are those there are."""
    operation = maker.flow.expect_operation(anchor)
    if operation.op not in SCALED_PRODUCTS:
        return [None, None]
    scales: list[BlockScale | None] = []
    index = 2
    for name in ("block_a", "block_b"):
        block = ints(operation, name)
        scales.append(None)
        if block:
            rows, columns = reversed(block) if space.transposed else block
            view = _view(maker, anchor, index, space, of_a=name == "block_a")
            scales[-1] = BlockScale(view=view, block=(rows, columns))
            index += 1
    return scales[::-1] if space.transposed else scales


def _ends(maker: KernelMaker, anchor: int) -> Read | None:
    """Return where groups of rows, or along K, end; None of other products."""
    operation = maker.flow.expect_operation(anchor)
    if operation.op not in (*GROUPED_ROWS, GROUPED_GEMM_K):
        return None
    stored, _ = maker.stored(anchor, len(operation.operands) - 1)
    return Read(value=stored, axes=(None, None))


def _view(maker: KernelMaker, anchor: int, index: int, space: _Space, *, of_a: bool) -> View:
    stored, axes = maker.stored(anchor, index)
    return View(value=stored, perm=space.of_operand(axes, of_a=of_a))


def _gathered(maker: KernelMaker, anchor: int, index: int, space: _Space) -> Gathered:
    """Return an operand whose rows are read at indices."""
    use, table, indices = maker.gathered(anchor, index)
    value = maker.flow.value

    def seen(axes: Axes) -> Axes:
        return space.of_operand(axes, of_a=index == 0)

    return Gathered(
        value=value(table.node),
        perm=seen(table.axes),
        axis=ints(maker.flow.expect_operation(use.node), "axis")[0],
        indices=Read(value=value(indices.node), axes=seen(indices.axes)),
        copy=View(value=value(use.node), perm=seen(use.axes)),
    )


def _gathers(flow: Flow, anchor: int, index: int) -> bool:
    """Tell whether the kernel of a product can read the rows of its left operand at indices.

    Table and indices are read as they are stored, and the table along K.
    """
    operand = flow.operands(anchor)[index]
    op = flow.expect_operation(anchor).op
    if index or op not in ("gemm", "scaled_gemm", *GROUPED_ROWS) or not flow.is_gathered(operand):
        return False
    table, indices = flow.below(flow.view(operand)[-1])
    rows, k = zip(table.axes[-2:], indices.axes[-2:], strict=True)
    is_by_rows = rows[0] is None is not rows[1] and k[0] is not None is k[1]
    kinds = {flow.kind(edge.node) for edge in (table, indices)}
    return is_by_rows and not kinds & {Kind.SHAPE, Kind.CONSTANT}


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
            batch=tuple(known_axis(axes[place]) for place in batch),
            transposed=transposed,
            contraction=contraction,
        )

    @property
    def depth(self) -> int:
        """How many axes the kernel sums over; one of extent 1 if the product has none."""
        return max(self.contraction.summed, 1)

    def of_operand(self, axes: Axes, *, of_a: bool) -> Axes:
        """Return the map from the kernel's axes of an operand to a value.

        ``axes`` is the map from the operand's own axes.
        """
        if of_a:
            own, outer, summed = self.contraction.split_a(axes)
        else:
            own, summed, outer = self.contraction.split_b(axes)
        # The operand's batch axes stand at the end of the anchor's, as in NumPy's broadcasts. That
        # of groups is B's alone.
        missing = len(self.batch) - len(own)
        batch = [own[axis - missing] if axis >= missing else None for axis in self.batch] or own
        outer, summed = tuple(outer) or (None,), tuple(summed) or (None,)
        if of_a != self.transposed:
            return (*batch, *outer, *summed)
        return (*batch, *summed, *outer)


def _is_transposed(flow: Flow, root: int) -> bool:
    """Tell whether the kernel of a root computes the transpose of its product."""
    return _Space.of(flow, root, flow.expect_operation(known_axis(flow.colour(root)))).transposed


class _Prologue(Walk):
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
        axes = space.of_operand(identity(len(shape)), of_a=self.index == 0)
        places = axes[-1 - space.depth :]
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


_MAKER = Maker(
    make=product,
    epilogue=True,
    prologues=frozenset({0, 1}),
    several=True,
    is_transposed=_is_transposed,
    gathers=_gathers,
)

MAKERS: Mapping[str, Maker] = MappingProxyType(
    dict.fromkeys(
        ("gemm", "contract", "gemm24", "scaled_gemm", *GROUPED_ROWS, GROUPED_GEMM_K), _MAKER
    )
)
"""The anchors of products, by op."""
