# SPDX-License-Identifier: MIT
"""Other ways to share a program's values among its kernels: computed once and stored, or again.

The partition decides by rules. Two of its decisions depend on the extents of a call:

- What an operand of a product is computed from (``ck.gelu(x)`` in ``ck.gelu(x) @ w.T``) is computed
  again for each tile that loads it, and by each product that reads it. A kernel of rows may compute
  it once instead.
- What follows a reduction of rows (``ck.rms_norm(x) @ w.T``) is stored by the kernel that reduces.
  Products may compute it instead, from a number for each row.
- Sums and maxima of a product's rows may be those of blocks, which its kernel stores in the place
  of its result.
- Groups of a product's columns may be quantised by its own kernel, or by one of rows.
- A product whose rows become log-sum-exps is not stored. Where its rows are shorter than those that
  it multiplies, as of few classes, another kernel may read them instead.

Here the candidates are made: programs in which values are in memory (``apart``). The runtime
compares the predicted times of both (:mod:`cklang.runtime.sharing`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from cklang.fusion.log_sums import EpilogueSearch, with_parts
from cklang.fusion.plan import Computed, Plan, ProductKernel, View
from cklang.fusion.quantised import grouped_maxima, with_group_results
from cklang.ir.nodes import Function, Operation, Value, attr_key, make_attrs
from cklang.ir.ops import OPS, Kind
from cklang.ir.rewrite import FreshNames
from cklang.ir.views import APART, BY_COST

__all__ = ["Alternative", "alternative_program", "alternatives", "with_stored"]

_MOST = 6
"""Alternatives of one program: each is planned."""

_MOST_NUMBERS = 4
"""Reduced values from which products may compute an operand."""

_POINTWISE = (Kind.POINTWISE, Kind.CAST, Kind.SHAPE, Kind.CONSTANT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """Values that are stored in another plan of the same program."""

    value: Value
    """The value that this is about."""
    stored: tuple[str, ...]
    """The names of the values to store; equal values together."""
    once: bool
    """Whether ``value`` is stored in this plan and not in that of the rules; or the other way
    round."""
    parts: tuple[str, ...] = ()
    """The names of the reductions of products whose kernels store those of blocks."""
    groups: tuple[str, ...] = ()
    """The names of maxima of groups of columns, which products' kernels compute."""
    below: Value | None = None
    """Worth a plan only if the rows of ``value`` have fewer bytes than those of this."""


def alternatives(function: Function, plan: Plan) -> tuple[Alternative, ...]:
    """Return the alternatives to what the rules decided.

    Args:
        function: The program.
        plan: That of the rules.
    """
    search = _Search(function)
    each = dict.fromkeys(
        (
            *search.computed(plan),
            *search.reduced(plan),
            *search.unstored(plan),
            *search.summed(function),
            *search.grouped(function),
        )
    )
    return tuple(each)[:_MOST]


def alternative_program(function: Function, options: Sequence[Alternative]) -> Function:
    """Return a program whose plan has all these alternatives."""
    stored = [name for each in options for name in each.stored]
    parts = [name for each in options for name in each.parts]
    groups = [name for each in options for name in each.groups]
    return with_parts(with_stored(with_group_results(function, groups), stored), parts)


def with_stored(function: Function, names: Iterable[str]) -> Function:
    """Return a program that stores some values; equal ones are stored once.

    Args:
        function: The program.
        names: The names of the values.
    """
    fresh = FreshNames(function)
    same = _classes(function)
    wanted = set(names)
    stored: dict[int, Value] = {}
    renamed: dict[str, Value] = {}
    body: list[Operation] = []
    for operation in function.body:
        operands = tuple(renamed.get(value.name, value) for value in operation.operands)
        body.append(replace(operation, operands=operands))
        value = operation.result
        if value.name not in wanted:
            continue
        if same[value.name] not in stored:
            copy = replace(value, name=fresh.new("stored"))
            stored[same[value.name]] = copy
            call = make_attrs(call=BY_COST)
            body.append(Operation(op=APART, operands=(value,), attrs=call, result=copy))
        renamed[value.name] = stored[same[value.name]]
    return replace(function, body=tuple(body))


def _classes(function: Function) -> dict[str, int]:
    """Return a number for each value, by name; equal values have the same number."""
    numbers: dict[str, int] = {}
    known: dict[object, int] = {}
    for value in function.params:
        numbers[value.name] = len(numbers)
    for operation in function.body:
        operands = tuple(numbers[value.name] for value in operation.operands)
        what = (operation.op, operands, attr_key(operation.attrs), str(operation.result.type))
        numbers[operation.result.name] = known.setdefault(what, len(numbers))
    return numbers


