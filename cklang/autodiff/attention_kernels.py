# SPDX-License-Identifier: MIT
"""Gradients of attention by CK Tile's backward kernels, which keep tiles of the scores on chip.

They read the log-sum-exps of the forward kernel and D, the sums of o times its gradient along
heads, both [B, H, S]. What they do not take is left to the products of :mod:`.attention`.
"""

from __future__ import annotations

from collections.abc import Mapping

from cklang.autodiff.step import Gradients, Step
from cklang.autodiff.terms import Term
from cklang.ir.attention import SEEDS, STARTS
from cklang.ir.attention_gradients import GRADIENTS, SCORES
from cklang.ir.nodes import Function, Operation, Value
from cklang.ir.views import APART
from cklang.ops.attention_backward import MOST_HEADS, added_bias, is_additive
from cklang.types import extent_value, f32

__all__ = ["by_kernels", "head_refusal", "read_places", "refusal", "roles_of"]

_SIDES = 3


def roles_of(operation: Operation) -> tuple[str, ...]:
    """Return what each operand is to an attention."""
    roles = operation.attr("roles")
    return tuple(map(str, roles)) if isinstance(roles, tuple) else ()


def read_places(operation: Operation) -> tuple[int, ...]:
    """Return which operands are tensors that the functions of score and mask read."""
    return tuple(place for place, role in enumerate(roles_of(operation)) if role == "read")


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
        "the gradient of o repeats along an axis": step.emitter.is_repeated(step.gradient.value),
    }
    first = next((why for why, holds in reasons.items() if holds), "")
    return first or head_refusal(operation, step.context.numbers) or _bias_refusal(step)


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


def _bias_refusal(step: Step) -> str:
    """Return why the kernels do not give the gradients by what the score reads that are needed."""
    operation = step.operation
    wanted = [place for place in read_places(operation) if step.needed[place]]
    if not wanted:
        return ""
    bias = _bias_of(operation)
    if bias is None or wanted != [bias[0]] or STARTS[0] in roles_of(operation):
        return "they give a gradient by what the score reads only of a bias [.., keys] that it adds"
    place, indices = bias
    type_ = operation.operands[place].type
    if type_.dtype != operation.operands[0].type.dtype:
        return f"they read a bias of the dtype of q, not of {type_.dtype}"
    full = dict(zip("bhij", _extents(operation), strict=True))
    pairs = list(zip(indices, type_.shape, strict=True))
    fits = all(extent in (1, full[index]) for index, extent in pairs)
    if not fits or type_.shape[-1] != full["j"]:
        return f"they read a bias with the extents of the scores or 1, not of {type_}"
    return ""


def _extents(operation: Operation) -> tuple[object, ...]:
    """Return how many batches, heads, queries and keys there are."""
    q, k = (operation.operands[place].type.shape for place in (0, 1))
    return (*q[:3], k[2])


def _bias_of(operation: Operation) -> tuple[int, tuple[str, ...]] | None:
    """Return which operand the score adds, and the index of each of its axes; None if no bias."""
    score = operation.attr("score")
    bias = added_bias(score) if isinstance(score, Function) else None
    if bias is None:
        return None
    name, indices = bias
    return read_places(operation)[int(name.removeprefix("d"))], indices


def by_kernels(step: Step) -> Gradients:
    """Return the gradients by q, k and v, and by a bias if it is needed."""
    own, emitter = step.operation, step.emitter
    dtype, attrs = own.operands[0].type.dtype, dict(own.attrs)
    # Both as they are stored: o is rounded for D as for the weights that multiply it.
    o = emitter.term(emitter.append(APART, step.result.cast(dtype).value, call=0))
    g = step.gradient.cast(dtype)
    inner = (g.cast(f32) * o.cast(f32)).sum([len(o.shape) - 1])
    if SEEDS[0] in roles_of(own):
        inner = inner * (1.0 - float(str(own.attr("dropout"))))
    if STARTS[0] in roles_of(own):  # [N, H] becomes [H, N], as of the log-sum-exps
        inner = inner.transpose((1, 0))
    lse = emitter.apply("attention_lse", own.operands, attrs)
    operands: tuple[Value, ...] = (*own.operands, g.value, lse, inner.value)
    gradients: list[Term | None] = [None] * len(own.operands)
    for place, op in enumerate(op for op in GRADIENTS if op != SCORES):
        gradients[place] = emitter.term(emitter.apply(op, operands, attrs))
    if any(step.needed[place] for place in read_places(own)):
        # The kernel stores it in the dtype of the bias.
        ds = emitter.term(emitter.apply(SCORES, operands, attrs)).cast(dtype).cast(f32)
        place, indices = _bias_of(own) or (0, ())
        gradients[place] = _by_bias(ds, indices, own.operands[place])
    return gradients


def _by_bias(ds: Term, indices: tuple[str, ...], bias: Value) -> Term:
    """Return the sum of the gradients of the scores that share an element of a bias."""
    axes = ["bhij".index(each) for each in indices]
    own = [axis for axis, n in zip(axes, bias.type.shape, strict=True) if n == ds.shape[axis]]
    total = ds.sum([axis for axis in range(len(ds.shape)) if axis not in own])
    return total.transpose([sorted(own).index(axis) for axis in own]).reshape(bias.type.shape)
