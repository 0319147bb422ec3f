# SPDX-License-Identifier: MIT
"""``ck.attention`` becomes the ops ``attention`` and ``attention_lse``, which share regions."""

from collections.abc import Callable, Mapping
from typing import Any

from cklang.errors import CkError
from cklang.frontend import emit
from cklang.frontend.intrinsics import function
from cklang.frontend.ops.masks import Blocks, Mask, causal_window, sliding
from cklang.frontend.ops.regions import Reads, make_mask, make_score, with_reads
from cklang.frontend.scope import Scope
from cklang.frontend.text import Located
from cklang.frontend.values import Item, Tensor, describe, is_number
from cklang.ir.attention import (
    LENGTHS,
    MIN_QUERIES,
    PAGE_STARTS,
    PAGES,
    READ_LIMIT,
    SEEDS,
    STARTS,
)
from cklang.ir.nodes import Attr, Value
from cklang.ir.ops import OPS
from cklang.types import Dim, Kind, f32, i32

__all__ = ["attention", "block_sparse", "causal", "sliding_window"]


@function(
    "the mask that hides later keys",
    eager=causal_window,
    example="""
    >>> q, k, v = np.zeros((1, 1, 2, 8)), np.zeros((1, 1, 2, 8)), np.eye(2)[None, None]
    >>> ck.attention(q, k, v, mask=ck.causal())[0, 0]
    array([[1. , 0. ],
           [0.5, 0.5]])
    """,
)
def causal(scope: Scope, node: Located, corner: Item = "top_left", sink: Item = 0) -> Item:
    """Return the mask; F096 for a corner that there is not."""
    return _mask_of(scope, node, causal_window, corner=corner, sink=sink)


@function(
    "the mask that shows some keys before the diagonal and some after it",
    eager=sliding,
    example="""
    >>> q, k, v = np.zeros((1, 1, 3, 8)), np.zeros((1, 1, 3, 8)), np.eye(3)[None, None]
    >>> ck.attention(q, k, v, mask=ck.sliding_window(left=1))[0, 0]
    array([[1. , 0. , 0. ],
           [0.5, 0.5, 0. ],
           [0. , 0.5, 0.5]])
    """,
)
def sliding_window(
    scope: Scope,
    node: Located,
    left: Item = None,
    right: Item = 0,
    corner: Item = "top_left",
    sink: Item = 0,
) -> Item:
    """Return the mask; F096 for limits and corners that there are not."""
    return _mask_of(scope, node, sliding, left=left, right=right, corner=corner, sink=sink)


def _mask_of(scope: Scope, node: Located, make: Callable[..., Mask], **arguments: Item) -> Mask:
    try:
        return make(**arguments)
    except CkError as mistake:
        mistake.at = mistake.at or scope.span(node)
        raise


@function(
    "the mask that hides blocks (0), asks a mask in them (1) or shows them (2)",
    eager=Blocks,
    example="""
    >>> q, k, v = np.zeros((1, 1, 4, 8)), np.zeros((1, 1, 4, 8)), np.eye(4)[None, None]
    >>> blocks = np.array([[[[1, 0], [2, 1]]]])  # [batch, heads, blocks of rows, blocks of keys]
    >>> ck.attention(q, k, v, mask=ck.block_sparse(blocks, ck.causal(), size=(2, 2)))[0, 0].round(2)
    array([[1.  , 0.  , 0.  , 0.  ],
           [0.5 , 0.5 , 0.  , 0.  ],
           [0.33, 0.33, 0.33, 0.  ],
           [0.25, 0.25, 0.25, 0.25]])
    """,
    takes_lambdas=True,
)
def block_sparse(
    scope: Scope, node: Located, blocks: Item, mask: Item = None, size: Item = (128, 128)
) -> Item:
    """Return the mask; F096 for blocks that are no i32 [batch, heads, rows, keys], or sizes."""
    if not isinstance(blocks, Tensor) or blocks.dtype != i32 or len(blocks.shape) != 4:
        legal = "a tensor i32[B, H, P, R]: blocks of rows and of keys, B and H may be 1"
        raise scope.error("F096", node, what="blocks", got=describe(blocks), legal=legal)
    return _mask_of(scope, node, Blocks, blocks=blocks, mask=mask, size=size)


