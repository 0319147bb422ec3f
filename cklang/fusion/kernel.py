# SPDX-License-Identifier: MIT
"""Make the kernel of one root: walk from it to what it reads, and note each edge passed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from cklang.errors import error
from cklang.fusion.parts import joined
from cklang.fusion.plan import (
    MAX_READS,
    BlockScale,
    Computed,
    Decision,
    Edge,
    FusedConv,
    FusedGemm,
    Kernel,
    Read,
    View,
)
from cklang.fusion.region import Region
from cklang.fusion.sites import Axes, Flow, Site, compose, identity, ints, operand_sites, view
from cklang.ir.nodes import Function, Operation, Value
from cklang.ir.ops import OPS, Kind
from cklang.ir.windows import DIRECTIONS
from cklang.source import Span
from cklang.types import Kind as NumberKind
from cklang.types import f32, i32

__all__ = ["RULES", "KernelMaker", "is_outer"]

RULES: Mapping[str, str] = MappingProxyType(
    {
        "accumulator": "the epilogue of {anchor} reads its accumulator in registers",
        "epilogue": "{value} is computed in the epilogue of {anchor}",
        "constant": "{value} is compiled into the kernel of {anchor}",
        "index": "{value} is an index map: no data moves",
        "view": "{value} is a view: {op} reads what is stored with its axes exchanged",
        "load": "{value} is a parameter, loaded once per element by the epilogue of {anchor}",
        "prologue": "{value} follows no product, so no kernel writes it: the prologue of {anchor} "
        "computes it, again for each tile that loads it",
        "shared": "{value} follows no product, so no kernel writes it for its readers: the "
        "prologue of {anchor} computes it by itself",
        "read": "{value} is a parameter, loaded by the prologue of {anchor}",
        "operand": "{value} is stored: {op} {anchor} loads it",
        "materialise": "{value} comes from {maker} {other}: its kernel writes it, "
        "{anchor} loads it",
        "recompute": "{value} is computed again for {anchor}: a kernel has one result",
        "store": "{value} is the result: the kernel of {anchor} writes it",
        "dead": "nothing that is returned depends on it",
    }
)
"""The rules of fusion by id, with the sentence that a decision fills in."""

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


def is_outer(flow: Flow, root: Value, site: Site) -> bool:
    """Tell whether the kernel of ``root`` cannot compute ``site``: it belongs to another kernel.

    So does a value of the root's own colour that sees the anchor with its axes the other way
    round: an element's thread has no such accumulator.
    """
    colour = flow.colour(site.value)
    own = flow.colour(root)
    if colour is None or colour != own:
        return colour is not None
    straight = flow.orientation(root)
    return all(
        compose(site.axes, axes) != straight
        for name, axes in flow.anchors(site.value)
        if name == own
    )


def is_computed(flow: Flow, operand: Value) -> bool:
    """Tell whether a gemm's operand is neither stored nor written by another gemm's kernel."""
    stored, _ = view(flow, operand)
    return flow.made_by(stored) is not None and flow.colour(stored) is None


class KernelMaker:
    """Makes kernels of a function whose roots are known, and collects decisions."""

    def __init__(self, function: Function, flow: Flow, roots: Collection[str]) -> None:
        self.function = function
        self.flow = flow
        self.roots = frozenset(roots)
        self.uses = Counter(operand.name for _, _, operand in edges(function))
        self.decisions: dict[Decision, None] = {}

    def make(self, root: Value) -> Kernel:
        """Return the kernel that writes ``root``.

        Raises:
            CkUnsupportedError: One of its functions reads more than :data:`MAX_READS` values
                (X004), that of an operand none (X003); it writes the transpose of a sparse
                product (X010).
        """
        walk = _Epilogue(self, root)
        anchor = walk.anchor
        if anchor.op in DIRECTIONS:
            return self._convolution(root, walk)
        space = _Space.of(self.flow, root, anchor)
        functions: list[Function] = []
        sides: list[View | Computed] = []
        for letter, index in zip("ab", (1, 0) if space.transposed else (0, 1), strict=True):
            if is_computed(self.flow, anchor.operands[index]):
                prologue = _Prologue(self, anchor, index, letter)
                functions.append(prologue.run())
                sides.append(prologue.operand(space))
            else:
                sides.append(self._view(anchor, index, space))
        scales = self._scales(anchor, space)
        if space.transposed and anchor.op == "gemm24":
            raise error("X010", at=anchor.span, root=root, anchor=anchor.result)
        epilogue = joined([walk.run(), *functions])
        reads = _reads(walk, space.order)
        return FusedGemm(
            name=self.function.name,
            a=sides[0],
            b=sides[1],
            epilogue=epilogue,
            reads=reads,
            result=root,
            anchor=anchor.result.name,
            op=anchor.op,
            axes=space.order,
            transposed=space.transposed,
            scale_a=scales[0],
            scale_b=scales[1],
            spans=_spans([anchor, *epilogue.body]),
        )

    def _convolution(self, root: Value, walk: _Epilogue) -> FusedConv:
        """Return the kernel of a root whose anchor is a convolution.

        Raises:
            CkUnsupportedError: Its epilogue reads too many values (X004).
        """
        anchor = walk.anchor
        seen = self.flow.orientation(root)
        last = anchor.result.type.rank - 1
        order = tuple(seen.index(axis) for axis in range(last + 1))
        left, right = (View(value=v, perm=m) for v, m in (self._stored(anchor, i) for i in (0, 1)))
        epilogue = walk.run()
        return FusedConv(
            name=self.function.name,
            operation=anchor,
            a=left,
            b=right,
            epilogue=epilogue,
            reads=_reads(walk, order),
            result=root,
            axes=order,
            spans=_spans([anchor, *epilogue.body]),
        )

    def decide(
        self, rule: str, value: Value, target: int, operand: int, anchor: str, other: str = ""
    ) -> None:
        """Note what ``rule`` says about the use of ``value`` by node ``target``."""
        self.decisions[
            Decision(
                edge=Edge(source=self.flow.order[value.name], target=target, operand=operand),
                fused=rule in _FUSED,
                rule=rule,
                reason=RULES[rule].format(
                    value=value,
                    anchor=f"%{anchor}",
                    other=f"%{other}",
                    op=self.flow.op(anchor),
                    maker=self.flow.op(other),
                ),
            )
        ] = None

    def _scales(self, anchor: Operation, space: _Space) -> list[BlockScale | None]:
        """Return the scales of A and of B; its operands after the matrices are those there are."""
        if len(anchor.operands) == 2:
            return [None, None]
        found: list[BlockScale | None] = []
        index = 2
        for name in ("block_a", "block_b"):
            block = ints(anchor, name)
            found.append(None)
            if block:
                rows, columns = reversed(block) if space.transposed else block
                view = self._view(anchor, index, space)
                found[-1] = BlockScale(view=view, block=(rows, columns))
                index += 1
        return found[::-1] if space.transposed else found

    def _view(self, anchor: Operation, index: int, space: _Space) -> View:
        stored, axes = self._stored(anchor, index)
        return View(value=stored, perm=space.of_operand(axes))

    def _stored(self, anchor: Operation, index: int) -> tuple[Value, Axes]:
        """Return what is stored of an operand and the operand's map to it; note the way."""
        name = anchor.result.name
        operand = anchor.operands[index]
        stored, axes = view(self.flow, operand)
        target, position = self.flow.order[name], index
        while operand != stored:
            self.decide("view", operand, target, position, name)
            operation = self.flow.made_by(operand)
            if operation is None:
                raise error("Z002", what=f"the view of {operand} ends early")
            target, position = self.flow.order[operand.name], 0
            operand = operation.operands[0]
        colour = self.flow.colour(stored)
        rule = "operand" if colour is None else "materialise"
        self.decide(rule, stored, target, position, name, colour or "")
        return stored, axes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Space:
    """How the kernel of a root counts: over batch axes, rows and columns."""

    order: tuple[int, ...]
    """The root's axes in the kernel's order: batch axes, then the rows and the columns."""
    batch: tuple[int, ...]
    """The anchor's axis that each batch axis is."""
    transposed: bool
    """Whether the kernel's rows are the anchor's columns."""

    @classmethod
    def of(cls, flow: Flow, root: Value, anchor: Operation) -> _Space:
        """Return the space of the kernel of ``root``: its columns are the root's last axis.

        Raises:
            CkUnsupportedError: The root's last axis is a batch axis (X008).
        """
        seen = flow.orientation(root)
        rank = anchor.result.type.rank
        rows, columns = rank - 2, rank - 1
        if seen[-1] not in (rows, columns):
            raise error("X008", at=anchor.span, root=root, type=root.type, anchor=anchor.result)
        transposed = seen[-1] == rows
        row = seen.index(columns if transposed else rows)
        batch = [axis for axis in range(rank - 1) if axis != row]
        return cls(
            order=(*batch, row, rank - 1),
            batch=tuple(_known(seen[axis]) for axis in batch),
            transposed=transposed,
        )

    def of_operand(self, axes: Axes) -> Axes:
        """Return the map from the kernel's batch axes, rows and columns of an operand, to a value.

        ``axes`` are the map from the operand's own axes.
        """
        # The operand's batch axes stand at the end of the anchor's, as in NumPy's broadcasts.
        missing = len(self.order) - len(axes)
        batch = [axes[axis - missing] if axis >= missing else None for axis in self.batch]
        return (*batch, *(axes[:-3:-1] if self.transposed else axes[-2:]))


