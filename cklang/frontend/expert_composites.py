# SPDX-License-Identifier: MIT
"""Layers of experts, which are written in the language."""

from typing import Any

from cklang.frontend import functions as ck
from cklang.frontend.composite import composite
from cklang.types import f32, i8

__all__ = ["moe", "quantise"]


@composite
def quantise(x: Any, dtype: Any, block: Any = None) -> Any:
    """The last axis in a dtype of 4 or 8 bits and a scale of it, or of each block of it.

    A scale is the largest magnitude over that of the dtype; 1 of zeros.

    Example:
        >>> codes, scales = ck.quantise(np.array([[1.0, -254.0, 0.0, 0.0]]), ck.i8, 2)
        >>> codes.tolist(), scales.tolist()
        ([[0, -127, 0, 0]], [[2.0, 1.0]])
    """
    blocks = x
    if block is not None:
        blocks = ck.reshape(x, x.shape[:-1] + (x.shape[-1] // block, block))  # noqa: RUF005
    peak = ck.max(ck.abs(blocks), axis=-1)
    # Casts saturate.
    scale = ck.where(peak > 0, peak / ck.cast(ck.cast(1e6, dtype), f32), 1.0)
    codes = blocks / scale[..., None]
    if dtype == i8 or dtype == "int8":  # NumPy's own, outside a program
        codes = ck.round(codes)
    return ck.reshape(ck.cast(codes, dtype), x.shape), scale


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
    scale_gate_up: Any = None,
    scale_down: Any = None,
    block: Any = 128,
) -> Any:
    """What each token's experts make of it, weighed and added: a mixture of experts, in f32.

    An expert ``e`` computes ``activation(gate, up) @ w_down[e].T``, where ``gate`` and ``up`` are
    the halves of the columns of ``x @ w_gate_up[e].T``; without an activation ``silu(gate) * up``.
    Token ``t`` goes to the experts ``ids[t]``; those that there are not give nothing.

    Weights of 8 bits have scales of blocks in f32, ``scale_gate_up`` [E, 2 F / 128, D / 128] and
    ``scale_down`` [E, D / 128, F / 128]. Each ``block`` elements of a token are quantised then, of
    ``x`` and before the second product: divided by their largest magnitude over that of the dtype.

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
    up_t, down_t = ck.swapaxes(w_gate_up, 1, 2), ck.swapaxes(w_down, 1, 2)
    has_scales = scale_gate_up is not None
    assert has_scales == (scale_down is not None), "both weights have scales, or none"  # noqa: S101
    if not has_scales:
        sums = ck.grouped_gemm(ck.take(x, rows), up_t, ends)
        gate, up = sums[:, :size], sums[:, size:]
    else:
        codes, of_blocks = quantise(x, w_gate_up.dtype, block)
        codes, of_blocks = ck.take(codes, rows), ck.take(of_blocks, rows)
        scale_b = ck.swapaxes(scale_gate_up, 1, 2)
        sums = ck.grouped_gemm(codes, up_t, ends, scale_a=of_blocks, scale_b=scale_b)
        sums = ck.reshape(ck.cast(sums, x.dtype), (rows.shape[0], 2 * (size // block), block))
        gate, up = sums[:, : size // block], sums[:, size // block :]
    hidden = ck.silu(gate) * up if activation is None else activation(gate, up)
    if not has_scales:
        result = ck.grouped_gemm(ck.cast(hidden, w_down.dtype), down_t, ends)
    else:
        codes, of_blocks = quantise(hidden, w_down.dtype)
        codes = ck.reshape(codes, (rows.shape[0], size))
        scale_b = ck.swapaxes(scale_down, 1, 2)
        result = ck.grouped_gemm(codes, down_t, ends, scale_a=of_blocks, scale_b=scale_b)
    by = ck.take(ck.reshape(weights, (-1,)), order)
    # Rows behind the last group go nowhere.
    inside = ck.arange(order.shape[0]) < ends[-1:]
    tokens = ck.where(inside, rows, x.shape[0])
    return ck.segment_sum(result * by[:, None], tokens, x.shape[0], ordered=ordered)
