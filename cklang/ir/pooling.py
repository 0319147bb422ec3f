# SPDX-License-Identifier: MIT
"""Pooling as operations of the IR: windows along each axis in turn, each one number.

The first, second... elements of all windows are read at indices, and their maxima or sums computed
element by element, along channels in vectors. So windows overlap as they like. Indices beyond the
axis are limited to it: a window that begins before the first element, or ends behind the last, has
that element itself, so its maximum is that of its elements. A mean takes zeros there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Protocol

from cklang.ir.extents import EXTENT
from cklang.ir.indices import ARANGE, TAKE
from cklang.ir.nodes import Attr, Value
from cklang.ir.rules import Shape
from cklang.types import DType, Extent, f32


class Appender(Protocol):
    """What operations are appended to."""

    def append(self, op: str, *operands: Value, shape: Shape | None = None, **attrs: Attr) -> Value:
        """Append an operation and return its result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """Windows along one axis: so many of ``size`` elements, each ``step`` behind the one before."""

    axis: int
    count: Extent
    size: int
    step: int
    before: int
    """How far the first window begins before the axis, and the last one may end behind it."""


def window_count(extent: Extent, size: int, step: int, before: int) -> Extent:
    """Return how many windows an axis has; below 1 if not even one fits.

    Example:
        >>> window_count(112, size=3, step=2, before=1)
        56
    """
    count: Extent = (extent + (2 * before - size)) // step + 1
    return count


def max_pooled(to: Appender, x: Value, along: Sequence[Windows]) -> Value:
    """Return the largest element of each window, in the dtype of ``x``."""
    dtype = x.type.dtype
    for each in along:
        taps = [_tap(to, x, each, place) for place in _places(to, each)]
        x = _cast(to, reduce(partial(to.append, "maximum"), taps), dtype)
    return x


def avg_pooled(to: Appender, x: Value, along: Sequence[Windows], *, counts_padding: bool) -> Value:
    """Return the mean of each window in f32.

    If ``counts_padding``, zeros beyond the axis count, else only the elements that there are.
    """
    for each in along:
        extent = to.append(EXTENT, x, axis=each.axis)
        taps, counts = list[Value](), list[Value]()
        for place in _places(to, each):
            tap = _tap(to, x, each, place)
            if each.before:
                inside = _inside(to, place, extent)
                counts.append(_cast(to, inside, f32))
                is_element = _spread(to, inside, tap.type.shape, (each.axis,))
                tap = to.append("where", is_element, tap, _number(to, 0.0, tap.type.shape))
            taps.append(tap)
        total = reduce(partial(to.append, "add"), taps)
        if counts and not counts_padding:
            count = reduce(partial(to.append, "add"), counts)
        else:
            count = to.append("constant", value=float(each.size))
        axes = (each.axis,) * count.type.rank
        x = to.append("div", total, _spread(to, count, total.type.shape, axes))
    return x


def _tap(to: Appender, x: Value, windows: Windows, place: Value) -> Value:
    """Return the element at an index of each window, in f32."""
    return _cast(to, to.append(TAKE, x, place, axis=windows.axis), f32)


def _places(to: Appender, windows: Windows) -> Iterator[Value]:
    """Yield, for each element of a window, its index in every window."""
    shape = (windows.count,)
    starts = to.append(ARANGE, shape=shape)
    if windows.step != 1:
        starts = to.append("mul", starts, _number(to, windows.step, shape))
    for tap in range(-windows.before, windows.size - windows.before):
        yield to.append("add", starts, _number(to, tap, shape)) if tap else starts


def _inside(to: Appender, places: Value, extent: Value) -> Value:
    """Return which indices are those of elements."""
    shape = places.type.shape
    first = to.append("ge", places, _number(to, 0, shape))
    last = to.append("lt", places, _spread(to, extent, shape, ()))
    return to.append("logical_and", first, last)


def _number(to: Appender, value: float, shape: Shape) -> Value:
    return _spread(to, to.append("constant", value=value), shape, ())


def _spread(to: Appender, value: Value, shape: Shape, dims: tuple[int, ...]) -> Value:
    if value.type.shape == shape:
        return value
    return to.append("broadcast", value, shape=shape, dims=dims)


def _cast(to: Appender, value: Value, dtype: DType) -> Value:
    return value if value.type.dtype == dtype else to.append("cast", value, to=dtype)
