# SPDX-License-Identifier: MIT
"""Which kernels compute a function: each anchor takes the pointwise ops below it.

How it is decided:

1. Each value is *coloured* by the anchor whose kernel can compute it (:class:`Flow`).
2. Values that a kernel must write are *roots*: the function's result, and what gemms take as
   operands, if it follows a gemm. Other operands are computed by the gemm's own kernel as it loads
   them. Walking down from a root through its own colour meets values of other colours, the
   *crossings*.
3. Each colour materialises its crossings in one value if it can: the only crossing, or the last
   value from which all of them follow without the anchor, at worst the anchor's own result.
4. A root becomes a kernel: the walk from it, ending at parameters, roots of other colours and its
   own accumulator, is the epilogue.

A kernel has one result. Where a gemm's operand and another crossing of the same colour do not
follow from each other, the anchor is computed once for each; the decisions say so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cklang.errors import CkError, error
from cklang.families.attention.fuse import is_attention, plan_attention
from cklang.families.attention.plan import AttentionPlan
from cklang.fusion.kernel import KernelMaker, edges, is_computed, is_outer
from cklang.fusion.plan import FusionPlan, Kernel
from cklang.fusion.sites import Flow, Site, identity, operand_sites, view
from cklang.ir.nodes import Function, Operation, Value
from cklang.ir.ops import OPS, Kind
from cklang.ir.verifier import verify
from cklang.ir.windows import DIRECTIONS
from cklang.source import Span
from cklang.types import DTYPES, DType

__all__ = ["STORABLE", "plan", "plan_of"]

STORABLE: tuple[DType, ...] = tuple(
    dtype
    for dtype in DTYPES.values()
    if dtype.name not in ("f64", "i64", "bool", "e8m0", "i4", "fp4")
)
"""What a kernel can write."""

_OPERANDS = ("operand A", "operand B", "the first scale", "the second scale")


def plan_of(function: Function) -> FusionPlan | AttentionPlan:
    """Return the kernels of a function of any family.

    Raises:
        CkError: As :func:`plan` and :func:`cklang.families.attention.fuse.plan_attention`.
    """
    if is_attention(function):
        return plan_attention(verify(function, allow_unused=True))
    return plan(function)


def plan(function: Function) -> FusionPlan:
    """Return the kernels that compute ``function`` and the decisions behind them.

    Raises:
        CkUnsupportedError: No kernels compute it: several results (X001), no anchor (X002), a
            gemm operand made of constants alone (X003) or a computed one where only stored ones are
            read (X005), too many reads (X004), a result dtype
            that cannot be stored (X006), or a gemm's result repeated with no gemm of the larger
            shape (X007).
        CkError: ``function`` breaks a rule of the IR.
    """
    verify(function, allow_unused=True)
    if len(function.results) != 1:
        raise error("X001", at=function.span, name=function.name, count=len(function.results))
    roots = _Roots(function).find()
    maker = KernelMaker(function, Flow(function), [root.name for root in roots])
    kernels = _needed([maker.make(root) for root in roots])
    _decide_dead(function, maker)
    ordered = sorted(
        maker.decisions, key=lambda each: (each.edge.target, each.edge.operand, each.rule)
    )
    return FusionPlan(
        function=function,
        kernels=_named(function.name, kernels),
        decisions=tuple(ordered),
    )


def _needed(kernels: Sequence[Kernel]) -> list[Kernel]:
    """Drop kernels whose result no later kernel reads; the last one is the function's."""
    kept = [kernels[-1]]
    for kernel in reversed(kernels[:-1]):
        if any(kernel.result in each.inputs for each in kept):
            kept.insert(0, kernel)
    return kept


def _named(name: str, kernels: Sequence[Kernel]) -> tuple[Kernel, ...]:
    if len(kernels) == 1:
        return tuple(kernels)
    return tuple(replace(kernel, name=f"{name}_{i}") for i, kernel in enumerate(kernels))


def _decide_dead(function: Function, maker: KernelMaker) -> None:
    decided = {(each.edge.target, each.edge.operand) for each in maker.decisions}
    for target, operand, value in edges(function):
        if (target, operand) not in decided:
            maker.decide("dead", value, target, operand, "")


