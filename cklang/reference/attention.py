# SPDX-License-Identifier: MIT
"""How far a right attention kernel may be from its reference.

A kernel computes weights p relative to a running maximum, in f32, and rounds them to the dtype of
v for the second product. A score that is e off moves its weight by a factor of exp(e). The running
maximum and the factors by which earlier sums are multiplied when it grows are the same for the sum
of weights and for the weighted values: they cancel in o, but for the rounding of the products.
With N = sum p v and L = sum p the quotient moves by at most (dN + |o| dL) / (L - dL).

The scores' error is that of a product, of the scaling, and of the region ``score`` by the
mechanism of :mod:`cklang.reference.bounds`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cklang.errors import error
from cklang.ir.attention import (
    LENGTHS,
    MIN_QUERIES,
    PAGE_STARTS,
    PAGES,
    ROLES,
    dropped,
    group_size,
    index_arrays,
    keys_of,
    one_sequence,
    scale_of,
    sequences,
    skipped,
    softmax_sums,
    table_of,
    weight_scale,
)
from cklang.ir.nodes import Function, Operation
from cklang.ir.numeric import Array
from cklang.reference.op_bounds import flushable, run_region
from cklang.reference.sums import UNIT, Known, finite, float_sums, gamma
from cklang.types import Dim, by_name

WEIGHTS = {
    "f16": (2.0**-10, 2.0**-14, 2.0**-14),
    "bf16": (2.0**-7, 2.0**-126, 2.0**-126),
    "f32": (0.0, 2.0**-126, 2.0**-126),
    "fp8": (2.0**-3, 2.0**-6, 2.0**-9),
    "fp8_fnuz": (2.0**-3, 2.0**-7, 2.0**-10),
    "bf8": (2.0**-2, 2.0**-14, 2.0**-16),
    "bf8_fnuz": (2.0**-2, 2.0**-15, 2.0**-17),
}
"""How far rounding moves a weight, relative to it, and below which weight it is lost altogether.
CK Tile rounds weights toward zero to f16 and bf16, and may round those of 8 bits at random."""

# The exponent is a product with log2(e), rounded, minus another one; the difference is rounded too.
_EXPONENT = 4 * UNIT
# exp2 of the hardware, and the steps around it.
_EXP = 8 * UNIT
# The fewest key rows that a kernel takes at once.
_LEAST_TILE = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Weights of all rows: exp(s - max), their sums, and the relative error of each weight."""

    score: Array
    weights: Array
    total: Array
    center: Array
    relative: Array
    blocks: int
    """How often a kernel may have rescaled its sums."""


def attended(operation: Operation, operands: Sequence[Known], dims: dict[Dim, int]) -> Known:
    """Return the result of ``attention`` or ``attention_lse`` with its error.

    ``operands`` are those of the operation; values are wide, errors absolute.
    """
    by_role = given_of(operation, operands)
    if by_role["starts_q"]:
        return _packed(operation, by_role, dims)
    if by_role[LENGTHS[0]]:
        return _with_lengths(operation, by_role, dims)
    return _piece(operation, by_role, dims, 0)


def given_of(operation: Operation, operands: Sequence[Known]) -> dict[str, list[Known]]:
    """Return the operands of an attention by their roles."""
    by_role: dict[str, list[Known]] = {role: [] for role in ROLES}
    roles = operation.attr("roles")
    if not isinstance(roles, tuple):
        raise error("Z002", what="attention without roles passes its rules")
    for operand, value, role in zip(operands, operation.operands, roles, strict=True):
        known = flushable(operand, value.type.dtype) if role in ("q", "k", "v") else operand
        by_role[str(role)].append(known)
    return by_role


def _piece(
    operation: Operation, by_role: dict[str, list[Known]], dims: dict[Dim, int], first: int
) -> Known:
    """Return the result of a batch whose first index is ``first``."""
    rows = rows_of(operation, by_role, dims, first)
    if operation.op == "attention_lse":
        return lse_of(rows)
    return output_of(operation, by_role, rows, first)


def _with_lengths(
    operation: Operation, by_role: dict[str, list[Known]], dims: dict[Dim, int]
) -> Known:
    """Return the result of sequences that have as many keys as their lengths say."""
    (q,), (lengths,) = by_role["q"], by_role[LENGTHS[0]]
    shape = operation.result.type.extents(by_name(dims))
    value, error = np.zeros(shape), np.zeros(shape)
    for b in range(len(lengths.value)):
        cut = {"q": [Known(value=q.value[b : b + 1], error=q.error[b : b + 1])]}
        result = _piece(operation, by_role | cut | keys_at(by_role, b), dims, b)
        value[b], error[b] = result.value[0], result.error[0]
    return Known(value=value, error=error)


def keys_at(by_role: dict[str, list[Known]], b: int) -> dict[str, list[Known]]:
    """Return k and v of sequence ``b``, which has a length of its own."""
    lengths = by_role[LENGTHS[0]][0].value
    lists = [next(iter(by_role[role]), None) for role in (*PAGES, *PAGE_STARTS)]
    table = table_of(b, *(None if known is None else known.value for known in lists))
    keys = {}
    for role in ("k", "v"):
        (known,) = by_role[role]
        parts = [keys_of(b, x, int(lengths[b]), table) for x in (known.value, known.error)]
        keys[role] = [Known(value=parts[0], error=parts[1])]
    return keys


