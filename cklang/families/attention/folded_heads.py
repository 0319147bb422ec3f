# SPDX-License-Identifier: MIT
"""Query heads of one key head as rows of one tile.

A workgroup computes a tile of queries of one head. Where a sequence has few queries, as in
decoding, most rows of the tile are empty, and each query head reads its keys again. Heads of one
group share K and V, so ``group`` heads of S queries are one head of ``group * S`` queries, where
strides say so: no element moves. Two orders of the rows are possible::

    row = head * S + query      stride of heads = S * stride of queries, or S = 1
    row = query * group + head  stride of queries = group * stride of heads
"""

from collections.abc import Callable
from dataclasses import replace

from cklang.families.attention.host import AttentionTensor
from cklang.families.attention.key import MaskKind, ScoreKind
from cklang.families.attention.problem import AttentionCase

_MOST_QUERIES = 256
"""The rows of the largest tile; where queries fill it there is nothing to gain."""
_MOVED = frozenset({"h", "i", "q_len"})
"""What functions are told of the place of a row; it is another where heads are rows."""
_TENSORS = ("q", "o", "lse")

_Fold = Callable[[AttentionTensor, int, int], AttentionTensor | None]


def fold_heads(case: AttentionCase) -> AttentionCase | None:
    """Return the same attention with the heads of each group as rows, or None if they cannot be.

    They cannot where a mask, a function or dropout looks at the head or the query of a row, where
    sequences are packed, and where strides do not let rows follow each other.
    """
    p = case.problem
    group = p.heads // max(p.kv_heads, 1)
    if group < 2 or not 0 < p.seqlen_q < _MOST_QUERIES or _asks_for_rows(case):
        return None
    for fold in (_heads_first, _queries_first):
        names = [name for name in _TENSORS if name in case.values]
        tensors = {name: fold(getattr(p, name), group, p.seqlen_q) for name in names}
        if None not in tensors.values():
            return replace(
                case,
                folded=group,
                signature=replace(case.signature, mask=_mask_of(case)),
                problem=replace(
                    p,
                    heads=p.kv_heads,
                    seqlen_q=group * p.seqlen_q,
                    left=-1,
                    right=-1,
                    from_bottom_right=False,
                    sink=0,
                    **tensors,  # type: ignore[arg-type]
                ),
            )
    return None


def _asks_for_rows(case: AttentionCase) -> bool:
    s = case.signature
    functions = case.functions.values()
    named = {
        value.name
        for function in functions
        for values in (*(operation.operands for operation in function.body), function.results)
        for value in values
    }
    holes = {
        "score": s.score is ScoreKind.FUNCTION,
        "mask": s.mask is MaskKind.FUNCTION,
        "output": s.output,
    }
    unknown = any(asked and hole not in case.functions for hole, asked in holes.items())
    own_bias = s.score not in (ScoreKind.NONE, ScoreKind.SOFT_CAP, ScoreKind.FUNCTION)
    windowed = s.mask not in (MaskKind.NONE, MaskKind.FUNCTION) and not _sees_all(case)
    placed = unknown or own_bias or windowed or bool(named & _MOVED)
    return placed or s.packed or s.dropout


def _sees_all(case: AttentionCase) -> bool:
    """Whether the one query of a sequence stands at its last key and sees all of them."""
    p = case.problem
    return p.seqlen_q == 1 and p.from_bottom_right and p.left < 0 and p.right >= 0


def _mask_of(case: AttentionCase) -> MaskKind:
    mask = case.signature.mask
    return mask if mask is MaskKind.FUNCTION else MaskKind.NONE


def _heads_first(tensor: AttentionTensor, group: int, queries: int) -> AttentionTensor | None:
    if queries > 1 and tensor.stride_head != queries * tensor.stride_seq:
        return None
    row = tensor.stride_seq if queries > 1 else tensor.stride_head
    return replace(tensor, stride_head=group * tensor.stride_head, stride_seq=row)


def _queries_first(tensor: AttentionTensor, group: int, queries: int) -> AttentionTensor | None:
    if tensor.stride_seq != group * tensor.stride_head:
        return None
    return replace(tensor, stride_head=group * tensor.stride_head, stride_seq=tensor.stride_head)
