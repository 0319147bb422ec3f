# SPDX-License-Identifier: MIT
"""Products of matrices and vectors: ``a @ b`` and ``ck.gemm`` become ops of the IR.

They are ``gemm`` and ``gemm24``, or ``contract`` where a side is a vector.
"""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from cklang.frontend import emit
from cklang.frontend.scope import Scope
from cklang.frontend.text import Located
from cklang.frontend.values import Item, Tensor, describe
from cklang.ir.contraction import Contraction
from cklang.ir.nodes import Attr, Value
from cklang.ir.ops import OPS
from cklang.types import DType, Kind, bool_, f32, i32

GEMMS: Mapping[str, str] = MappingProxyType({"": "gemm", "a": "gemm24"})
"""The op of ``ck.gemm`` by its argument ``sparse``."""


def matmul(scope: Scope, node: Located, left: Item, right: Item, sparse: Item = "") -> Tensor:
    """Multiply two matrices, for each index of the axes before theirs: ``a @ b``.

    A side of one axis is a vector, as in NumPy: the result has no axis of it.

    Beside an f32 side a narrower float is widened, as everywhere. With ``sparse="a"`` the first
    has two numbers of each four along K that are not zero.

    Raises:
        CkTypeError: F047 for something else than tensors of an axis or more, F048 for the dtypes,
            F045 for a float beside f32 that kernels do not widen.
        CkValueError: F049 if the inner extents differ, F042 if the axes before do not broadcast,
            F059 for another ``sparse``.
    """
    if not isinstance(sparse, str) or sparse not in GEMMS:
        raise scope.error("F059", node, got=describe(sparse))
    if not sparse and _is_vector(left) + _is_vector(right):
        return _product_of_vector(scope, node, left, right)
    (a, b), origins = product(scope, node, left, right)
    value = _appended(scope, node, GEMMS[sparse], (a, b), {})
    return Tensor.plain(value, origins)


def contract(scope: Scope, node: Located, a: Tensor, b: Tensor, contraction: Contraction) -> Tensor:
    """Sum products over any number of axes; gemm's op where it is one product of matrices.

    Raises:
        CkTypeError: F048 for the dtypes, F045 for a float beside f32 that kernels do not widen.
        CkValueError: F042 if batch axes do not broadcast.
    """
    if contraction == Contraction():
        return matmul(scope, node, a, b)
    (batch_a, rows, _), (batch_b, _, columns) = (
        contraction.split_a(a.origins),
        contraction.split_b(b.origins),
    )
    leading = [_leading(a, len(batch_a)), _leading(b, len(batch_b))]
    _, batch = emit.common_shape(scope, node, leading)
    attrs = {"rows": contraction.rows, "columns": contraction.columns, "summed": contraction.summed}
    value = _appended(scope, node, "contract", (a, b), attrs)
    return Tensor.plain(value, (*batch, *rows, *columns))


def _is_vector(item: Item) -> bool:
    return isinstance(item, Tensor) and len(item.shape) == 1


def _product_of_vector(scope: Scope, node: Located, left: Item, right: Item) -> Tensor:
    """Multiply a matrix by a vector, or two vectors: a vector has no axis of its own."""
    a, b = (_at_least(scope, node, item, 1) for item in (left, right))
    inner = b.shape[-1] if _is_vector(b) else b.shape[-2]
    if not scope.unit.derived.same(a.shape[-1], inner):
        raise _inner_error(scope, node, a, b)
    contraction = Contraction(rows=int(not _is_vector(a)), columns=int(not _is_vector(b)))
    return contract(scope, node, a, b, contraction)


def _at_least(scope: Scope, node: Located, item: Item, rank: int) -> Tensor:
    if isinstance(item, Tensor) and len(item.shape) >= rank:
        return item
    advice = "write x * y for a product with a number"
    if isinstance(item, Tensor):
        count = "an axis" if rank == 1 else "two axes"
        advice = f"give both sides {count} or more in the annotations"
    raise scope.error("F047", node, got=describe(item), advice=advice)


def _appended(
    scope: Scope, node: Located, name: str, sides: tuple[Tensor, Tensor], attrs: Mapping[str, Attr]
) -> Value:
    """Append the op of a product, its operands widened where one is f32."""
    op = OPS[name]
    a, b = widest(scope, node, sides)
    if op.dtype.apply((a.dtype, b.dtype), {}) is None:
        advice = _gemm_advice(a.dtype, b.dtype)
        raise scope.error("F048", node, a=a.dtype, b=b.dtype, want=op.dtype.text, advice=advice)
    operands = [emit.materialise(scope, node, side) for side in (a, b)]
    return scope.unit.append(name, *operands, attrs=attrs, span=scope.span(node))


def widest(scope: Scope, node: Located, sides: Sequence[Tensor]) -> Sequence[Tensor]:
    """Return two operands of a product, a narrower float beside f32 widened.

    Raises:
        CkTypeError: F045 for a float that kernels do not widen.
    """
    if f32 not in (side.dtype for side in sides):
        return sides
    return [emit.cast(scope, node, x, f32) if x.dtype.kind is Kind.FLOAT else x for x in sides]


def product(
    scope: Scope, node: Located, left: Item, right: Item
) -> tuple[tuple[Tensor, Tensor], tuple[str, ...]]:
    """Return the matrices of a product, and where the axes of its result come from.

    Raises:
        CkTypeError: F047 for something else than matrices.
        CkValueError: F049 if the inner extents differ, F042 if the axes before do not broadcast.
    """
    sides = [_at_least(scope, node, item, 2) for item in (left, right)]
    a, b = sides
    if not scope.unit.derived.same(a.shape[-1], b.shape[-2]):
        raise _inner_error(scope, node, a, b)
    leading = [_leading(side, len(side.shape) - 2) for side in sides]
    _, batch = emit.common_shape(scope, node, leading)
    return (a, b), (*batch, a.origins[-2], b.origins[-1])


def _leading(side: Tensor, count: int) -> Tensor:
    """Return an operand seen in its batch axes only, to compare extents."""
    return replace(side, shape=side.shape[:count], axes=(), origins=side.origins[:count])


def _inner_error(scope: Scope, node: Located, a: Tensor, b: Tensor) -> Exception:
    right = scope.words(node.right) if isinstance(node, ast.BinOp) else "the second matrix"
    place = -2 if len(b.shape) > 1 else -1
    axis = {1: "only", 2: "first"}.get(len(b.shape), "last but one")
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
        f"{b.shape[place]} is {b.origins[place]}",
        a=emit.brackets(a.shape),
        b=emit.brackets(b.shape),
        one=a.shape[-1],
        other=b.shape[place],
        advice=advice,
    )


def _gemm_advice(a: DType, b: DType) -> str:
    if i32 in (a, b) or bool_ in (a, b):
        return "results of integer arithmetic are i32: cast them, as in x.to(ck.i8) or x.to(ck.f16)"
    return "cast one side, as in x.to(ck.f16)"
