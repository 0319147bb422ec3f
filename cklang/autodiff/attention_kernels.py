# SPDX-License-Identifier: MIT
"""Gradients of attention by CK Tile's backward kernels, which keep tiles of the scores on chip.

They read the log-sum-exps of the forward kernel and D, the sums of o times its gradient along
heads, both [B, H, S]. What they do not take is left to the products of :mod:`.attention`.
"""

from __future__ import annotations

from collections.abc import Mapping

from cklang.autodiff.step import Gradients, Step
from cklang.autodiff.terms import Term
from cklang.ir.attention_gradients import GRADIENTS
from cklang.ir.nodes import Function, Operation, Value
from cklang.ir.views import APART
from cklang.ops.attention_backward import MOST_HEADS, is_additive
from cklang.types import extent_value, f32

__all__ = ["by_kernels", "head_refusal", "refusal"]

_SIDES = 3


def refusal(step: Step) -> str:
    """Return why the kernels do not take the gradient of an attention; empty if they do."""
    operation, score = step.operation, step.operation.attr("score")
    dtypes = dict.fromkeys(value.type.dtype.name for value in operation.operands[:_SIDES])
    reasons = {
        "they take no second derivatives": not step.context.by_kernels,
        f"they multiply one of f16, bf16 and f32, not {' and '.join(dtypes)}": (
            len(dtypes) > 1 or operation.operands[0].type.dtype not in MOST_HEADS
        ),
        "the score is more than the product plus something": (
            isinstance(score, Function) and not is_additive(score)
        ),
        "a gradient by what the score reads is a sum over scores": any(step.needed[_SIDES:]),
        "the gradient of o repeats along an axis": step.emitter.is_repeated(step.gradient.value),
    }
    first = next((why for why, holds in reasons.items() if holds), "")
    return first or head_refusal(operation, step.context.numbers)


def head_refusal(operation: Operation, numbers: Mapping[str, int]) -> str:
    """Return why the kernels do not take the sizes of heads; empty if they do, or are not known."""
    dtype = operation.operands[0].type.dtype
    most = MOST_HEADS.get(dtype, max(MOST_HEADS.values()))
    for value in (operation.operands[0], operation.operands[2]):
        try:
            size = extent_value(value.type.shape[-1], numbers)
        except KeyError:
            continue
        if size > most:
            return f"heads of {dtype} have at most {most} elements, not {size}"
    return ""


def by_kernels(step: Step) -> Gradients:
    """Return the gradients by q, k and v; those by what the score reads are not asked for."""
    own, emitter = step.operation, step.emitter
    dtype, attrs = own.operands[0].type.dtype, dict(own.attrs)
    # Both as they are stored: o is rounded for D as for the weights that multiply it.
    o = emitter.term(emitter.append(APART, step.result.cast(dtype).value, call=0))
    g = step.gradient.cast(dtype)
    inner = (g.cast(f32) * o.cast(f32)).sum([3])
    lse = emitter.apply("attention_lse", own.operands, attrs)
    operands: tuple[Value, ...] = (*own.operands, g.value, lse, inner.value)
    sides: list[Term | None] = [
        emitter.term(emitter.apply(op, operands, attrs)) for op in GRADIENTS
    ]
    return [*sides, *[None] * (len(own.operands) - _SIDES)]
