# SPDX-License-Identifier: MIT
"""Index maps: how a value is seen from the element (…, m, n) that a kernel computes.

A *site* is a value together with its map, the ``axes`` of :class:`cklang.fusion.plan.Read`: for
each axis of the kernel's result the axis of the value that runs with it, or None. Transposes and
broadcasts change the map on the way down and vanish; the same value at two maps is two sites.
"""

from dataclasses import dataclass
from typing import TypeAlias

from cklang.ir.indices import GATHER_AXES
from cklang.ir.nodes import Operation, Value

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


def gather_axes(operation: Operation) -> tuple[Axes, ...]:
    """Return the index maps of the table and the indices of a ``take`` or ``take_along``."""
    table, indices = (operand.type.rank for operand in operation.operands)
    return GATHER_AXES[operation.op](table, indices, ints(operation, "axis")[0])


def identity(rank: int) -> Axes:
    """Return the map of a value of ``rank`` axes to itself."""
    return tuple(range(rank))


def ints(operation: Operation, name: str) -> tuple[int, ...]:
    """Return the integers of attribute ``name``."""
    attr = operation.attr(name)
    items = attr if isinstance(attr, tuple) else (attr,)
    return tuple(item for item in items if isinstance(item, int))


def compose(outer: Axes, inner: Axes) -> Axes:
    """Return the map root → value → anchor from the maps root → value and value → anchor."""
    return tuple(None if axis is None else inner[axis] for axis in outer)
