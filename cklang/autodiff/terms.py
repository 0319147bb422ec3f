# SPDX-License-Identifier: MIT
"""Values of a function being built, with Python's operators: the notation of gradient rules."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from cklang.ir import emitter
from cklang.ir.extents import EXTENT
from cklang.ir.nodes import Attr, Operation, Value
from cklang.ir.rules import Shape
from cklang.types import DType, Extent, TensorType, bf16, bool_, f16, f32

Number: TypeAlias = float | int | bool
_FOLDED: Mapping[str, Callable[[float, float], float]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
}
# What an operand at the right may be without changing the one at the left.
_NEUTRAL = {"add": 0.0, "sub": 0.0, "mul": 1.0, "div": 1.0}


class Emitter(emitter.Emitter):
    """Appends operations to a function of gradients; equal operations are appended once."""

    def number(self, value: Value) -> Number | None:
        """Return the constant that every element of ``value`` is, or None."""
        source = self.source(value)
        if source is not None and source.op == "broadcast":
            return self.number(source.operands[0])
        number = source.attr("value") if source is not None and source.op == "constant" else None
        return number if isinstance(number, Number) else None

    def narrower(self, value: Value) -> Value | None:
        """Return the f16 or bf16 value that ``value`` is in f32, or None if there is none."""
        source = self.source(value, "cast")
        narrow = None if source is None else source.operands[0]
        is_exact = narrow is not None and narrow.type.dtype in (f16, bf16)
        return narrow if is_exact and value.type.dtype == f32 else None

    def reshaped(self, value: Value, shape: Shape) -> Value:
        """Return the elements of a value in another shape; it passes axes of one element."""
        while source := self.with_added_axes(value):
            (value,) = source.operands
        return super().reshaped(value, shape)

    def with_added_axes(self, value: Value) -> Operation | None:
        """Return the broadcast that only adds axes of one element, if it computes ``value``."""
        source = self.source(value, "broadcast")
        return source if source is not None and _only_adds_axes(source) else None

    def term(self, value: Value) -> Term:
        """Return ``value`` with operators."""
        return Term(emitter=self, value=value)

    def constant(self, number: Number, shape: Shape = ()) -> Term:
        """Return a tensor whose elements are all ``number``."""
        value = self.append("constant", value=number)
        return self.term(value).broadcast(shape, ())

    def arange(self, extent: Extent) -> Term:
        """Return the indices along an axis, as i32."""
        return self.term(self.append("arange", shape=(extent,)))

    def count(self, value: Value, axes: Sequence[int]) -> Term:
        """Return how many elements ``value`` has along axes, as an f32 number of rank 0."""
        product = self.constant(1.0)
        for axis in axes:
            extent = value.type.shape[axis]
            if isinstance(extent, int):
                product = product * float(extent)
            else:
                product = product * self.extent(value, axis).cast(f32)
        return product

    def extent(self, value: Value, axis: int) -> Term:
        """Return an extent as an i32 number; that of a parameter if one has it."""
        extent = value.type.shape[axis]
        for source in self.builder.values:
            if extent in source.type.shape:
                value, axis = source, source.type.shape.index(extent)
                break
        return self.term(self.append(EXTENT, value, axis=axis))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Term:
    """A value; ``x * y`` appends a product, and numbers are broadcast to the other operand."""

    emitter: Emitter
    value: Value

    @property
    def type(self) -> TensorType:
        """Its dtype and shape."""
        return self.value.type

    @property
    def shape(self) -> Shape:
        """Its shape."""
        return self.value.type.shape

    @property
    def dtype(self) -> DType:
        """Its dtype."""
        return self.value.type.dtype

    def call(self, op: str, *others: Operand, **attrs: Attr) -> Term:
        """Return a pointwise op of this term and others."""
        operands = (self.value, *(self._operand(other).value for other in others))
        return self.emitter.term(self.emitter.apply(op, operands, attrs))

    def _operand(self, other: Operand) -> Term:
        if isinstance(other, Term):
            return other
        kinds: Mapping[DType, Callable[[Number], Number]] = {f32: float, bool_: bool}
        return self.emitter.constant(kinds.get(self.dtype, int)(other), self.shape).cast(self.dtype)

    def _arithmetic(self, op: str, other: Operand) -> Term:
        """Return ``op`` of this and another term, without operations if both are constants."""
        right = self._operand(other)
        mine, its = (self.emitter.number(term.value) for term in (self, right))
        if its is not None and its == _NEUTRAL[op]:
            return self
        if mine is not None and its is not None and op in _FOLDED:
            return self._operand(_FOLDED[op](mine, its))
        if op == "mul" and mine is not None and mine == 1.0:
            return right
        return self.call(op, right)

    def __add__(self, other: Operand) -> Term:
        total = self._added_below(other) if isinstance(other, Term) else None
        return self._arithmetic("add", other) if total is None else total

    def _added_below(self, right: Term) -> Term | None:
        """Return the sum with a term if both only add the same axes of one element to others.

        Kernels compute the sum of those; this is a view of it. None if they do not.
        """
        mine, its = (self.emitter.with_added_axes(term.value) for term in (self, right))
        if mine is None or its is None or mine.attrs != its.attrs:
            return None
        below, other = (self.emitter.term(source.operands[0]) for source in (mine, its))
        return (below + other).broadcast(self.shape, emitter.repeated_axes(mine))

    def __sub__(self, other: Operand) -> Term:
        return self._arithmetic("sub", other)

    def __mul__(self, other: Operand) -> Term:
        return self._arithmetic("mul", other)

    def __truediv__(self, other: Operand) -> Term:
        return self._arithmetic("div", other)

    def __radd__(self, other: Number) -> Term:
        return self + other

    def __rmul__(self, other: Number) -> Term:
        return self * other

    def __rsub__(self, other: Number) -> Term:
        return self._operand(other) - self

    def __neg__(self) -> Term:
        return self.call("neg")

    def __lt__(self, other: Operand) -> Term:
        return self.call("lt", other)

    def __le__(self, other: Operand) -> Term:
        return self.call("le", other)

    def __gt__(self, other: Operand) -> Term:
        return self.call("gt", other)

    def __ge__(self, other: Operand) -> Term:
        return self.call("ge", other)

    def equals(self, other: Operand) -> Term:
        """Return where both are equal."""
        return self.call("eq", other)

    def both(self, other: Term) -> Term:
        """Return where both conditions hold."""
        return self.call("logical_and", other)

    def cast(self, dtype: DType) -> Term:
        """Return it in another dtype."""
        if self.dtype == dtype:
            return self
        source = self.emitter.narrower(self.value)
        if source is not None and source.type.dtype == dtype:
            return self.emitter.term(source)
        turned = self.emitter.source(self.value, "transpose")
        source = None if turned is None else self.emitter.narrower(turned.operands[0])
        if turned is not None and source is not None and source.type.dtype == dtype:
            return self.emitter.term(source).transpose(emitter.permutation(turned))
        return self.emitter.term(self.emitter.cast(self.value, dtype))

    def broadcast(self, shape: Shape, dims: Sequence[int]) -> Term:
        """Repeat it to ``shape``; ``dims`` has the result axis of each axis."""
        return self.emitter.term(self.emitter.broadcast(self.value, shape, tuple(dims)))

    def transpose(self, perm: Sequence[int]) -> Term:
        """Return it with axis ``perm[i]`` as axis i."""
        return self.emitter.term(self.emitter.transposed(self.value, tuple(perm)))

    def reshape(self, shape: Shape) -> Term:
        """Return its elements in another shape."""
        return self.emitter.term(self.emitter.reshaped(self.value, shape))

    def reduce(self, op: str, axes: Sequence[int]) -> Term:
        """Return a reduction such as ``reduce_sum`` along axes, which are dropped."""
        if not axes:
            return self
        value = self.emitter.append(op, self.value, axes=tuple(sorted(axes)))
        return self.emitter.term(value)

    def sum(self, axes: Sequence[int]) -> Term:
        """Return the sum along axes, which are dropped; those of one element without a sum."""
        many = [axis for axis in axes if self.shape[axis] != 1]
        kept = [axis for axis in range(self.type.rank) if axis not in many]
        total = self.reduce("reduce_sum", many)
        return total.reshape(tuple(self.shape[axis] for axis in kept if axis not in axes))


def _only_adds_axes(broadcast: Operation) -> bool:
    """Whether a broadcast has its operand's elements, each once."""
    (operand,), dims = broadcast.operands, emitter.repeated_axes(broadcast)
    extents = dict(zip(dims, operand.type.shape, strict=True))
    shape = enumerate(broadcast.result.type.shape)
    return all(extent == extents.get(axis, 1) for axis, extent in shape)


Operand: TypeAlias = Term | Number


def where(condition: Term, then: Operand, otherwise: Operand) -> Term:
    """Return ``then`` where the condition holds, else ``otherwise``; one of them is a term."""
    like = then if isinstance(then, Term) else otherwise
    if not isinstance(like, Term):
        like = condition.emitter.constant(0.0, condition.shape)
    return condition.call("where", like._operand(then), like._operand(otherwise))
