# SPDX-License-Identifier: MIT
"""Quantisation of a product's rows in groups of columns, in the product's own kernel.

``y = x @ w.T`` seen as groups of 128 columns, the largest ``|y|`` of each group, a scale computed
from that, and ``y`` divided by the scale need no other row and no other group. The kernel of the
product has whole groups in its tile. So the program is written again in the product's own shape:
``block_peak`` is the largest of each element's group (:mod:`cklang.ir.block_results`), what follows
it are functions of one element, and ``block_first`` keeps one scale for each group. All of that is
an epilogue with two results.

Rows that are one group need no view: ``ck.max(ck.abs(y), axis=-1)`` of a y of 256 columns.

Which program is quicker the cost model decides (:mod:`cklang.fusion.alternatives`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from cklang.ir.block_results import BLOCK_COLUMNS, BLOCK_FIRST, BLOCK_PEAK
from cklang.ir.nodes import Attr, Function, Operation, Value, make_attrs
from cklang.ir.ops import OPS, Kind
from cklang.ir.rewrite import FreshNames, needed_operations
from cklang.ir.views import RESHAPE
from cklang.types import Extent, TensorType

_PRODUCTS = ("gemm", "scaled_gemm")
_ELEMENTWISE = (Kind.POINTWISE, Kind.CAST)


def grouped_maxima(function: Function) -> Iterator[tuple[Operation, Value]]:
    """Yield the maxima of groups that a product's kernel computes, with the product's elements."""
    for operation in function.body:
        groups = _Groups.of(function, operation)
        if groups is not None and groups.rewritten() is not None:
            yield operation, groups.elements


def with_group_results(function: Function, names: Collection[str]) -> Function:
    """Return a program in which products' kernels compute maxima of groups and what follows.

    ``names`` are those of the maxima, of :func:`grouped_maxima`.
    """
    for name in sorted(names):
        operation = function.definitions().get(name)
        groups = None if operation is None else _Groups.of(function, operation)
        function = (None if groups is None else groups.rewritten()) or function
    return function


class _NoEpilogueError(Exception):
    """What follows the maxima is no function of one element."""


class _Groups:
    """Writes the quantisation of one product again, in the product's shape."""

    def __init__(
        self, function: Function, largest: Operation, elements: Value, view: Value | None
    ) -> None:
        self.function = function
        self.largest = largest
        self.elements = elements
        """What an epilogue gives, in the product's shape."""
        self.view = view
        """The same as groups; None if a row is one group."""
        (row,) = largest.operands
        self.grouped = tuple(row.type.shape)
        self.columns: int = next(n for n in BLOCK_COLUMNS if n == row.type.shape[-1])
        self.definitions = function.definitions()
        self.names = FreshNames(function)
        self.new: dict[str, Value] = {}
        """What is written again, by the old name."""
        self.body: list[Operation] = []

    @classmethod
    def of(cls, function: Function, largest: Operation) -> _Groups | None:
        """Return the groups of a maximum; None if it is none of a product's rows."""
        if largest.op != "reduce_max":
            return None
        (row,) = largest.operands
        is_row = largest.attr("axes") == (row.type.rank - 1,)
        if not is_row or row.type.shape[-1] not in BLOCK_COLUMNS:
            return None
        views, products = _sources(function, row)
        if len(products) == 1 and not views:
            return cls(function, largest, row, None)
        if products or len(views) != 1:
            return None
        (view,) = views
        (elements,) = function.definitions()[view.name].operands
        is_split = view.type.shape == row.type.shape and elements.type.shape[:-1] == tuple(
            view.type.shape[:-2]
        )
        further, products = _sources(function, elements)
        if not is_split or further or len(products) != 1:
            return None
        return cls(function, largest, elements, view)

    def rewritten(self) -> Function | None:
        """Return the program; None if what follows the maxima is no epilogue."""
        inside = self._inside()
        uses = self._uses(inside)
        narrow = {name for name in uses if self._is_reduced(inside[name])}
        if not narrow or len(narrow) == len(uses):
            return None
        try:
            for operation in self.function.body:
                self._write(operation, inside, uses)
        except _NoEpilogueError:
            return None
        results = tuple(map(self._stored, self.function.results))
        if len(set(results)) < len(results):
            return None
        body = tuple(needed_operations(self.body, results))
        return replace(self.function, body=body, results=results)

    def _inside(self) -> dict[str, Value]:
        """Return what is computed of each group alone, by name."""
        start = self.largest.result if self.view is None else self.view
        inside = {start.name: start}
        for operation in self.function.body:
            is_follower = any(operand.name in inside for operand in operation.operands)
            kind = OPS[operation.op].kind
            is_own = kind in _ELEMENTWISE or operation.op == "broadcast"
            if is_follower and (is_own or operation is self.largest):
                inside[operation.result.name] = operation.result
        return inside

    def _uses(self, inside: Collection[str]) -> set[str]:
        """Return what of ``inside`` something else reads, or the program's caller."""
        uses = {value.name for value in self.function.results}
        for operation in self.function.body:
            if operation.result.name not in inside:
                uses |= {value.name for value in operation.operands}
        return uses & set(inside)

    @property
    def _narrow(self) -> tuple[Extent, ...]:
        """The shape of a number for each row and group."""
        count = 1 if self.view is None else self.grouped[-2]
        return (*self.elements.type.shape[:-1], count)

    def _is_reduced(self, value: Value) -> bool:
        shape = tuple(value.type.shape)
        return shape in (self.grouped[:-1], (*self.grouped[:-1], 1))

    def _write(self, operation: Operation, inside: Collection[str], uses: Collection[str]) -> None:
        """Write one operation, and what others read of its result in its old shape."""
        result = operation.result
        if result == self.view:
            self.new[result.name] = self.elements
            self.body.append(operation)  # dead unless something else reads it
            return
        if result.name not in inside:
            self._write_outside(operation)
            return
        wide = self._wide_result(operation)
        self.new[result.name] = wide
        if result.name in uses:
            self._store(result, wide)

    def _write_outside(self, operation: Operation) -> None:
        """Write an operation that reads groups in their old shape, or views them in the product's.

        A view of groups as the product's rows is what was written in that shape.
        """
        name = operation.operands[0].name if operation.operands else ""
        if operation.op == RESHAPE and name in self.new:
            if operation.result.type.shape == self.elements.type.shape:
                self.new[operation.result.name] = self.new[name]
                return
            is_reduced = self._is_reduced(operation.operands[0])
            if is_reduced and tuple(operation.result.type.shape) == self._narrow:
                self._append(BLOCK_FIRST, (self.new[name],), operation.result, columns=self.columns)
                return
        operands = tuple(self._stored(value) for value in operation.operands)
        self.body.append(replace(operation, operands=operands))

    def _stored(self, value: Value) -> Value:
        """Return a value that an operation outside reads, or the caller, in its old shape."""
        own = self.new.get(value.name, value)
        return own if own.type.shape == value.type.shape else value

    def _store(self, result: Value, wide: Value) -> None:
        """Write what others read of a value: groups in their shape, or a number for each."""
        if not self._is_reduced(result):
            if self.view is not None:
                self._append(RESHAPE, (wide,), result)
            return
        is_same = tuple(result.type.shape) == self._narrow
        type_ = replace(result.type, shape=self._narrow)
        numbers = result if is_same else Value(name=self.names.new("numbers"), type=type_)
        self._append(BLOCK_FIRST, (wide,), numbers, columns=self.columns)
        if not is_same:
            self._append(RESHAPE, (numbers,), result)

    def _wide_result(self, operation: Operation) -> Value:
        """Return the result of an operation on groups, in the product's shape."""
        if operation.op == "broadcast":
            (source,) = operation.operands
            is_along = operation.attr("dims") == tuple(range(len(self.grouped) - 1))
            if not is_along or not self._is_known(operation.result):
                raise _NoEpilogueError
            return self._wide(source)
        if not self._is_known(operation.result):
            raise _NoEpilogueError
        operands = tuple(self._wide(value) for value in operation.operands)
        type_ = TensorType(dtype=operation.result.type.dtype, shape=tuple(self.elements.type.shape))
        result = Value(name=self.names.new("wide"), type=type_)
        if operation is self.largest:
            self._append(BLOCK_PEAK, operands, result, columns=self.columns)
        else:
            self.body.append(replace(operation, operands=operands, result=result))
        return result

    def _is_known(self, value: Value) -> bool:
        return tuple(value.type.shape) == self.grouped or self._is_reduced(value)

    def _wide(self, value: Value) -> Value:
        """Return an operand in the product's shape."""
        if value.name in self.new:
            return self.new[value.name]
        writer = self.definitions.get(value.name)
        if writer is not None and writer.op == "broadcast" and writer.operands[0].type.rank == 0:
            return self._repeated(writer.operands[0], ())
        if value.type.rank == 0:
            return self._repeated(value, ())
        if self.view is None and tuple(value.type.shape) == self.grouped:
            return value
        raise _NoEpilogueError

    def _repeated(self, value: Value, dims: tuple[int, ...]) -> Value:
        shape: tuple[Extent, ...] = tuple(self.elements.type.shape)
        type_ = TensorType(dtype=value.type.dtype, shape=shape)
        result = Value(name=self.names.new("repeated"), type=type_)
        self._append("broadcast", (value,), result, dims=dims)
        return result

    def _append(self, op: str, operands: tuple[Value, ...], result: Value, **attrs: Attr) -> None:
        self.body.append(
            Operation(
                op=op,
                operands=operands,
                attrs=make_attrs(**attrs),
                result=result,
                span=self.largest.span,
            )
        )


def _sources(function: Function, value: Value) -> tuple[list[Value], list[Operation]]:
    """Return the views and products from which functions of one element compute a value.

    Anything else that such a value is computed from makes both empty.
    """
    definitions = function.definitions()
    views: dict[str, Value] = {}
    products: dict[str, Operation] = {}
    pending, known = [value], {value.name}
    while pending:
        current = pending.pop()
        writer = definitions.get(current.name)
        if writer is None:
            continue
        kind = OPS[writer.op].kind
        if writer.op in _PRODUCTS:
            products[current.name] = writer
        elif writer.op == RESHAPE:
            views[current.name] = current
        elif kind in (*_ELEMENTWISE, Kind.SHAPE, Kind.CONSTANT):
            pending += [operand for operand in writer.operands if operand.name not in known]
            known |= {operand.name for operand in writer.operands}
        else:
            return [], []
    return list(views.values()), list(products.values())
