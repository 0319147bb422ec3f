# SPDX-License-Identifier: MIT
"""Reductions of rows: ``ck.sum(x, axis=-1)`` and ``ck.max`` become ops of their own."""

from __future__ import annotations

from cklang.frontend import emit
from cklang.frontend.scope import Scope
from cklang.frontend.text import Located
from cklang.frontend.values import Item, Tensor, describe
from cklang.ir.reductions import MOST_AXES, REDUCTIONS, ROW_DTYPES

__all__ = ["is_last", "reduction"]


def is_last(axis: object, rank: int) -> bool:
    """Tell whether ``axis`` names the last one of ``rank`` axes, as NumPy counts them."""
    return isinstance(axis, int) and not isinstance(axis, bool) and axis in (-1, rank - 1)


def reduction(
    scope: Scope, node: Located, name: str, x: Item, axis: Item, keepdims: Item
) -> Tensor:
    """Reduce the rows of a tensor, which run along its last axis, to a number each.

    Raises:
        CkTypeError: F066 for something else than a tensor of rows of f16, bf16 or f32.
        CkValueError: F067 for another axis, or a ``keepdims`` that is no bool.
    """
    if not isinstance(x, Tensor) or not 2 <= len(x.shape) <= MOST_AXES:
        problem = f"rows are those of a tensor of two to {MOST_AXES} axes, not of {describe(x)}"
        advice = f"write ck.{name}(x, axis=-1) of a tensor such as x: ck.f16[M, K]"
        raise scope.error("F066", node, op=name, problem=problem, advice=advice)
    if x.dtype not in ROW_DTYPES:
        problem = f"rows are of f16, bf16 or f32, not of {x.dtype}"
        advice = "convert the tensor before the call"
        raise scope.error("F066", node, op=name, problem=problem, advice=advice)
    if not is_last(axis, len(x.shape)):
        problem = f"axis is {describe(axis)}: kernels reduce the last axis"
        raise scope.error("F067", node, op=name, problem=problem, advice=_AXIS_ADVICE)
    if not isinstance(keepdims, bool):
        problem = f"keepdims is {describe(keepdims)}"
        raise scope.error("F067", node, op=name, problem=problem, advice="legal: True, False")
    rows = emit.materialise(scope, node, x)
    value = scope.unit.append(REDUCTIONS[name], rows, span=scope.span(node))
    result = Tensor.plain(value, x.origins[:-1])
    if not keepdims:
        return result
    origins = (*result.origins, f"the axis that ck.{name} keeps")
    return Tensor(value=value, shape=(*result.shape, 1), axes=result.axes, origins=origins)


_AXIS_ADVICE = "legal: axis=-1; for another one, move it last, as in ck.sum(x.T, axis=-1)"