def _packed(operation: Operation, by_role: dict[str, list[Known]], dims: dict[Dim, int]) -> Known:
    """Return the result of packed sequences; of rows not written nothing is known."""
    (q,), (k,), (v,) = by_role["q"], by_role["k"], by_role["v"]
    rows, heads = q.value.shape[:2]
    is_lse = operation.op == "attention_lse"
    shape = (heads, rows) if is_lse else (rows, heads, v.value.shape[-1])
    value, error = np.zeros(shape), np.full(shape, np.inf)
    (starts_q,) = by_role["starts_q"]
    starts_k = by_role["starts_k"][0] if by_role["starts_k"] else starts_q
    least = next((known.value for known in by_role[MIN_QUERIES[0]]), None)
    for b, (mine, theirs) in enumerate(sequences(starts_q.value, starts_k.value)):
        if skipped(mine, least):
            continue
        keys = (
            keys_at(by_role, b)
            if by_role[LENGTHS[0]]
            else {"k": [cut(k, theirs)], "v": [cut(v, theirs)]}
        )
        result = _piece(operation, by_role | {"q": [cut(q, mine)]} | keys, dims, b)
        for full, part in ((value, result.value[0]), (error, result.error[0])):
            if is_lse:
                full[:, mine] = part
            else:
                full[mine] = part.swapaxes(0, 1)
    return Known(value=value, error=error)


def cut(known: Known, rows: slice) -> Known:
    """Return what is known of one packed sequence as a batch of its own."""
    return Known(value=one_sequence(known.value, rows), error=one_sequence(known.error, rows))


def rows_of(
    operation: Operation, by_role: dict[str, list[Known]], dims: dict[Dim, int], first: int
) -> Rows:
    """Return the weights of sequences whose first batch index is ``first``."""
    (q,), (k,) = by_role["q"], by_role["k"]
    plain, off, _ = float_sums(q, turned(shared_heads(k, q.value.shape[1])))
    scored = _scored(
        operation, Known(value=plain, error=off), q.value.shape[3], by_role["read"], dims, first
    )
    weights, total, center = softmax_sums(scored.value)
    blocks = scored.value.shape[3] // _LEAST_TILE + 2
    size = np.where(np.isfinite(scored.value), np.abs(scored.value), 0.0) + np.abs(center)
    moved = scored.error + _EXPONENT * size + _EXP + 2 * blocks * UNIT
    relative = np.where(weights == 0, np.where(np.isfinite(scored.error), 0.0, np.inf), moved)
    return Rows(
        score=scored.value,
        weights=weights,
        total=total,
        center=center,
        relative=np.expm1(relative),
        blocks=blocks,
    )


def _scored(
    operation: Operation,
    plain: Known,
    head_size: int,
    reads: Sequence[Known],
    dims: dict[Dim, int],
    first: int,
) -> Known:
    """Return the scores after scale, region and mask; a mask that may be either leaves no bound."""
    score, mask = operation.attr("score"), operation.attr("mask")
    if not isinstance(score, Function) or not isinstance(mask, Function):
        raise error("Z002", what="attention without regions passes its rules")
    scaled = _scaled(operation, plain, head_size)
    value = scaled.value
    indices = [Known.exact(index_array) for index_array in index_arrays(value.shape, first)]
    moved = run_region(score, [scaled, *indices, *reads], dims)
    kept = run_region(mask, [*indices, *reads], dims)
    wild = np.broadcast_to(kept.error, value.shape) | np.isnan(moved.error)
    visible = np.broadcast_to(kept.value, value.shape)
    off = np.where(visible, np.broadcast_to(moved.error, value.shape), 0.0)
    return Known(
        value=np.where(visible, np.broadcast_to(moved.value, value.shape), -np.inf),
        error=np.where(wild, np.inf, off),
    )


def _scaled(operation: Operation, plain: Known, head_size: int) -> Known:
    """Return products of q and k as the score function takes them."""
    factor = factor_of(operation, head_size)
    value = factor * plain.value
    size = np.where(np.isfinite(value), np.abs(value), 0.0)
    return Known(value=value, error=abs(factor) * plain.error + 4 * UNIT * size + 2.0**-126)


def derivative_of(
    operation: Operation,
    derivative: Function,
    by_role: dict[str, list[Known]],
    dims: dict[Dim, int],
    first: int,
) -> Known:
    """Return the derivatives of scores whose first batch is ``first``, a region like the score."""
    (q,), (k,) = by_role["q"], by_role["k"]
    plain, off, _ = float_sums(q, turned(shared_heads(k, q.value.shape[1])))
    scaled = _scaled(operation, Known(value=plain, error=off), q.value.shape[3])
    indices = [Known.exact(index_array) for index_array in index_arrays(plain.shape, first)]
    slope = run_region(derivative, [scaled, *indices, *by_role["read"]], dims)
    value, error = (np.broadcast_to(part, plain.shape) for part in (slope.value, slope.error))
    return Known(value=value, error=np.where(np.isnan(error), np.inf, error))


