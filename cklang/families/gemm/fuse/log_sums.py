# SPDX-License-Identifier: MIT
"""Reductions of the rows of a product that nothing else reads: the product is never stored.

``ck.logsumexp(x @ w.T + bias, axis=-1)`` is the largest element of each row, the sum of
exponentials of what is left without it, and the logarithm of that. All of this is the same for the
log-sum-exps of blocks of the row as for the elements themselves. So where the elements follow a
product, ``log_sums`` is put before it, whose numbers the product's kernel stores.

Sums and maxima of rows may be those of blocks in the same way; a call takes that where the cost
model predicts less for it (:mod:`cklang.fusion.alternatives`).
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from cklang.ir.log_sums import BLOCK_MAXIMA, BLOCK_SUMS, LOG_SUMS, block_count
from cklang.ir.nodes import Function, Operation, Value
from cklang.ir.ops import OPS, Kind
from cklang.ir.rewrite import FreshNames
from cklang.types import TensorType, f32

_CHAIN = ("sub", "exp", "reduce_sum", "log", "add")
"""What follows the elements of a row, each alone."""


def with_log_sums(function: Function) -> Function:
    """Return a function in which log-sum-exps of products are those of ``log_sums``."""
    search = EpilogueSearch(function)
    patterns = [
        search.pattern(operation) for operation in function.body if operation.op == "reduce_max"
    ]
    for pattern in patterns:
        if pattern is not None:
            function = _rewritten(function, pattern)
    return function


_PARTS = {"reduce_sum": BLOCK_SUMS, "reduce_max": BLOCK_MAXIMA}
"""Reductions of blocks, whose own reduction is that of the row."""


def with_parts(function: Function, names: Collection[str]) -> Function:
    """Return a function in which reductions of products are those of blocks.

    ``names`` are those of :meth:`EpilogueSearch.reductions`.
    """
    fresh = FreshNames(function)
    body: list[Operation] = []
    for operation in function.body:
        if operation.result.name in names:
            (elements,) = operation.operands
            type_ = _narrowed(elements)
            if type_ is not None:
                parts = Value(name=fresh.new("parts"), type=type_)
                op = _PARTS[operation.op]
                body.append(
                    Operation(op=op, operands=(elements,), result=parts, span=operation.span)
                )
                operation = replace(operation, operands=(parts,))
        body.append(operation)
    return replace(function, body=tuple(body))


def _narrowed(elements: Value) -> TensorType | None:
    """Return the type of a number for each block of rows."""
    count = block_count(elements.type.shape[-1])
    return (
        None if count is None else TensorType(dtype=f32, shape=(*elements.type.shape[:-1], count))
    )


Pattern = tuple[Value, tuple[str, ...]]
"""The elements, and the names of what has their shape from there to the sums."""


class EpilogueSearch:
    """Finds what reduces the rows of a product that nothing else reads."""

    def __init__(self, function: Function) -> None:
        self.definitions = function.definitions()
        self.users: defaultdict[str, list[Operation]] = defaultdict(list)
        for operation in function.body:
            for value in operation.operands:
                self.users[value.name].append(operation)
        self.results = {value.name for value in function.results}

    def pattern(self, largest: Operation) -> Pattern | None:
        """Return the pattern that begins with the largest element of each row, if there is one."""
        (elements,) = largest.operands
        rank = elements.type.rank
        if largest.attr("axes") != (rank - 1,) or not self.follows_product(elements):
            return None
        if block_count(elements.type.shape[-1]) is None:
            return None
        rest = [value for value in self._of(elements) if value is not largest]
        wide: list[str] = []
        current = rest[0] if len(rest) == 1 else None
        for op in _CHAIN:
            if current is None or current.op != op:
                return None
            if op == "sub" and not self._is_shift(current.operands[1], largest, wide):
                return None
            if op == "add" and not self._adds_shift(current, largest):
                return None
            if op in ("sub", "exp"):
                wide.append(current.result.name)
            if op == "reduce_sum" and current.attr("axes") != (rank - 1,):
                return None
            if op != "add":
                current = self._one(current.result)
        return elements, tuple(wide)

    def reductions(self, function: Function) -> Iterator[Operation]:
        """Yield the sums and maxima of rows of products that nothing else reads."""
        for operation in function.body:
            if operation.op not in _PARTS:
                continue
            (elements,) = operation.operands
            is_row = operation.attr("axes") == (elements.type.rank - 1,)
            if is_row and self._one(elements) == operation and self.follows_product(elements):
                yield operation

    def _of(self, value: Value) -> list[Operation]:
        """Return who uses a value; the function's caller counts as nobody who is known."""
        return [] if value.name in self.results else self.users[value.name]

    def _one(self, value: Value) -> Operation | None:
        users = self._of(value)
        return users[0] if len(users) == 1 else None

    def _writer(self, value: Value, op: str) -> Operation | None:
        writer = self.definitions.get(value.name)
        return writer if writer is not None and writer.op == op else None

    def _is_shift(self, value: Value, largest: Operation, wide: list[str]) -> bool:
        """Tell whether a value is the shift, repeated along the row."""
        repeated = self._writer(value, "broadcast")
        if repeated is None or self._one(value) is None:
            return False
        wide.append(value.name)
        return self._selected(repeated.operands[0], largest)

    def _selected(self, value: Value, largest: Operation) -> bool:
        """Tell whether a value is ``largest`` where that is finite, else 0, and nothing more."""
        chosen = self._writer(value, "where")
        if chosen is None or len(self._of(value)) != 2 or chosen.operands[1] != largest.result:
            return False
        below = self._writer(chosen.operands[0], "lt")
        size = None if below is None else self._writer(below.operands[0], "abs")
        is_own = size is not None and size.operands == (largest.result,)
        return is_own and self._of(largest.result) == [size, chosen]

    def _adds_shift(self, last: Operation, largest: Operation) -> bool:
        return any(self._selected(operand, largest) for operand in last.operands)

    def follows_product(self, elements: Value) -> bool:
        """Tell whether the epilogue of one product computes elements, and nothing else reads it."""
        own = {elements.name}
        pending, products = [elements], list[Operation]()
        while pending:
            writer = self.definitions.get(pending.pop().name)
            if writer is None:
                continue
            if writer.op == "gemm":
                products.append(writer)
            elif OPS[writer.op].kind in (Kind.POINTWISE, Kind.CAST, Kind.SHAPE, Kind.CONSTANT):
                pending += [operand for operand in writer.operands if operand.name not in own]
                own.update(operand.name for operand in writer.operands)
            else:
                return False
        if len(products) != 1 or elements.type.dtype != f32:
            return False
        (product,) = products
        # Columns of one matrix: a batch of them could fold into the columns of a launch.
        is_matrix = product.operands[1].type.rank == 2 and not product.operands[0].type.dtype.packed
        return is_matrix and self._is_epilogue(product, elements, own)

    def _is_epilogue(self, product: Operation, elements: Value, own: set[str]) -> bool:
        """Tell whether functions of one element lead from a product to ``elements`` alone."""
        after = [product.result]
        for value in after:
            if value == elements:
                continue
            users = self._of(value)
            kinds = {OPS[user.op].kind for user in users}
            is_inside = all(user.result.name in own for user in users)
            if not users or not is_inside or not kinds <= {Kind.POINTWISE, Kind.CAST}:
                return False
            after += [user.result for user in users if user.result not in after]
        return elements in after


def _rewritten(function: Function, pattern: Pattern) -> Function:
    elements, wide = pattern
    narrow = _narrowed(elements)
    if narrow is None:
        return function
    sums = Value(name=FreshNames(function).new("sums"), type=narrow)
    replaced = {name: Value(name=name, type=narrow) for name in wide}
    body: list[Operation] = []
    for operation in function.body:
        body.append(_with(operation, elements, sums, replaced))
        if operation.result == elements:
            body.append(
                Operation(op=LOG_SUMS, operands=(elements,), result=sums, span=operation.span)
            )
    return replace(function, body=tuple(body))


def _with(
    operation: Operation, elements: Value, sums: Value, replaced: Mapping[str, Value]
) -> Operation:
    reads_row = operation.op == "reduce_max" or operation.result.name in replaced

    def new(value: Value) -> Value:
        return sums if reads_row and value == elements else replaced.get(value.name, value)

    operands: Sequence[Value] = [new(value) for value in operation.operands]
    result = replaced.get(operation.result.name, operation.result)
    return replace(operation, operands=tuple(operands), result=result)
