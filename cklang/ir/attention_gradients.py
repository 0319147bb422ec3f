# SPDX-License-Identifier: MIT
"""The ops ``attention_dq``, ``attention_dk``, ``attention_dv``, ``attention_ds``: gradients.

Operands are those of the attention, then the gradient g of o in the dtype of q, the log-sum-exp l
of each row, and D: the sum of g o along the head, times the probability that dropout keeps a
weight. With r what dropout multiplies a weight by, 0 or one over that probability, or 1::

    p  = exp(score - l) where the mask holds, else 0
    ds = p (r g v' - D / the probability to keep) derivative
    dq = scale ds k    dk = scale ds' q    dv = (r p)' g

``derivative`` is a region like the score. In dq and dk it is the derivative of the score by the
scaled product; ds is the gradient by whatever it is the derivative by, such as an element that the
score reads. Heads that share keys add up. In packed sequences g is like o, l and D are [H, N], and
there is no ds. Keys beyond the length of a sequence have no gradient. Where the log-sum-exps have
a gradient too, D is less by it. One kernel computes all ops with one derivative, of tiles of the
scores; users do not write these ops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from cklang.errors import CkError
from cklang.ir import attention
from cklang.ir.attention import (
    LENGTHS,
    MIN_QUERIES,
    PAGES,
    SEEDS,
    STARTS,
    dropped,
    group_size,
    index_arrays,
    one_sequence,
    products,
    scale_of,
    scores,
    sequences,
)
from cklang.ir.nodes import Attr, Operation
from cklang.ir.numeric import Array
from cklang.ir.rules import DTypeRule, Shape, ShapeRule
from cklang.source import Span
from cklang.types import DType, TensorType, bf16, f16, f32

SCORES = "attention_ds"
"""The op that gives the gradient by what a score adds."""

GRADIENTS: Mapping[str, str] = {
    "attention_dq": "q",
    "attention_dk": "k",
    "attention_dv": "v",
    SCORES: "s",
}
"""The ops, and what the result of each is like: q, k, v or the scores."""

DERIVATIVE = "derivative"
"""The region of these ops beside those of the attention."""

MORE = 3
"""Operands after those of the attention: g, l and D."""

MOST_HEADS: Mapping[DType, int | None] = MappingProxyType({f16: None, bf16: None, f32: 128})
"""The longest head that kernels compute these ops for, by dtype; None for any."""

_SIDES = ("q", "k", "v")
_FLOATS = (f16, bf16, f32)
_WITHOUT = (*PAGES, *MIN_QUERIES)
"""Roles that an attention with gradients does not have."""


def forward_of(operation: Operation) -> Operation:
    """Return the attention whose gradient an operation is; its result is like g, in f32."""
    operands, g = operation.operands[:-MORE], operation.operands[-MORE]
    result = replace(operation.result, type=replace(g.type, dtype=f32))
    attrs = tuple((name, attr) for name, attr in operation.attrs if name != DERIVATIVE)
    return replace(operation, op="attention", operands=operands, attrs=attrs, result=result)


def _dtype(dtypes: tuple[DType, ...], _attrs: Mapping[str, Attr]) -> DType | None:
    if len(dtypes) < len(_SIDES) + MORE:
        return None
    sides = {*dtypes[: len(_SIDES)], dtypes[-MORE]}
    is_one = len(sides) == 1 and sides <= set(_FLOATS)
    return f32 if is_one and dtypes[1 - MORE :] == (f32, f32) else None


def _fits(shapes: tuple[Shape, ...], attrs: Mapping[str, Attr]) -> bool:
    own, (g, lse, inner) = shapes[:-MORE], shapes[-MORE:]
    o = attention.OUTPUT_SHAPE.apply(own, attrs, None)
    roles = attrs["roles"]
    if o is None or not isinstance(roles, tuple) or set(roles) & set(_WITHOUT):
        return False
    rows = o[:3] if len(o) == 4 else (o[1], o[0])
    return (g, lse, inner) == (o, rows, rows)


def shape_like(side: str) -> ShapeRule:
    """Return the rule of an op whose result is like q, k, v or the scores s of the attention."""

    def apply(
        shapes: tuple[Shape, ...], attrs: Mapping[str, Attr], _declared: Shape | None
    ) -> Shape | None:
        if len(shapes) <= MORE or not _fits(shapes, attrs):
            return None
        if side in _SIDES:
            return shapes[_SIDES.index(side)]
        q, k = shapes[:2]
        return (*q[:3], k[2]) if len(q) == 4 else None

    like = side if side in _SIDES else "[B, H, S, T]"
    return ShapeRule(
        text="the operands of attention, then [B, H, S, E], [B, H, S] and [B, H, S] (packed "
        f"[N, H, E], [H, N] and [H, N]), give the shape of {like}",
        apply=apply,
    )


GRADIENT_DTYPE = DTypeRule(
    text="q, k, v and the gradient of o of one dtype, f16, bf16 or f32, then two of f32; gives f32",
    apply=_dtype,
)


def check(
    types: Sequence[TensorType], attrs: Mapping[str, Attr], at: Span | None
) -> Iterator[CkError]:
    """Yield what is wrong with a gradient beyond dtypes and shapes, as of its attention."""
    own, roles = types[:-MORE], attrs["roles"]
    yield from attention.check(own, attrs, at)
    if isinstance(roles, tuple) and len(roles) == len(own):
        reads = [type_ for type_, role in zip(own, roles, strict=True) if role == "read"]
        yield from attention.check_region(DERIVATIVE, f32, reads, attrs, at)


def gradient(name: str) -> Callable[..., Array]:
    """Return the NumPy meaning of the op of q, k, v or the scores s."""

    def meaning(
        *operands: Array, roles: Sequence[str], scale: float | str, dropout: float, **regions: Any
    ) -> Array:
        by_role: dict[str, list[Array]] = {str(role): [] for role in (*roles, "read")}
        for operand, role in zip(operands[:-MORE], roles, strict=True):
            by_role[str(role)].append(operand)
        keep = _Keep(dropout, *(int(by_role[seed][0]) for seed in SEEDS if seed in by_role))
        sides = [*(by_role[side][0] for side in _SIDES), *operands[-MORE:]]
        if LENGTHS[0] in by_role:
            return _with_lengths(name, sides, by_role, scale, regions, keep)
        if STARTS[0] not in by_role:
            return _gradients(sides, by_role["read"], scale, regions, keep)[name]
        starts = [by_role[start][0] for start in STARTS]
        result = np.zeros(by_role[name][0].shape)
        for b, (rows, keys) in enumerate(sequences(*starts)):
            places = zip(sides[:4], (rows, keys, keys, rows), strict=True)
            own = [one_sequence(array, at) for array, at in places]
            own += [array[None, :, rows] for array in sides[4:]]
            part = _gradients(own, by_role["read"], scale, regions, keep, b)[name]
            result[rows if name == "q" else keys] = part[0].swapaxes(0, 1)
        return result

    return meaning


def _with_lengths(
    name: str,
    sides: Sequence[Array],
    by_role: Mapping[str, Sequence[Array]],
    scale: float | str,
    regions: Mapping[str, Any],
    keep: _Keep,
) -> Array:
    """Return a gradient of sequences that have as many keys as their lengths say."""
    q, k, v, *more = sides
    shapes = {"q": q.shape, "k": k.shape, "v": v.shape, "s": (*q.shape[:3], k.shape[2])}
    result = np.zeros(shapes[name])
    for b, length in enumerate(by_role[LENGTHS[0]][0].tolist()):
        own = [q[b : b + 1], *(array[b : b + 1, :, :length] for array in (k, v))]
        own += [array[b : b + 1] for array in more]
        part = _gradients(own, by_role["read"], scale, regions, keep, b)[name][0]
        keys = {"q": (), "s": (..., slice(length))}.get(name, (slice(None), slice(length)))
        result[b][keys] = part
    return result


class _Keep:
    """What dropout multiplies weights by."""

    def __init__(self, dropout: float, seed: int = 0, offset: int = 0) -> None:
        self.dropout, self.seed, self.offset = dropout, seed, offset

    def factors(self, shape: tuple[int, ...], first: int) -> Array:
        """Return the factor of each weight [B, H, S, T] from batch ``first`` on."""
        b, h, s, t = shape
        return dropped((b, h, s, t), self.dropout, self.seed, self.offset, first)


def _gradients(
    sides: Sequence[Array],
    reads: Sequence[Array],
    scale: float | str,
    regions: Mapping[str, Any],
    keep: _Keep,
    first: int = 0,
) -> dict[str, Array]:
    """Return the gradients of whole tensors: q, k, v, g, l and D whose first batch is ``first``."""
    q, k, v, g, lse, inner = sides
    logits = scores(q, k, reads, scale, regions, first)
    finite = np.where(np.isneginf(lse), 0.0, lse)
    p = np.where(np.isneginf(logits), 0.0, np.exp(logits - finite[..., None]))
    count = group_size(q.shape[1], k.shape[1])
    keys, values = (np.repeat(x, count, axis=1) for x in (k, v))
    factors = keep.factors(logits.shape, first)
    by_weight = factors * (g @ np.swapaxes(values, 2, 3))
    by_score = p * (by_weight - inner[..., None] / (1.0 - keep.dropout))
    slope = regions[DERIVATIVE](products(q, k, scale), *index_arrays(p.shape, first), *reads)
    # Nothing that is masked has a gradient, whatever its score.
    ds = np.where(p == 0, 0.0, by_score * slope)
    factor = scale_of(scale, q.shape[3])
    shared = {"k": factor * np.swapaxes(ds, 2, 3) @ q, "v": np.swapaxes(factors * p, 2, 3) @ g}
    added = {
        name: x.reshape(x.shape[0], k.shape[1], count, *x.shape[2:]).sum(2)
        for name, x in shared.items()
    }
    return {"q": factor * ds @ keys, "s": ds, **added}
