# SPDX-License-Identifier: MIT
"""How far right kernels may be from the ops ``attention_dq``, ``attention_dk``, ``attention_dv``.

As in :mod:`cklang.reference.attention_grad`, but weights come from the log-sum-exps that the
program has, and the sums along heads are its own too.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cklang.ir.attention import group_size
from cklang.ir.attention_gradients import GRADIENTS, MORE, forward_of
from cklang.ir.nodes import Operation
from cklang.reference.attention import (
    WEIGHTS,
    Rows,
    factor_of,
    given_of,
    rows_of,
    shared_heads,
    turned,
)
from cklang.reference.attention_steps import added, multiplied, narrowed, scaled, times
from cklang.reference.op_bounds import flushable
from cklang.reference.sums import UNIT, Known, finite, float_sums
from cklang.types import Dim

__all__ = ["gradient_attended"]


def gradient_attended(
    operation: Operation, operands: Sequence[Known], dims: dict[Dim, int]
) -> Known:
    """Return the result of the gradient of an attention by one operand, with its error."""
    forward, dtype = forward_of(operation), operation.operands[0].type.dtype
    by_role = given_of(forward, operands[:-MORE])
    g, lse, inner = operands[-MORE:]
    g = flushable(g, dtype)
    rows = rows_of(forward, by_role, dims, 0)
    heads, (q,) = rows.weights.shape[1], by_role["q"]
    k, v = (shared_heads(by_role[name][0], heads) for name in ("k", "v"))
    p = _weights(rows, lse)
    side = GRADIENTS[operation.op]
    scale = factor_of(forward, q.value.shape[3])
    count = group_size(heads, by_role["k"][0].value.shape[1])
    if side == "v":
        return added(multiplied(turned(narrowed(p, *WEIGHTS[dtype.name])), g), count)
    dp, off, _ = float_sums(g, turned(v))
    d, d_error = inner.value[..., None], inner.error[..., None]
    by_weight = Known(value=dp - d, error=off + d_error + 4 * UNIT * (np.abs(dp) + np.abs(d)))
    ds = narrowed(times(p, by_weight), *WEIGHTS[dtype.name])
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
