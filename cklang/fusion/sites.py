# SPDX-License-Identifier: MIT
"""Index maps: how a value is seen from the element (…, m, n) that a kernel computes.

A *site* is a value together with its map, the ``axes`` of :class:`cklang.fusion.plan.Read`: for
each axis of the kernel's result the axis of the value that runs with it, or None. Transposes and
broadcasts change the map on the way down and vanish; the same value at two maps is two sites.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from cklang.ir.nodes import Function, Operation, Value
from cklang.ir.ops import OPS, Kind
from cklang.types import f32

__all__ = [
    "Axes",
    "Flow",
    "Site",
    "compose",
    "identity",
    "ints",
    "operand_axes",
    "operand_sites",
    "view",
]

Axes: TypeAlias = tuple[int | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """``value`` seen at map ``axes``."""

    value: Value
    axes: Axes


def operand_axes(operation: Operation, axes: Axes) -> Axes:
    """Return the map of the operand of a shape op, given the map of its result."""
    if operation.op == "transpose":
        perm = ints(operation, "perm")
        return tuple(None if axis is None else perm[axis] for axis in axes)
    dims = ints(operation, "dims")
    operand, result = operation.operands[0].type, operation.result.type
    # Where the operand has extent 1 and the result another, all of the axis reads element 0.
    runs = {
        dim: axis
        for axis, dim in enumerate(dims)
        if operand.shape[axis] != 1 or result.shape[dim] == 1
    }
    return tuple(None if axis is None else runs.get(axis) for axis in axes)


def operand_sites(operation: Operation, axes: Axes) -> tuple[Site, ...]:
    """Return the sites of an operation's operands, given the map of its result."""
    if OPS[operation.op].kind is Kind.SHAPE:
        axes = operand_axes(operation, axes)
    return tuple(Site(value=operand, axes=axes) for operand in operation.operands)


def identity(rank: int) -> Axes:
    """Return the map of a value of ``rank`` axes to itself."""
    return tuple(range(rank))


def view(function: Flow, value: Value) -> tuple[Value, Axes]:
    """Return the stored matrix under a gemm's operand, and the operand's map to it.

    Transposes are passed, and broadcasts that leave rows and columns alone: along a batch axis
    the matrix may repeat.
    """
    site = Site(value=value, axes=identity(value.type.rank))
    while (operation := function.made_by(site.value)) and (OPS[operation.op].kind is Kind.SHAPE):
        (below,) = operand_sites(operation, site.axes)
        lost = [axis for axis in (-2, -1) if below.axes[axis] is None]
        if any(value.type.shape[axis] != 1 for axis in lost):
            break
        site = below
    return site.value, site.axes


def ints(operation: Operation, name: str) -> tuple[int, ...]:
    """Return the integers of attribute ``name``."""
    attr = operation.attr(name)
    items = attr if isinstance(attr, tuple) else (attr,)
    return tuple(item for item in items if isinstance(item, int))


class Flow:
    """What each value of a function depends on through pointwise and shape ops.

    A value has a *colour*: the anchor whose kernel can compute it, that is the last one (in the
    function's order) that it depends on with all axes running, in any order. Values that
    depend on no anchor, or only on parts of one that are repeated, have none.
    """

    def __init__(self, function: Function) -> None:
        self.function = function
        self._makers = function.definitions()
        self.order = {value.name: index for index, value in enumerate(function.values())}
        self._ranks = {value.name: value.type.rank for value in function.values()}
        self._anchors: dict[str, frozenset[tuple[str, Axes]]] = {}
        for value in function.values():
            self._anchors[value.name] = self._reach(value)

    def made_by(self, value: Value) -> Operation | None:
        """Return the operation that makes ``value``; None for a parameter."""
        return self._makers.get(value.name)

    def op(self, name: str) -> str:
        """Return the op that makes the value called ``name``; empty for a parameter."""
        operation = self._makers.get(name)
        return "" if operation is None else operation.op

    def kind(self, value: Value) -> Kind | None:
        """Return the kind of the op that makes ``value``; None for a parameter."""
        operation = self.made_by(value)
        return None if operation is None else OPS[operation.op].kind

    def anchors(self, value: Value) -> frozenset[tuple[str, Axes]]:
        """Return the anchors below ``value``, each with the map from the value to it."""
        return self._anchors[value.name]

    def colour(self, value: Value) -> str | None:
        """Return the name of the anchor whose kernel can compute ``value``."""
        fit = [name for name, axes in self.anchors(value) if self._covers(name, axes)]
        return max(fit, key=self.order.__getitem__, default=None)

    def _covers(self, anchor: str, axes: Axes) -> bool:
        """Tell whether every axis runs with one of the anchor's, and none of those is missing."""
        rank = self._ranks[anchor]
        return len(axes) == rank and set(axes) == set(range(rank))

    def orientation(self, value: Value) -> Axes:
        """Return how its own anchor is seen from ``value``: straight if it is so at all."""
        own = self.colour(value)
        return min(axes for name, axes in self.anchors(value) if name == own and None not in axes)

    def is_widening(self, value: Value) -> bool:
        """Tell whether ``value`` is a float made f32: reading it narrow and widening is exact."""
        operation = self.made_by(value)
        return operation is not None and operation.op == "cast" and value.type.dtype == f32

    def _reach(self, value: Value) -> frozenset[tuple[str, Axes]]:
        operation = self.made_by(value)
        if operation is None:
            return frozenset()
        if OPS[operation.op].kind is Kind.ANCHOR:
            return frozenset({(value.name, identity(value.type.rank))})
        own = identity(value.type.rank)
        found = set()
        for site in operand_sites(operation, own):
            for name, axes in self._anchors[site.value.name]:
                found.add((name, compose(site.axes, axes)))
        return frozenset(found)


def compose(outer: Axes, inner: Axes) -> Axes:
    """Return the map root → value → anchor from the maps root → value and value → anchor."""
    return tuple(None if axis is None else inner[axis] for axis in outer)