def factor_of(operation: Operation, head_size: int) -> float:
    """Return what the products of q and k are multiplied by."""
    scale = operation.attr("scale")
    return float(scale_of(scale if isinstance(scale, str) else _f32(scale), head_size))


def kept_of(operation: Operation, by_role: dict[str, list[Known]], rows: Rows, first: int) -> Array:
    """Return what dropout multiplies each weight by: 0, or one over the probability that keeps."""
    seeds = [int(seed.value) for seed in (*by_role["seed"], *by_role["offset"])] or [0, 0]
    dropout = _f32(operation.attr("dropout"))
    return dropped(rows.weights.shape, dropout, seeds[0], seeds[1], first)


def turned(known: Known) -> Known:
    """Return matrices with their axes exchanged."""
    return Known(value=np.swapaxes(known.value, 2, 3), error=np.swapaxes(known.error, 2, 3))


def _f32(number: object) -> float:
    return float(np.float32(number))  # type: ignore[arg-type]


def shared_heads(known: Known, heads: int) -> Known:
    """Return keys or values with a head for each of ``heads`` query heads."""
    count = group_size(heads, known.value.shape[1])
    return Known(
        value=np.repeat(known.value, count, axis=1), error=np.repeat(known.error, count, axis=1)
    )


def _total_error(rows: Rows) -> Array:
    """Return how far the sum of weights may be off."""
    relative = (1 + rows.relative) * (1 + gamma(rows.weights.shape[3])) - 1
    return _sum(rows.weights, relative)


def _sum(weights: Array, moved: Array) -> Array:
    """Return the sum of products along keys; an infinite error counts however small its weight."""
    wild = np.isinf(moved).any(axis=-1, keepdims=True)
    finite = np.where(np.isinf(moved), 0.0, moved)
    return np.where(wild, np.inf, (weights * finite).sum(axis=-1, keepdims=True))


def output_of(
    operation: Operation, by_role: dict[str, list[Known]], rows: Rows, first: int
) -> Known:
    """Return o of sequences whose first batch index is ``first``."""
    v = shared_heads(by_role["v"][0], rows.weights.shape[1])
    factors = kept_of(operation, by_role, rows, first)
    kept = rows.weights * factors
    value = np.where(rows.total == 0, 0.0, kept @ v.value / _nonzero(rows.total))
    dtype = operation.operands[2].type.dtype
    grain, least, step = WEIGHTS[dtype.name]
    least, step = least / weight_scale(dtype), step / weight_scale(dtype)
    moved = (1 + rows.relative) * (1 + grain + 2 * UNIT) * (1 + gamma(kept.shape[3])) - 1
    small = (rows.weights > 0) & (rows.weights < 2 * least)
    lost = np.where(small, np.minimum(kept, step * factors), 0.0)
    v_error = finite(v.error)
    passed = (kept * finite(moved) + lost) @ (np.abs(finite(v.value)) + v_error)
    passed += kept @ v_error
    off = _total_error(rows)
    size = np.abs(finite(value))
    bound = (passed + size * off) / _nonzero(rows.total - off) + 8 * UNIT * size + 2.0**-122
    # A value that is not finite below a weight that a kernel may take for zero may count or not.
    faint = (rows.weights < 4 * least).astype(np.float64)
    strange = (~np.isfinite(v.value) | ~np.isfinite(v.error)).astype(np.float64)
    bound = np.where(rows.total == 0, 0.0, bound)
    return _known(value, bound, _unsure(rows, off) | (faint @ strange > 0))


def _nonzero(x: Array) -> Array:
    return np.where(x == 0, 1.0, x)


def _unsure(rows: Rows, off: Array) -> Array:
    """Tell which rows are unbounded, since a weight or half the sum may be anything."""
    wild = np.isinf(rows.relative).any(axis=-1, keepdims=True)
    return np.asarray(wild | ((rows.total > 0) & (off >= rows.total / 2)))


def _known(value: Array, bound: Array, unsure: Array) -> Known:
    """Return a value with its bound: 0 where it is infinite or nan, which must be met in kind."""
    settled = np.where(np.isfinite(value), np.where(np.isnan(bound), np.inf, bound), 0.0)
    return Known(value=value, error=np.where(unsure, np.inf, settled))


def lse_of(rows: Rows) -> Known:
    """Return the logarithm of the sum of exponentials of each row."""
    value = rows.center + np.log(rows.total)
    off = _total_error(rows)
    size = np.abs(rows.center) + np.abs(finite(value))
    # Each time the maximum grows, the exponent of the factor is rounded: that stays in lse.
    rounded = (2 * rows.blocks + 16) * UNIT * (size + 1)
    bound = off / _nonzero(rows.total - off) + rounded
    known = _known(value, bound, _unsure(rows, off))
    return Known(value=known.value[..., 0], error=known.error[..., 0])