def _reads(walk: _Walk, order: tuple[int, ...]) -> tuple[Read, ...]:
    """Return what an epilogue reads, with axes in the order of the kernel's."""
    walk.check_reads(f"the epilogue of {walk.anchor.result}")
    return tuple(
        Read(value=read.value, axes=tuple(read.axes[axis] for axis in order))
        for read in walk.region.reads
    )


def _known(axis: int | None) -> int:
    if axis is None:
        raise error("Z002", what="an axis of a root runs with none of its anchor's")
    return axis


def _spans(operations: list[Operation]) -> tuple[Span, ...]:
    spans = (operation.span for operation in operations)
    return tuple(dict.fromkeys(span for span in spans if span is not None))


class _Walk:
    """A walk down a tree of pointwise ops: post-order, so that operands come before their use."""

    def __init__(self, maker: KernelMaker, anchor: Operation, region: Region) -> None:
        self.maker = maker
        self.flow = maker.flow
        self.anchor = anchor
        self.region = region
        self.done: dict[Site, Value] = {}

    def tree(self, value: Value) -> Function:
        """Return the region of ``value``, but for the rounding that its memory does."""
        start, last = self._skip_rounding(value)
        self.visit(start)
        span = last.span if last is not None else None
        held = f32 if value.type.dtype.kind is NumberKind.FLOAT else i32
        return self.region.finish(self.region.cast(self.done[start], held, span))

    def _skip_rounding(self, value: Value) -> tuple[Site, Operation | None]:
        """Return the site below the cast that writing does, and that cast if there is one."""
        site = Site(value=value, axes=identity(value.type.rank))
        while (operation := self.flow.made_by(site.value)) and (
            OPS[operation.op].kind is Kind.SHAPE
        ):
            (below,) = operand_sites(operation, site.axes)
            self._note(operation, (below,))
            site = below
        # Writing rounds floats; integers saturate, which is the region's work.
        is_float = value.type.dtype.kind is NumberKind.FLOAT
        if is_float and operation is not None and operation.op == "cast":
            sites = operand_sites(operation, site.axes)
            self._note(operation, sites)
            return sites[0], operation
        return site, None

    def visit(self, start: Site) -> None:
        """Fill ``done`` for ``start`` and all sites below it; a loop, for chains may be long."""
        stack = [start]
        while stack:
            site = stack[-1]
            if site in self.done:
                stack.pop()
                continue
            leaf = self.leaf(site)
            if leaf is not None:
                self.done[site] = leaf
                continue
            operation = self._maker_of(site)
            sites = operand_sites(operation, site.axes)
            missing = [each for each in sites if each not in self.done]
            if missing:
                stack.extend(reversed(missing))
                continue
            self._note(operation, sites)
            self.done[site] = self.apply(operation, tuple(self.done[each] for each in sites))

    def leaf(self, site: Site) -> Value | None:
        """Return the region's value for a site that needs no operands, else None."""
        if self.flow.made_by(site.value) is None or self.is_loaded(site):
            return self.region.read(site.value, site.axes)
        return None

    def is_loaded(self, site: Site) -> bool:
        """Tell whether another kernel has written ``site``."""
        return site.value.name in self.maker.roots and self.is_outer(site)

    def is_outer(self, site: Site) -> bool:
        """Tell whether ``site`` belongs to another kernel."""
        return self.flow.colour(site.value) is not None

    def apply(self, operation: Operation, operands: tuple[Value, ...]) -> Value:
        """Return the region's value for an operation."""
        kind = OPS[operation.op].kind
        if kind is Kind.SHAPE:
            return operands[0]
        if kind is Kind.CAST:
            return self.region.cast(operands[0], operation.result.type.dtype, operation.span)
        if kind is Kind.ANCHOR:
            raise error("Z002", what=f"{operation.result} is neither written nor an accumulator")
        return self.region.apply(operation.op, operands, operation.attrs, operation.span)

    def check_reads(self, what: str) -> None:
        """Refuse a function of more reads than a kernel takes."""
        reads = self.region.reads
        if len(reads) > MAX_READS:
            raise error(
                "X004",
                at=self.anchor.span,
                what=what,
                count=len(reads),
                limit=MAX_READS,
                reads=", ".join(str(read) for read in reads),
            )

    def _maker_of(self, site: Site) -> Operation:
        operation = self.flow.made_by(site.value)
        if operation is None:
            raise error("Z002", what=f"{site.value} has no operation")
        return operation

    def _note(self, operation: Operation, sites: tuple[Site, ...]) -> None:
        target = self.flow.order[operation.result.name]
        for index, site in enumerate(sites):
            self._decide(self._rule(site), site.value, target, index)

    def _rule(self, site: Site) -> str:
        kind = self.flow.kind(site.value)
        if kind is None:
            return self.of_parameter()
        if self.is_loaded(site):
            return "materialise"
        if kind is Kind.POINTWISE or kind is Kind.CAST:
            return self.of_value(site.value)
        return {Kind.ANCHOR: "accumulator", Kind.SHAPE: "index", Kind.CONSTANT: "constant"}[kind]

    def of_parameter(self) -> str:
        """Return the rule by which a parameter is read."""
        return "load"

    def of_value(self, value: Value) -> str:
        """Return the rule by which a pointwise value is computed."""
        return "recompute" if value.name in self.maker.roots else "epilogue"

    def _decide(self, rule: str, value: Value, target: int, operand: int) -> None:
        anchor = self.anchor.result.name
        self.maker.decide(rule, value, target, operand, anchor, self.flow.colour(value) or "")


