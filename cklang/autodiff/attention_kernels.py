# SPDX-License-Identifier: MIT
"""Gradients of attention by CK Tile's backward kernels, which keep tiles of the scores on chip.

They read the log-sum-exps of the forward kernel and D, the sums of o times its gradient along
heads, both [B, H, S], and call the derivative of the score function. What they do not take is left
to the products of :mod:`.attention`.
"""

from collections.abc import Mapping

from cklang.autodiff.score_derivatives import Read, by_product, by_read, fits, read_of, reads
from cklang.autodiff.step import Gradients, Step
from cklang.autodiff.terms import Term
from cklang.errors import error
from cklang.ir.attention import STARTS
from cklang.ir.attention_gradients import DERIVATIVE, GRADIENTS, MOST_HEADS, SCORES
from cklang.ir.nodes import Function, Operation, Value
from cklang.ir.views import APART
from cklang.types import extent_value, f32

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
    operation = step.operation
    dtypes = dict.fromkeys(value.type.dtype.name for value in operation.operands[:_SIDES])
    reasons = {
        "they take no second derivatives": not step.context.by_kernels,
        f"they multiply one of f16, bf16 and f32, not {' and '.join(dtypes)}": (
            len(dtypes) > 1 or operation.operands[0].type.dtype not in MOST_HEADS
        ),
    }
    first = next((why for why, holds in reasons.items() if holds), "")
    return first or head_refusal(operation, step.context.numbers) or _read_refusal(step)


def head_refusal(operation: Operation, numbers: Mapping[str, int]) -> str:
    """Return why the kernels do not take the sizes of heads; empty if they do, or are not known."""
    dtype = operation.operands[0].type.dtype
    most = MOST_HEADS.get(dtype)
    if most is None:
        return ""
    for value in (operation.operands[0], operation.operands[2]):
        try:
            size = extent_value(value.type.shape[-1], numbers)
        except KeyError:
            continue
        if size > most:
            return f"heads of {dtype} have at most {most} elements, not {size}"
    return ""


def _read_refusal(step: Step) -> str:
    """Return why the kernels do not give the gradients by what the score reads that are needed."""
    operation, score = step.operation, _score(step.operation)
    pairs = enumerate(read_places(operation))
    # What the mask alone reads has no gradient.
    wanted = [place for own, place in pairs if step.needed[place] and reads(score, own)]
    if wanted and STARTS[0] in roles_of(operation):
        return "they give no gradient by what the score of packed sequences reads"
    full = dict(zip("bhij", _extents(operation), strict=True))
    for place in wanted:
        read, type_ = _read(operation, place), operation.operands[place].type
        if read is None or not fits(read, type_.shape, full):
            return (
                "they give a gradient by what the score reads only of one element at its indices, "
                f"in a tensor with the extents of the scores or 1, not of {type_}"
            )
    return ""


def _extents(operation: Operation) -> tuple[object, ...]:
    """Return how many batches, heads, queries and keys there are."""
    q, k = (operation.operands[place].type.shape for place in (0, 1))
    return (*q[:3], k[2])


def _score(operation: Operation) -> Function:
    score = operation.attr("score")
    if not isinstance(score, Function):
        raise error("Z002", what="attention without the region score passes its rules")
    return score


def _read(operation: Operation, place: int) -> Read | None:
    """Return how the score reads an operand, if it reads one element at its indices."""
    return read_of(_score(operation), read_places(operation).index(place))


def log_sums(step: Step) -> Term:
    """Return the log-sum-exps of an attention, as the program computes it."""
    own = step.source or step.operation
    return step.emitter.term(step.emitter.apply("attention_lse", own.operands, dict(own.attrs)))


def by_kernels(step: Step, by_output: Term | None, by_log_sums: Term | None) -> Gradients:
    """Return the gradients by q, k and v, and by what the score reads as far as it is needed.

    Ops with one derivative are one kernel. The gradient by what a score multiplies needs another
    derivative than those by q and k, and so a kernel of its own.

    ``step`` is the attention, or its log-sum-exps if their gradient is all there is.
    """
    own, emitter = step.operation, step.emitter
    dtype, attrs, score = own.operands[0].type.dtype, dict(own.attrs), _score(own)
    g = _output_gradient(step, by_output)
    inner = _inner(step, g if by_output is not None else None, by_log_sums)
    lse = log_sums(step).value
    operands: tuple[Value, ...] = (*own.operands, g.value, lse, inner.value)

    def gradient(op: str, derivative: Function) -> Term:
        return emitter.term(emitter.apply(op, operands, {**attrs, DERIVATIVE: derivative}))

    gradients: list[Term | None] = [None] * len(own.operands)
    slope = by_product(step.pull, score)
    for place, op in enumerate(op for op in GRADIENTS if op != SCORES):
        gradients[place] = gradient(op, slope)
    for place in read_places(own):
        read = _read(own, place)
        if step.needed[place] and read is not None:
            # The kernel stores it in the dtype of q.
            ds = gradient(SCORES, by_read(step.pull, score, read)).cast(dtype).cast(f32)
            gradients[place] = _by_read(ds, read.indices, own.operands[place])
    return gradients


def _output_gradient(step: Step, by_output: Term | None) -> Term:
    """Return the gradient of o in the dtype of q, in memory."""
    own, emitter = step.operation, step.emitter
    if by_output is None:
        o = emitter.apply("attention", own.operands, dict(own.attrs))
        by_output = emitter.constant(0.0, o.type.shape)
    g = by_output.cast(own.operands[0].type.dtype)
    if emitter.source(by_output.value, "broadcast") is None:
        return g
    return emitter.term(emitter.append(APART, g.value, call=0))


def _inner(step: Step, g: Term | None, by_log_sums: Term | None) -> Term:
    """Return D: the sums along heads of o times its gradient, less that of the log-sum-exps.

    Both are as they are stored: o is rounded as for the weights that multiply it.
    """
    own, emitter = step.operation, step.emitter
    inner: Term | None = None
    if g is not None:
        rounded = step.result.cast(own.operands[0].type.dtype)
        o = emitter.term(emitter.append(APART, rounded.value, call=0))
        inner = (g.cast(f32) * o.cast(f32)).sum([len(o.shape) - 1])
        if STARTS[0] in roles_of(own):  # [N, H] becomes [H, N], as of the log-sum-exps
            inner = inner.transpose((1, 0))
    if by_log_sums is not None:
        inner = -by_log_sums if inner is None else inner - by_log_sums
    if inner is None:
        raise error("Z002", what="a gradient of attention by none of its results")
    # CK Tile divides it by the probability to keep a weight, as it does the gradient by weights.
    return inner * (1.0 - float(str(own.attr("dropout"))))


def _by_read(ds: Term, indices: tuple[str, ...], tensor: Value) -> Term:
    """Return the sum of the gradients of the scores that read one element of a tensor."""
    axes = ["bhij".index(index) for index in indices]
    own = [axis for axis, n in zip(axes, tensor.type.shape, strict=True) if n == ds.shape[axis]]
    total = ds.sum([axis for axis in range(len(ds.shape)) if axis not in own])
    return total.transpose([sorted(own).index(axis) for axis in own]).reshape(tensor.type.shape)
