# SPDX-License-Identifier: MIT
"""Pooling in the IR: windows as one operation, or along each axis in turn.

Small windows are one operation, :data:`MAX_POOL` or :data:`AVG_POOL`, whose kernel moves the window
over the image. Others, and what gradients differentiate, are windows along one axis after the other
(:func:`maxima`, :func:`means`): the first, second... elements of all windows are read at indices,
and their maxima or sums computed element by element, along channels in vectors. Indices beyond the
axis are limited to it: a window that begins before the first element, or ends behind the last, has
that element itself, so its maximum is that of its elements; with dilation it takes -inf there. A
mean takes zeros.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, Protocol

import numpy as np

from cklang.ir.extents import EXTENT
from cklang.ir.indices import ARANGE, TAKE
from cklang.ir.nodes import Attr, Operation, Value
from cklang.ir.numeric import Array
from cklang.ir.rules import AttrMap, DTypeRule, Shape, ShapeRule
from cklang.types import DType, Extent, bf16, f16, f32

MAX_POOL, AVG_POOL = "max_pool", "avg_pool"

MOST_ELEMENTS = 64
"""Elements of a window that is one operation, at most."""

_MOST_BESIDE = 2
"""Axes beside those of the windows: images and channels."""


class Appender(Protocol):
    """What operations are appended to."""

    def append(self, op: str, *operands: Value, shape: Shape | None = None, **attrs: Attr) -> Value:
        """Append an operation and return its result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """Windows along one axis: so many of ``size`` elements, each ``step`` behind the one before.

    Elements of a window are ``dilation`` apart.
    """

    axis: int
    count: Extent
    size: int
    step: int
    before: int
    """How far the first window begins before the axis, and the last one may end behind it."""
    dilation: int = 1


def window_count(extent: Extent, size: int, step: int, before: int, dilation: int = 1) -> Extent:
    """Return how many windows an axis has; below 1 if not even one fits.

    Example:
        >>> window_count(112, size=3, step=2, before=1)
        56
    """
    reach = (size - 1) * dilation + 1
    count: Extent = (extent + (2 * before - reach)) // step + 1
    return count


def max_pooled(to: Appender, x: Value, along: Sequence[Windows]) -> Value:
    """Return the largest element of each window, in the dtype of ``x``."""
    return _pooled(to, x, along, MAX_POOL) if is_small(x, along) else maxima(to, x, along)


def avg_pooled(to: Appender, x: Value, along: Sequence[Windows], *, counts_padding: bool) -> Value:
    """Return the mean of each window in f32.

    If ``counts_padding``, zeros beyond the axis count, else only the elements that there are.
    """
    if not is_small(x, along):
        return means(to, x, along, counts_padding=counts_padding)
    return _pooled(to, x, along, AVG_POOL, padding=int(counts_padding))


def is_small(x: Value, along: Sequence[Windows]) -> bool:
    """Tell whether windows are one operation."""
    beside = x.type.rank - len(along)
    return beside <= _MOST_BESIDE and math.prod(windows.size for windows in along) <= MOST_ELEMENTS


def _pooled(to: Appender, x: Value, along: Sequence[Windows], op: str, **more: Attr) -> Value:
    """Append the operation of all windows."""
    shape = list(x.type.shape)
    for windows in along:
        shape[windows.axis] = windows.count
    rows = ((own.axis, own.size, own.step, own.before, own.dilation) for own in along)
    columns = zip(*rows, strict=True)
    attrs: dict[str, Attr] = dict(zip(_ATTRS, columns, strict=True))
    return to.append(op, x, shape=tuple(shape), **attrs, **more)


_ATTRS = ("axes", "size", "step", "before", "dilation")


def windows_of(operation: Operation) -> tuple[Windows, ...]:
    """Return the windows of an operation that pools."""
    columns = (operation.attr(name) for name in _ATTRS)
    rows = zip(*(column for column in columns if isinstance(column, tuple)), strict=True)
    return tuple(
        Windows(
            axis=axis,
            count=operation.result.type.shape[axis],
            size=size,
            step=step,
            before=before,
            dilation=dilation,
        )
        for axis, size, step, before, dilation in (map(int, map(str, row)) for row in rows)
    )


def expanded(to: Appender, operation: Operation, x: Value) -> Value:
    """Return what an operation makes of ``x``, along one axis after the other."""
    along = windows_of(operation)
    if operation.op == MAX_POOL:
        return maxima(to, x, along)
    return means(to, x, along, counts_padding=bool(operation.attr("padding")))


def maxima(to: Appender, x: Value, along: Sequence[Windows]) -> Value:
    """Return :func:`max_pooled` along one axis after the other."""
    dtype = x.type.dtype
    for windows in along:
        apart = windows.dilation > 1
        taps = [
            _within(to, x, windows, place, -math.inf) if apart else _tap(to, x, windows, place)
            for place in _places(to, windows)
        ]
        x = _cast(to, reduce(partial(to.append, "maximum"), taps), dtype)
    return x


