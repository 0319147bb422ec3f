# SPDX-License-Identifier: MIT
"""Products of matrices: ``a @ b`` and ``ck.gemm`` become the ops ``gemm`` and ``gemm24``."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from cklang.frontend import emit
from cklang.frontend.scope import Scope
from cklang.frontend.text import Located
from cklang.frontend.values import Item, Tensor, describe
from cklang.ir.ops import OPS
from cklang.types import DType, Kind, bool_, f32, i32

__all__ = ["GEMMS", "gemm", "product"]

GEMMS: Mapping[str, str] = MappingProxyType({"": "gemm", "a": "gemm24"})
"""The op of ``ck.gemm`` by its argument ``sparse``."""


def gemm(scope: Scope, node: Located, left: Item, right: Item, sparse: Item = "") -> Tensor:
    """Multiply two matrices, for each index of the axes before theirs: ``a @ b``.

    Beside an f32 side a narrower float is widened, as everywhere. With ``sparse="a"`` the first
    has two numbers of each four along K that are not zero.

    Raises:
        CkTypeError: F047 for something else than matrices, F048 for the dtypes, F045 for a float
            beside f32 that kernels do not widen.
        CkValueError: F049 if the inner extents differ, F042 if the axes before do not broadcast,
            F059 for another ``sparse``.
    """
    if not isinstance(sparse, str) or sparse not in GEMMS:
        raise scope.error("F059", node, got=describe(sparse))
    op = OPS[GEMMS[sparse]]
    (a, b), origins = product(scope, node, left, right)
    if f32 in (a.dtype, b.dtype):
        a, b = (emit.cast(scope, node, x, f32) if x.dtype.kind is Kind.FLOAT else x for x in (a, b))
    if op.dtype.apply((a.dtype, b.dtype), {}) is None:
        advice = _gemm_advice(a.dtype, b.dtype)
        raise scope.error("F048", node, a=a.dtype, b=b.dtype, want=op.dtype.text, advice=advice)
    operands = [emit.materialise(scope, node, side) for side in (a, b)]
    value = scope.unit.append(op.name, *operands, span=scope.span(node))
    return Tensor.plain(value, origins)


def product(
    scope: Scope, node: Located, left: Item, right: Item
) -> tuple[tuple[Tensor, Tensor], tuple[str, ...]]:
    """Return the matrices of a product, and where the axes of its result come from.

    Raises:
        CkTypeError: F047 for something else than matrices.
        CkValueError: F049 if the inner extents differ, F042 if the axes before do not broadcast.
    """
    sides = []
    for item in (left, right):
        if not isinstance(item, Tensor) or len(item.shape) < 2:
            advice = "write x * y for a product with a number"
            if isinstance(item, Tensor):
                advice = "give both sides two axes or more in the annotations"
            raise scope.error("F047", node, got=describe(item), advice=advice)
        sides.append(item)
    a, b = sides
    if a.shape[-1] != b.shape[-2]:
        raise _inner_error(scope, node, a, b)
    _, batch = emit.common_shape(scope, node, [_leading(side) for side in sides])
    return (a, b), (*batch, a.origins[-2], b.origins[-1])


def _leading(matrix: Tensor) -> Tensor:
    """Return ``matrix`` seen in its batch axes only, to compare extents."""
    return replace(matrix, shape=matrix.shape[:-2], axes=(), origins=matrix.origins[:-2])


def _inner_error(scope: Scope, node: Located, a: Tensor, b: Tensor) -> Exception:
    right = scope.words(node.right) if isinstance(node, ast.BinOp) else "the second matrix"
    axis = "first" if len(b.shape) == 2 else "last but one"
    advice = f"the last axis of the first and the {axis} axis of the second must be the same"
    if a.shape[-1] == b.shape[-1]:
        turn = ".T" if len(b.shape) == 2 else ".mT"
        advice = (
            f"write {right}{turn}" if right.isidentifier() else f"transpose {right} with {turn}"
        )
    return scope.error(
        "F049",
        node,
        f"{a.shape[-1]} is {a.origins[-1]}",
        f"{b.shape[-2]} is {b.origins[-2]}",
        a=emit.brackets(a.shape),
        b=emit.brackets(b.shape),
        one=a.shape[-1],
        other=b.shape[-2],
        advice=advice,
    )


def _gemm_advice(a: DType, b: DType) -> str:
    if i32 in (a, b) or bool_ in (a, b):
        return "results of integer arithmetic are i32: cast them, as in x.to(ck.i8) or x.to(ck.f16)"
    return "cast one side, as in x.to(ck.f16)"
