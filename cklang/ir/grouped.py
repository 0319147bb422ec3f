# SPDX-License-Identifier: MIT
"""Rows in groups: the products ``grouped_gemm``, whose third operand says where each group ends.

``group_order`` and ``group_ends`` make groups of ids: the places of ids in the order of their
groups, and where each group ends. Ids of no group come last.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from cklang.ir import rules
from cklang.ir.indices import INDEX_DTYPES
from cklang.ir.nodes import Attr
from cklang.ir.numeric import Array, scaled_gemm
from cklang.ir.rules import GEMM_DTYPE, SCALED_DTYPE, DTypeRule, Shape, ShapeRule
from cklang.types import DType, i32

GROUPED_GEMM = "grouped_gemm"
"""The name of the op."""

SCALED_GROUPED_GEMM = "scaled_grouped_gemm"
"""The op in which blocks of both operands have scales, as in ``scaled_gemm``."""

GROUPED_ROWS = (GROUPED_GEMM, SCALED_GROUPED_GEMM)
"""The products of groups of rows."""

SCALED_PRODUCTS = ("scaled_gemm", SCALED_GROUPED_GEMM)
"""The products in which blocks of K have scales."""

GROUPED_GEMM_K = "grouped_gemm_k"
"""The op whose groups share K: a sum of its own for each."""

GROUP_ORDER = "group_order"
GROUP_ENDS = "group_ends"
"""The ops that make groups."""


def grouped_gemm(x: Array, w: Array, ends: Array) -> Array:
    """Return the products of groups of rows of ``x``, each with its matrix of ``w``.

    Group ``g`` ends before row ``ends[g]``, and begins where the one before it ends. Rows behind
    the last group are 0.

    >>> x, w = np.ones((3, 2)), np.array([[[1.0], [1.0]], [[5.0], [5.0]]])
    >>> grouped_gemm(x, w, np.array([1, 2])).tolist()
    [[2.0], [10.0], [0.0]]
    """
    bounds = group_bounds(ends, len(x))
    rest = np.zeros((len(x) - bounds[-1], w.shape[-1]), np.result_type(x, w))
    groups = zip(w, bounds, bounds[1:], strict=False)
    return np.concatenate([*(x[a:b] @ matrix for matrix, a, b in groups), rest])


def scaled_grouped_gemm(
    x: Array, w: Array, *scales_and_ends: Array, block_a: tuple[int, ...], block_b: tuple[int, ...]
) -> Array:
    """Return the products of groups of rows of ``x``, in which each block of K has its scales."""
    *scales, ends = scales_and_ends
    bounds = group_bounds(ends, len(x))
    result = np.zeros((len(x), w.shape[-1]))
    for group, (first, last) in enumerate(pairwise(bounds)):
        of_rows = [scales[0][first:last]] if block_a else []
        of_matrix = [scales[-1][group]] if block_b else []
        result[first:last] = scaled_gemm(
            x[first:last], w[group], *of_rows, *of_matrix, block_a=block_a, block_b=block_b
        )
    return result


def grouped_gemm_k(x: Array, y: Array, ends: Array) -> Array:
    """Return the product of each group of columns of ``x`` and the same rows of ``y``.

    >>> x, y = np.ones((1, 3)), np.array([[1.0], [10.0], [100.0]])
    >>> grouped_gemm_k(x, y, np.array([2, 2, 3])).ravel().tolist()
    [11.0, 0.0, 100.0]
    """
    bounds = group_bounds(ends, len(y))
    shape = (len(ends), x.shape[0], y.shape[1])
    products = [x[:, a:b] @ y[a:b] for a, b in pairwise(bounds)]
    return np.array(products, np.result_type(x, y)).reshape(shape)


def group_bounds(ends: Array, count: int) -> Array:
    """Return where groups begin, and where the last one ends; none reaches beyond ``count``.

    >>> group_bounds(np.array([1, 0, 9]), 4).tolist()
    [0, 1, 1, 4]
    """
    return np.clip(np.maximum.accumulate([0, *ends.tolist()]), 0, count).astype(int)


def group_ends(ids: Array, shape: Sequence[int]) -> Array:
    """Return how many ids are of groups up to each.

    >>> group_ends(np.array([2, 0, 7, 2, -1]), (3,)).tolist()
    [1, 1, 3]
    """
    inside = ids[(ids >= 0) & (ids < shape[0])].astype(np.intp)
    return np.cumsum(np.bincount(inside, minlength=shape[0]))


def group_order(ids: Array, ends: Array) -> Array:
    """Return the places of ids in the order of their groups; in a group they stay in order.

    >>> group_order(np.array([2, 0, 7, 2, -1]), np.zeros(3)).tolist()
    [1, 0, 3, 2, 4]
    """
    inside = (ids >= 0) & (ids < len(ends))
    return np.argsort(np.where(inside, ids, len(ends)), kind="stable")


def _shape(
    shapes: tuple[Shape, ...], _attrs: Mapping[str, Attr], _declared: Shape | None
) -> Shape | None:
    x, w, ends = shapes
    if (len(x), len(w), len(ends)) != (2, 3, 1) or x[1] != w[1] or w[0] != ends[0]:
        return None
    return (x[0], w[2])


def _scaled_shape(
    shapes: tuple[Shape, ...], attrs: Mapping[str, Attr], _declared: Shape | None
) -> Shape | None:
    """Return the result's; rows have scales of their own, since groups begin anywhere."""
    x, w, *scales, ends = shapes
    result = _shape((x, w, ends), {}, None)
    block = attrs["block_a"]
    if result is None or (block and block[0] != 1):  # type: ignore[index]
        return None
    return result if rules.are_blocked((x, w), scales, attrs) else None