class _Roots:
    """Finds the values of a function that kernels write."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.flow = Flow(function)
        self.result = function.results[0]

    def find(self) -> list[Value]:
        """Return the roots in launch order, the function's result last."""
        demanded = self.demanded()
        crossings = self.crossings(demanded)
        roots = dict.fromkeys(demanded)
        for colour, values in crossings.items():
            fixed = [root for root in demanded if self.flow.colour(root) == colour]
            roots |= dict.fromkeys(self.materialised(colour, values, fixed))
        for root in roots:
            if root.type.dtype not in STORABLE:
                operation = self.flow.made_by(root)
                raise error(
                    "X006",
                    at=operation.span if operation else self.function.span,
                    dtype=root.type.dtype,
                    name=root.name,
                    type=root.type,
                )
        return sorted(roots, key=lambda root: self.flow.order[root.name])

    def demanded(self) -> list[Value]:
        """Return the function's result and the operands of the gemms it depends on."""
        self.check_result()
        found = {self.result: None}
        for anchor in self.anchors():
            for index, operand in enumerate(anchor.operands):
                stored, _ = view(self.flow, operand)
                computed = is_computed(self.flow, operand)
                if computed and (index > 1 or anchor.op in DIRECTIONS):
                    name, at = self.origin(stored)
                    which = _OPERANDS[index]
                    raise error(
                        "X005", at=at or anchor.span, operand=which, anchor=anchor.op, op=name
                    )
                if self.flow.made_by(stored) is not None and not computed:
                    found[stored] = None
        return list(found)

    def anchors(self) -> list[Operation]:
        """Return the gemms that the result depends on, in order."""
        return [each for each in self.live() if OPS[each.op].kind is Kind.ANCHOR]

    def computed(self) -> list[Value]:
        """Return what gemms multiply and no kernel writes."""
        operands = [operand for anchor in self.anchors() for operand in anchor.operands]
        return [each for each in dict.fromkeys(operands) if is_computed(self.flow, each)]

    def live(self) -> list[Operation]:
        """Return the operations that the result depends on, in order."""
        names = {self.result.name}
        found = []
        for operation in reversed(self.function.body):
            if operation.result.name in names:
                names |= {operand.name for operand in operation.operands}
                found.append(operation)
        return found[::-1]

    def check_result(self) -> None:
        """Refuse a result that no kernel computes."""
        if self.flow.colour(self.result) is not None:
            return
        if self.flow.anchors(self.result):
            raise self.repeated(self.result)
        anchors = ", ".join(row.name for row in OPS.values() if row.kind is Kind.ANCHOR)
        name, at = self.origin(self.result)
        raise error("X002", at=at or self.function.span, op=name, anchors=anchors)

    def origin(self, value: Value) -> tuple[str, Span | None]:
        """Return what a user would call the maker of ``value``, and its place.

        Casts and broadcasts are mostly the frontend's: the op that they serve is named.
        """
        at = None
        while operation := self.flow.made_by(value):
            at = at or operation.span
            if OPS[operation.op].kind not in (Kind.SHAPE, Kind.CAST):
                return operation.op, operation.span
            value = operation.operands[0]
        return f"a copy of parameter {value}", at

    def repeated(self, value: Value) -> CkError:
        """Return the error for a value that holds a gemm's result repeated along an axis."""
        operation = self.flow.made_by(value)
        names = {name for name, _ in self.flow.anchors(value)}
        anchor = next(each for each in self.function.values() if each.name in names)
        return error(
            "X007",
            at=operation.span if operation else self.function.span,
            op=operation.op if operation else "the result",
            got=", ".join(str(extent) for extent in value.type.shape),
            want=", ".join(str(extent) for extent in anchor.type.shape),
        )

    def crossings(self, demanded: Sequence[Value]) -> dict[str, list[Value]]:
        """Return, by colour, the values that some kernel needs from the kernel of that colour."""
        found: dict[str, list[Value]] = {}
        pending = [*demanded, *self.computed()]
        seen = set(pending)
        while pending:
            for value in self.crossings_of(pending.pop()):
                colour = self.flow.colour(value)
                if colour is not None and value not in found.setdefault(colour, []):
                    found[colour].append(value)
                if value not in seen:
                    seen.add(value)
                    pending.append(value)
        return found

    def crossings_of(self, root: Value) -> list[Value]:
        """Return the values that the kernel of ``root``, or a computed operand, needs from others.

        Transposes, broadcasts and the widening of a narrow value are the reader's work: a narrow
        value is half the memory.
        """
        found: dict[Value, None] = {}
        own = self.flow.colour(root)
        stack = [Site(value=root, axes=identity(root.type.rank))]
        seen = set(stack)
        while stack:
            site = stack.pop()
            operation = self.flow.made_by(site.value)
            outer = is_outer(self.flow, root, site)
            if operation is None or (site.value.name == own and not outer):
                continue
            if outer and not self.is_readers_work(site.value):
                found[site.value] = None
                continue
            below = [each for each in operand_sites(operation, site.axes) if each not in seen]
            seen.update(below)
            stack += below
        return list(found)

    def is_readers_work(self, value: Value) -> bool:
        """Tell whether readers of ``value`` make it themselves of what it is made of."""
        return self.flow.kind(value) is Kind.SHAPE or self.flow.is_widening(value)

    def materialised(
        self, colour: str, crossings: Sequence[Value], fixed: Sequence[Value]
    ) -> list[Value]:
        """Return what the kernels of ``colour`` write beside the ``fixed`` roots."""
        if all(self.follows(each, colour, set(fixed)) for each in crossings):
            return []
        if len(crossings) == 1 and crossings[0].type.dtype in STORABLE:
            return list(crossings)
        choices = [
            value
            for value in self.function.values()
            if self.flow.colour(value) == colour
            and value.type.dtype in STORABLE
            and not self.is_readers_work(value)
        ]
        for choice in reversed(choices):
            stops = {choice, *fixed}
            if all(self.follows(each, colour, stops) for each in crossings):
                return [choice]
        raise error("Z002", what=f"not even %{colour} serves its readers")

    def follows(self, value: Value, colour: str, stops: set[Value]) -> bool:
        """Tell whether ``value`` can be computed from ``stops`` without its anchor."""
        stack = [value]
        seen = set(stack)
        while stack:
            each = stack.pop()
            operation = self.flow.made_by(each)
            foreign = self.flow.colour(each) not in (colour, None)
            if each in stops or operation is None or foreign:
                continue
            if each.name == colour:
                return False
            below = [operand for operand in operation.operands if operand not in seen]
            seen.update(below)
            stack += below
        return True
