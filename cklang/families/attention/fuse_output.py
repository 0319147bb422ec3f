# SPDX-License-Identifier: MIT
"""What follows o becomes one more function of an attention's kernel, called as o is stored.

The function sees an element of o before it is rounded, in f32, and where it is: the axes of o as
the indices ``b``, ``h``, ``i`` and ``j``, of packed sequences without ``b``. It reads parameters of
the program at these, as a score function reads tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from cklang.errors import CkError, error
from cklang.fusion.sites import Axes, Site, identity, operand_sites
from cklang.ir.attention import READ_LIMIT, region_params
from cklang.ir.builder import Builder
from cklang.ir.nodes import Function, Operation, Value
from cklang.ir.ops import OPS, Kind
from cklang.types import Kind as NumberKind
from cklang.types import f32

__all__ = ["Output", "output_of"]

_INDICES = {4: ("b", "h", "i", "j"), 3: ("i", "h", "j")}
"""What the axes of o are called, by their number."""

_COMPUTED = (Kind.POINTWISE, Kind.CAST, Kind.SHAPE, Kind.CONSTANT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What is stored of o."""

    function: Function | None
    """The region ``output``; None if o is stored as it is, rounded."""
    reads: tuple[Value, ...]
    """What all functions of the kernel read."""

    @classmethod
    def none(cls, reads: tuple[Value, ...]) -> Output:
        """Return that o is stored as it is."""
        return cls(function=None, reads=reads)

    @property
    def body(self) -> tuple[Operation, ...]:
        """What is computed."""
        return () if self.function is None else self.function.body


def output_of(
    function: Function, anchor: Operation, result: Value, reads: Sequence[Value]
) -> Output:
    """Return what becomes of o on its way to ``result``.

    Args:
        function: The program.
        anchor: Its attention.
        result: What its kernel stores; any shape and dtype.
        reads: What its score and mask read.

    Raises:
        CkUnsupportedError: X017, an op on the way is not computed element by element, or the result
            is no float; X004, the functions read too many tensors.
    """
    walk = _Walk(function.definitions(), anchor, list(reads))
    start = Site(value=result, axes=identity(result.type.rank))
    maker = walk.made.get(result.name)
    if result.type.dtype.kind is not NumberKind.FLOAT or result.type.rank not in _INDICES:
        raise walk.refusal(maker)
    if maker is not None and maker.op == "cast" and maker.operands[0].type.dtype == f32:
        # The cast that storing does.
        start = Site(value=maker.operands[0], axes=start.axes)
    if start.value == anchor.result:
        return Output.none(tuple(reads))
    walk.visit(start)
    if not walk.reached:
        raise walk.refusal(maker)
    region = walk.builder.finish(walk.builder.cast(walk.done[start], f32))
    if len(walk.reads) > READ_LIMIT:
        raise error(
            "X004",
            at=anchor.span,
            what=f"the kernel of {anchor.result}",
            count=len(walk.reads),
            limit=READ_LIMIT,
            reads=", ".join(map(str, walk.reads)),
        )
    return Output(function=region, reads=tuple(walk.reads))


@dataclass(slots=True)
class _Walk:
    """A walk down from what is stored: operands are done before what uses them."""

    made: dict[str, Operation]
    anchor: Operation
    reads: list[Value]
    builder: Builder = field(default_factory=lambda: Builder("output"))
    done: dict[Site, Value] = field(default_factory=dict)
    reached: bool = False
    """Whether o was met."""
    _known: dict[str, Value] = field(default_factory=dict)
    """The parameters of the region, by name."""

    def __post_init__(self) -> None:
        for param in region_params("output", []):
            self._known[param.name] = self.builder.param(param.name, param.type)

    def refusal(self, operation: Operation | None) -> CkError:
        """Return the error that an operation, or a parameter if it is None, is none of o's."""
        if operation is None:
            return error("X017", at=self.anchor.span, op="a parameter")
        return error("X017", at=operation.span, op=operation.op)

    def visit(self, start: Site) -> None:
        """Fill ``done`` for ``start`` and all below it; a loop, for chains may be long."""
        stack = [start]
        while stack:
            site = stack[-1]
            operation = self.made.get(site.value.name)
            if site in self.done:
                stack.pop()
            elif operation is None or operation is self.anchor:
                self.done[site] = self._leaf(site, operation)
            elif OPS[operation.op].kind not in _COMPUTED:
                raise self.refusal(operation)
            else:
                below = operand_sites(operation, site.axes)
                missing = [each for each in below if each not in self.done]
                stack.extend(reversed(missing))
                if not missing:
                    self.done[site] = self._apply(operation, [self.done[each] for each in below])

    def _apply(self, operation: Operation, operands: list[Value]) -> Value:
        if OPS[operation.op].kind is Kind.SHAPE:
            return operands[0]
        return self.builder.apply(
            operation.op, operands, dict(operation.attrs), span=operation.span
        )

    def _leaf(self, site: Site, operation: Operation | None) -> Value:
        if operation is None:
            return self._read(site.value, site.axes)
        if site.axes != identity(site.value.type.rank) or operation.op != "attention":
            raise self.refusal(operation)
        self.reached = True
        return self._known["o"]

    def _read(self, value: Value, axes: Axes) -> Value:
        """Return a tensor at the indices that its axes run with, 0 for those of extent 1."""
        if value.type.dtype.encoding:
            raise error("X018", at=self.anchor.span, operand=value, dtype=value.type.dtype)
        if value not in self.reads:
            self.reads.append(value)
        name = f"d{self.reads.index(value)}"
        if name not in self._known:
            self._known[name] = self.builder.param(name, value.type)
        names = _INDICES[len(axes)]
        at = [
            self._known[names[axes.index(axis)]] if axis in axes else self.builder.constant(0)
            for axis in range(value.type.rank)
        ]
        return self.builder.append("element", self._known[name], *at)
