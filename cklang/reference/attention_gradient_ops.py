# SPDX-License-Identifier: MIT
"""How far right kernels may be from the ops of :mod:`cklang.ir.attention_gradients`.

As in :mod:`cklang.reference.attention_grad`, but weights come from the log-sum-exps that the
program has, and the sums along heads are its own too.
"""

from collections.abc import Sequence

import numpy as np

from cklang.ir.attention import LENGTHS, group_size, sequences
from cklang.ir.attention_gradients import DERIVATIVE, GRADIENTS, MORE, forward_of
from cklang.ir.nodes import Function, Operation
from cklang.ir.score_derivative import is_one
from cklang.reference.attention import (
    WEIGHTS,
    Rows,
    cut,
    derivative_of,
    factor_of,
    given_of,
    kept_of,
    keys_at,
    rows_of,
    shared_heads,
    turned,
)
from cklang.reference.op_bounds import flushable
from cklang.reference.sums import UNIT, Known, finite, float_sums, gamma
from cklang.types import Dim, by_name


def times(x: Known, y: Known) -> Known:
    """Return the product of each two elements."""
    value = x.value * y.value
    size_x, size_y = np.abs(finite(x.value)), np.abs(finite(y.value))
    off = size_x * finite(y.error) + size_y * finite(x.error) + finite(x.error) * finite(y.error)
    # Nothing that is masked has a gradient, whatever its score.
    wild = (np.isinf(x.error) | np.isinf(y.error) | ~np.isfinite(value)) & (x.value != 0)
    wild |= np.isinf(x.error)
    return Known(value=finite(value), error=np.where(wild, np.inf, off + 4 * UNIT * np.abs(value)))


def narrowed(known: Known, grain: float, least: float, step: float) -> Known:
    """Return what is known of values after they were rounded to the element type."""
    size = np.abs(known.value) + finite(known.error)
    lost = np.where((size > 0) & (size < 2 * least), np.minimum(size, step), 0.0)
    return Known(value=known.value, error=known.error + grain * size + lost)


def multiplied(left: Known, right: Known) -> Known:
    """Return a matrix product that may be added up in parts."""
    value, off, magnitude = float_sums(left, right)
    wild = np.isinf(left.error).any(-1, keepdims=True)
    return Known(value=value, error=np.where(wild, np.inf, off + 8 * UNIT * magnitude))


def scaled(known: Known, factor: float) -> Known:
    """Return values times a factor."""
    value = factor * known.value
    return Known(value=value, error=abs(factor) * known.error + 4 * UNIT * np.abs(finite(value)))


