# SPDX-License-Identifier: MIT
"""Functions along an ordered axis, as ``ck.cumsum``, ``ck.sort`` and ``ck.topk``."""

from collections.abc import Callable
from typing import Any

import numpy as np

from cklang.dims import is_integer
from cklang.frontend import emit
from cklang.frontend.intrinsics import Intrinsic, function
from cklang.frontend.ops.arrays import accumulated
from cklang.frontend.ops.axes import read_axis, read_flag
from cklang.frontend.scope import Scope
from cklang.frontend.text import Located
from cklang.frontend.values import Item, Tensor, describe
from cklang.ir.numeric import Array
from cklang.ir.ops import OPS
from cklang.ir.order import ARGSORT, COUNT, CUMPROD, CUMSUM, DESCENDING, SORT, argsorted
from cklang.ir.reductions import MOST_AXES
from cklang.types import Extent, bool_, i8, i32

__all__ = ["argsort", "cumprod", "cumsum", "sort", "topk"]


def _cumulative(name: str, what: str, numpy: Callable[..., Array], example: str) -> Intrinsic:
    """Register a function along an axis.

    Inside a program it raises F066 for something else than a tensor of numbers, and F067 for an
    axis that there is not.
    """

    def appended(scope: Scope, node: Located, x: Item, axis: Item) -> Tensor:
        tensor = _numbers(scope, node, name, x)
        return _appended(scope, node, name, tensor, axis=read_axis(axis, len(tensor.shape)))

    def computed(x: Any, axis: Any) -> Array:
        array = accumulated(x)
        return numpy(array, read_axis(axis, array.ndim), dtype=array.dtype)

    doc = f"the {what} of all elements up to each along an axis, in f32 or wrapping i32"
    return Intrinsic(
        name, doc, appended, computed, example=example, method=True, explains_numpy=True
    )


cumsum = _cumulative(
    CUMSUM,
    "sums",
    np.cumsum,
    """
    >>> ck.cumsum(np.array([[1.0, 2.0, 3.0]]), axis=1)
    array([[1., 3., 6.]])
    """,
)
cumprod = _cumulative(
    CUMPROD,
    "products",
    np.cumprod,
    """
    >>> ck.cumprod(np.array([[2.0, 3.0, 0.5]]), axis=1)
    array([[2., 6., 3.]])
    """,
)


def _sorted(x: Any, axis: Any, descending: Any) -> Array:
    indices = _sorting(x, axis, descending)
    return np.take_along_axis(np.asarray(x), indices, read_axis(axis, indices.ndim))


@function(
    "x in order along an axis; nan is the greatest",
    eager=_sorted,
    example="""
    >>> ck.sort(np.array([3.0, 1.0, 2.0]), descending=True)
    array([3., 2., 1.])
    """,
    method=True,
)
def sort(scope: Scope, node: Located, x: Item, axis: Item = -1, descending: Item = False) -> Tensor:
    """Return elements along an axis in order; errors as of :func:`cumsum`."""
    tensor = _numbers(scope, node, "sort", x)
    along = read_axis(axis, len(tensor.shape))
    return _in_order(scope, node, SORT, tensor, along, 0, read_flag("descending", descending))


def _sorting(x: Any, axis: Any, descending: Any) -> Array:
    array = np.asarray(x)
    along = read_axis(axis, array.ndim)
    return argsorted(_signed(array), along, 0, bool(descending)).astype(np.int32)


@function(
    "the indices that sort x along an axis; of equal elements the lowest comes first",
    eager=_sorting,
    example="""
    >>> ck.argsort(np.array([3.0, 1.0, 2.0, 1.0]))
    array([1, 3, 2, 0], dtype=int32)
    """,
    method=True,
)
def argsort(
    scope: Scope, node: Located, x: Item, axis: Item = -1, descending: Item = False
) -> Tensor:
    """Return the indices of elements along an axis in order; errors as of :func:`cumsum`."""
    tensor = _numbers(scope, node, "argsort", x)
    along = read_axis(axis, len(tensor.shape))
    return _in_order(scope, node, ARGSORT, tensor, along, 0, read_flag("descending", descending))


def _greatest(x: Any, k: Any, axis: Any, largest: Any) -> tuple[Array, Array]:
    array = np.asarray(x)
    along = read_axis(axis, array.ndim)
    count = read_count(k, array.shape[along])
    indices = argsorted(_signed(array), along, count, bool(largest)).astype(np.int32)
    return np.take_along_axis(array, indices, along), indices


def _signed(array: Array) -> Array:
    """Return numbers whose negatives have the opposite order."""
    return array.astype(np.int64 if array.dtype.kind in "biu" else np.float64)


@function(
    "the k greatest (or least) elements along an axis in order, and their indices; of equal "
    "elements the lowest index comes first",
    eager=_greatest,
    example="""
    >>> ck.topk(np.array([3.0, 1.0, 4.0, 4.0]), 2)
    (array([4., 4.]), array([2, 3], dtype=int32))
    """,
    method=True,
)
def topk(
    scope: Scope, node: Located, x: Item, k: Item, axis: Item = -1, largest: Item = True
) -> tuple[Tensor, Tensor]:
    """Return the first elements in order and their indices; errors as of :func:`cumsum`."""
    tensor = _numbers(scope, node, "topk", x)
    along = read_axis(axis, len(tensor.shape))
    count, descending = read_count(k, tensor.shape[along]), read_flag("largest", largest)
    values = _in_order(scope, node, SORT, tensor, along, count, descending)
    return values, _in_order(scope, node, ARGSORT, tensor, along, count, descending)


def read_count(k: object, extent: Extent) -> int:
    """Return how many elements are wanted of an axis; a call checks the extent of a dim."""
    if not is_integer(k) or k < 1:
        raise ValueError(f"k is {describe(k)}", "legal: a constant integer from 1")
    if isinstance(extent, int) and k > extent:
        raise ValueError(f"k is {k}, but the axis has {extent}", f"legal: 1 to {extent}")
    return k


def _numbers(scope: Scope, node: Located, name: str, item: Item) -> Tensor:
    """Return a tensor in a dtype that kernels sum and sort."""
    if not isinstance(item, Tensor) or not 1 <= len(item.shape) <= MOST_AXES:
        problem = f"it takes a tensor of one to {MOST_AXES} axes, not {describe(item)}"
        advice = f"write ck.{name}(x, ...) of a tensor such as x: ck.f16[M, K]"
        raise scope.error("F066", node, op=name, problem=problem, advice=advice)
    if item.dtype.encoding:
        return emit.widened(scope, node, item)
    return emit.cast(scope, node, item, i32) if item.dtype in (bool_, i8) else item


def _in_order(
    scope: Scope, node: Located, op: str, x: Tensor, axis: int, count: int, descending: bool
) -> Tensor:
    attrs = {COUNT: count, DESCENDING: int(descending)}
    return _appended(scope, node, op, x, axis=axis, **attrs)


def _appended(scope: Scope, node: Located, op: str, x: Tensor, **attrs: int) -> Tensor:
    if OPS[op].dtype.apply((x.dtype,), {}) is None:
        problem, advice = f"{x.dtype} is not taken", OPS[op].dtype.text
        raise scope.error("F066", node, op=op, problem=problem, advice=advice)
    value = scope.unit.append(
        op, emit.materialise(scope, node, x), attrs=attrs, span=scope.span(node)
    )
    return Tensor.plain(value, x.origins)
