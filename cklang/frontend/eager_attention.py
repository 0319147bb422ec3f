# SPDX-License-Identifier: MIT
"""``ck.attention`` on NumPy arrays, outside any program."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from cklang.errors import error
from cklang.frontend.ops.masks import Blocks, Joined, Mask, Window, visible
from cklang.frontend.other_names import SCORE_PARAMETERS
from cklang.ir.attention import (
    INDICES,
    LENGTHS,
    MIN_QUERIES,
    PAGE_STARTS,
    PAGES,
    SEEDS,
    STARTS,
    attend,
    element,
    log_sum,
)
from cklang.ir.attention_lists import OPTIONS, Extents, check_lists
from cklang.ir.numeric import Array


def eager_attention(
    q: Any,
    k: Any,
    v: Any,
    *,
    scale: float | str,
    mask: Mask | Callable[..., Any] | None,
    score: Callable[..., Any] | None,
    dropout: float,
    seed: Any,
    offset: Any,
    cu_seqlens_q: Any,
    cu_seqlens_k: Any,
    seqlens_k: Any,
    block_table: Any,
    page_starts: Any,
    min_seqlen_q: Any,
    return_lse: bool,
) -> Any:
    """Return o, or (o, lse): float64, computed as :mod:`cklang.ir.attention` says."""
    operands = [np.asarray(tensor).astype(np.float64) for tensor in (q, k, v)]
    roles = ["q", "k", "v"]
    if dropout:
        operands += [np.asarray(seed), np.asarray(offset)]
        roles += SEEDS
    lists = (cu_seqlens_q, cu_seqlens_k, seqlens_k, block_table, page_starts, min_seqlen_q)
    names = (*STARTS, *LENGTHS, *PAGES, *PAGE_STARTS, *MIN_QUERIES)
    index_arrays = {
        role: np.asarray(array)
        for role, array in zip(names, lists, strict=True)
        if array is not None
    }
    operands += index_arrays.values()
    roles += index_arrays
    _check_lists(index_arrays, operands[0], operands[1])
    attrs: dict[str, Any] = {
        "roles": roles,
        "scale": scale if isinstance(scale, str) else float(scale),
        "dropout": dropout,
        "score": _by_name(score, ("s", *INDICES), lambda s, *_: s),
        "mask": mask_function(mask),
    }
    o = attend(*operands, **attrs)
    return (o, log_sum(*operands, **attrs)) if return_lse else o


def _check_lists(lists: Mapping[str, Array], q: Array, k: Array) -> None:
    """Raise A056 for an element of an index array that is out of its range."""
    packed, paged = STARTS[0] in lists, PAGES[0] in lists
    extents = Extents(
        rows=q.shape[0 if packed else 2],
        keys=k.shape[0 if packed and not paged else 2],
        pages=k.shape[0],
    )
    check_lists(lists, OPTIONS, extents)


def mask_function(mask: Mask | Callable[..., Any] | None) -> Callable[..., Array]:
    """Return a mask as a function of all indices."""
    if isinstance(mask, Window):
        return lambda _b, _h, i, j, q_len, k_len: visible(mask, i, j, q_len, k_len)
    if isinstance(mask, Joined):
        left, right = mask_function(mask.left), mask_function(mask.right)
        join = {"&": np.logical_and, "|": np.logical_or}[mask.sign]
        return lambda *indices: np.asarray(join(left(*indices), right(*indices)))
    if isinstance(mask, Blocks):
        return _in_blocks(mask)
    if isinstance(mask, Mask):
        raise error("Z002", what=f"the mask {mask} has no meaning")
    return _by_name(mask, INDICES, lambda *_: np.True_)


def _in_blocks(mask: Blocks) -> Callable[..., Array]:
    blocks, (rows, keys), inner = np.asarray(mask.blocks), mask.size, mask_function(mask.mask)

    def shown(b: Any, h: Any, i: Any, j: Any, *lengths: Any) -> Array:
        block = element(blocks, b, h, i // rows, j // keys)
        if mask.mask is None:
            return np.asarray(block > 0)
        return np.asarray((block == 2) | ((block == 1) & inner(b, h, i, j, *lengths)))

    return shown


def _by_name(
    function: Callable[..., Any] | None, names: tuple[str, ...], default: Callable[..., Any]
) -> Callable[..., Any]:
    """Return a function of all of ``names`` that calls ``function`` with those that it has."""
    if function is None:
        return default
    wanted = {
        name: SCORE_PARAMETERS.get(name, name) for name in inspect.signature(function).parameters
    }

    def call(*values: Any) -> Any:
        known = dict(zip(names, values, strict=True))
        return function(**{name: known[meaning] for name, meaning in wanted.items()})

    return call
