# SPDX-License-Identifier: MIT
"""Gradient rules of reductions and of windows."""

from collections.abc import Mapping
from dataclasses import replace

from cklang.autodiff.step import Gradients, Rule, Step
from cklang.autodiff.terms import Emitter, Term, where
from cklang.ir.builder import Builder
from cklang.ir.nodes import Operation
from cklang.ir.ops import OPS
from cklang.ir.pooling import AVG_POOL, MAX_POOL, expanded
from cklang.types import f32


def _repeated(step: Step, term: Term) -> Term:
    """Return a reduced term repeated along the axes that the operation reduces."""
    shape = step.operands[0].shape
    kept = [axis for axis in range(len(shape)) if axis not in step.axes("axes")]
    return term.broadcast(shape, kept)


def _sum(step: Step) -> Gradients:
    return (_repeated(step, step.gradient),)


def _mean(step: Step) -> Gradients:
    count = step.emitter.count(step.operation.operands[0], step.axes("axes"))
    share = step.gradient / count.broadcast(step.gradient.shape, ())
    return (_repeated(step, share),)


def _extreme(step: Step) -> Gradients:
    """All elements that are the extreme share the gradient evenly, as torch's ``amax`` has it."""
    is_extreme = step.wide(0).equals(_repeated(step, step.result)).cast(f32)
    share = step.gradient / is_extreme.sum(step.axes("axes"))
    return (is_extreme * _repeated(step, share),)


def _prod(step: Step) -> Gradients:
    """Multiply the gradient by the product of the other elements, which may be zeros.

    Without a zero that is the product over the element. A single zero has the product of the
    others, and they have 0; of several zeros all have 0.
    """
    x, axes = step.wide(0), step.axes("axes")
    is_zero = x.equals(0.0)
    others = where(is_zero, 1.0, x)
    zeros = _repeated(step, is_zero.cast(f32).sum(axes))
    product = _repeated(step, step.gradient * others.reduce("reduce_prod", axes))
    only = where(is_zero.both(zeros.equals(1.0)), product, 0.0)
    return (where(zeros.equals(0.0), product / others, only),)


def _pooled(step: Step) -> Gradients:
    """Differentiate windows along one axis after the other."""
    emitter, operation = step.emitter, step.operation
    (x,) = operation.operands
    inner = Builder(operation.op)
    param = inner.param("x", x.type)
    result = expanded(Emitter(inner), operation, param)
    values, body = {param.name: x}, dict[str, Operation]()
    for step_of in inner.body:
        operands = tuple(values[operand.name] for operand in step_of.operands)
        shape = step_of.result.type.shape if OPS[step_of.op].shape.declared else None
        value = emitter.apply(step_of.op, operands, dict(step_of.attrs), shape)
        values[step_of.result.name] = value
        body.setdefault(value.name, replace(step_of, operands=operands, result=value))
    seeds = {values[result.name].name: step.gradient}
    return (step.pull(emitter, tuple(body.values()), seeds, [x.name]).get(x.name),)


REDUCTIONS: Mapping[str, Rule] = {
    "reduce_sum": _sum,
    "reduce_mean": _mean,
    "reduce_max": _extreme,
    "reduce_min": _extreme,
    "reduce_prod": _prod,
    MAX_POOL: _pooled,
    AVG_POOL: _pooled,
}
"""The rules by op."""
