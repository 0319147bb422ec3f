# SPDX-License-Identifier: MIT
"""``ck.max_pool`` and ``ck.avg_pool``: the windows of an image, reduced to one number each.

:func:`read_windows` has the rules of their arguments, which calls outside of programs share.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from cklang.dims import is_integer
from cklang.frontend import emit
from cklang.frontend.intrinsics import function
from cklang.frontend.ops.arrays import accumulated
from cklang.frontend.ops.axes import read_flag
from cklang.frontend.ops.conv_arguments import layout_of
from cklang.frontend.scope import Scope
from cklang.frontend.text import Located
from cklang.frontend.values import Item, Tensor, describe
from cklang.ir.nodes import Attr, Value
from cklang.ir.numeric import Array
from cklang.ir.pooling import Windows, avg_pooled, max_pooled, window_count
from cklang.ir.reductions import MOST_AXES
from cklang.ir.rules import Shape
from cklang.types import Extent, bf16, f16, f32, plain_dims

__all__ = ["avg_pool", "max_pool"]

_DTYPES = (f16, bf16, f32)


def read_windows(
    shape: Sequence[Extent],
    window: Item,
    stride: Item,
    padding: Item,
    layout: Item,
    dilation: Item = 1,
) -> list[Windows]:
    """Return the windows along each axis in space.

    Raises:
        ValueError: With the problem and what to do about it.
    """
    named = layout_of(layout, (len(shape),))
    rank, least = len(shape), 3
    if not least <= rank <= MOST_AXES or (named is not None and named.apart):
        raise ValueError(
            f"x has {rank} axes", "legal: one to three axes in space beside a batch and channels"
        )
    first = 2 if named is not None and named.first else 1
    axes = range(first, first + rank - 2)
    sizes = _numbers("window", window, len(axes), 1)
    steps = sizes if stride is None else _numbers("stride", stride, len(axes), 1)
    pads = _numbers("padding", padding, len(axes), 0)
    apart = _numbers("dilation", dilation, len(axes), 1)
    return [
        _windows(shape, axis, *numbers)
        for axis, *numbers in zip(axes, sizes, steps, pads, apart, strict=True)
    ]


def _windows(
    shape: Sequence[Extent], axis: int, size: int, step: int, before: int, dilation: int
) -> Windows:
    """Return the windows along one axis."""
    if 2 * before > size:
        raise ValueError(
            f"padding {before} is more than half of a window of {size}",
            "legal: at most half, so that each window has an element",
        )
    count = window_count(shape[axis], size, step, before, dilation)
    if isinstance(count, int) and count < 1:
        raise ValueError(
            f"a window of {(size - 1) * dilation + 1} is longer than axis {axis} of {shape[axis]}",
            "make it shorter, or pad by up to half of it",
        )
    return Windows(axis=axis, count=count, size=size, step=step, before=before, dilation=dilation)


def _numbers(name: str, item: Item, count: int, least: int) -> tuple[int, ...]:
    """Return an integer for each axis; one stands for all."""
    items = item if isinstance(item, tuple | list) else (item,) * count
    numbers = tuple(filter(is_integer, items))
    if len(numbers) == len(items) == count and min(numbers) >= least:
        return numbers
    raise ValueError(
        f"{name} is {describe(item)}", f"legal: an integer from {least}, or one for each of {count}"
    )


def _windowed(array: Array, windows: Windows) -> tuple[Array, Array]:
    """Return the elements of windows along an axis, and which of them there are."""
    starts = np.arange(int(str(windows.count)))[:, None] * windows.step - windows.before
    places = starts + np.arange(windows.size) * windows.dilation
    extent = array.shape[windows.axis]
    elements = np.take(array, np.clip(places, 0, extent - 1), windows.axis)
    return elements, (places >= 0) & (places < extent)


def _maxima(x: Any, window: Any, stride: Any, padding: Any, layout: Any, dilation: Any) -> Array:
    array = np.asarray(x)
    for along in read_windows(array.shape, window, stride, padding, layout, dilation):
        elements, inside = _windowed(array, along)
        after = (1,) * (array.ndim - 1 - along.axis)
        elements = np.where(inside.reshape(*inside.shape, *after), elements, -np.inf)
        array = elements.max(axis=along.axis + 1).astype(array.dtype)
    return array


@function(
    "the largest element of each window, in the dtype of x",
    eager=_maxima,
    example="""
    >>> x = np.arange(6.0).reshape(1, 6, 1)
    >>> ck.max_pool(x, 3, stride=2, padding=1)[0, :, 0]
    array([1., 3., 5.])
    """,
    has_windows=True,
)
def max_pool(
    scope: Scope,
    node: Located,
    x: Item,
    window: Item,
    stride: Item = None,
    padding: Item = 0,
    layout: Item = "",
    dilation: Item = 1,
) -> Tensor:
    """Return the largest element of each window.

    Raises:
        CkTypeError: F066 for something else than a tensor of f16, bf16 or f32.
        ValueError: Windows that do not fit, with what to do about it.
    """
    pool = _Pool.of(scope, node, "max_pool", x, (window, stride, padding, layout, dilation))
    return pool.result(max_pooled(pool, pool.value, pool.windows))


def _means(
    x: Any, window: Any, stride: Any, padding: Any, layout: Any, count_include_pad: Any
) -> Array:
    array = accumulated(x)
    for along in read_windows(array.shape, window, stride, padding, layout):
        elements, inside = _windowed(array, along)
        after = (1,) * (array.ndim - 1 - along.axis)
        total = (elements * inside.reshape(*inside.shape, *after)).sum(axis=along.axis + 1)
        counts = np.full(len(inside), along.size) if count_include_pad else inside.sum(axis=1)
        array = total / counts.reshape(-1, *after).astype(array.dtype)
    return array


@function(
    "the mean of each window, in f32",
    eager=_means,
    example="""
    >>> x = np.arange(6.0).reshape(1, 6, 1)
    >>> ck.avg_pool(x, 3, stride=2, padding=1, count_include_pad=False)[0, :, 0]
    array([0.5, 2. , 4. ])
    """,
    has_windows=True,
)
def avg_pool(
    scope: Scope,
    node: Located,
    x: Item,
    window: Item,
    stride: Item = None,
    padding: Item = 0,
    layout: Item = "",
    count_include_pad: Item = True,
) -> Tensor:
    """Return the mean of each window; errors as of :func:`max_pool`."""
    padded = read_flag("count_include_pad", count_include_pad)
    pool = _Pool.of(scope, node, "avg_pool", x, (window, stride, padding, layout))
    return pool.result(avg_pooled(pool, pool.value, pool.windows, counts_padding=padded))


class _Pool(NamedTuple):
    """A call: what it reads, and where its operations are appended."""

    scope: Scope
    node: Located
    tensor: Tensor
    value: Value
    windows: list[Windows]

    @classmethod
    def of(
        cls, scope: Scope, node: Located, name: str, x: Item, arguments: tuple[Item, ...]
    ) -> _Pool:
        if not isinstance(x, Tensor) or x.dtype not in _DTYPES:
            problem = f"it takes a tensor of f16, bf16 or f32, not {describe(x)}"
            raise scope.error(
                "F066", node, op=name, problem=problem, advice="cast it: x.to(ck.f32)"
            )
        windows = read_windows(x.shape, *arguments)
        for window in windows:
            for dim in plain_dims(window.count):
                emit.number(scope, node, dim)
        return cls(scope, node, x, emit.materialise(scope, node, x), windows)

    def append(self, op: str, *operands: Value, shape: Shape | None = None, **attrs: Attr) -> Value:
        """Append an operation at the place of the call."""
        span = self.scope.span(self.node)
        return self.scope.unit.append(op, *operands, attrs=attrs, shape=shape, span=span)

    def result(self, value: Value) -> Tensor:
        """Return a result, whose axes come from those of the operand."""
        return Tensor.plain(value, self.tensor.origins)