def added(known: Known, count: int) -> Known:
    """Return the sum over the ``count`` heads that share one of the keys."""
    batch, heads, *rest = known.value.shape
    value, off = (
        array.reshape(batch, heads // max(count, 1), count, *rest)
        for array in (known.value, known.error)
    )
    magnitude = (np.abs(finite(value)) + finite(off)).sum(2)
    return Known(value=value.sum(2), error=off.sum(2) + gamma(count) * magnitude)


def gradient_attended(
    operation: Operation, operands: Sequence[Known], dims: dict[Dim, int]
) -> Known:
    """Return the result of the gradient of an attention by one operand, with its error."""
    forward, dtype = forward_of(operation), operation.operands[0].type.dtype
    by_role = given_of(forward, operands[:-MORE])
    g, lse, inner = operands[-MORE:]
    more = (flushable(g, dtype), lse, inner)
    if by_role[LENGTHS[0]]:
        return _with_lengths(operation, by_role, more, dims)
    if not by_role["starts_q"]:
        return _piece(operation, by_role, more, dims, 0)
    side = GRADIENTS[operation.op]
    shape = operation.result.type.extents(by_name(dims))
    result = Known(value=np.zeros(shape), error=np.zeros(shape))
    starts = (by_role[name][0].value for name in ("starts_q", "starts_k"))
    for b, (rows, keys) in enumerate(sequences(*starts)):
        places = {"q": rows, "k": keys, "v": keys}
        own = {name: [cut(by_role[name][0], at)] for name, at in places.items()}
        parts = (cut(more[0], rows), *(_of_rows(array, rows) for array in more[1:]))
        part = _piece(operation, by_role | own, parts, dims, b)
        result.value[places[side]] = part.value[0].swapaxes(0, 1)
        result.error[places[side]] = part.error[0].swapaxes(0, 1)
    return result


def _with_lengths(
    operation: Operation,
    by_role: dict[str, list[Known]],
    more: Sequence[Known],
    dims: dict[Dim, int],
) -> Known:
    """Return the gradient of sequences that have as many keys as their lengths say."""
    side = GRADIENTS[operation.op]
    shape = operation.result.type.extents(by_name(dims))
    result = Known(value=np.zeros(shape), error=np.zeros(shape))
    for b, length in enumerate(by_role[LENGTHS[0]][0].value.tolist()):
        q, *rows = (_one(array, b) for array in (by_role["q"][0], *more))
        own = by_role | {"q": [q]} | keys_at(by_role, b)
        part = _piece(operation, own, rows, dims, b)
        keys = {"q": (), "s": (..., slice(length))}.get(side, (slice(None), slice(length)))
        result.value[b][keys] = part.value[0]
        result.error[b][keys] = part.error[0]
    return result


def _one(known: Known, b: int) -> Known:
    """Return one of a batch as a batch of its own."""
    return Known(value=known.value[b : b + 1], error=known.error[b : b + 1])


def _of_rows(known: Known, rows: slice) -> Known:
    """Return numbers [H, N] of one packed sequence as a batch of its own."""
    return Known(value=known.value[None, :, rows], error=known.error[None, :, rows])


def _piece(
    operation: Operation,
    by_role: dict[str, list[Known]],
    more: Sequence[Known],
    dims: dict[Dim, int],
    first: int,
) -> Known:
    """Return the gradient of whole tensors whose first batch index is ``first``."""
    forward, dtype = forward_of(operation), operation.operands[0].type.dtype
    g, lse, inner = more
    rows = rows_of(forward, by_role, dims, first)
    heads, (q,) = rows.weights.shape[1], by_role["q"]
    k, v = (shared_heads(by_role[name][0], heads) for name in ("k", "v"))
    keep = kept_of(forward, by_role, rows, first)
    p = _weights(rows, lse)
    side = GRADIENTS[operation.op]
    scale = factor_of(forward, q.value.shape[3])
    count = group_size(heads, by_role["k"][0].value.shape[1])
    if side == "v":
        used = narrowed(times(p, Known.exact(keep)), *WEIGHTS[dtype.name])
        return added(multiplied(turned(used), g), count)
    plain, off, _ = float_sums(g, turned(v))
    dp, off = keep * plain, keep * off + 4 * UNIT * np.abs(keep * plain) * (keep != 1)
    factor = 1.0 - float(np.float32(str(forward.attr("dropout"))))
    d, d_error = (array[..., None] / factor for array in (inner.value, inner.error))
    by_weight = Known(value=dp - d, error=off + d_error + 6 * UNIT * (np.abs(dp) + np.abs(d)))
    by_score, derivative = times(p, by_weight), operation.attr(DERIVATIVE)
    if isinstance(derivative, Function) and not is_one(derivative):
        by_score = times(by_score, derivative_of(forward, derivative, by_role, dims, first))
    ds = narrowed(by_score, *WEIGHTS[dtype.name])
    if side == "s":
        return ds
    if side == "q":
        return scaled(multiplied(ds, k), scale)
    return added(scaled(multiplied(turned(ds), q), scale), count)


def _weights(rows: Rows, lse: Known) -> Known:
    """Return exp(score - lse); 0 in rows without weights."""
    empty = rows.total == 0
    middle = np.where(empty[..., 0], 0.0, lse.value)[..., None]
    wide = np.where(empty[..., 0], 0.0, lse.error)[..., None]
    factor = np.exp(np.where(empty, 0.0, rows.center) - middle)
    value = np.where(empty, 0.0, rows.weights * factor)
    size = np.where(np.isfinite(middle), np.abs(middle), 0.0)
    moved = (1 + rows.relative) * np.exp(finite(wide) + 8 * UNIT * (size + 1)) - 1
    wild = np.isinf(moved) | np.isinf(wide) | (value != value)
    return Known(value=value, error=np.where(wild, np.inf, value * finite(moved)))
