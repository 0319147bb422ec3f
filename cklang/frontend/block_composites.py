# SPDX-License-Identifier: MIT
"""Blocks of scores that attention skips, which are computed in the language."""

from typing import Any

from cklang.frontend import functions as ck
from cklang.frontend.composite import composite

__all__ = ["block_mask", "listed_blocks"]


@composite
def block_mask(mask: Any, shape: Any, size: Any = (128, 128)) -> Any:
    """The blocks of scores that a mask hides (0), shows in part (1) or shows (2), in i32.

    ``shape`` is batch, heads, queries and keys; batch and heads are 1 if all have the same mask.

    Example:
        >>> ck.block_mask(ck.causal(), (1, 1, 5, 6), size=(2, 2))[0, 0]
        array([[1, 0, 0],
               [2, 1, 0],
               [2, 2, 1]])
    """
    batch, heads, queries, length = shape
    rows, keys = size
    across, along = (queries + rows - 1) // rows, (length + keys - 1) // keys
    # Behind the last row and the last key these follow again, which changes nothing.
    i = ck.minimum(ck.arange(across * rows), queries - 1)[:, None, None]
    j = ck.minimum(ck.arange(along)[:, None] * keys + ck.arange(keys), length - 1)
    b, h = ck.arange(batch)[:, None, None, None, None], ck.arange(heads)[:, None, None, None]
    seen = ck.where(ck.mask_at(mask, b=b, h=h, i=i, j=j, q_len=queries, k_len=length), 1, 0)
    by_row = ck.max(seen, axis=-1) + ck.min(seen, axis=-1)
    parts = ck.reshape(by_row, (batch, heads, across, rows, along))
    hidden, whole = ck.max(parts, axis=-2) == 0, ck.min(parts, axis=-2) == 2
    return ck.where(hidden, 0, ck.where(whole, 2, 1))


@composite
def listed_blocks(indices: Any, count: Any, lengths: Any = None, shown: Any = 2) -> Any:
    """``shown`` for each block of scores that lists name, 0 for others, in i32.

    The last axis of ``indices`` lists some of ``count`` blocks of keys; numbers outside of 0 to
    ``count - 1`` name none. If ``lengths`` are given, a list ends after so many.

    Example:
        >>> ck.listed_blocks(np.array([[0, 2], [1, -1]]), 4)
        array([[2, 0, 2, 0],
               [0, 2, 0, 0]])
    """
    is_named = indices[..., None, :] == ck.arange(count)[:, None]
    if lengths is not None:
        is_named = is_named & (ck.arange(indices.shape[-1]) < lengths[..., None, None])
    return ck.max(ck.where(is_named, shown, 0), axis=-1)
