# SPDX-License-Identifier: MIT
"""The logit of each target without the logits: a product's element is a sum of one row.

``ck.cross_entropy(x @ w.T, t)`` is the log-sum-exp of each row of logits minus one of its elements,
which the program selects by a comparison of all columns with the target. The kernel of the product
stores the log-sum-exps of blocks (:mod:`.log_sums`) if nothing else reads its result.
So the element is computed from what the product multiplies: ``sum(x * w[t])``, and then as the
elements of the product are, with each operand of the columns read at the target.
"""

from collections.abc import Sequence
from dataclasses import replace

from cklang.families.gemm.fuse.log_sums import with_log_sums
from cklang.ir.builder import Builder
from cklang.ir.indices import ARANGE, TAKE
from cklang.ir.log_sums import LOG_SUMS
from cklang.ir.nodes import Function, Operation, Value
from cklang.ir.ops import OPS, Kind
from cklang.ir.rewrite import FreshNames, needed_operations
from cklang.types import f32


def with_picked(function: Function) -> Function:
    """Return a function in which elements that targets select are sums of their own.

    Only where that leaves a product unstored; else the function itself.
    """
    if not any(operation.op == ARANGE for operation in function.body):
        return function
    for last in function.body:
        elements = _selected(function, last)
        if elements is None:
            continue
        rewritten = _rewritten(function, last, *elements)
        if rewritten is not None and _reduced(rewritten) > _reduced(function):
            return with_picked(rewritten)
    return function


def _reduced(function: Function) -> int:
    return sum(operation.op == LOG_SUMS for operation in with_log_sums(function).body)


def _selected(function: Function, last: Operation) -> tuple[Value, Value] | None:
    """Return elements and targets of a sum along a row of the one element that a target selects."""
    if last.op != "reduce_sum":
        return None
    definitions = function.definitions()

    def writer(value: Value, op: str) -> Operation | None:
        operation = definitions.get(value.name)
        return operation if operation is not None and operation.op == op else None

    (selected,) = last.operands
    row = selected.type.rank - 1
    where = writer(selected, "where")
    if where is None or last.attr("axes") != (row,):
        return None
    condition, elements, other = where.operands
    equal, nothing = writer(condition, "eq"), writer(other, "broadcast")
    zero = None if nothing is None else writer(nothing.operands[0], "constant")
    if equal is None or zero is None or zero.attr("value") != 0.0:
        return None
    place, target = (writer(value, "broadcast") for value in equal.operands)
    if place is None or target is None or writer(place.operands[0], ARANGE) is None:
        return None
    is_target = target.attr("dims") == tuple(range(row)) and place.attr("dims") == (row,)
    return (elements, target.operands[0]) if is_target else None


def _rewritten(
    function: Function, last: Operation, elements: Value, targets: Value
) -> Function | None:
    """Return the function with the sum in another way; None if the elements are no epilogue."""
    emitter = _Emitter(function, targets, elements.type.shape[-1])
    try:
        picked = emitter.picked(elements, last.result)
    except _NotPickedError:
        return None
    body: list[Operation] = []
    for operation in function.body:
        body += picked if operation is last else [operation]
    return replace(function, body=tuple(needed_operations(body, function.results)))


class _NotPickedError(Exception):
    """An element is computed in a way that has no counterpart for one column."""


class _Emitter:
    """Writes what computes one element of each row."""

    def __init__(self, function: Function, targets: Value, extent: object) -> None:
        self.function = function
        self.targets = targets
        self.extent = extent
        self.definitions = function.definitions()
        self.builder = Builder(function.name)
        self.known: dict[str, Value] = {}
        self.names = FreshNames(function)
        for value in function.values():
            self.builder.param(value.name, value.type)

    def picked(self, elements: Value, result: Value) -> list[Operation]:
        """Return the operations that give the elements at the targets under a name.

        Targets outside of the row give 0, as no column equals them.
        """
        b, shape = self.builder, self.targets.type.shape
        self.columns = self._columns(elements)
        zero = b.broadcast(b.constant(0), shape)
        axis = self.columns.type.rank - 1
        extent = b.broadcast(b.append("extent", self.columns, axis=axis), shape)
        inside = b.append(
            "logical_and", b.append("ge", self.targets, zero), b.append("lt", self.targets, extent)
        )
        # Computed indices are not checked: a target outside of the row is no mistake.
        self.index = b.append("where", inside, self.targets, zero)
        element = self.at_target(elements)
        none = b.broadcast(b.constant(0.0), shape)
        chosen = b.append("where", inside, element, none)
        return self._renamed(chosen, result)

    def _columns(self, value: Value) -> Value:
        """Return the matrix whose columns the product has."""
        pending = [value]
        while pending:
            writer = self.definitions.get(pending.pop().name)
            if writer is not None and writer.op == "gemm":
                return writer.operands[1]
            pending += () if writer is None else writer.operands
        raise _NotPickedError

    def at_target(self, value: Value) -> Value:
        """Return the element of each row at its target."""
        if value.name not in self.known:
            self.known[value.name] = self._at_target(value)
        return self.known[value.name]

    def _at_target(self, value: Value) -> Value:
        writer = self.definitions.get(value.name)
        if writer is None:
            raise _NotPickedError
        if writer.op == "gemm":
            return self._sum(writer)
        if writer.op == "broadcast":
            return self._repeated(writer)
        if OPS[writer.op].kind not in (Kind.POINTWISE, Kind.CAST):
            raise _NotPickedError
        operands = [self.at_target(operand) for operand in writer.operands]
        return self.builder.apply(writer.op, operands, dict(writer.attrs), span=writer.span)

    def _sum(self, product: Operation) -> Value:
        """Return the product of each row of A with the column of B that its target selects."""
        b = self.builder
        left, right = product.operands
        if right.type.rank != 2:
            raise _NotPickedError
        turned = self.definitions.get(right.name)
        if turned is not None and turned.op == "transpose":
            columns = b.append(TAKE, turned.operands[0], self.index, axis=0)
        else:
            columns = b.append(TAKE, b.append("transpose", right, perm=(1, 0)), self.index, axis=0)
        terms = b.append("mul", b.cast(left, f32), b.cast(columns, f32))
        return b.append("reduce_sum", terms, axes=(left.type.rank - 1,), span=product.span)

    def _repeated(self, broadcast: Operation) -> Value:
        """Return an operand of the epilogue at the target: of a column, of a row, or one number."""
        b = self.builder
        (source,) = broadcast.operands
        dims = broadcast.attr("dims")
        row = broadcast.result.type.rank - 1
        shape = broadcast.result.type.shape[:-1]
        if not isinstance(dims, tuple):
            raise _NotPickedError
        if row not in dims:
            kept = tuple(int(str(axis)) for axis in dims)
            return b.broadcast(source, shape, dims=kept)
        if dims != (row,) or source.type.shape[0] == 1:
            raise _NotPickedError
        if source.type.dtype.bits <= f32.bits:
            return b.append(TAKE, source, self.index, axis=0)
        raise _NotPickedError

    def _renamed(self, last: Value, result: Value) -> list[Operation]:
        """Return what was written with names of the function's own."""
        own: Sequence[Operation] = self.builder.finish(last).body
        renamed = {step.result.name: self._fresh(step.result) for step in own}
        renamed[last.name] = result
        return [
            replace(
                step,
                operands=tuple(renamed.get(value.name, value) for value in step.operands),
                result=renamed[step.result.name],
            )
            for step in own
        ]

    def _fresh(self, value: Value) -> Value:
        return replace(value, name=self.names.new("picked"))
