# SPDX-License-Identifier: MIT
"""What attention means: its operands, its regions, and the numbers.

For each batch b, query head h and query row i, with h' the key head of h::

    s[j] = scale * sum_d q[b, h, i, d] k[b, h', j, d]
    s[j] = score(s[j], b, h, i, j, q_len, k_len, reads…)
    p[j] = exp(s[j] - max s) where mask(b, h, i, j, q_len, k_len, reads…) holds, else 0
    o[d] = sum_j drop[j] p[j] v[b, h', j, d] / sum_j p[j]
    lse  = log(sum_j exp(s[j]))

With ``starts_q`` and ``starts_k`` the sequences of a batch lie one after the other: sequence b has
rows starts_q[b] to starts_q[b + 1] of q [N, H, D] and o, and keys starts_k[b] to starts_k[b + 1]; i
and j count within it. Rows that belong to no sequence are not written. With ``lengths_k`` sequence
b has as many keys, and with ``pages`` [B, P] too they lie in the pages that row b names: k and v
are [pages, G, rows of a page, D]. Then ``starts_q`` may stand alone, and with it ``pages`` may be
one list [N] of all sequences, in which that of sequence b begins at ``page_starts[b]``. With
``min_seqlen_q`` packed sequences of as many rows of q or fewer are skipped: their rows are not
written either.

A row without any weight gives o = 0 and lse = -inf. ``attention`` gives o, ``attention_lse`` lse;
one kernel computes both. ``score`` and ``mask`` are regions of rank-0 values. They see indices as
i32, and the tensors that they read as parameters of their full type, which ``element`` indexes.

A kernel rounds p to the dtype of v before the second product, to 8 bits after it has multiplied it
by :func:`weight_scale`; the reference does not, and its error bound allows for it.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from cklang.errors import CkError, error
from cklang.ir.nodes import Attr, Function, Value
from cklang.ir.numeric import Array, largest
from cklang.ir.philox import keep_mask
from cklang.ir.rules import DTypeRule, Shape, ShapeRule
from cklang.source import Span
from cklang.types import DType, TensorType, bool_, f32, i32, i64
from cklang.types import Kind as NumberKind

ROLES = (
    *("q", "k", "v", "seed", "offset", "starts_q", "starts_k", "lengths_k", "pages"),
    *("page_starts", "min_seqlen_q", "read"),
)
"""What an operand of attention is to it, in the order in which operands stand."""

SEEDS, STARTS, LENGTHS, PAGES = ROLES[3:5], ROLES[5:7], ROLES[7:8], ROLES[8:9]
PAGE_STARTS, MIN_QUERIES = ROLES[9:10], ROLES[10:11]

INDICES = ("b", "h", "i", "j", "q_len", "k_len")
"""The indices that regions see: batch, query head, query row, key row; the sequence lengths."""

READ_LIMIT = 8
"""How many tensors the regions of one attention may read."""

_RESULTS = {"score": f32, "mask": bool_}
_FIRST = {"score": "s", "derivative": "s", "output": "o"}
MOST_AXES = 4
"""The axes of a tensor that a region reads, at most."""

MOST_OPTIONAL = len(ROLES[3:-1]) + READ_LIMIT
"""Operands beside q, k and v at most: numbers of dropout, of lengths, and what regions read."""

Regions = Mapping[str, Callable[..., Array]]
"""``score`` and ``mask`` as functions of arrays."""


def region_params(name: str, reads: Sequence[TensorType]) -> tuple[Value, ...]:
    """Return the parameters of a region: score, derivative, mask, or a kernel's output."""
    first = [Value(name=_FIRST[name], type=TensorType(dtype=f32))] if name in _FIRST else []
    indices = [Value(name=index, type=TensorType(dtype=i32)) for index in INDICES]
    tensors = [Value(name=f"d{place}", type=type_) for place, type_ in enumerate(reads)]
    return (*first, *indices, *tensors)


def _roles(attrs: Mapping[str, Attr]) -> tuple[str, ...]:
    roles = attrs["roles"]
    return tuple(str(role) for role in roles) if isinstance(roles, tuple) else ()


_NEEDED = (
    ({"pages"}, "lengths_k"),
    ({"starts_q", "lengths_k"}, "pages"),
    ({"page_starts"}, "pages"),
    ({"page_starts"}, "starts_q"),
    ({"min_seqlen_q"}, "starts_q"),
)
"""Operands, and another one without which they do not stand."""


