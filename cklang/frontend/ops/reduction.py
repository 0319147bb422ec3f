# SPDX-License-Identifier: MIT
"""Reductions: ``ck.sum(x, axis=-1)`` and its like become ops of their own."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from cklang.frontend import emit
from cklang.frontend.intrinsics import Intrinsic
from cklang.frontend.ops.arrays import as_array
from cklang.frontend.scope import Scope
from cklang.frontend.text import Located
from cklang.frontend.values import Item, Tensor, describe
from cklang.ir.numeric import Array
from cklang.ir.ops import OPS
from cklang.ir.reductions import MOST_AXES, REDUCTIONS, SINGLE_AXIS, read_axes
from cklang.types import DType, bool_, f32, i8, i32

__all__ = ["amax", "argmax", "argmin", "max", "mean", "min", "prod", "sum"]

_INTEGERS: Mapping[DType, DType] = MappingProxyType({bool_: i32, i8: i32})
"""What integers are counted in."""
_ORDER = ("max", "amax", "min")
"""The reductions that give one of the elements, so that a bool stays one."""


def _reduction(
    scope: Scope, node: Located, name: str, x: Item, axis: Item, keepdims: Item
) -> Tensor:
    """Reduce axes of a tensor to one number each."""
    called = scope.composite or name
    if not isinstance(x, Tensor) or not 1 <= len(x.shape) <= MOST_AXES:
        problem = f"tensors of one to {MOST_AXES} axes are reduced, not {describe(x)}"
        advice = f"write ck.{called}(x, axis=-1) of a tensor such as x: ck.f16[M, K]"
        raise scope.error("F066", node, op=called, problem=problem, advice=advice)
    op = REDUCTIONS[name]
    try:
        axes = read_axes(axis, len(x.shape), is_single=op in SINGLE_AXIS)
    except ValueError as refusal:
        problem, advice = refusal.args
        raise scope.error("F067", node, op=called, problem=problem, advice=advice) from None
    if not isinstance(keepdims, bool):
        problem, advice = f"keepdims is {describe(keepdims)}", "legal: True, False"
        raise scope.error("F067", node, op=called, problem=problem, advice=advice)
    operand = emit.cast(scope, node, x, _operand_dtype(name, x.dtype))
    if OPS[op].dtype.apply((operand.dtype,), {}) is None:
        problem = f"{operand.dtype} is not reduced"
        advice = "legal: floats of 8 to 32 bits, i8, i32 and bool; cast: x.to(ck.f32)"
        raise scope.error("F066", node, op=called, problem=problem, advice=advice)
    result = _reduced(scope, node, op, operand, axes)
    if name in _ORDER and x.dtype == bool_:
        result = emit.pointwise(scope, node, "gt", result, 0)
    return _with_unit_axes(result, axes, name) if keepdims else result


def _operand_dtype(name: str, dtype: DType) -> DType:
    """Return the dtype in which the op takes elements of ``dtype``."""
    if dtype.encoding or (name == "mean" and dtype in (i32, *_INTEGERS)):
        return f32
    return _INTEGERS.get(dtype, dtype)


def _reduced(scope: Scope, node: Located, op: str, x: Tensor, axes: tuple[int, ...]) -> Tensor:
    value = emit.materialise(scope, node, x)
    result = scope.unit.append(op, value, attrs={"axes": axes}, span=scope.span(node))
    return Tensor.plain(
        result, [origin for axis, origin in enumerate(x.origins) if axis not in axes]
    )


def _with_unit_axes(tensor: Tensor, axes: tuple[int, ...], name: str) -> Tensor:
    """Return ``tensor`` with an axis of extent 1 at each of ``axes``."""
    rank = len(tensor.shape) + len(axes)
    places = tuple(axis for axis in range(rank) if axis not in axes)
    origins = [f"the axis that ck.{name} keeps"] * rank
    for place, origin in zip(places, tensor.origins, strict=True):
        origins[place] = origin
    shape = [1 if axis in axes else tensor.shape[places.index(axis)] for axis in range(rank)]
    return replace(tensor, shape=tuple(shape), axes=places, origins=tuple(origins))


def _computed(name: str, x: Any, axis: object, keepdims: bool) -> Array:
    array, op = as_array(x), REDUCTIONS[name]
    axes = read_axes(axis, array.ndim, is_single=op in SINGLE_AXIS)
    operand = array.astype(np.int64) if array.dtype.kind in "biu" else array
    if name == "mean" and operand.dtype.kind == "i":
        operand = operand.astype(np.float64)
    result = OPS[op].numpy(operand, axes)
    if array.dtype == np.bool_ and name in _ORDER:
        result = result > 0
    return np.expand_dims(result, axes) if keepdims else result


def _registered(name: str, example: str, *, method: bool = True) -> Intrinsic:
    def emitted(
        scope: Scope, node: Located, x: Item, axis: Item = None, *, keepdims: Item = False
    ) -> Tensor:
        return _reduction(scope, node, name, x, axis, keepdims)

    doc, eager = OPS[REDUCTIONS[name]].doc, partial(_computed, name)
    return Intrinsic(name, doc, emitted, eager, example=example, method=method)


sum = _registered(  # noqa: A001 - a name that NumPy has too
    "sum",
    """
    >>> ck.sum(np.array([[1.0, 2.0], [3.0, 4.0]]), axis=-1)
    array([3., 7.])
    >>> ck.sum(np.array([[1.0, 2.0], [3.0, 4.0]]), axis=-1, keepdims=True)
    array([[3.],
           [7.]])
    """,
)
mean = _registered(
    "mean",
    """
    >>> ck.mean(np.array([[1.0, 4.0, 2.0], [-3.0, -1.0, -2.0]]), axis=(0, 1))
    array(0.16666667)
    """,
)
max = _registered(  # noqa: A001 - a name that NumPy has too
    "max",
    """
    >>> ck.max(np.array([[1.0, 4.0, 2.0], [-3.0, -1.0, -2.0]]), axis=-1)
    array([ 4., -1.])
    """,
)
amax = _registered(
    "amax",
    """
    >>> ck.amax(np.array([[1.0, 4.0, 2.0], [-3.0, -1.0, -2.0]]), axis=0)
    array([1., 4., 2.])
    """,
    method=False,
)
min = _registered(  # noqa: A001 - a name that NumPy has too
    "min",
    """
    >>> ck.min(np.array([[1.0, 4.0, 2.0], [-3.0, -1.0, -2.0]]), axis=-1)
    array([ 1., -3.])
    """,
)
prod = _registered(
    "prod",
    """
    >>> ck.prod(np.array([[1.0, 4.0, 2.0], [-3.0, -1.0, -2.0]]), axis=1)
    array([ 8., -6.])
    """,
)
argmax = _registered(
    "argmax",
    """
    >>> ck.argmax(np.array([[1.0, 4.0, 2.0], [-3.0, -1.0, -2.0]]), axis=-1)
    array([1, 1])
    """,
)
argmin = _registered(
    "argmin",
    """
    >>> ck.argmin(np.array([[1.0, 4.0, 2.0], [-3.0, -1.0, -2.0]]), axis=-1)
    array([0, 0])
    """,
)
