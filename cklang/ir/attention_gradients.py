# SPDX-License-Identifier: MIT
"""The ops ``attention_dq``, ``attention_dk`` and ``attention_dv``: gradients of an attention.

Operands are those of the attention, then the gradient g of o in the dtype of q, the log-sum-exp l
of each row, and D, the sum of g o along the head::

    p  = exp(score - l) where the mask holds, else 0
    ds = p (g v' - D)
    dq = scale ds k    dk = scale ds' q    dv = p' g

The score is the product plus something that does not depend on it. Heads that share keys add up.
One kernel computes all three, of tiles of the scores; users do not write these ops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from cklang.errors import CkError
from cklang.ir import attention
from cklang.ir.attention import group_size, scale_of, scores
from cklang.ir.nodes import Attr, Operation
from cklang.ir.numeric import Array
from cklang.ir.rules import DTypeRule, Shape, ShapeRule
from cklang.source import Span
from cklang.types import DType, TensorType, bf16, f16, f32

__all__ = [
    "GRADIENTS",
    "GRADIENT_DTYPE",
    "MORE",
    "check",
    "forward_of",
    "gradient",
    "shape_like",
]

GRADIENTS: Mapping[str, str] = {"attention_dq": "q", "attention_dk": "k", "attention_dv": "v"}
"""The ops, and the operand that the result of each is like."""

MORE = 3
"""Operands after those of the attention: g, l and D."""

_SIDES = ("q", "k", "v")
_FLOATS = (f16, bf16, f32)


def forward_of(operation: Operation) -> Operation:
    """Return the attention whose gradient an operation is; its result is like g, in f32."""
    operands, g = operation.operands[:-MORE], operation.operands[-MORE]
    result = replace(operation.result, type=replace(g.type, dtype=f32))
    return replace(operation, op="attention", operands=operands, result=result)


def _dtype(dtypes: tuple[DType, ...], _attrs: Mapping[str, Attr]) -> DType | None:
    if len(dtypes) < len(_SIDES) + MORE:
        return None
    sides = {*dtypes[: len(_SIDES)], dtypes[-MORE]}
    is_one = len(sides) == 1 and sides <= set(_FLOATS)
    return f32 if is_one and dtypes[1 - MORE :] == (f32, f32) else None


def _fits(shapes: tuple[Shape, ...], attrs: Mapping[str, Attr]) -> bool:
    own, (g, lse, inner) = shapes[:-MORE], shapes[-MORE:]
    o = attention.OUTPUT_SHAPE.apply(own, attrs, None)
    return o is not None and len(o) == 4 and (g, lse, inner) == (o, o[:3], o[:3])


def shape_like(place: int) -> ShapeRule:
    """Return the rule of an op whose result is like an operand of the attention."""

    def apply(
        shapes: tuple[Shape, ...], attrs: Mapping[str, Attr], _declared: Shape | None
    ) -> Shape | None:
        return shapes[place] if len(shapes) > MORE and _fits(shapes, attrs) else None

    return ShapeRule(
        text=f"the operands of attention, then [B, H, S, E], [B, H, S] and [B, H, S], give the "
        f"shape of {_SIDES[place]}",
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
    yield from attention.check(types[:-MORE], attrs, at)


def gradient(name: str) -> Callable[..., Array]:
    """Return the NumPy meaning of the op of an operand: q, k or v."""

    def meaning(
        *operands: Array, roles: Sequence[str], scale: float | str, **more: object
    ) -> Array:
        return _gradients(operands, roles, scale, more)[name]

    return meaning


def _gradients(
    operands: Sequence[Array], roles: Sequence[str], scale: float | str, more: Mapping[str, object]
) -> dict[str, Array]:
    (q, k, v, *others), (g, lse, inner) = operands[:-MORE], operands[-MORE:]
    reads = [x for x, role in zip(others, roles[len(_SIDES) :], strict=True) if role == "read"]
    regions = {name: more[name] for name in ("score", "mask")}
    logits = scores(q, k, reads, scale, regions)  # type: ignore[arg-type]
    finite = np.where(np.isneginf(lse), 0.0, lse)
    p = np.where(np.isneginf(logits), 0.0, np.exp(logits - finite[..., None]))
    count = group_size(q.shape[1], k.shape[1])
    keys, values = (np.repeat(x, count, axis=1) for x in (k, v))
    ds = p * (g @ np.swapaxes(values, 2, 3) - inner[..., None])
    factor = scale_of(scale, q.shape[3])
    shared = {"k": factor * np.swapaxes(ds, 2, 3) @ q, "v": np.swapaxes(p, 2, 3) @ g}
    added = {
        name: x.reshape(x.shape[0], k.shape[1], count, *x.shape[2:]).sum(2)
        for name, x in shared.items()
    }
    return {"q": factor * ds @ keys, **added}
