# SPDX-License-Identifier: MIT
"""Where the views of a program lie: parts and other shapes of values that are in memory.

A view has the memory of the value that it is a view of, at strides of its own and an offset, so
whoever reads it reads that.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from cklang.device.arrays import alignment_of
from cklang.errors import error
from cklang.families.stage import Stage
from cklang.families.tensor_layout import TensorLayout, packed_strides
from cklang.fusion.placement import written_through
from cklang.fusion.sites import Axes, compose, identity, operand_axes
from cklang.ir.joins import CONCAT, axis_of
from cklang.ir.nodes import Function, Operation, Value
from cklang.ir.ops import OPS, Kind
from cklang.ir.views import APART, RESHAPE, bounds_of, kept_axes, steps_of
from cklang.types import extent_value


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryView:
    """The memory of a view."""

    memory: str
    """The value whose memory it is."""
    layout: TensorLayout
    offset: int = 0
    """Elements from that value's first one to the view's."""
    source: Value | None = None
    """For a value that its readers cannot read in place: what is copied into memory of its own."""

    @property
    def bytes(self) -> int:
        """The same in bytes."""
        return self.offset * self.layout.dtype.bytes


def views_of(
    function: Function,
    layouts: Mapping[str, TensorLayout],
    dims: Mapping[str, int],
    matrices: Collection[str] = (),
) -> dict[str, MemoryView]:
    """Return where each value of a program lies that has no memory of its own, by name.

    These are views, the parts of joins, and values that are written into a result of another
    shape. A reshaped value that no strides give has memory of its own, and so has its copy.

    Args:
        function: The program, as fusion has placed its values.
        layouts: Those of arguments, of results, and of what kernels write.
        dims: The extent of each dim.
        matrices: The names of values that need a contiguous axis: slices without one are
            copied too.
    """
    places = _written(function, layouts, dims)
    for operation in function.body:
        kind = OPS[operation.op].kind
        name = operation.result.name
        is_place = kind is Kind.VIEW or (kind is Kind.SHAPE and name not in layouts)
        if not is_place or name in places:
            continue
        below = _memory(operation.operands[0], places, layouts)
        if below is None:
            continue
        place = _placed(operation, below, dims)
        (source,) = operation.operands
        if place is not None and name in matrices and not _has_contiguous_axis(place.layout):
            source = Value(name=f"{name}_strided", type=operation.result.type)
            places[source.name] = place
            place = None
        if place is None:
            packed = TensorLayout.packed(operation.result, dims)
            place = MemoryView(memory=name, layout=packed, source=source)
            # The copy is written as the source is shaped, and read as the result is.
            copy = TensorLayout.packed(copy_of(operation.result, source), dims)
            places[copy.name] = MemoryView(memory=name, layout=copy)
        places[name] = place
    return places


def _has_contiguous_axis(layout: TensorLayout) -> bool:
    pairs = zip(layout.shape, layout.strides, strict=True)
    return any(stride == 1 or extent == 1 for extent, stride in pairs)


def copy_of(view: Value, source: Value) -> Value:
    """Return the value that a kernel writes for a reshaped one that must be copied."""
    return Value(name=f"{view.name}_copy", type=source.type)


def wanted_order(function: Function, value: Value) -> tuple[int, ...] | None:
    """Return the order of a temporary's axes in which reshaping it moves no data; None if any."""
    views: dict[str, Axes] = {value.name: identity(value.type.rank)}
    for operation in function.body:
        if len(operation.operands) != 1 or operation.operands[0].name not in views:
            continue
        own = views[operation.operands[0].name]
        if operation.op == "transpose":
            axes = operand_axes(operation, identity(operation.result.type.rank))
            views[operation.result.name] = compose(axes, own)
        elif operation.op == RESHAPE:
            return tuple(axis for axis in own if axis is not None)
    return None


def _memory(
    value: Value, places: Mapping[str, MemoryView], layouts: Mapping[str, TensorLayout]
) -> MemoryView | None:
    """Return where a value lies: in the memory of another one, or in its own."""
    if value.name in places:
        return places[value.name]
    if value.name in layouts:
        return MemoryView(memory=value.name, layout=layouts[value.name])
    return None


def _written(
    function: Function, layouts: Mapping[str, TensorLayout], dims: Mapping[str, int]
) -> dict[str, MemoryView]:
    """Return the places of what kernels write into the memory of other values."""
    places: dict[str, MemoryView] = {}
    through = {operation.result.name: name for name, operation in written_through(function).items()}
    for operation in reversed(function.body):
        result = operation.result
        if result.name in through:
            (source,) = operation.operands
            own = MemoryView(memory=result.name, layout=layouts[result.name])
            place = _reshaped(own, source.name, source.type.extents(dims))
            if place is None:
                shape, strides = own.layout.shape, own.layout.strides
                wanted = source.type.extents(dims)
                raise error("A058", shape=shape, strides=strides, wanted=wanted)
            places[source.name] = place
        elif OPS[operation.op].kind is Kind.PARTIAL:
            (source,) = operation.operands
            below = _memory(result, places, layouts) or MemoryView(
                memory=result.name, layout=TensorLayout.packed(result, dims)
            )
            places[result.name] = below
            # The kernel of the source writes a number for each block of a row.
            layout = replace(below.layout, name=source.name, shape=source.type.extents(dims))
            places[source.name] = replace(below, layout=layout)
        elif OPS[operation.op].kind is Kind.JOIN:
            joined = _memory(result, places, layouts) or MemoryView(
                memory=result.name, layout=TensorLayout.packed(result, dims)
            )
            places[result.name] = joined
            places |= _parts(operation, joined, dims)
    return places