def _roles_fit(roles: Sequence[str], count: int) -> bool:
    reads = list(roles).count("read")
    # Keys in pages have no starts.
    starts = STARTS[:1] if PAGES[0] in roles else STARTS
    groups = (SEEDS, starts, LENGTHS, PAGES, PAGE_STARTS, MIN_QUERIES)
    chosen = [group for group in groups if group[0] in roles]
    if not all(needed in roles for those, needed in _NEEDED if those <= set(roles)):
        return False
    legal = [*ROLES[:3], *(role for group in chosen for role in group), *["read"] * reads]
    return len(roles) == count and reads <= READ_LIMIT and list(roles) == legal


# --- rules of types


def _input_dtype(dtypes: tuple[DType, ...], attrs: Mapping[str, Attr]) -> DType | None:
    roles = _roles(attrs)
    if not _roles_fit(roles, len(dtypes)):
        return None
    numbers = {dtype for dtype, role in zip(dtypes, roles, strict=True) if role in "qkv"}
    integers = ROLES[3:-1]
    seeds = {dtype for dtype, role in zip(dtypes, roles, strict=True) if role in integers}
    number = numbers.pop()
    is_float = number.kind is NumberKind.FLOAT and number.bits <= f32.bits
    return f32 if is_float and not numbers and seeds <= {i32} else None


def _shapes(
    shapes: tuple[Shape, ...], attrs: Mapping[str, Attr]
) -> tuple[Shape, Shape, Shape] | None:
    """Return the shapes of q, k and v if they fit each other."""
    roles = _roles(attrs)
    if not _roles_fit(roles, len(shapes)):
        return None
    q, k, v = shapes[:3]
    by_role = dict(zip(roles, shapes, strict=True))
    starts = [by_role[role] for role in (*STARTS, *PAGE_STARTS) if role in by_role]
    paged = PAGES[0] in by_role
    rank = 3 if starts else 4
    if (len(q), len(k), len(v)) != (rank, *(4 if paged else rank,) * 2):
        return None
    fits = (
        (*k[:-1], k[-1]) == (*v[:-1], q[-1]),
        starts or paged or q[0] == k[0],
        set(map(len, starts)) <= {1},
        len(set(starts)) <= 1,
        _lists_fit(by_role, None if starts else q[:1]),
        not any(map(by_role.get, (*SEEDS, *MIN_QUERIES))),
        max(map(len, shapes[3:]), default=0) <= MOST_AXES,
        _heads_fit(q, k),
    )
    return (q, k, v) if all(fits) else None


def _heads_fit(q: Shape, k: Shape) -> bool:
    heads, key_heads = q[1], k[1]
    if not (isinstance(heads, int) and isinstance(key_heads, int)):
        return True
    return key_heads > 0 and heads % key_heads == 0


def _lists_fit(by_role: Mapping[str, Shape], batch: Shape | None) -> bool:
    """Tell whether lengths and pages are of one batch, that of q if it is given."""
    lengths, table = by_role.get(LENGTHS[0]), by_role.get(PAGES[0])
    if lengths is None:
        return True
    if len(lengths) != 1 or (batch is not None and lengths != batch):
        return False
    if PAGE_STARTS[0] in by_role:
        return table is not None and len(table) == 1
    return table is None or (len(table) == 2 and table[:1] == lengths)


def _output_shape(
    shapes: tuple[Shape, ...], attrs: Mapping[str, Attr], _declared: Shape | None
) -> Shape | None:
    fitting = _shapes(shapes, attrs)
    return None if fitting is None else (*fitting[0][:-1], fitting[2][-1])


def _lse_shape(
    shapes: tuple[Shape, ...], attrs: Mapping[str, Attr], _declared: Shape | None
) -> Shape | None:
    fitting = _shapes(shapes, attrs)
    if fitting is None:
        return None
    q = fitting[0]
    return q[:3] if len(q) == 4 else (q[1], q[0])


INPUT_DTYPE = DTypeRule(
    text="q, k and v of one float dtype of 8 to 32 bits; seed, offset and starts i32; gives f32",
    apply=_input_dtype,
)
_TEXT = (
    "q [B, H, S, D], k [B, G, T, D] and v [B, G, T, E], H a multiple of G, give {}; "
    "with starts [P] q [N, H, D], k [M, G, D] and v [M, G, E] give {}; with lengths_k [B] and "
    "pages [B, P], or pages [M] and page_starts like starts_q, k and v are "
    "[pages, G, rows, size]; "
    "seed, offset and min_seqlen_q of rank 0, tensors that are read of rank 4 at most"
)
OUTPUT_SHAPE = ShapeRule(text=_TEXT.format("[B, H, S, E]", "[N, H, E]"), apply=_output_shape)
LSE_SHAPE = ShapeRule(text=_TEXT.format("[B, H, S]", "[H, N]"), apply=_lse_shape)