def means(to: Appender, x: Value, along: Sequence[Windows], *, counts_padding: bool) -> Value:
    """Return :func:`avg_pooled` along one axis after the other."""
    for windows in along:
        places = list(_places(to, windows))
        if windows.before:
            taps = [_within(to, x, windows, place, 0.0) for place in places]
        else:
            taps = [_tap(to, x, windows, place) for place in places]
        total = reduce(partial(to.append, "add"), taps)
        if windows.before and not counts_padding:
            inside = (_cast(to, _inside(to, x, windows, place), f32) for place in places)
            count = reduce(partial(to.append, "add"), inside)
        else:
            count = to.append("constant", value=float(windows.size))
        axes = (windows.axis,) * count.type.rank
        x = to.append("div", total, _spread(to, count, total.type.shape, axes))
    return x


def _tap(to: Appender, x: Value, windows: Windows, place: Value) -> Value:
    """Return the element at an index of each window, in f32."""
    return _cast(to, to.append(TAKE, x, place, axis=windows.axis), f32)


def _within(to: Appender, x: Value, windows: Windows, place: Value, fill: float) -> Value:
    """Return the element at an index of each window, or a number where there is none."""
    tap = _tap(to, x, windows, place)
    is_element = _spread(to, _inside(to, x, windows, place), tap.type.shape, (windows.axis,))
    return to.append("where", is_element, tap, _number(to, fill, tap.type.shape))


def _places(to: Appender, windows: Windows) -> Iterator[Value]:
    """Yield, for each element of a window, its index in every window."""
    shape = (windows.count,)
    starts = to.append(ARANGE, shape=shape)
    if windows.step != 1:
        starts = to.append("mul", starts, _number(to, windows.step, shape))
    for number in range(windows.size):
        tap = number * windows.dilation - windows.before
        yield to.append("add", starts, _number(to, tap, shape)) if tap else starts


def _inside(to: Appender, x: Value, windows: Windows, places: Value) -> Value:
    """Return which indices are those of elements."""
    extent, shape = to.append(EXTENT, x, axis=windows.axis), places.type.shape
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


# --- the operations


def windowed(
    x: Array,
    fill: float,
    axes: Sequence[int],
    size: Sequence[int],
    step: Sequence[int],
    before: Sequence[int],
    dilation: Sequence[int],
) -> Array:
    """Return the elements of all windows, along as many axes more as windows have.

    Example:
        >>> windowed(np.arange(4.0), 9, [0], [3], [2], [1], [1])
        array([[9., 0., 1.],
               [1., 2., 3.]])
    """
    pads, steps = [(0, 0)] * x.ndim, [slice(None)] * x.ndim
    reach = [(own - 1) * apart + 1 for own, apart in zip(size, dilation, strict=True)]
    inner = [slice(None, None, apart) for apart in dilation]
    for axis, every, own in zip(axes, step, before, strict=True):
        pads[axis], steps[axis] = (own, own), slice(None, None, every)
    padded = np.pad(x, pads, constant_values=fill)
    windows = np.lib.stride_tricks.sliding_window_view(padded, tuple(reach), tuple(axes))
    return np.asarray(windows[(*steps, *inner)])


def largest(x: Array, *, shape: object = None, **windows: Any) -> Array:
    """Return the largest element of each window."""
    del shape  # it follows from the windows
    elements = windowed(x, -np.inf, **windows)
    return np.asarray(elements.max(axis=_last(windows["axes"])))


def mean(x: Array, *, padding: int, shape: object = None, **windows: Any) -> Array:
    """Return the mean of each window."""
    del shape
    total = windowed(x, 0, **windows).sum(axis=_last(windows["axes"]))
    return np.asarray(total / counted(x.shape, padding, **windows).astype(x.dtype))


def counted(shape: Sequence[int], padding: int, **windows: Any) -> Array:
    """Return how many elements the mean of each window is of; with ``padding`` those beyond too."""
    ones = windowed(np.ones(shape), float(padding), **windows)
    return np.asarray(ones.sum(axis=_last(windows["axes"])))


def _last(axes: Sequence[int]) -> tuple[int, ...]:
    return tuple(range(-len(axes), 0))


def _shape(shapes: tuple[Shape, ...], attrs: AttrMap, declared: Shape | None) -> Shape | None:
    (shape,), columns = shapes, (attrs[name] for name in _ATTRS)
    extents: dict[int, Extent | None] = dict(enumerate(shape))
    for axis, *windows in zip(*columns, strict=True):
        extents[axis] = _count(extents.get(axis), *windows)
    return declared if tuple(extents.values()) == declared else None


def _count(
    extent: Extent | None, size: int, step: int, before: int, dilation: int
) -> Extent | None:
    """Return how many windows an axis has; None if there is no axis, or none fits."""
    if extent is None or min(size, step, dilation) < 1 or 2 * before not in range(size + 1):
        return None
    count = window_count(extent, size, step, before, dilation)
    return None if isinstance(count, int) and count < 1 else count


POOL_SHAPE = ShapeRule(
    text="each axis of `axes` has (extent + 2 before - dilation (size - 1) - 1) // step + 1 "
    "windows, one or more, `before` at most half of `size`; the others stay",
    apply=_shape,
    declared=True,
)


def _dtype(result: DType | None) -> DTypeRule:
    floats = (f16, bf16, f32)
    what = "as its operand" if result is None else f"in {result}"
    return DTypeRule(
        text=f"f16, bf16 or f32, {what}",
        apply=lambda dtypes, _attrs: (result or dtypes[0]) if dtypes[0] in floats else None,
    )


POOL_DTYPES = {MAX_POOL: _dtype(None), AVG_POOL: _dtype(f32)}