def _scaled_dtype(dtypes: tuple[DType, ...], attrs: Mapping[str, Attr]) -> DType | None:
    return SCALED_DTYPE.apply(dtypes[:-1], attrs) if dtypes[-1] == i32 else None


def _shape_k(
    shapes: tuple[Shape, ...], _attrs: Mapping[str, Attr], _declared: Shape | None
) -> Shape | None:
    x, y, ends = shapes
    if (len(x), len(y), len(ends)) != (2, 2, 1) or x[1] != y[0]:
        return None
    return (ends[0], x[0], y[1])


def _dtype(dtypes: tuple[DType, ...], attrs: Mapping[str, Attr]) -> DType | None:
    return GEMM_DTYPE.apply(dtypes[:2], attrs) if dtypes[2] == i32 else None


def _ends_shape(
    shapes: tuple[Shape, ...], _attrs: Mapping[str, Attr], declared: Shape | None
) -> Shape | None:
    (ids,) = shapes
    return declared if declared and len(ids) == len(declared) == 1 else None


def _order_shape(
    shapes: tuple[Shape, ...], _attrs: Mapping[str, Attr], _declared: Shape | None
) -> Shape | None:
    ids, ends = shapes
    return ids if len(ids) == len(ends) == 1 else None


ENDS_SHAPE = ShapeRule(
    text="ids of one axis; the result has one of groups", apply=_ends_shape, declared=True
)
ORDER_SHAPE = ShapeRule(text="ids and ends of one axis; that of the ids", apply=_order_shape)
IDS_DTYPE = DTypeRule(
    text="ids of i32 or i64, ends of i32; gives i32",
    apply=lambda dtypes, attrs: (
        i32 if dtypes[0] in INDEX_DTYPES and dtypes[1:] in ((), (i32,)) else None
    ),
)
GROUPED_SHAPE = ShapeRule(text="[M, K], [G, K, N] and [G] give [M, N]", apply=_shape)
GROUPED_K_SHAPE = ShapeRule(text="[M, K], [K, N] and [G] give [G, M, N]", apply=_shape_k)
SCALED_GROUPED_SHAPE = ShapeRule(
    text="those of grouped_gemm, with the scales of scaled_gemm before the ends; blocks of x are "
    "of one row",
    apply=_scaled_shape,
)
SCALED_GROUPED_DTYPE = DTypeRule(text=f"{SCALED_DTYPE.text}; ends are i32", apply=_scaled_dtype)
GROUPED_DTYPE = DTypeRule(text=f"{GEMM_DTYPE.text}; ends are i32", apply=_dtype)
