# SPDX-License-Identifier: MIT
"""Values of products that may be computed once and stored, or again by each reader.

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
"""

from collections.abc import Iterator, Mapping

from cklang.families.gemm.fuse.log_sums import EpilogueSearch, with_parts
from cklang.families.gemm.fuse.quantised import grouped_maxima, with_group_results
from cklang.families.gemm.plan import FusedGemm
from cklang.fusion.alternatives import Alternative, numbers_of_values
from cklang.fusion.plan import Computed, Plan, View
from cklang.ir.nodes import Function, Operation, Value
from cklang.ir.ops import OPS, Kind

_MOST_NUMBERS = 4
"""Reduced values from which products may compute an operand."""

_POINTWISE = (Kind.POINTWISE, Kind.CAST, Kind.SHAPE, Kind.CONSTANT)


def alternatives(function: Function, plan: Plan) -> Iterator[Alternative]:
    """Yield the alternatives to what the rules decided."""
    search = _Search(function)
    yield from search.computed(plan)
    yield from search.reduced(plan)
    yield from search.unstored(plan)
    yield from search.summed(function)
    yield from search.grouped(function)


class _Search:
    def __init__(self, function: Function) -> None:
        self.definitions: Mapping[str, Operation] = function.definitions()
        self.classes = numbers_of_values(function)
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
            yield Alternative(value=values[0], names=names, once=True)

    def reduced(self, plan: Plan) -> Iterator[Alternative]:
        """Yield what products read of kernels of rows, and could compute from reduced values."""
        views = {
            side.value
            for kernel in plan.kernels
            for side in _sides(kernel)
            if isinstance(side, View)
        }
        for kernel in plan.kernels:
            for value in kernel.results if kernel.leaves_to_readers else ():
                if value in views and value.name not in self.results:
                    numbers = sorted(self._numbers(value))
                    if 0 < len(numbers) <= _MOST_NUMBERS:
                        yield Alternative(value=value, names=tuple(numbers), once=False)

    def unstored(self, plan: Plan) -> Iterator[Alternative]:
        """Yield the products whose log-sum-exps are stored."""
        for kernel in plan.kernels:
            if isinstance(kernel, FusedGemm) and kernel.log_sums:
                value, left = kernel.result, kernel.a
                names = (value.name,) if value.name in self.definitions else ()
                yield Alternative(value=value, names=names, once=True, below=left.value)

    def summed(self, function: Function) -> Iterator[Alternative]:
        """Yield the products of whose rows there are but sums or maxima."""
        for operation in EpilogueSearch(function).reductions(function):
            (elements,) = operation.operands
            names = (operation.result.name,)
            yield Alternative(
                value=elements, names=names, once=False, rewriting=with_parts, order=1
            )

    def grouped(self, function: Function) -> Iterator[Alternative]:
        """Yield the products whose groups of columns are reduced and scaled."""
        for operation, elements in grouped_maxima(function):
            names = (operation.result.name,)
            yield Alternative(
                value=elements,
                names=names,
                once=False,
                rewriting=with_group_results,
                order=-1,
            )

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
        return is_function or any(self._works(operand) for operand in writer.operands)

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
        return pointwise and any(self._is_reduced(operand.name) for operand in writer.operands)


def _sides(kernel: object) -> tuple[View | Computed, ...]:
    return (kernel.a, kernel.b) if isinstance(kernel, FusedGemm) else ()