def _element_dtype(dtypes: tuple[DType, ...], _attrs: Mapping[str, Attr]) -> DType | None:
    return dtypes[0] if set(dtypes[1:]) <= {i32, i64} else None


def _element_shape(
    shapes: tuple[Shape, ...], _attrs: Mapping[str, Attr], _declared: Shape | None
) -> Shape | None:
    tensor, *indices = shapes
    return () if len(indices) == len(tensor) and not any(indices) else None


ELEMENT_DTYPE = DTypeRule(text="any dtype, kept; the indices i32 or i64", apply=_element_dtype)
ELEMENT_SHAPE = ShapeRule(
    text="a tensor and one rank-0 index for each of its axes", apply=_element_shape
)


def check(
    types: Sequence[TensorType], attrs: Mapping[str, Attr], at: Span | None
) -> Iterator[CkError]:
    """Yield what is wrong with an attention beyond dtypes and shapes: roles, regions, numbers."""
    roles = _roles(attrs)
    if not _roles_fit(roles, len(types)):
        yield error("I040", at=at, got=", ".join(roles) or "none", count=len(types))
        return
    reads = [type_ for type_, role in zip(types, roles, strict=True) if role == "read"]
    for name, dtype in _RESULTS.items():
        yield from check_region(name, dtype, reads, attrs, at)
    if isinstance(attrs["scale"], str) and attrs["scale"] != "auto":
        yield error("I042", at=at, got=attrs["scale"])
    dropout = attrs["dropout"]
    if not isinstance(dropout, float) or not 0.0 <= dropout < 1.0:
        yield error("I043", at=at, got=dropout)
    if (dropout != 0.0) != (SEEDS[0] in roles):
        yield error("I044", at=at, dropout=dropout, roles=", ".join(roles))


def check_region(
    name: str, dtype: DType, reads: Sequence[TensorType], attrs: Mapping[str, Attr], at: Span | None
) -> Iterator[CkError]:
    """Yield what is wrong with the parameters and the result of a region."""
    region = attrs[name]
    params = region_params(name, reads)
    want = f"({', '.join(f'{param}: {param.type}' for param in params)}) -> {dtype}[]"
    if isinstance(region, Function) and not _fits(region, params, dtype):
        yield error("I041", at=at, name=name, want=want, got=_face(region))


def _fits(region: Function, params: tuple[Value, ...], dtype: DType) -> bool:
    results = [value.type for value in region.results]
    return region.params == params and results == [TensorType(dtype=dtype)]


def _face(region: Function) -> str:
    params = ", ".join(f"{param}: {param.type}" for param in region.params)
    return f"({params}) -> {', '.join(str(result.type) for result in region.results)}"


# --- numbers


def group_size(heads: int, key_heads: int, at: Span | None = None) -> int:
    """Return how many query heads share a key head; ``at`` is the place of the attention."""
    if key_heads == 0 or heads % key_heads:
        if heads == key_heads:
            return 1
        raise error("I045", at=at, heads=heads, key_heads=key_heads)
    return heads // key_heads


def scale_of(scale: float | str, head_size: int) -> float:
    """Return the factor of the scores; "auto" is one over the root of the head size."""
    return 1 / math.sqrt(max(head_size, 1)) if isinstance(scale, str) else float(scale)


def weight_scale(dtype: DType, dropout: float = 0.0) -> float:
    """Return by what weights are multiplied before they are rounded to ``dtype``.

    The largest is 1, which 8-bit floats have few steps below: theirs becomes the largest value.
    Dropout divides the weights that it keeps by the probability to keep them, before they are
    rounded, so theirs are multiplied by that.
    """
    return largest(dtype.name) * (1 - dropout) if dtype.bits == 8 else 1.0