def _parts(
    join: Operation, joined: MemoryView, dims: Mapping[str, int]
) -> Iterator[tuple[str, MemoryView]]:
    """Yield the places of the parts of a join."""
    axis, strides, first = axis_of(join), joined.layout.strides, 0
    own = strides if join.op == CONCAT else (*strides[:axis], *strides[axis + 1 :])
    for part in join.operands:
        shape = part.type.extents(dims)
        yield part.name, _at(joined, part.name, joined.offset + first * strides[axis], shape, own)
        first += shape[axis] if join.op == CONCAT else 1


def _placed(operation: Operation, below: MemoryView, dims: Mapping[str, int]) -> MemoryView | None:
    if OPS[operation.op].kind is Kind.SHAPE:
        return _moved(operation, below, dims)
    if operation.op == APART:
        return replace(below, layout=replace(below.layout, name=operation.result.name))
    if below.layout.prepared is not None:
        raise error("A052", name=below.layout.name)
    if operation.op == RESHAPE:
        return _reshaped(below, operation.result.name, operation.result.type.extents(dims))
    return _sliced(operation, below, dims)


def _moved(operation: Operation, below: MemoryView, dims: Mapping[str, int]) -> MemoryView:
    """Return a view with its axes in another order, or repeated along new ones."""
    shape = operation.result.type.extents(dims)
    axes = operand_axes(operation, tuple(range(len(shape))))
    strides = tuple(0 if axis is None else below.layout.strides[axis] for axis in axes)
    layout = replace(below.layout, name=operation.result.name, shape=shape, strides=strides)
    return replace(below, layout=layout)


def _reshaped(below: MemoryView, name: str, shape: tuple[int, ...]) -> MemoryView | None:
    strides = reshaped_strides(below.layout.shape, below.layout.strides, shape)
    return None if strides is None else _at(below, name, below.offset, shape, strides)


def reshaped_strides(
    shape: Sequence[int], strides: Sequence[int], wanted: Sequence[int]
) -> tuple[int, ...] | None:
    """Return the strides at which elements have another shape; None if no strides give it.

    Example:
        >>> reshaped_strides((2, 3, 4), (12, 4, 1), (6, 2, 2))
        (4, 2, 1)
        >>> reshaped_strides((2, 3), (1, 2), (6,)) is None
        True
    """
    if 0 in shape:
        return packed_strides(wanted, range(len(wanted)))
    # Axes that follow from each other are one.
    runs: list[tuple[int, int]] = []
    for count, stride in zip(shape, strides, strict=True):
        if count != 1:
            follows = runs and runs[-1][1] == count * stride
            runs.append((runs.pop()[0] * count if follows else count, stride))
    result: list[int] = []
    left, step = runs.pop() if runs else (1, 1)
    for extent in reversed(wanted):
        if left == 1 and extent != 1 and runs:
            left, step = runs.pop()
        if left % extent:
            return None
        result.append(step)
        left, step = left // extent, step * extent
    return tuple(reversed(result))


def _sliced(operation: Operation, below: MemoryView, dims: Mapping[str, int]) -> MemoryView:
    start = [extent_value(bound, dims) for bound in bounds_of(operation, "start")]
    steps = steps_of(operation)
    strides = below.layout.strides
    moved = sum(first * stride for first, stride in zip(start, strides, strict=True))
    return _at(
        below,
        operation.result.name,
        below.offset + moved,
        operation.result.type.extents(dims),
        tuple(steps[axis] * strides[axis] for axis in kept_axes(operation)),
    )


def _at(
    below: MemoryView, name: str, offset: int, shape: tuple[int, ...], strides: Sequence[int]
) -> MemoryView:
    size = below.layout.dtype.bytes
    # An offset of 0 is as well aligned as anything can be.
    alignment = min(below.layout.alignment, alignment_of((offset - below.offset) * size))
    layout = replace(
        below.layout, name=name, shape=shape, strides=tuple(strides), alignment=alignment
    )
    return MemoryView(memory=below.memory, layout=layout, offset=offset)


def in_memory(stage: Stage, views: Mapping[str, MemoryView]) -> Stage:
    """Return a launch that reads and writes memory in the place of views of it."""
    if not any(name in views for name in stage.values):
        return stage
    offsets = stage.offsets or (0,) * len(stage.values)
    moved = (views[name].bytes if name in views else 0 for name in stage.values)

    def memory(name: str) -> str:
        return views[name].memory if name in views else name

    return replace(
        stage,
        values=tuple(map(memory, stage.values)),
        offsets=tuple(a + b for a, b in zip(offsets, moved, strict=True)),
        written=frozenset(map(memory, stage.written)),
    )
