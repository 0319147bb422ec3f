# SPDX-License-Identifier: MIT
"""Layers of experts, which are written in the language."""

from typing import Any

from cklang.frontend import functions as ck
from cklang.frontend.composite import composite

__all__ = ["moe"]


@composite
def moe(
    x: Any,
    w_gate_up: Any,
    w_down: Any,
    ids: Any,
    weights: Any,
    activation: Any = None,
    *,
    ordered: Any = False,
) -> Any:
    """What each token's experts make of it, weighed and added: a mixture of experts, in f32.

    An expert ``e`` computes ``activation(gate, up) @ w_down[e].T``, where ``gate`` and ``up`` are
    the halves of the columns of ``x @ w_gate_up[e].T``; without an activation ``silu(gate) * up``.
    Token ``t`` goes to the experts ``ids[t]``; those that there are not give nothing.

    Example:
        >>> x, ids = np.array([[1.0], [2.0]]), np.array([[0, 1], [1, 9]])
        >>> up, down = np.array([[[30.0], [1.0]], [[30.0], [2.0]]]) , np.ones((2, 1, 1))
        >>> ck.moe(x, up, down, ids, np.array([[1.0, 10.0], [1.0, 1.0]]))
        array([[630.],
               [240.]])
    """
    size = w_down.shape[2]
    order, ends = ck.group_ids(ck.reshape(ids, (-1,)), w_down.shape[0])
    rows = order // ids.shape[1]
    sums = ck.grouped_gemm(ck.take(x, rows), ck.swapaxes(w_gate_up, 1, 2), ends)
    gate, up = sums[:, :size], sums[:, size:]
    hidden = ck.silu(gate) * up if activation is None else activation(gate, up)
    result = ck.grouped_gemm(ck.cast(hidden, w_down.dtype), ck.swapaxes(w_down, 1, 2), ends)
    by = ck.take(ck.reshape(weights, (-1,)), order)
    # Rows behind the last group go nowhere.
    inside = ck.arange(order.shape[0]) < ends[-1:]
    tokens = ck.where(inside, rows, x.shape[0])
    return ck.segment_sum(result * by[:, None], tokens, x.shape[0], ordered=ordered)