class _Search:
    def __init__(self, function: Function) -> None:
        self.definitions: Mapping[str, Operation] = function.definitions()
        self.classes = _classes(function)
        self.results = {value.name for value in function.results}

    def computed(self, plan: Plan) -> Iterator[Alternative]:
        """Yield the operands that products compute, and kernels of rows could store."""
        groups: dict[int, list[Value]] = {}
        for kernel in plan.kernels:
            for side in _sides(kernel):
                value = self._source(side.value) if isinstance(side, Computed) else None
                if value is not None:
                    groups.setdefault(self.classes[value.name], []).append(value)
        for values in groups.values():
            names = tuple(sorted({value.name for value in values}))
            yield Alternative(value=values[0], stored=names, once=True)

    def reduced(self, plan: Plan) -> Iterator[Alternative]:
        """Yield what products read of kernels of rows, and could compute from reduced values."""
        views = {
            side.value
            for kernel in plan.kernels
            for side in _sides(kernel)
            if isinstance(side, View)
        }
        for kernel in plan.kernels:
            for value in kernel.results if kernel.family == "rowwise" else ():
                if value in views and value.name not in self.results:
                    numbers = sorted(self._numbers(value))
                    if 0 < len(numbers) <= _MOST_NUMBERS:
                        yield Alternative(value=value, stored=tuple(numbers), once=False)

    def unstored(self, plan: Plan) -> Iterator[Alternative]:
        """Yield the products whose log-sum-exps are stored."""
        for kernel in plan.kernels:
            if isinstance(kernel, ProductKernel) and kernel.log_sums:
                value, left = kernel.result, kernel.a
                names = (value.name,) if value.name in self.definitions else ()
                yield Alternative(value=value, stored=names, once=True, below=left.value)

    def summed(self, function: Function) -> Iterator[Alternative]:
        """Yield the products of whose rows there are but sums or maxima."""
        for operation in EpilogueSearch(function).reductions(function):
            (elements,) = operation.operands
            names = (operation.result.name,)
            yield Alternative(value=elements, stored=(), parts=names, once=False)

    def grouped(self, function: Function) -> Iterator[Alternative]:
        """Yield the products whose groups of columns are reduced and scaled."""
        for operation, elements in grouped_maxima(function):
            names = (operation.result.name,)
            yield Alternative(value=elements, stored=(), groups=names, once=False)

    def _source(self, value: Value) -> Value | None:
        """Return what an operand is a transpose or a repetition of; None if that is no function.

        A stored value that is merely widened or rounded is nothing to store again.
        """
        writer = self.definitions.get(value.name)
        while writer is not None and OPS[writer.op].kind is Kind.SHAPE:
            (value,) = writer.operands
            writer = self.definitions.get(value.name)
        return value if self._works(value) else None

    def _works(self, value: Value) -> bool:
        """Tell whether functions of one element compute a value, more than casts."""
        writer = self.definitions.get(value.name)
        if writer is None or OPS[writer.op].kind not in _POINTWISE:
            return False
        is_function = OPS[writer.op].kind is Kind.POINTWISE
        return is_function or any(self._works(each) for each in writer.operands)

    def _numbers(self, value: Value) -> set[str]:
        """Return the reduced values that are repeated along rows on the way to ``value``."""
        numbers: set[str] = set()
        pending, visited = [value.name], {value.name}
        while pending:
            writer = self.definitions.get(pending.pop())
            if writer is None or OPS[writer.op].kind not in _POINTWISE:
                continue
            for operand in writer.operands:
                if writer.op == "broadcast" and self._is_reduced(operand.name):
                    numbers.add(operand.name)
                elif operand.name not in visited:
                    visited.add(operand.name)
                    pending.append(operand.name)
        return numbers

    def _is_reduced(self, name: str) -> bool:
        """Tell whether a value is computed from a reduction of rows by functions of one element."""
        writer = self.definitions.get(name)
        if writer is None:
            return False
        if writer.op.startswith("reduce_"):
            return True
        pointwise = OPS[writer.op].kind in _POINTWISE
        return pointwise and any(self._is_reduced(each.name) for each in writer.operands)


def _sides(kernel: object) -> tuple[View | Computed, ...]:
    return (kernel.a, kernel.b) if isinstance(kernel, ProductKernel) else ()
