# SPDX-License-Identifier: MIT
"""Functions along an ordered axis, as ``ck.cumsum``, ``ck.sort`` and ``ck.topk``."""

from __future__ import annotations

from cklang.frontend import emit
from cklang.frontend.ops.axes import read_axis
from cklang.frontend.scope import Scope
from cklang.frontend.text import Located
from cklang.frontend.values import Item, Tensor, describe
from cklang.ir.ops import OPS
from cklang.ir.order import ARGSORT, COUNT, CUMPROD, CUMSUM, DESCENDING, SORT
from cklang.ir.reductions import MOST_AXES
from cklang.types import Extent, bool_, i8, i32

__all__ = ["argsort", "cumprod", "cumsum", "read_count", "sort", "topk"]


def cumsum(scope: Scope, node: Located, x: Item, axis: Item) -> Tensor:
    """Return cumulative sums along an axis.

    Raises:
        CkTypeError: F066 for something else than a tensor of numbers.
        CkValueError: F067 for an axis that there is not.
    """
    tensor = _numbers(scope, node, CUMSUM, x)
    return _appended(scope, node, CUMSUM, tensor, axis=read_axis(axis, len(tensor.shape)))


def cumprod(scope: Scope, node: Located, x: Item, axis: Item) -> Tensor:
    """Return cumulative products along an axis; errors as of :func:`cumsum`."""
    tensor = _numbers(scope, node, CUMPROD, x)
    return _appended(scope, node, CUMPROD, tensor, axis=read_axis(axis, len(tensor.shape)))


def sort(scope: Scope, node: Located, x: Item, axis: Item, descending: Item) -> Tensor:
    """Return elements along an axis in order; errors as of :func:`cumsum`."""
    tensor = _numbers(scope, node, "sort", x)
    along = read_axis(axis, len(tensor.shape))
    return _in_order(scope, node, SORT, tensor, along, 0, _flag("descending", descending))


def argsort(scope: Scope, node: Located, x: Item, axis: Item, descending: Item) -> Tensor:
    """Return the indices of elements along an axis in order; errors as of :func:`cumsum`."""
    tensor = _numbers(scope, node, "argsort", x)
    along = read_axis(axis, len(tensor.shape))
    return _in_order(scope, node, ARGSORT, tensor, along, 0, _flag("descending", descending))


def topk(
    scope: Scope, node: Located, x: Item, k: Item, axis: Item, largest: Item
) -> tuple[Tensor, Tensor]:
    """Return the first elements in order and their indices; errors as of :func:`cumsum`."""
    tensor = _numbers(scope, node, "topk", x)
    along = read_axis(axis, len(tensor.shape))
    count, descending = read_count(k, tensor.shape[along]), _flag("largest", largest)
    values = _in_order(scope, node, SORT, tensor, along, count, descending)
    return values, _in_order(scope, node, ARGSORT, tensor, along, count, descending)


def read_count(k: object, extent: Extent) -> int:
    """Return how many elements are wanted of an axis; a call checks the extent of a dim."""
    if not isinstance(k, int) or isinstance(k, bool) or k < 1:
        raise ValueError(f"k is {describe(k)}", "legal: a constant integer from 1")
    if isinstance(extent, int) and k > extent:
        raise ValueError(f"k is {k}, but the axis has {extent}", f"legal: 1 to {extent}")
    return k


def _flag(name: str, value: Item) -> int:
    if not isinstance(value, bool):
        raise ValueError(  # noqa: TRY004 - becomes F067, a value error
            f"{name} is {describe(value)}", "legal: True, False"
        )
    return int(value)


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
    scope: Scope, node: Located, op: str, x: Tensor, axis: int, count: int, descending: int
) -> Tensor:
    return _appended(scope, node, op, x, axis=axis, **{COUNT: count, DESCENDING: descending})


def _appended(scope: Scope, node: Located, op: str, x: Tensor, **attrs: int) -> Tensor:
    if OPS[op].dtype.apply((x.dtype,), {}) is None:
        problem, advice = f"{x.dtype} is not taken", OPS[op].dtype.text
        raise scope.error("F066", node, op=op, problem=problem, advice=advice)
    value = scope.unit.append(
        op, emit.materialise(scope, node, x), attrs=attrs, span=scope.span(node)
    )
    return Tensor.plain(value, x.origins)
