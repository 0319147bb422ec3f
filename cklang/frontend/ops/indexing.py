# SPDX-License-Identifier: MIT
"""Indices of tensors: ``x[:, None]`` adds axes, ``x[..., 1:K//2]`` takes part of one, ``x[0]``.

A part of a tensor is the op ``slice``. Bounds are integers and extents, so the result's extents are
computed from those of the operand.
"""

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from cklang.dims import is_extent, is_integer
from cklang.errors import error
from cklang.frontend import emit
from cklang.frontend.scope import Scope
from cklang.frontend.subset import is_ellipsis
from cklang.frontend.text import Located
from cklang.frontend.values import Item, Tensor, describe
from cklang.ir.indices import TAKE, TAKE_DTYPE
from cklang.ir.views import SLICE, written
from cklang.types import Extent


@dataclass(frozen=True, slots=True)
class _Range:
    """What is taken of one axis: elements ``start``, ``start + step``, … before ``stop``."""

    start: Extent
    stop: Extent
    step: int = 1
    is_element: bool = False
    """Whether it is one element, and the axis vanishes."""
    declared: Extent | None = None
    """How many elements there are, as the call must make it true."""

    @property
    def count(self) -> Extent:
        """How many elements it has."""
        if self.declared is not None:
            return self.declared
        count: Extent = (self.stop - self.start + (self.step - 1)) // self.step
        return count

    def is_all(self, extent: Extent) -> bool:
        """Tell whether it is the whole axis, as it is."""
        return (self.start, self.stop, self.step, self.is_element) == (0, extent, 1, False)


def view(scope: Scope, node: ast.Subscript, tensor: Tensor) -> Tensor:
    """Index a tensor with slices, extents, None and one ``...``, which stands for other axes.

    Raises:
        CkSyntaxError: F053 for something that is no index.
        CkValueError: F054 for too many of them, F069 for bounds outside of an axis.
    """
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    items = [... if is_ellipsis(part) else scope.evaluate(scope, part) for part in parts]
    ellipses = [part for part in parts if is_ellipsis(part)]
    if len(ellipses) > 1:
        raise scope.error("F053", ellipses[1], words=scope.words(node.slice))
    rank = len(tensor.shape)
    named = sum(item is not None and item is not ... for item in items)
    if named > rank:
        raise scope.error("F054", node, got=named, type=tensor.type, rank=rank)
    indices = next((item for item in items if isinstance(item, Tensor)), None)
    if indices is not None:
        return _gathered(scope, node, tensor, items, parts)
    # As in NumPy, axes that the index does not name follow at the end.
    index = items if ellipses else [*items, ...]
    nodes: list[ast.expr] = [*parts, *[node][: len(index) - len(parts)]]
    ranges: list[_Range] = []
    order: list[int | None] = []
    for item, part in zip(index, nodes, strict=True):
        if item is None:
            order.append(None)
            continue
        count = rank - named if item is ... else 1
        for _ in range(count):
            extent = tensor.shape[len(ranges)]
            taken = _Range(0, extent) if item is ... else _range(scope, part, item, extent)
            order += [] if taken.is_element else [len(ranges)]
            ranges.append(taken)
    return _with_new_axes(_part_of(scope, node, tensor, ranges), ranges, order)


def _gathered(
    scope: Scope,
    node: ast.Subscript,
    tensor: Tensor,
    items: Sequence[Item],
    parts: Sequence[ast.expr],
) -> Tensor:
    """Return ``x[:, indices]``: one index is a tensor, and the others take whole axes."""
    axis = 0
    places: Tensor | None = None
    for at, (item, part) in enumerate(zip(items, parts, strict=True)):
        if isinstance(item, Tensor) and places is None:
            places = item
        elif item is ...:
            axis += (len(tensor.shape) - len(items) + 1) if places is None else 0
        elif item == slice(None):
            axis += places is None
        else:
            advice = "beside an index that is a tensor, write : for whole axes, and index again"
            raise scope.error("F053", parts[at], advice, words=scope.words(part))
    if places is None:
        raise error("Z002", what="an index is no tensor")
    return taken_along(scope, node, tensor, places, axis)


