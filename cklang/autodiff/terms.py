# SPDX-License-Identifier: MIT
"""Values of a function being built, with Python's operators: the notation of gradient rules."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from cklang.ir.builder import Builder
from cklang.ir.extents import EXTENT
from cklang.ir.nodes import Attr, Value, attr_key, make_attrs
from cklang.ir.rules import Shape
from cklang.source import Span
from cklang.types import DType, Extent, TensorType, bf16, bool_, f16, f32, i32

Number: TypeAlias = float | int | bool
_FOLDED: Mapping[str, Callable[[float, float], float]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
}
# What an operand at the right may be without changing the one at the left.
_NEUTRAL = {"add": 0.0, "sub": 0.0, "mul": 1.0, "div": 1.0}


class Emitter:
    """Appends operations to a function; equal operations are appended once."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.span: Span | None = None
        """The place in the user's program that operations are appended for."""
        self._appended: dict[object, Value] = {}
        self._numbers: dict[str, Number] = {}
        self._casts: dict[str, Value] = {}
        self._transposed: dict[str, tuple[Value, tuple[int, ...]]] = {}
        self._repeated: set[str] = set()

    def append(self, op: str, *operands: Value, shape: Shape | None = None, **attrs: Attr) -> Value:
        """Return the value of ``op``; arguments as those of :meth:`Builder.append`."""
        return self.apply(op, operands, attrs, shape)

    def apply(
        self,
        op: str,
        operands: tuple[Value, ...],
        attrs: Mapping[str, Attr],
        shape: Shape | None = None,
    ) -> Value:
        """Return the value of ``op`` with its attributes in a mapping."""
        key = (op, operands, attr_key(make_attrs(**attrs)), shape)
        value = self._appended.get(key)
        if value is None:
            value = self.builder.apply(op, operands, attrs, shape=shape, span=self.span)
            self._appended[key] = value
            self._note(op, operands, attrs, value)
        return value

    def _note(
        self, op: str, operands: Sequence[Value], attrs: Mapping[str, Attr], value: Value
    ) -> None:
        if op == "broadcast":
            self._repeated.add(value.name)
        if op == "constant":
            number = attrs["value"]
            if isinstance(number, Number):
                self._numbers[value.name] = number
        elif op == "broadcast" and operands[0].name in self._numbers:
            self._numbers[value.name] = self._numbers[operands[0].name]
        elif op == "cast":
            self._casts[value.name] = operands[0]
        elif op == "transpose":
            perm = attrs["perm"]
            axes = tuple(int(str(axis)) for axis in perm) if isinstance(perm, tuple) else ()
            self._transposed[value.name] = operands[0], axes

    def number(self, value: Value) -> Number | None:
        """Return the constant that every element of ``value`` is, or None."""
        return self._numbers.get(value.name)

    def is_repeated(self, value: Value) -> bool:
        """Tell whether ``value`` repeats a smaller one."""
        return value.name in self._repeated

    def narrower(self, value: Value) -> Value | None:
        """Return the f16 or bf16 value that ``value`` is in f32, or None if there is none."""
        source = self._casts.get(value.name)
        is_exact = source is not None and source.type.dtype in (f16, bf16)
        return source if is_exact and value.type.dtype == f32 else None

    def transposed(self, value: Value) -> tuple[Value, tuple[int, ...]] | None:
        """Return what ``value`` is a transpose of, with the permutation; None if it is none."""
        return self._transposed.get(value.name)

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
        kinds: Mapping[DType, Callable[[Number], Number]] = {f32: float, i32: int, bool_: bool}
        return self.emitter.constant(kinds[self.dtype](other), self.shape)

    def _arithmetic(self, op: str, other: Operand) -> Term:
        """Return ``op`` of this and another term, without operations if both are constants."""
        right = self._operand(other)
        mine, its = (self.emitter.number(each.value) for each in (self, right))
        if its is not None and its == _NEUTRAL[op]:
            return self
        if mine is not None and its is not None and op in _FOLDED:
            return self._operand(_FOLDED[op](mine, its))
        if op == "mul" and mine is not None and mine == 1.0:
            return right
        return self.call(op, right)

    def __add__(self, other: Operand) -> Term:
        return self._arithmetic("add", other)

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
        turned = self.emitter.transposed(self.value)
        source = None if turned is None else self.emitter.narrower(turned[0])
        if turned is not None and source is not None and source.type.dtype == dtype:
            return self.emitter.term(source).transpose(turned[1])
        return self.emitter.term(self.emitter.append("cast", self.value, to=dtype))

    def broadcast(self, shape: Shape, dims: Sequence[int]) -> Term:
        """Repeat it to ``shape``; ``dims`` has the result axis of each axis."""
        if self.shape == shape:
            return self
        value = self.emitter.append("broadcast", self.value, shape=shape, dims=tuple(dims))
        return self.emitter.term(value)

    def transpose(self, perm: Sequence[int]) -> Term:
        """Return it with axis ``perm[i]`` as axis i."""
        source = self.emitter.transposed(self.value)
        if source is not None:
            value, first = source
            return self.emitter.term(value).transpose([first[axis] for axis in perm])
        if list(perm) == list(range(len(perm))):
            return self
        return self.emitter.term(self.emitter.append("transpose", self.value, perm=tuple(perm)))

    def reshape(self, shape: Shape) -> Term:
        """Return its elements in another shape."""
        if self.shape == shape:
            return self
        return self.emitter.term(self.emitter.append("reshape", self.value, shape=shape))

    def reduce(self, op: str, axes: Sequence[int]) -> Term:
        """Return a reduction such as ``reduce_sum`` along axes, which are dropped."""
        if not axes:
            return self
        value = self.emitter.append(op, self.value, axes=tuple(sorted(axes)))
        return self.emitter.term(value)

    def sum(self, axes: Sequence[int]) -> Term:
        """Return the sum along axes, which are dropped."""
        return self.reduce("reduce_sum", axes)


Operand: TypeAlias = Term | Number


def where(condition: Term, then: Operand, otherwise: Operand) -> Term:
    """Return ``then`` where the condition holds, else ``otherwise``; one of them is a term."""
    like = then if isinstance(then, Term) else otherwise
    if not isinstance(like, Term):
        like = condition.emitter.constant(0.0, condition.shape)
    return condition.call("where", like._operand(then), like._operand(otherwise))
