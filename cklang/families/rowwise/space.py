# SPDX-License-Identifier: MIT
"""What one kernel of rows can compute: all that lies in one space of rows and elements.

A *space* has the axes of a tensor that is reduced: those along which a row runs, and those that
count rows. Each value is seen from an element of the space through a map of axes
(:mod:`cklang.fusion.sites`), so a transposed or repeated tensor is a read at other strides, and the
result of a reduction one that repeats along the row.

:func:`conflicts` are the values that the kernels of other families leave to those of rows.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cklang.fusion.flow import Flow, Occurrence
from cklang.fusion.sites import Axes, identity
from cklang.ir.nodes import Operation
from cklang.ir.reductions import reduced_axes
from cklang.types import Dim


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSpace:
    """The axes that a kernel counts over."""

    extents: tuple[Dim | int, ...]
    row: tuple[int, ...]
    """The axes along which a row runs, ascending; none if nothing is reduced."""

    @property
    def lead(self) -> tuple[int, ...]:
        """The axes that count rows."""
        return tuple(axis for axis in range(len(self.extents)) if axis not in self.row)

    def varies(self, axes: Axes) -> bool:
        """Tell whether a value at this map differs from element to element of a row."""
        return any(axes[axis] is not None for axis in self.row) or not self.row

    def computes(self, operation: Operation, axes: Axes) -> bool:
        """Tell whether the kernel can compute a reduction whose result is seen through a map.

        Each row must have a result of its own, and the row must be what is reduced.
        """
        tensor = operation.operands[0].type.shape
        reduced = tuple(tensor[axis] for axis in reduced_axes(operation))
        leading = [axes[axis] for axis in self.lead]
        return (
            bool(self.row)
            and reduced == tuple(self.extents[axis] for axis in self.row)
            and all(axes[axis] is None for axis in self.row)
            and None not in leading
            and len(leading) == operation.result.type.rank
        )


def is_reduction(operation: Operation | None) -> bool:
    """Tell whether an operation reduces axes."""
    return operation is not None and bool(reduced_axes(operation))


def operands_of(flow: Flow, use: Occurrence, space: RowSpace) -> tuple[Occurrence, ...]:
    """Return the occurrences of an occurrence's operands, through reductions too."""
    operation = flow.operation(use.node)
    if operation is None or not is_reduction(operation):
        return flow.below(use)
    reduced = reduced_axes(operation)
    kept = [axis for axis in range(operation.operands[0].type.rank) if axis not in reduced]
    rows = dict(zip(space.row, reduced, strict=True))
    axes = tuple(rows.get(axis) if own is None else kept[own] for axis, own in enumerate(use.axes))
    return (Occurrence(flow.operands(use.node)[0], axes),)


def slice_of(
    flow: Flow, start: Occurrence, space: RowSpace, is_leaf: Callable[[Occurrence], bool]
) -> list[Occurrence]:
    """Return all that ``start`` is computed from, operands before their users, leaves included."""
    order: dict[Occurrence, None] = {}
    opened: set[Occurrence] = set()
    pending = [start]
    while pending:
        use = pending[-1]
        operands = () if is_leaf(use) else operands_of(flow, use, space)
        missing = [operand for operand in operands if operand not in order]
        if use in opened or not missing:
            order.setdefault(use)
            pending.pop()
        else:
            pending += reversed(missing)
        opened.add(use)
    return list(order)


def reaches(flow: Flow, node: int, is_leaf: Callable[[int], bool]) -> Iterator[Occurrence]:
    """Yield the reductions that ``node`` is computed from pointwise, seen from its axes."""
    start = flow.occurrence(node)
    pending, visited = [start], {start}
    while pending:
        use = pending.pop()
        if is_reduction(flow.operation(use.node)):
            yield use
        elif not is_leaf(use.node):
            operands = [operand for operand in flow.below(use) if operand not in visited]
            visited.update(operands)
            pending += operands


def space_of(flow: Flow, node: int, reductions: Sequence[Occurrence]) -> tuple[RowSpace, Axes]:
    """Return the space in which ``node`` can be computed, and the map from there to it.

    The space is the operand's of the last reduction that allows it. Without any it is that of the
    value, and nothing is reduced.

    ``reductions`` are those that it follows pointwise, seen from its axes.
    """
    value = flow.value(node)
    for use in sorted(reductions, key=lambda reduction: reduction.node, reverse=True):
        operation = flow.expect_operation(use.node)
        row = reduced_axes(operation)
        space = RowSpace(extents=operation.operands[0].type.shape, row=row)
        own = _map(space, use.axes, value.type.shape)
        if own is not None:
            return space, own
    space = RowSpace(extents=value.type.shape, row=())
    return space, identity(value.type.rank)


def _map(space: RowSpace, axes: Axes, shape: Sequence[Dim | int]) -> Axes | None:
    """Return the map from a space to a value from which a reduction's result is seen at ``axes``.

    None if the value has other axes than rows, or than rows and their elements.
    """
    lead = space.lead
    running = [axis for axis in axes if axis is not None]
    own: list[int | None] = [None] * len(space.extents)
    if sorted(running) != list(range(len(lead))):
        return None
    for axis, rows in enumerate(axes):
        if rows is not None:
            own[lead[rows]] = axis
    rest = [axis for axis, rows in enumerate(axes) if rows is None]
    if all(shape[axis] == 1 for axis in rest):
        return tuple(own)
    if [shape[axis] for axis in rest] != [space.extents[axis] for axis in space.row]:
        return None
    for axis, element in zip(rest, space.row, strict=True):
        own[element] = axis
    return tuple(own)


def conflicts(flow: Flow) -> frozenset[int]:
    """Return the values of an anchor's colour that follow a reduction of what it computes.

    The anchor's kernel cannot compute them: it would wait for itself. So it would for another
    anchor without an epilogue.
    """
    barriers: dict[int, frozenset[int]] = {}
    refused = set()
    for node in flow.graph:
        barriers[node] = _barriers(flow, node, barriers)
        colour = flow.colour(node)
        if colour is None or flow.is_anchor(node):
            continue
        if any(flow.depends(barrier, colour) for barrier in barriers[node]):
            refused.add(node)
    return frozenset(refused)


def _is_barrier(flow: Flow, node: int) -> bool:
    """Tell whether what follows a value pointwise is computed by another kernel than its own."""
    is_opaque = flow.is_anchor(node) and not flow.maker(node).epilogue
    return is_opaque or is_reduction(flow.operation(node))


def _barriers(flow: Flow, node: int, known: Mapping[int, frozenset[int]]) -> frozenset[int]:
    """Return the values that ``node`` follows pointwise and behind which other kernels begin.

    ``known`` are those of its operands.
    """
    if _is_barrier(flow, node):
        return frozenset({node})
    if flow.is_anchor(node):
        return frozenset()
    return frozenset().union(*(known[use.node] for use in flow.below(flow.occurrence(node))))
