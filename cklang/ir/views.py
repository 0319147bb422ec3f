# SPDX-License-Identifier: MIT
"""The ops ``slice``, ``reshape`` and ``apart``: other names for elements that are in memory.

What their operand is decides a call: a slice's bounds must lie in its axes, a reshaped tensor must
have as many elements. The shape of the result is written; :func:`check` compares.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from cklang.errors import error
from cklang.ir.nodes import Attr, Function, Operation
from cklang.ir.numeric import Array
from cklang.ir.rules import Shape, ShapeRule
from cklang.types import Dim, Extent, extent_from_text, extent_value

VIEWS = SLICE, RESHAPE, APART = "slice", "reshape", "apart"
"""The names of the ops."""

BY_COST = -1
"""The number of an ``apart`` that is no called op: the cost model has the value stored."""

BOUND_NAMES = ("start", "stop")
"""The attributes of a slice that may depend on dims."""


def sliced(
    x: Array,
    axes: Sequence[int],
    start: Sequence[int],
    stop: Sequence[int],
    step: Sequence[int],
    shape: Sequence[int],
) -> Array:
    """Return part of an array; axes that are not in ``axes`` have one element, and vanish."""
    part = x[tuple(map(slice, start, stop, step))]
    return np.reshape(part, tuple(shape))


def apart(x: Array, call: int) -> Array:
    """Return an array as it is: ``call``, the number of a called op, decides about kernels only."""
    return x


def reshaped(x: Array, shape: Sequence[int]) -> Array:
    """Return an array's elements in order, in another shape."""
    return np.reshape(x, tuple(shape))


def written(extent: Extent) -> Attr:
    """Return an extent as attributes hold it: a number, or the text of what gives one."""
    return extent if isinstance(extent, int) else str(extent)


def bounds_of(operation: Operation, name: str) -> tuple[Extent, ...]:
    """Return the bounds of a slice along each axis of its operand."""
    attr = operation.attr(name)
    items = attr if isinstance(attr, tuple) else ()
    return tuple(extent_from_text(item) if isinstance(item, str) else _int(item) for item in items)


def steps_of(operation: Operation) -> tuple[int, ...]:
    """Return the step of a slice along each axis of its operand."""
    attr = operation.attr("step")
    return tuple(map(_int, attr)) if isinstance(attr, tuple) else ()


def kept_axes(operation: Operation) -> tuple[int, ...]:
    """Return the axes of its operand that the result of a slice has."""
    attr = operation.attr("axes")
    return tuple(map(_int, attr)) if isinstance(attr, tuple) else ()


def _int(item: object) -> int:
    return item if isinstance(item, int) else 0


def _slice_shape(
    shapes: tuple[Shape, ...], attrs: Mapping[str, Attr], declared: Shape | None
) -> Shape | None:
    axes, *lists = (attrs[name] for name in ("axes", "start", "stop", "step"))
    if declared is None or not isinstance(axes, tuple):
        return None
    kept = [axis for axis in axes if isinstance(axis, int)]
    each_axis = all(isinstance(part, tuple) and len(part) == len(shapes[0]) for part in lists)
    rises = kept == sorted(set(kept)) and all(0 <= axis < len(shapes[0]) for axis in kept)
    steps = attrs["step"]
    forward = isinstance(steps, tuple) and all(_int(step) > 0 for step in steps)
    return declared if each_axis and rises and forward and len(declared) == len(kept) else None


SLICE_SHAPE = ShapeRule(
    text="start, stop and step with an entry for each operand axis, steps above 0; axes rises: the "
    "operand axis of each result axis, of the others one element is taken",
    apply=_slice_shape,
    declared=True,
)
RESHAPE_SHAPE = ShapeRule(
    text="any shape with as many elements",
    apply=lambda _shapes, _attrs, declared: declared,
    declared=True,
)


def has_views(function: Function) -> bool:
    """Tell whether a function has views, used or not."""
    return any(operation.op in VIEWS for operation in function.body)


def check(operation: Operation, dims: Mapping[str, int]) -> None:
    """Check the extents of one use of these ops.

    Raises:
        CkValueError: I036, a bound lies outside its axis; I037, the result has another extent;
            I038, a reshaped tensor another number of elements.
    """
    if operation.op == SLICE:
        _check_slice(operation, dims)
    elif operation.op == RESHAPE:
        before, after = (
            value.type.extents(dims) for value in (operation.operands[0], operation.result)
        )
        if math.prod(before) != math.prod(after) or any(extent < 0 for extent in after):
            raise error(
                "I038",
                at=operation.span,
                got=list(before),
                count=math.prod(before),
                want=list(after),
                type=operation.result.type,
            )


def _check_slice(operation: Operation, dims: Mapping[str, int]) -> None:
    shape = operation.operands[0].type.shape
    steps, bounds = steps_of(operation), [bounds_of(operation, name) for name in BOUND_NAMES]
    # An axis that is taken as it is fits, whatever its extent. Sizes may be torch's symbols, of
    # which a comparison takes as long as a launch.
    is_whole = [
        part == (0, extent, 1)
        for part, extent in zip(zip(*bounds, steps, strict=True), shape, strict=True)
    ]
    counts: dict[int, int] = {}
    for axis, (first, last, step) in enumerate(zip(*bounds, steps, strict=True)):
        if is_whole[axis]:
            continue
        low, high, extent = (extent_value(bound, dims) for bound in (first, last, shape[axis]))
        counts[axis] = -(-(high - low) // step) if step != 1 else high - low
        if not 0 <= low <= high <= extent:
            name = shape[axis] if isinstance(shape[axis], Dim) else f"axis {axis}"
            raise error(
                "I036", at=operation.span, low=low, high=high, axis=axis, name=name, extent=extent
            )
    kept = kept_axes(operation)
    result = operation.result.type
    wanted: list[tuple[int, Extent]] = [
        (extent_value(shape[axis], dims) if is_whole[axis] else counts[axis], extent)
        for axis, extent in zip(kept, result.shape, strict=True)
        if not (is_whole[axis] and extent == shape[axis])
    ]
    wanted += [
        (extent_value(shape[axis], dims) if is_all else counts[axis], 1)
        for axis, is_all in enumerate(is_whole)
        if axis not in kept
    ]
    for count, declared in wanted:
        number = extent_value(declared, dims)
        if count != number:
            raise error("I037", at=operation.span, got=count, extent=declared, want=number)
