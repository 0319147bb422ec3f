# SPDX-License-Identifier: MIT
"""The state of one specialisation: the IR so far, and the names of the function being read."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import takewhile
from types import MappingProxyType
from typing import Protocol

from cklang.errors import CkError, error
from cklang.frontend.derived import Derived
from cklang.frontend.environment import Environment
from cklang.frontend.helper import Definition
from cklang.frontend.signature import concrete
from cklang.frontend.text import Located
from cklang.frontend.values import Described, Item, Tensor
from cklang.ir.builder import Builder, without_unused
from cklang.ir.emitter import Emitter
from cklang.ir.extents import EXTENT
from cklang.ir.nodes import Attr, Function, Value
from cklang.ir.rules import Shape
from cklang.source import Span
from cklang.types import Dim, DType, DTypeVar, Extent, TensorType, TensorVarType

ITERATIONS = 4096
"""How many loop iterations one specialisation may unroll in all."""


class Unit:
    """The function being built; one per specialisation, shared by all functions inlined in it.

    Equal operations are appended once: every op is pure.
    """

    def __init__(self, name: str, span: Span, derived: Derived) -> None:
        self.builder = Builder(name, span)
        self.derived = derived
        self.iterations = 0
        self.calls_apart = 0
        self.in_place: set[Value] = set()
        """The parameters into whose arrays results are written."""
        self._emitter = Emitter(self.builder)

    def append(
        self,
        op: str,
        *operands: Value,
        span: Span,
        attrs: Mapping[str, Attr] = MappingProxyType({}),
        shape: Shape | None = None,
    ) -> Value:
        """Return the value of ``op``, appending it unless it is there already."""
        return self._emitter.apply(op, operands, attrs, shape, span)

    def extent(self, dim: Dim, span: Span) -> Value | None:
        """Return the extent of ``dim`` as a number, or None if no value has such an axis."""
        for value in self.builder.values:
            if dim in value.type.shape:
                axis = value.type.shape.index(dim)
                return self.append(EXTENT, value, attrs={"axis": axis}, span=span)
        return None

    def finish(self, *results: Value) -> Function:
        """Return the function without the operations its results do not need."""
        return without_unused(self.builder.finish(*results))


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSite:
    """A call that is being inlined."""

    span: Span
    helper: Definition

    def __str__(self) -> str:
        line = self.span.source.line(self.span.line) or ""
        return f"in the call of {self.helper.name} at {self.span}: {line.strip()}"


class Inline(Protocol):
    """What reads the body of a function for one call of it."""

    def __call__(
        self,
        scope: Scope,
        node: ast.Call,
        helper: Definition,
        bound: Mapping[str, Item],
        environment: Environment | None = None,
    ) -> Item:
        """Return what ``helper`` returns; with an ``environment`` it is an op, its results cast."""


@dataclass(slots=True, kw_only=True)
class Scope:
    """The names of one function: the op itself, or a helper or an op inlined in it."""

    definition: Definition
    unit: Unit
    locals: dict[str, Item]
    environment: Environment
    """What dims and dtype variables are; helpers have those of the op around them."""
    inline: Inline
    """Returns what a helper or an op returns for arguments that are bound to its parameters."""
    evaluate: Callable[[Scope, ast.expr], Item]
    """Returns what an expression is worth."""
    calls: tuple[CallSite, ...] = field(default=())

    def inside(self, unit: Unit, names: Mapping[str, Item]) -> Scope:
        """Return this scope with other names, appending to another function."""
        return replace(self, unit=unit, locals=dict(names))

    @property
    def composite(self) -> str | None:
        """The function of the language whose definition this is part of, or None."""
        return None if self._composite is None else self._composite.helper.name

    @property
    def _composite(self) -> CallSite | None:
        return next((call for call in self.calls if call.helper.is_composite), None)

    def span(self, node: Located) -> Span:
        """Return the place of ``node``: in a function of the language, of its call by the user."""
        site = self._composite
        return self.definition.text.span(node) if site is None else site.span

    def words(self, node: Located) -> str:
        """Return ``node`` as it was written."""
        return self.definition.text.words(node)

    def error(self, code: str, node: Located | Span, *notes: str, **values: object) -> CkError:
        """Make the error of rule ``code`` at ``node``, with the calls that led to it."""
        users = takewhile(lambda call: not call.helper.is_composite, self.calls)
        trail = [str(call) for call in reversed(tuple(users))]
        at = node if isinstance(node, Span) else self.span(node)
        return error(code, at=at, notes=[*notes, *trail], **values)

    def dtype(self, variable: DTypeVar, node: Located) -> DType:
        """Return the dtype that ``variable`` stands for.

        Raises:
            CkTypeError: F030 if no parameter is annotated with it.
        """
        dtype = self.environment.dtypes.get(variable.name)
        if dtype is None:
            raise self.error("F030", node, name=variable.name)
        return dtype

    def concrete(self, type_: TensorType | TensorVarType, node: Located) -> TensorType:
        """Return an annotation in the dtype and the dims of the function being built."""
        if isinstance(type_, TensorVarType):
            self.dtype(type_.var, node)
        shape = tuple(self.extent(extent, node) for extent in type_.shape)
        return replace(concrete(type_, self.environment.dtypes), shape=shape)

    def extent(self, extent: Extent, node: Located) -> Extent:
        """Return an extent that the text names in dims of the function being built."""
        meaning = self.environment.extent(extent)
        if meaning is None:
            raise self.error("F068", node, dim=extent)
        return meaning

    def meaning(self, item: Item, node: Located) -> Item:
        """Return the meaning of a name from outside: dims and dtype variables are the op's."""
        if isinstance(item, DTypeVar):
            return self.dtype(item, node)
        if isinstance(item, Dim):
            return self.extent(item, node)
        if isinstance(item, tuple) and any(isinstance(part, Dim | tuple) for part in item):
            return tuple(self.meaning(part, node) for part in item)
        return item

    def count(self, node: Located, length: int) -> None:
        """Book ``length`` loop iterations.

        Raises:
            CkValueError: F031 if the program gets too long.
        """
        self.unit.iterations += length
        if self.unit.iterations > ITERATIONS:
            raise self.error("F031", node, length=self.unit.iterations, limit=ITERATIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Closure(Described):
    """A lambda in an argument, and the scope whose names it sees."""

    node: ast.Lambda
    scope: Scope

    def described(self) -> str:
        """Return how messages call it."""
        return "a lambda"

    def inside(self, unit: Unit, bound: Mapping[str, Item]) -> Scope:
        """Return the scope of its body, for values of its parameters and the function being built.

        In the function that the lambda is written in it sees tensors as they are, in a region of
        that function as something to be read at indices.
        """
        seen = self.scope.locals
        if unit is not self.scope.unit:
            seen = {name: _captured(item, self.scope) for name, item in seen.items()}
        return self.scope.inside(unit, {**seen, **bound})


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured(Described):
    """A tensor of ``scope`` as a lambda in it sees it: something to be read at indices."""

    tensor: Tensor
    scope: Scope

    def described(self) -> str:
        """Return how messages call it."""
        return f"the whole tensor {self.tensor.type}"


def _captured(item: Item, scope: Scope) -> Item:
    if isinstance(item, tuple):
        return tuple(_captured(part, scope) for part in item)
    return Captured(tensor=item, scope=scope) if isinstance(item, Tensor) else item