_IN_PAGES = "legal: q [N, H, D], k [pages, G, rows of a page, D], v [pages, G, rows of a page, E]"
_SHAPES = {
    4: "legal: q [B, H, S, D], k [B, G, T, D], v [B, G, T, E]",
    3: "legal: q [N, H, D], k [M, G, D], v [M, G, E], sequences packed along the first axis",
}


def _computed(**arguments: Any) -> Any:
    from cklang.frontend.eager_attention import eager_attention

    return eager_attention(**arguments)


@function(
    OPS["attention"].doc,
    eager=_computed,
    example="""
    >>> q, k, v = np.random.default_rng(0).normal(size=(3, 1, 2, 4, 8))
    >>> o, lse = ck.attention(q, k, v, mask=ck.causal(), return_lse=True)
    >>> o.shape, lse.shape  # [batch, heads, rows, head size]
    ((1, 2, 4, 8), (1, 2, 4))
    >>> bool(np.allclose(o[:, :, 0], v[:, :, 0]))  # row 0 sees key 0 alone
    True
    """,
    signature="q, k, v, *, scale='auto', mask=None, score=None, dropout=0.0, seed=None, offset=0, "
    "cu_seqlens_q=None, cu_seqlens_k=None, seqlens_k=None, block_table=None, page_starts=None, "
    "min_seqlen_q=None, return_lse=False",
    takes_lambdas=True,
    explains_numpy=False,
)
def attention(scope: Scope, node: Located, **bound: Item) -> Item:
    """Put an attention into the IR; return o, or (o, lse) with ``return_lse``.

    Raises:
        CkTypeError: F090 for operands that are no tensors or of wrong dtypes, F092 to F094 for the
            functions.
        CkValueError: F091 for extents that do not fit, F096 for an option.
    """
    starts = _starts(scope, node, bound)
    paged = bound["block_table"] is not None
    ranks = (3 if starts else 4, *(3 if starts and not paged else 4,) * 2)
    q, k, v = (
        _operand(scope, node, name, bound[name], rank)
        for name, rank in zip(("q", "k", "v"), ranks, strict=True)
    )
    _check_shapes(scope, node, q, k, v, paged)
    operands = [emit.viewed(scope, node, tensor) for tensor in (q, k, v)]
    roles = ["q", "k", "v"]
    dropout = _dropout(scope, node, bound["dropout"])
    if dropout:
        why = "dropout needs a seed"
        operands += [_integer(scope, node, name, bound[name], why) for name in SEEDS]
        roles += SEEDS
    if starts:
        operands += starts
        roles += STARTS[: len(starts)]
    lengths = _lengths(scope, node, bound)
    operands += lengths
    roles += (*LENGTHS, *PAGES, *PAGE_STARTS)[: len(lengths)]
    least = _least(scope, node, bound)
    operands += least
    roles += MIN_QUERIES[: len(least)]
    scale, factor = _scale(scope, node, bound["scale"])
    reads: Reads = {}
    score = make_score(scope, node, bound["score"], factor, reads)
    mask = make_mask(scope, node, bound["mask"], reads)
    if len(reads) > READ_LIMIT:
        problem = f"score and mask read {len(reads)} tensors; the limit is {READ_LIMIT}"
        advice = "combine some of them before the call"
        raise scope.error("F091", node, problem=problem, advice=advice)
    attrs: dict[str, Attr] = {
        "dropout": dropout,
        "mask": with_reads(mask, reads),
        "roles": (*roles, *("read" for _ in reads)),
        "scale": scale,
        "score": with_reads(score, reads),
    }
    operands += reads
    span = scope.span(node)
    output = scope.unit.append("attention", *operands, attrs=attrs, span=span)
    o = Tensor.plain(output, (*q.origins[:-1], v.origins[-1]))
    if not _flag(scope, node, "return_lse", bound["return_lse"]):
        return o
    lse = scope.unit.append("attention_lse", *operands, attrs=attrs, span=span)
    return o, Tensor.plain(lse, q.origins[1::-1] if starts else q.origins[:3])