class _Epilogue(_Walk):
    """The walk from a root to its accumulator."""

    def __init__(self, maker: KernelMaker, root: Value) -> None:
        self.root = root
        own = maker.flow.made_by(Value(name=maker.flow.colour(root) or "", type=root.type))
        if own is None:
            raise error("Z002", what=f"{root} is a root without an anchor")
        super().__init__(maker, own, Region("d", own.result.type.dtype))

    def run(self) -> Function:
        """Return the epilogue."""
        if self.root in self.maker.function.results:
            self._decide("store", self.root, len(self.flow.order), 0)
        return self.tree(self.root)

    def leaf(self, site: Site) -> Value | None:
        """Return what is read or, for the anchor, the accumulator."""
        found = super().leaf(site)
        if found is None and site.value.name == self.anchor.result.name:
            return self.region.accumulator
        return found

    def is_outer(self, site: Site) -> bool:
        """Tell whether ``site`` belongs to another kernel, or to this one turned round."""
        return is_outer(self.flow, self.root, site)


class _Prologue(_Walk):
    """The walk from an operand of an anchor to what it is computed from."""

    def __init__(self, maker: KernelMaker, anchor: Operation, index: int, letter: str) -> None:
        super().__init__(maker, anchor, Region(letter))
        self.value = anchor.operands[index]
        self.index = index

    def run(self) -> Function:
        """Return the function that computes one element."""
        whole = Site(value=self.value, axes=identity(self.value.type.rank))
        target = self.flow.order[self.anchor.result.name]
        self._decide(self._rule(whole), self.value, target, self.index)
        function = self.tree(self.value)
        which = f"the function of operand {'AB'[self.index]} of {self.anchor.result}"
        self.check_reads(which)
        if not self.region.reads:
            raise error("X003", at=self.anchor.span, operand="AB"[self.index])
        return function

    def operand(self, space: _Space) -> Computed:
        """Return the operand as the kernel of ``space`` sees it, after :meth:`run`."""
        rows, columns = self.value.type.shape[-2:]
        return Computed(
            value=self.value,
            extents=(columns, rows) if space.transposed else (rows, columns),
            reads=tuple(
                Read(value=read.value, axes=space.of_operand(read.axes))
                for read in self.region.reads
            ),
        )

    def of_parameter(self) -> str:
        """Return the rule by which a parameter is read."""
        return "read"

    def of_value(self, value: Value) -> str:
        """Return the rule by which a pointwise value is computed."""
        return "shared" if self.maker.uses[value.name] > 1 else "prologue"


def edges(function: Function) -> Iterator[tuple[int, int, Value]]:
    """Yield the uses in ``function`` as (target node, operand index, value)."""
    first = len(function.params)
    for place, operation in enumerate(function.body):
        for index, operand in enumerate(operation.operands):
            yield first + place, index, operand