def element(tensor: Array, *indices: Array) -> Array:
    """Return ``tensor`` at ``indices``, each limited to its axis; 0 where an axis has no extent."""
    if not indices:
        return tensor
    shape = np.broadcast_shapes(*(np.shape(index) for index in indices))
    if 0 in tensor.shape:
        return np.zeros(shape, tensor.dtype)
    limited = [
        np.clip(index, 0, extent - 1) for index, extent in zip(indices, tensor.shape, strict=True)
    ]
    return np.asarray(tensor[tuple(limited)])


def index_arrays(shape: tuple[int, int, int, int], first: int = 0) -> tuple[Array, ...]:
    """Return the arrays of :data:`INDICES` for scores of ``shape``; they broadcast to it.

    ``first`` is the index of the first of the batch.
    """
    grid = list(np.ogrid[tuple(slice(extent) for extent in shape)])
    grid[0] = grid[0] + first
    lengths = (np.asarray(shape[2]), np.asarray(shape[3]))
    return tuple(np.asarray(array, np.int64) for array in (*grid, *lengths))


def products(q: Array, k: Array, scale: float | str) -> Array:
    """Return the scaled products of queries and keys [B, H, S, T]."""
    shared = np.repeat(k, group_size(q.shape[1], k.shape[1]), axis=1)
    return np.asarray(scale_of(scale, q.shape[3]) * (q @ np.swapaxes(shared, 2, 3)))


def scores(
    q: Array, k: Array, reads: Sequence[Array], scale: float | str, regions: Regions, first: int = 0
) -> Array:
    """Return the scores [B, H, S, T], -inf where the mask does not hold."""
    plain = products(q, k, scale)
    indices = index_arrays(plain.shape, first)
    moved = np.broadcast_to(regions["score"](plain, *indices, *reads), plain.shape)
    kept = np.broadcast_to(regions["mask"](*indices, *reads), plain.shape)
    return np.where(kept, moved, -np.inf)


def softmax_sums(score: Array) -> tuple[Array, Array, Array]:
    """Return exp(s - max), their sums and the maxima along the last axis, 0 where all are -inf."""
    largest = np.max(score, axis=-1, keepdims=True, initial=-np.inf)
    center = np.where(largest == -np.inf, 0.0, largest)
    weights = np.exp(score - center)
    return weights, weights.sum(axis=-1, keepdims=True), center


def dropped(
    shape: tuple[int, int, int, int], dropout: float, seed: Any, offset: Any, first: int = 0
) -> Array:
    """Return the factors of dropout: 0 or 1 / (1 - dropout)."""
    if dropout == 0.0:
        return np.ones(shape)
    return keep_mask(shape, dropout, int(seed), int(offset), first) / (1.0 - dropout)


def sequences(starts_q: Array, starts_k: Array) -> list[tuple[slice, slice]]:
    """Return the rows and the keys of each packed sequence."""
    ends = zip(pairwise(starts_q.tolist()), pairwise(starts_k.tolist()), strict=True)
    return [(slice(*rows), slice(*keys)) for rows, keys in ends]


def skipped(rows: slice, least: Array | None) -> bool:
    """Tell whether a packed sequence has no more rows of q than ``least``, if that is given."""
    return least is not None and rows.stop - rows.start <= int(least)


def table_of(b: int, pages: Array | None, page_starts: Array | None) -> Array | None:
    """Return the list of pages that begins with those of sequence ``b``, if there are pages."""
    if pages is None or page_starts is None:
        return None if pages is None else pages[b]
    return pages[int(page_starts[b]) :]


def keys_of(b: int, stored: Array, length: int, table: Array | None) -> Array:
    """Return the first ``length`` keys of sequence ``b`` as [1, G, length, D].

    ``stored`` is [B, G, T, D], or [pages, G, rows, D] where ``table`` begins with the pages of the
    sequence.
    """
    if table is None:
        return stored[b : b + 1, :, :length]
    rows = stored.shape[2]
    mine = stored[table[: math.ceil(length / max(rows, 1))]]
    joined = mine.swapaxes(0, 1).reshape(stored.shape[1], -1, stored.shape[3])
    return joined[None, :, :length]


def one_sequence(packed: Array, rows: slice) -> Array:
    """Return ``rows`` of a packed tensor [N, H, D] as [1, H, rows, D]."""
    return packed[rows].swapaxes(0, 1)[None]


def _split(operands: Sequence[Array], roles: Sequence[str]) -> dict[str, list[Array]]:
    by_role: dict[str, list[Array]] = {role: [] for role in ROLES}
    for operand, role in zip(operands, roles, strict=True):
        by_role[role].append(operand)
    return by_role