def taken_along(scope: Scope, node: Located, tensor: Tensor, indices: Tensor, axis: int) -> Tensor:
    """Return a tensor at indices along an axis.

    Raises:
        CkTypeError: F066 for indices that are no integers, or a tensor that is not read at indices.
    """
    indices = emit.widened(scope, node, indices)
    if TAKE_DTYPE.apply((tensor.dtype, indices.dtype), {}) is None:
        problem = f"{tensor.dtype} at indices of {indices.dtype} is not read"
        place = emit.first_float(scope, indices) or node
        raise scope.error("F066", place, op="take", problem=problem, advice=TAKE_DTYPE.text)
    value = scope.unit.append(
        TAKE,
        emit.materialise(scope, node, tensor),
        emit.materialise(scope, node, indices),
        attrs={"axis": axis},
        span=scope.span(node),
    )
    origins = [*tensor.origins[:axis], *indices.origins, *tensor.origins[axis + 1 :]]
    return Tensor.plain(value, origins)


def _range(scope: Scope, node: ast.expr, item: Item, extent: Extent) -> _Range:
    """Return what an index takes of an axis."""
    if not isinstance(item, slice):
        start = _bound(scope, node, item, extent, 0)
        return _checked(scope, node, _Range(start, start + 1, 1, is_element=True), extent)
    step = 1 if item.step is None else item.step
    if not is_integer(step) or step < 1:
        raise scope.error("F053", node, words=scope.words(node))
    start = _bound(scope, node, item.start, extent, 0)
    stop = _bound(scope, node, item.stop, extent, extent)
    return _checked(scope, node, _Range(start, stop, step), extent)


def _bound(scope: Scope, node: ast.expr, item: Item, extent: Extent, default: Extent) -> Extent:
    if item is None:
        return default
    if not is_extent(item):
        if isinstance(item, Tensor):
            raise scope.error("F053", node, f"it is {describe(item)}", words=scope.words(node))
        raise scope.error("F053", node, words=scope.words(node))
    if isinstance(item, int) and item < 0:
        return extent + item
    return item


def _checked(scope: Scope, node: ast.expr, taken: _Range, extent: Extent) -> _Range:
    """Return ``taken``; bounds that are known to leave the axis are refused."""
    distances = (taken.start, taken.stop - taken.start, extent - taken.stop)
    if any(isinstance(distance, int) and distance < 0 for distance in distances):
        raise scope.error("F069", node, words=scope.words(node), extent=extent)
    return taken


def part_along(
    scope: Scope,
    node: Located,
    tensor: Tensor,
    axis: int,
    bounds: tuple[Extent, Extent],
    extent: Extent,
) -> Tensor:
    """Return elements from one bound to another of an axis, which the call must make ``extent``."""
    ranges = [_Range(0, size) for size in tensor.shape]
    ranges[axis] = _Range(*bounds, declared=extent)
    return _part_of(scope, node, tensor, ranges)


def _part_of(scope: Scope, node: Located, tensor: Tensor, ranges: Sequence[_Range]) -> Tensor:
    """Return part of a tensor, with a range for each of its axes; single elements keep no axis."""
    pairs = list(zip(ranges, tensor.shape, strict=True))
    if all(taken.is_all(extent) for taken, extent in pairs):
        return tensor
    if tensor.dtype.packed:
        raise scope.error("F053", node, "two elements share a byte", words=scope.words(node))
    axes = tuple(axis for axis, taken in enumerate(ranges) if not taken.is_element)
    extents = [
        extent if taken.is_all(extent) else scope.unit.derived.extent(taken.count)
        for taken, extent in pairs
    ]
    value = scope.unit.append(
        SLICE,
        emit.materialise(scope, node, tensor),
        attrs={
            "axes": axes,
            "start": tuple(written(taken.start) for taken in ranges),
            "stop": tuple(written(taken.stop) for taken in ranges),
            "step": tuple(taken.step for taken in ranges),
        },
        shape=tuple(extents[axis] for axis in axes),
        span=scope.span(node),
    )
    words = f"a part of {tensor.type}"
    origins = [
        origin if taken.is_all(extent) else f"{words}, {origin}"
        for (taken, extent), origin in zip(pairs, tensor.origins, strict=True)
    ]
    return Tensor.plain(value, [origins[axis] for axis in axes])


def _with_new_axes(tensor: Tensor, ranges: Sequence[_Range], order: Sequence[int | None]) -> Tensor:
    """Return a tensor with an axis of extent 1 at each None of ``order``."""
    kept = [axis for axis, taken in enumerate(ranges) if not taken.is_element]
    place = {kept.index(axis): at for at, axis in enumerate(order) if axis is not None}
    at = {there: axis for axis, there in place.items()}
    new = "the axis that None adds"
    count = range(len(order))
    return Tensor(
        value=tensor.value,
        shape=tuple(tensor.shape[at[axis]] if axis in at else 1 for axis in count),
        axes=tuple(place[axis] for axis in tensor.axes),
        origins=tuple(tensor.origins[at[axis]] if axis in at else new for axis in count),
    )
