# SPDX-License-Identifier: MIT
"""Attention problems without arrays: what packed tensors would ask of a kernel.

Calls on which kernels are compared with the reference have legal lists of lengths and places. Where
all would take too long, a part is compared: some sequences, queries and keys of the same arrays, so
that strides, addresses and head sizes are the same.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt

from cklang.codec import enum_of, unknown
from cklang.dims import require_integer
from cklang.errors import error
from cklang.families.attention.host import AttentionProblem, AttentionTensor
from cklang.families.attention.key import AttentionSignature, MaskKind, ScoreKind
from cklang.families.attention.masks import WindowMask
from cklang.families.attention.plan import FusedAttention
from cklang.families.attention.problem import AttentionCase, AttentionGradCase, mask_kind
from cklang.fusion.functions import NO_FUNCTIONS, Functions
from cklang.ir.attention import PAGES, SEEDS, STARTS, group_size, scale_of
from cklang.types import Dim, DType, f16

_LAYOUTS = ("bhsd", "bshd")
_CORNERS = ("top_left", "bottom_right")


def attention_problem(
    batch: int,
    heads: int,
    queries: int,
    keys: int,
    head: int,
    *,
    kv_heads: int | None = None,
    head_v: int | None = None,
    dtype: DType = f16,
    o: DType | None = None,
    layout: str = "bhsd",
    scale: float | str = "auto",
    score: ScoreKind | str = "none",
    left: int | None = None,
    right: int | None = None,
    corner: str = "top_left",
    sink: int = 0,
    masked: bool = False,
    lse: bool = False,
    dropout: float = 0.0,
    packed: bool = False,
    page_size: int | None = None,
    alignment: int = 16,
    functions: Functions = NO_FUNCTIONS,
) -> AttentionCase:
    """Make the problem of an attention without arrays, as if all were packed.

    Args:
        batch: Sequences.
        heads: Of q and o.
        queries: Rows of q: of each sequence, or with ``packed`` of all.
        keys: Rows of k and v, likewise; with ``page_size`` a multiple of it.
        head: Elements of a row of q and k.
        kv_heads: Heads of k and v, a divisor of ``heads``; ``heads`` if left out.
        head_v: Elements of a row of v and o; ``head`` if left out.
        dtype: Element type of q, k and v.
        o: Of the result; that of q if left out.
        layout: Order of batch, heads, rows and elements: ``bhsd`` or ``bshd``.
        scale: Of the products, or "auto" for one over the root of ``head``.
        score: What happens to a score; an op's own is ``function``.
        left: Keys that a query sees before its own place; None for all. So for those after it.
        right: See ``left``; 0 is a causal mask.
        corner: Whether the first query stands at the first key (``top_left``) or the last at the
            last (``bottom_right``).
        sink: The first keys, which every query sees.
        masked: Whether a function of the user's masks too.
        lse: Whether the logarithm of the sum of exponentials is stored.
        dropout: The probability with which a weight is dropped.
        packed: Whether sequences of different lengths stand one after the other.
        page_size: Keys of a page, if they lie in pages.
        alignment: Of every address, in bytes.
        functions: Score and mask, by the names of their holes.

    Example:
        >>> print(ck.dispatch.attention_problem(1, 8, 128, 128, 64, kv_heads=2, right=0))
        attention of 1 x 8 heads on 2, 128 queries, 128 keys, head sizes 64 and 64, f16 to f16

    Raises:
        CkValueError: K001, K011, K030, a number or a name that no attention has; I045, heads that
            cannot share those of the keys.
    """
    kv_heads, head_v = kv_heads or heads, head_v or head
    numbers = {"batch": batch, "heads": heads, "queries": queries, "head": head, "head_v": head_v}
    _expect(numbers | {"keys": keys, "sink": sink}, page_size)
    _expect_known("layout", layout, _LAYOUTS)
    window = _window(left, right, corner, sink)
    group_size(heads, kv_heads)
    tensor = partial(_tensor, rows_first=layout == _LAYOUTS[1] or packed, packed=packed)
    signature = AttentionSignature(
        dtype=dtype,
        dtype_o=o or dtype,
        dtype_bias=dtype,
        score=enum_of(ScoreKind, score),
        mask=MaskKind.FUNCTION if masked else mask_kind(window),
        lse=lse,
        dropout=dropout > 0,
        packed=packed,
        paged=page_size is not None,
        functions=functions.digest,
    )
    lists = _chosen((packed, STARTS), (page_size, PAGES))
    names = [*"qkvo", *_chosen((lse, ("lse",)), (dropout, SEEDS)), *lists]
    page = page_size or 0
    rows = page or keys
    problem = AttentionProblem(
        batch=batch,
        heads=heads,
        kv_heads=kv_heads,
        seqlen_q=queries,
        seqlen_k=keys,
        hdim_q=head,
        hdim_v=head_v,
        q=tensor(heads, queries, head),
        k=tensor(kv_heads, rows, head),
        v=tensor(kv_heads, rows, head_v),
        o=tensor(heads, queries, head_v),
        lse=_tensor(heads, queries, 1, rows_first=False, packed=packed)
        if lse
        else AttentionTensor(),
        scale=scale_of(scale, head),
        dropout=dropout,
        page_size=page,
        pages_stride=keys // page if page else 0,
        left=window.keys_left,
        right=window.keys_right,
        from_bottom_right=window.from_bottom_right,
        sink=sink,
    )
    return AttentionCase(
        signature=signature,
        problem=problem,
        values=dict(zip(names, names, strict=True)),
        reads=(),
        steps=dict.fromkeys("qkvo", 1),
        lists=dict.fromkeys(lists, 1),
        alignments=dict.fromkeys("qkvo", alignment),
        functions=functions,
    )


def attention_grad_problem(
    forward: AttentionCase, *, deterministic: bool = False
) -> AttentionGradCase:
    """Make the problem of the gradients of an attention.

    Args:
        forward: The attention.
        deterministic: Whether dq is added in one order.

    Example:
        >>> forward = ck.dispatch.attention_problem(1, 8, 128, 128, 64)
        >>> ck.dispatch.attention_grad_problem(forward, deterministic=True).signature.family
        'attention_backward'
    """
    return AttentionGradCase(forward=forward, deterministic=deterministic)


def _expect(numbers: dict[str, int], page_size: int | None) -> None:
    for name, value in numbers.items():
        require_integer(name, value, 0 if name in ("keys", "sink") else 1)
    if page_size is not None and (page_size < 1 or numbers["keys"] % page_size):
        raise error("K030", keys=numbers["keys"], got=page_size)


def _expect_known(name: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise unknown(name, value, known)


def _window(left: int | None, right: int | None, corner: str, sink: int) -> WindowMask:
    """Return the mask; one without limits has no corner."""
    _expect_known("corner", corner, _CORNERS)
    window = WindowMask(left=left, right=right, sink=sink)
    return replace(window, from_bottom_right=corner == _CORNERS[1] and not window.is_open)


def _chosen(*groups: tuple[object, Sequence[str]]) -> list[str]:
    return [name for is_there, names in groups if is_there for name in names]


def _tensor(
    heads: int, rows: int, width: int, *, rows_first: bool, packed: bool
) -> AttentionTensor:
    """Return the strides of a packed tensor; sequences one after the other have none of a batch."""
    extents = (rows, heads) if rows_first else (heads, rows)
    inner = extents[1] * width
    by = (width, inner) if rows_first else (inner, width)
    return AttentionTensor(
        stride_batch=0 if packed else math.prod(extents) * width,
        stride_head=by[0],
        stride_seq=by[1],
    )


_SEQUENCES = 2
_ROWS = 300
"""Sequences, queries and keys that are compared; more than any tile has."""


def part_of(kernel: FusedAttention, dims: Mapping[str, int]) -> Mapping[str, int]:
    """Return the extents of some sequences, queries and keys; all if packed or in pages."""
    if kernel.starts or kernel.pages is not None:
        return dims
    part = dict(dims)
    axes = [(kernel.q, 0, _SEQUENCES), (kernel.q, 2, _ROWS), (kernel.k, 2, _ROWS)]
    for view, place, most in axes:
        axis = view.perm[place]
        extent = None if axis is None else view.value.type.shape[axis]
        if isinstance(extent, Dim):
            part[extent.name] = min(part[extent.name], most)
    return part


def legal_lists(
    kernel: FusedAttention, problem: AttentionProblem, sizes: Mapping[str, tuple[int, ...]]
) -> dict[str, npt.NDArray[np.int32]]:
    """Return lists of lengths and places that are legal, by name."""
    lists: dict[str, npt.NDArray[np.int32]] = {}
    for rows, starts in zip((problem.seqlen_q, problem.seqlen_k), kernel.starts, strict=False):
        lists[starts.name] = np.linspace(0, rows, math.prod(sizes[starts.name])).astype(np.int32)
    if kernel.lengths is not None:
        lists[kernel.lengths.name] = np.full(sizes[kernel.lengths.name], problem.seqlen_k, np.int32)
    if kernel.page_starts is not None:
        lists[kernel.page_starts.name] = np.zeros(sizes[kernel.page_starts.name], np.int32)
    if kernel.pages is not None:
        shape = sizes[kernel.pages.name]
        count = max(sizes[kernel.k.value.name][0], 1)
        lists[kernel.pages.name] = (np.arange(math.prod(shape), dtype=np.int32) % count).reshape(
            shape
        )
    return lists
