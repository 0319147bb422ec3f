# SPDX-License-Identifier: MIT
"""The functions that move elements, on NumPy arrays outside of programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from cklang.errors import error
from cklang.frontend.ops.movement import (
    full_shape,
    read_axis,
    read_parts,
    read_permutation,
    read_shape,
)
from cklang.frontend.ops.order import read_count
from cklang.frontend.ops.pooling import read_windows
from cklang.ir.order import argsorted
from cklang.ir.pooling import Windows
from cklang.ir.scatter import scattered, scattered_sum

__all__ = ["eager_movement"]


def eager_movement(name: str, arguments: Mapping[str, Any]) -> Any:
    """Return what a function that moves elements gives of arrays; their dtypes stay.

    Raises:
        CkValueError: F067, the arguments do not fit.
    """
    try:
        return _MOVES[name](**arguments)
    except ValueError as refusal:
        # NumPy's own refusals have no advice.
        problem, advice = refusal.args if len(refusal.args) == 2 else (refusal, "see its example")
        raise error("F067", op=name, problem=problem, advice=advice) from None


def _permute(x: Any, axes: Any) -> Any:
    array = np.asarray(x)
    return array.transpose(read_permutation(axes, array.ndim))


def _swapaxes(x: Any, axis1: Any, axis2: Any) -> Any:
    array = np.asarray(x)
    return array.swapaxes(read_axis(axis1, array.ndim), read_axis(axis2, array.ndim))


def _split(x: Any, parts: Any, axis: Any) -> tuple[Any, ...]:
    array = np.asarray(x)
    place = read_axis(axis, array.ndim)
    sizes = [int(str(size)) for size in read_parts(parts, array.shape[place])]
    return tuple(np.split(array, np.cumsum(sizes)[:-1], place))


def _reshape(x: Any, shape: Any) -> Any:
    array = np.asarray(x)
    return array.reshape([int(str(n)) for n in full_shape(array.shape, read_shape(shape))])


def _take(x: Any, indices: Any, axis: Any) -> Any:
    array = np.asarray(x)
    along = read_axis(axis, array.ndim)
    return np.take(array, _checked_indices(indices, array.shape[along], along), along)


def _checked_indices(indices: Any, extent: int, axis: int) -> Any:
    """Return indices as an array, each one of the axis."""
    places = np.asarray(indices)
    if places.dtype.kind not in "iu":
        raise ValueError(f"the indices are {places.dtype}", "legal: integers")
    outside = places[(places < 0) | (places >= extent)]
    if outside.size:
        raise ValueError(
            f"the index {outside[0]} is outside of axis {axis}", f"legal: 0 to {extent - 1}"
        )
    return places


def _scatter(x: Any, indices: Any, rows: Any, axis: Any, ordered: Any = True) -> Any:
    array = np.asarray(x)
    along = read_axis(axis, array.ndim)
    places = _checked_indices(indices, array.shape[along], along)
    shape = (*array.shape[:along], *places.shape, *array.shape[along + 1 :])
    terms = np.broadcast_to(rows, shape)
    return scattered(places, terms, array, axis=along, shape=array.shape)


def _scatter_add(x: Any, indices: Any, rows: Any, axis: Any, ordered: Any = True) -> Any:
    array = np.asarray(x)
    along = read_axis(axis, array.ndim)
    places = _checked_indices(indices, array.shape[along], along)
    wanted = (*array.shape[:along], *places.shape, *array.shape[along + 1 :])
    terms = np.broadcast_to(rows, wanted)
    dtype = np.result_type(array, terms, np.float32 if array.dtype.kind == "f" else np.int32)
    return scattered_sum(
        places, terms.astype(dtype), array.astype(dtype), axis=along, shape=array.shape
    )


def _segment_sum(rows: Any, indices: Any, count: Any, axis: Any, ordered: Any = True) -> Any:
    terms, places = np.asarray(rows), np.asarray(indices)
    along = read_axis(axis, terms.ndim - places.ndim + 1)
    (extent,) = (int(str(each)) for each in read_shape(count))
    rest = (*terms.shape[:along], extent, *terms.shape[along + places.ndim :])
    return _scatter_add(np.zeros(rest, terms.dtype), places, terms, along)


def _windowed(array: Any, windows: Windows) -> tuple[Any, Any]:
    """Return the elements of windows along an axis, and which of them there are."""
    starts = np.arange(int(str(windows.count)))[:, None] * windows.step - windows.before
    places = starts + np.arange(windows.size)
    extent = array.shape[windows.axis]
    elements = np.take(array, np.clip(places, 0, extent - 1), windows.axis)
    return elements, (places >= 0) & (places < extent)


def _max_pool(x: Any, window: Any, stride: Any, padding: Any, layout: Any) -> Any:
    array = np.asarray(x)
    for each in read_windows(array.shape, window, stride, padding, layout):
        elements, _ = _windowed(array, each)
        array = elements.max(axis=each.axis + 1)
    return array


def _mean_pool(
    x: Any, window: Any, stride: Any, padding: Any, layout: Any, count_include_pad: Any
) -> Any:
    own = _accumulated(x)
    for each in read_windows(own.shape, window, stride, padding, layout):
        elements, inside = _windowed(own, each)
        after = (1,) * (own.ndim - 1 - each.axis)
        total = (elements * inside.reshape(*inside.shape, *after)).sum(axis=each.axis + 1)
        counts = np.full(len(inside), each.size) if count_include_pad else inside.sum(axis=1)
        own = total / counts.reshape(-1, *after).astype(own.dtype)
    return own


def _cumsum(x: Any, axis: Any) -> Any:
    own = _accumulated(x)
    return np.cumsum(own, read_axis(axis, own.ndim), dtype=own.dtype)


def _cumprod(x: Any, axis: Any) -> Any:
    own = _accumulated(x)
    return np.cumprod(own, read_axis(axis, own.ndim), dtype=own.dtype)


def _accumulated(x: Any) -> Any:
    """Return an array in the dtype in which its elements are accumulated."""
    array = np.asarray(x)
    wide = np.int32 if array.dtype.kind in "biu" else np.float32
    return array if array.dtype == np.float64 else array.astype(wide)


def _argsort(x: Any, axis: Any, descending: Any) -> Any:
    array = np.asarray(x)
    along = read_axis(axis, array.ndim)
    return argsorted(_signed(array), along, 0, bool(descending)).astype(np.int32)


def _sort(x: Any, axis: Any, descending: Any) -> Any:
    array = np.asarray(x)
    indices = _argsort(array, axis, descending)
    return np.take_along_axis(array, indices, read_axis(axis, array.ndim))


def _topk(x: Any, k: Any, axis: Any, largest: Any) -> tuple[Any, Any]:
    array = np.asarray(x)
    along = read_axis(axis, array.ndim)
    count = read_count(k, array.shape[along])
    indices = argsorted(_signed(array), along, count, bool(largest)).astype(np.int32)
    return np.take_along_axis(array, indices, along), indices


def _signed(array: Any) -> Any:
    """Return numbers whose negatives have the opposite order."""
    return array.astype(np.int64 if array.dtype.kind in "biu" else np.float64)


def _arange(n: Any) -> Any:
    (extent,) = read_shape(n)
    return np.arange(int(str(extent)), dtype=np.int32)


_MOVES: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "arange": _arange,
        "argsort": _argsort,
        "broadcast_to": lambda x, shape: np.broadcast_to(np.asarray(x), shape),
        "cumprod": _cumprod,
        "cumsum": _cumsum,
        "concat": lambda parts, axis: np.concatenate(parts, axis),
        "permute": _permute,
        "reshape": _reshape,
        "max_pool": _max_pool,
        "mean_pool": _mean_pool,
        "scatter": _scatter,
        "scatter_add": _scatter_add,
        "segment_sum": _segment_sum,
        "sort": _sort,
        "split": _split,
        "stack": lambda parts, axis: np.stack(parts, axis),
        "swapaxes": _swapaxes,
        "take": _take,
        "topk": _topk,
    }
)
