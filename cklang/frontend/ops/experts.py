# SPDX-License-Identifier: MIT
"""``ck.moe_gate``: the experts of tokens, and their weights; ``ck.grouped_gemm``: products."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cklang.dims import is_integer
from cklang.frontend import emit
from cklang.frontend.intrinsics import function
from cklang.frontend.ops.arrays import as_array
from cklang.frontend.ops.axes import read_flag
from cklang.frontend.ops.gemm import widest
from cklang.frontend.ops.order import read_count
from cklang.frontend.ops.scaled import scale_arrays, scaled_operands
from cklang.frontend.ops.scatter import read_count_of
from cklang.frontend.scope import Scope
from cklang.frontend.text import Located
from cklang.frontend.values import Item, Tensor, describe
from cklang.ir.expert_gate import MOE_INDICES, MOE_WEIGHTS, indices, weights
from cklang.ir.grouped import (
    GROUP_ENDS,
    GROUP_ORDER,
    GROUPED_GEMM,
    GROUPED_GEMM_K,
    SCALED_GROUPED_GEMM,
    group_ends,
    group_order,
)
from cklang.ir.indices import INDEX_DTYPES
from cklang.ir.nodes import Attr
from cklang.ir.numeric import Array
from cklang.ir.ops import OPS
from cklang.ir.reductions import MOST_AXES, ROW_DTYPES
from cklang.types import Extent, f32, i32

__all__ = ["group_ids", "grouped_gemm", "moe_gate"]

_SCORINGS = ("softmax", "sigmoid")


def _gated(logits: Any, bias: Any, **options: Any) -> tuple[Array, Array]:
    x, own = as_array(logits), None if bias is None else as_array(bias)
    attrs: dict[str, Any] = _attrs(x.shape[-1], **options)
    return weights(x, own, **attrs).astype(np.float32), indices(x, own, **attrs).astype(np.int32)


@function(
    "the k experts of the greatest scores along the last axis, the softmax or the sigmoid of "
    "logits: their weights in f32 and their indices; of equal scores the lowest index comes first",
    eager=_gated,
    example="""
    >>> weights, experts = ck.moe_gate(np.array([[0.0, 2.0, 1.0, 2.0]]), k=2)
    >>> weights, experts
    (array([[0.5, 0.5]], dtype=float32), array([[1, 3]], dtype=int32))
    """,
)
def moe_gate(
    scope: Scope,
    node: Located,
    logits: Item,
    bias: Item = None,
    *,
    k: Item,
    scoring: Item = "softmax",
    groups: Item = 1,
    group_k: Item = None,
    renormalise: Item = True,
    scale: Item = 1.0,
) -> tuple[Tensor, Tensor]:
    """Return the weights of experts and their indices.

    Raises:
        CkTypeError: F066 for something else than a tensor of numbers.
        CkValueError: F067 for an option that there is not, and for groups that do not fit.
    """
    x = _operand(scope, node, logits)
    operands = [emit.materialise(scope, node, x)]
    if bias is not None:
        own = _operand(scope, node, bias)
        if own.shape != x.shape[-1:]:
            got = ", ".join(map(str, own.shape))
            raise ValueError(f"the bias is [{got}]", f"legal: [{x.shape[-1]}], one for each expert")
        operands.append(emit.materialise(scope, node, own))
    attrs = _attrs(
        x.shape[-1],
        k=k,
        scoring=scoring,
        groups=groups,
        group_k=group_k,
        renormalise=renormalise,
        scale=scale,
    )
    first, second = (
        Tensor.plain(
            scope.unit.append(op, *operands, attrs=attrs, span=scope.span(node)), x.origins
        )
        for op in (MOE_WEIGHTS, MOE_INDICES)
    )
    return first, second


def _operand(scope: Scope, node: Located, item: Item) -> Tensor:
    """Return a tensor in a dtype that kernels read."""
    if not isinstance(item, Tensor) or not 1 <= len(item.shape) <= MOST_AXES:
        problem = f"it takes tensors of one to {MOST_AXES} axes, not {describe(item)}"
        advice = "write ck.moe_gate(x, k=2) of logits such as x: ck.f32[T, 8]"
        raise scope.error("F066", node, op="moe_gate", problem=problem, advice=advice)
    return item if item.dtype in ROW_DTYPES else emit.cast(scope, node, item, f32)


def _attrs(
    experts: Extent,
    *,
    k: object,
    scoring: object,
    groups: object,
    group_k: object,
    renormalise: object,
    scale: object,
) -> dict[str, Attr]:
    """Return the attributes of both ops."""
    if scoring not in _SCORINGS:
        raise ValueError(f"scoring is {describe(scoring)}", "legal: 'softmax', 'sigmoid'")
    renormalised = read_flag("renormalise", renormalise)
    if not isinstance(scale, int | float) or isinstance(scale, bool):
        raise ValueError(  # noqa: TRY004 - becomes F067, a value error
            f"scale is {describe(scale)}", "legal: a constant number"
        )
    count = read_count(k, experts)
    parts, kept = _groups(experts, count, groups, group_k)
    return {
        "count": count,
        "groups": parts,
        "kept": kept,
        "renormalised": int(renormalised),
        "scale": float(scale),
        "sigmoid": int(scoring == "sigmoid"),
    }


def _groups(experts: Extent, count: int, groups: object, group_k: object) -> tuple[int, int]:
    """Return how many groups there are, and how many are allowed."""
    parts = _number("groups", groups, None)
    kept = parts if group_k is None else _number("group_k", group_k, parts)
    if kept == parts:
        return 1, 1
    if not isinstance(experts, int) or experts % parts:
        problem = f"{parts} groups of {experts} experts"
        raise ValueError(problem, "legal: groups of as many experts each, an extent that is known")
    most = experts // parts * kept
    if count > most:
        problem = f"k is {count}, but {most} experts are in the groups that are allowed"
        raise ValueError(problem, f"legal: 1 to {most}")
    return parts, kept


def _number(name: str, value: object, most: int | None) -> int:
    """Return an option that is a number from 1."""
    if not is_integer(value) or not 1 <= value <= (most or value):
        legal = "from 1" if most is None else f"from 1 to {most}"
        raise ValueError(f"{name} is {describe(value)}", f"legal: a constant integer {legal}")
    return value


def _grouped(
    x: Any, w: Any, ends: Any, scale_a: Any, scale_b: Any, block_a: Any, block_b: Any
) -> Array:
    rows, matrices, places = map(as_array, (x, w, ends))
    if all(item is None for item in (scale_a, scale_b, block_a, block_b)):
        op = GROUPED_GEMM_K if matrices.ndim == 2 else GROUPED_GEMM
        return OPS[op].numpy(rows, matrices, places)
    factors, blocks = scale_arrays((rows, matrices), (scale_a, scale_b), (block_a, block_b))
    return OPS[SCALED_GROUPED_GEMM].numpy(rows, matrices, *factors, places, **blocks)


@function(
    f"{OPS[GROUPED_GEMM].doc}. With a matrix w[K, N] groups are along K, and the result has the "
    "product of each, [G, M, N]. Scales are those of ck.gemm",
    eager=_grouped,
    example="""
    >>> x, w = np.ones((4, 2)), np.array([[[1.0], [1.0]], [[5.0], [5.0]]])
    >>> ck.grouped_gemm(x, w, np.array([1, 3])).T
    array([[ 2., 10., 10.,  0.]])
    >>> ck.grouped_gemm(x.T, x, np.array([1, 3])).tolist()
    [[[1.0, 1.0], [1.0, 1.0]], [[2.0, 2.0], [2.0, 2.0]]]
    """,
)
def grouped_gemm(
    scope: Scope,
    node: Located,
    x: Item,
    w: Item,
    ends: Item,
    *,
    scale_a: Item = None,
    scale_b: Item = None,
    block_a: Item = None,
    block_b: Item = None,
) -> Tensor:
    """Multiply groups of rows of ``x`` [M, K], each by its matrix of ``w`` [G, K, N].

    Group ``g`` ends before row ``ends[g]``. With a matrix ``w`` [K, N] groups are along K, and each
    has a product [M, N] of its own. ``scale_a`` [M, K / 128] and ``scale_b`` [G, K / 128, N / 128]
    scale blocks of K, as in ``ck.gemm``.

    Raises:
        CkTypeError: F066 for something else than such tensors, F048 for the dtypes, F045 for a
            float beside f32 that kernels do not widen.
        CkValueError: F067 for extents that do not fit.
    """
    along_k = isinstance(w, Tensor) and len(w.shape) == 2
    tensors = [
        _of_rank(scope, node, GROUPED_GEMM, name, item, rank)
        for name, item, rank in (("x", x, 2), ("w", w, 2 if along_k else 3), ("ends", ends, 1))
    ]
    rows, matrices, places = tensors
    fitting = [("K", rows.shape[1], matrices.shape[-2])]
    if not along_k:
        fitting.append(("groups", places.shape[0], matrices.shape[0]))
    for what, one, other in fitting:
        if not scope.unit.derived.same(one, other):
            shapes = ", ".join(emit.brackets(tensor.shape) for tensor in tensors)
            raise ValueError(f"the {what} of {shapes} differ: {one}, {other}", _LEGAL[GROUPED_GEMM])
    if any(item is not None for item in (scale_a, scale_b, block_a, block_b)):
        scales, blocks = (scale_a, scale_b), (block_a, block_b)
        return _scaled_groups(scope, node, tensors, scales, blocks)
    a, b = widest(scope, node, (rows, matrices))
    rule = OPS[GROUPED_GEMM].dtype
    if rule.apply((a.dtype, b.dtype, places.dtype), {}) is None:
        words = {"a": a.dtype, "b": f"{b.dtype} with ends of {places.dtype}"}
        advice = "cast them, as in x.to(ck.f16) and ends.to(ck.i32)"
        raise scope.error("F048", node, **words, want=rule.text, advice=advice)
    operands = [emit.materialise(scope, node, tensor) for tensor in (a, b, places)]
    op = GROUPED_GEMM_K if along_k else GROUPED_GEMM
    value = scope.unit.append(op, *operands, attrs={}, span=scope.span(node))
    groups = places.origins if along_k else ()
    return Tensor.plain(value, (*groups, rows.origins[0], matrices.origins[-1]))


def _scaled_groups(
    scope: Scope,
    node: Located,
    tensors: Sequence[Tensor],
    scales: Sequence[Item],
    blocks: Sequence[Item],
) -> Tensor:
    """Return the products of groups whose blocks along K have scales."""
    rows, matrices, ends = tensors
    legal = "legal: w[G, K, N], a scale of x for each row, ends of i32"
    if len(matrices.shape) != 3 or ends.dtype != i32:
        shapes = f"w is {matrices.type}, ends {ends.type}"
        raise ValueError(f"{shapes}, and there are scales of blocks", legal)
    operands, attrs = scaled_operands(scope, node, (rows, matrices), scales, blocks)
    block = attrs["block_a"]
    if isinstance(block, tuple) and block and block[0] != 1:
        raise ValueError(f"blocks of x have {block[0]} rows, and groups begin at any row", legal)
    values = [emit.materialise(scope, node, operand) for operand in (*operands, ends)]
    value = scope.unit.append(SCALED_GROUPED_GEMM, *values, attrs=attrs, span=scope.span(node))
    return Tensor.plain(value, (rows.origins[0], matrices.origins[-1]))


def _ids_grouped(ids: Any, count: Any) -> tuple[Array, Array]:
    array = as_array(ids)
    ends = group_ends(array, (count,))
    return group_order(array, ends).astype(np.int32), ends.astype(np.int32)


@function(
    "the places of ids in the order of their groups, which are 0 to below count, and where each "
    "group ends; other ids come last, and equal ones stay in order",
    eager=_ids_grouped,
    example="""
    >>> ck.group_ids(np.array([2, 0, 7, 2, -1]), 3)
    (array([1, 0, 3, 2, 4], dtype=int32), array([1, 1, 3], dtype=int32))
    """,
)
def group_ids(scope: Scope, node: Located, ids: Item, count: Item) -> tuple[Tensor, Tensor]:
    """Return the places of ids [T] by group, and the ends of ``count`` groups.

    Raises:
        CkTypeError: F066 for something else than ids of one axis.
        CkValueError: F067 for a count that is none.
    """
    tensor = _of_rank(scope, node, _GROUP_IDS, "ids", ids, 1)
    if tensor.dtype not in INDEX_DTYPES:
        problem = f"the ids are {tensor.dtype}"
        raise scope.error("F066", node, op=_GROUP_IDS, problem=problem, advice="legal: i32, i64")
    extent = read_count_of(scope, count)
    own, span = emit.materialise(scope, node, tensor), scope.span(node)
    ends = scope.unit.append(GROUP_ENDS, own, shape=(extent,), span=span)
    order = scope.unit.append(GROUP_ORDER, own, ends, span=span)
    return Tensor.plain(order, tensor.origins), Tensor.plain(ends, ("ck.group_ids",))


_GROUP_IDS = "group_ids"
_LEGAL = {
    GROUPED_GEMM: "legal: x[M, K], w[G, K, N] or w[K, N], ends[G]",
    _GROUP_IDS: "legal: ids[T]",
}


def _of_rank(scope: Scope, node: Located, op: str, name: str, item: Item, rank: int) -> Tensor:
    if isinstance(item, Tensor) and len(item.shape) == rank:
        return item
    problem = f"{name} is {describe(item)}"
    raise scope.error("F066", node, op=op, problem=problem, advice=_LEGAL[op])