def _with_lengths(by_role: dict[str, list[Array]]) -> Iterator[tuple[int, list[Array]]]:
    """Yield the batch index and q, k, v of each sequence that has a length of its own."""
    (q,) = by_role["q"]
    for b in range(len(by_role[LENGTHS[0]][0])):
        yield b, [q[b : b + 1], *_keys(by_role, b)]


def _keys(by_role: dict[str, list[Array]], b: int) -> list[Array]:
    """Return k and v of sequence ``b``, which has a length of its own."""
    (k,), (v,), (lengths,) = (by_role[role] for role in ("k", "v", *LENGTHS))
    pages, page_starts = (next(iter(by_role[role]), None) for role in (*PAGES, *PAGE_STARTS))
    table = table_of(b, pages, page_starts)
    return [keys_of(b, x, int(lengths[b]), table) for x in (k, v)]


def _pieces(by_role: dict[str, list[Array]]) -> Iterator[tuple[slice, int, list[Array]]]:
    """Yield the rows, the batch index and q, k, v of each packed sequence that is not skipped."""
    (q,), (k,), (v,), (starts_q,) = (by_role[role] for role in ("q", "k", "v", "starts_q"))
    starts_k = by_role["starts_k"][0] if by_role["starts_k"] else starts_q
    least = next(iter(by_role[MIN_QUERIES[0]]), None)
    for b, (rows, keys) in enumerate(sequences(starts_q, starts_k)):
        if skipped(rows, least):
            continue
        own = _keys(by_role, b) if by_role[LENGTHS[0]] else [one_sequence(x, keys) for x in (k, v)]
        yield rows, b, [one_sequence(q, rows), *own]


def attend(
    *operands: Array,
    roles: Sequence[str],
    scale: float | str,
    dropout: float,
    score: Callable[..., Array],
    mask: Callable[..., Array],
) -> Array:
    """Return o: the NumPy meaning of ``attention``; regions come as functions of arrays."""
    by_role = _split(operands, roles)
    seed, offset = (*by_role["seed"], *by_role["offset"]) or (0, 0)

    def output(first: int, q: Array, k: Array, v: Array) -> Array:
        regions = {"score": score, "mask": mask}
        logits = scores(q, k, by_role["read"], scale, regions, first)
        weights, total, _ = softmax_sums(logits)
        weights = weights * dropped(logits.shape, dropout, seed, offset, first)
        shared = np.repeat(v, group_size(q.shape[1], k.shape[1]), axis=1)
        return np.where(total == 0, 0.0, weights @ shared / np.where(total == 0, 1.0, total))

    (q,), (k,), (v,) = by_role["q"], by_role["k"], by_role["v"]
    if by_role[LENGTHS[0]] and not by_role["starts_q"]:
        parts = [output(b, *piece) for b, piece in _with_lengths(by_role)]
        return np.concatenate([np.zeros((0, *q.shape[1:3], v.shape[3])), *parts])
    if not by_role["starts_q"]:
        return output(0, q, k, v)
    o = np.zeros((*q.shape[:2], v.shape[-1]))
    for rows, b, piece in _pieces(by_role):
        o[rows] = output(b, *piece)[0].swapaxes(0, 1)
    return o


def log_sum(
    *operands: Array,
    roles: Sequence[str],
    scale: float | str,
    dropout: float,
    score: Callable[..., Array],
    mask: Callable[..., Array],
) -> Array:
    """Return lse: the NumPy meaning of ``attention_lse``; dropout does not change it."""
    del dropout
    by_role = _split(operands, roles)

    def lse(first: int, q: Array, k: Array) -> Array:
        regions = {"score": score, "mask": mask}
        _, total, center = softmax_sums(scores(q, k, by_role["read"], scale, regions, first))
        return np.asarray((center + np.log(total))[..., 0])

    (q,), (k,) = by_role["q"], by_role["k"]
    if by_role[LENGTHS[0]] and not by_role["starts_q"]:
        parts = [lse(b, *piece[:2]) for b, piece in _with_lengths(by_role)]
        return np.concatenate([np.zeros((0, *q.shape[1:3])), *parts])
    if not by_role["starts_q"]:
        return lse(0, q, k)
    sums = np.zeros((q.shape[1], q.shape[0]))
    for rows, b, (queries, keys, _) in _pieces(by_role):
        sums[:, rows] = lse(b, queries, keys)[0]
    return sums