def _starts(scope: Scope, node: Located, bound: Mapping[str, Item]) -> list[Value]:
    """Return where packed sequences begin, in q and in k; nothing if they are not packed.

    Of keys in pages only those in q.
    """
    lists = {name: bound[name] for name in ("cu_seqlens_q", "cu_seqlens_k")}
    if all(item is None for item in lists.values()):
        return []
    if bound["block_table"] is not None and lists.pop("cu_seqlens_k") is not None:
        problem = "block_table says where keys are, and so does cu_seqlens_k"
        advice = "give seqlens_k, the number of keys of each sequence, in its place"
        raise scope.error("F091", node, problem=problem, advice=advice)
    values = []
    for name, item in lists.items():
        if not isinstance(item, Tensor) or item.dtype != i32 or len(item.shape) != 1:
            legal = "a tensor i32[P], as are both of cu_seqlens_q and cu_seqlens_k"
            raise scope.error("F096", node, what=name, got=describe(item), legal=legal)
        values.append(emit.materialise(scope, node, item))
    first, second = values[0], values[-1]
    if first.type != second.type:
        problem = f"cu_seqlens_q is {first.type}, cu_seqlens_k {second.type}"
        advice = "both have one entry a sequence, and one more"
        raise scope.error("F091", node, problem=problem, advice=advice)
    return values


def _lengths(scope: Scope, node: Located, bound: Mapping[str, Item]) -> list[Value]:
    """Return how many keys each sequence has, and the table of its pages, where they are given."""
    lengths, table, begins = (bound[n] for n in ("seqlens_k", "block_table", "page_starts"))
    packed = bound["cu_seqlens_q"] is not None
    flat = begins is not None
    values = []
    for name, item, rank in (
        ("seqlens_k", lengths, 1),
        ("block_table", table, 1 if flat else 2),
        ("page_starts", begins, 1),
    ):
        if item is None:
            continue
        if not isinstance(item, Tensor) or item.dtype != i32 or len(item.shape) != rank:
            what = (
                "the pages of all sequences" if flat and rank == 1 else "its first axis the batch"
            )
            legal = f"a tensor i32 of rank {rank}, {what}"
            raise scope.error("F096", node, what=name, got=describe(item), legal=legal)
        _check_batch(scope, node, name, item, bound)
        values.append(emit.materialise(scope, node, item))
    if (table is not None and lengths is None) or (packed and lengths is not None and not table):
        problem = "block_table needs seqlens_k, and seqlens_k goes with cu_seqlens_q only beside it"
        raise scope.error("F091", node, problem=problem, advice="leave one out")
    if flat and not (packed and table is not None):
        problem = "page_starts says where sequences begin in a block_table of one axis"
        advice = "give cu_seqlens_q, seqlens_k and block_table beside it"
        raise scope.error("F091", node, problem=problem, advice=advice)
    return values


def _check_batch(
    scope: Scope, node: Located, name: str, item: Tensor, bound: Mapping[str, Item]
) -> None:
    """Refuse a list whose first axis is not that of the list or tensor that it goes with."""
    like = {"seqlens_k": "q", "block_table": "seqlens_k", "page_starts": "cu_seqlens_q"}[name]
    other = bound[like]
    flat = name == "block_table" and bound["page_starts"] is not None
    packed = name == "seqlens_k" and bound["cu_seqlens_q"] is not None
    if flat or packed or not isinstance(other, Tensor) or item.shape[:1] == other.shape[:1]:
        return
    batch = f"the batch of {like} is {', '.join(map(str, other.shape[:1]))}"
    advice = "legal: seqlens_k [B], block_table [B, P], q [B, H, S, D]"
    if bound["cu_seqlens_q"] is not None:
        advice = "legal: cu_seqlens_q and page_starts [P], seqlens_k [B], block_table [B, N] or [N]"
    problem = f"{name} is {item.type}, but {batch}"
    raise scope.error("F091", node, problem=problem, advice=advice)


def _operand(scope: Scope, node: Located, name: str, item: Item, rank: int) -> Tensor:
    if not isinstance(item, Tensor) or len(item.shape) != rank:
        raise scope.error("F090", node, name=name, got=describe(item))
    if item.dtype.kind is not Kind.FLOAT or item.dtype.bits > f32.bits:
        raise scope.error("F090", node, name=name, got=describe(item))
    return item


def _check_shapes(
    scope: Scope, node: Located, q: Tensor, k: Tensor, v: Tensor, paged: bool
) -> None:
    if len({q.dtype, k.dtype, v.dtype}) > 1:
        dtypes = ", ".join(str(tensor.dtype) for tensor in (q, k, v))
        advice = "cast before the call, or round a value where it is made: x.to(ck.f16)"
        problem = f"q, k and v are {dtypes}, not of one dtype"
        raise scope.error("F091", node, problem=problem, advice=advice)
    pairs = [
        ("k and v differ in their heads", k, v, 1),
        ("q and k differ in their head size", q, k, -1),
    ]
    if len(k.shape) == 4:
        pairs.insert(0, ("k and v differ in their first axis", k, v, 0))
        if not paged:
            pairs.insert(0, ("q and k differ in their batch", q, k, 0))
    pairs.append(("k and v differ in their rows", k, v, -3 if len(k.shape) == 3 else -2))
    for what, one, other, axis in pairs:
        first, second = one.shape[axis], other.shape[axis]
        if not scope.unit.derived.same(first, second):
            raise scope.error(
                "F091",
                node,
                f"{first} is {one.origins[axis]}",
                f"{second} is {other.origins[axis]}",
                problem=f"{what}: {first} is not {second}",
                advice=_IN_PAGES if len(q.shape) < len(k.shape) else _SHAPES[len(q.shape)],
            )
    _check_heads(scope, node, q.shape[1], k.shape[1])


def _check_heads(scope: Scope, node: Located, heads: Dim | int, key_heads: Dim | int) -> None:
    if not isinstance(heads, int) or not isinstance(key_heads, int):
        return  # checked at the call
    if key_heads == 0 or heads % key_heads:
        problem = f"{heads} query heads cannot share {key_heads} key heads"
        advice = "legal: as many query heads as key heads, or a multiple of them"
        raise scope.error("F091", node, problem=problem, advice=advice)


def _dropout(scope: Scope, node: Located, item: Item) -> float:
    if not is_number(item) or isinstance(item, bool) or not 0 <= float(str(item)) < 1:
        legal = "a constant from 0 to below 1; make it a ck.const[float] parameter"
        raise scope.error("F096", node, what="dropout", got=describe(item), legal=legal)
    return float(str(item))


def _least(scope: Scope, node: Located, bound: Mapping[str, Item]) -> list[Value]:
    """Return up to how many queries a packed sequence is skipped, if that is given."""
    item = bound["min_seqlen_q"]
    if item is None:
        return []
    if bound["cu_seqlens_q"] is None:
        problem = "min_seqlen_q skips packed sequences, and q is not packed"
        advice = "give cu_seqlens_q, or leave min_seqlen_q out"
        raise scope.error("F091", node, problem=problem, advice=advice)
    return [_integer(scope, node, "min_seqlen_q", item, "None skips nothing")]


def _integer(scope: Scope, node: Located, name: str, item: Item, why: str) -> Value:
    if is_number(item) and not isinstance(item, bool):
        number = emit.constant_number(scope, node, item, i32)
        return scope.unit.append("constant", span=scope.span(node), attrs={"value": number})
    if isinstance(item, Tensor) and item.dtype == i32 and not item.shape:
        return item.value
    legal = f"a run-time scalar ck.i32 or an integer; {why}"
    raise scope.error("F096", node, what=name, got=describe(item), legal=legal)


def _scale(scope: Scope, node: Located, item: Item) -> tuple[float | str, Tensor | None]:
    """Return the constant factor of scores, and the run-time one if there is one."""
    if item == "auto":
        return "auto", None
    if isinstance(item, Tensor) and item.dtype == f32 and not item.shape:
        return 1.0, item
    if is_number(item) and not isinstance(item, bool):
        return float(emit.constant_number(scope, node, item, f32)), None
    legal = '"auto", a number, or a run-time scalar ck.f32'
    raise scope.error("F096", node, what="scale", got=describe(item), legal=legal)


def _flag(scope: Scope, node: Located, name: str, item: Item) -> bool:
    if not isinstance(item, bool):
        raise scope.error("F096", node, what=name, got=describe(item), legal="True or False")
    return item
