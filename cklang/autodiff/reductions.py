# SPDX-License-Identifier: MIT
"""Gradient rules of reductions."""

from __future__ import annotations

from collections.abc import Mapping

from cklang.autodiff.step import Gradients, Rule, Step
from cklang.autodiff.terms import Term, where
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


REDUCTIONS: Mapping[str, Rule] = {
    "reduce_sum": _sum,
    "reduce_mean": _mean,
    "reduce_max": _extreme,
    "reduce_min": _extreme,
    "reduce_prod": _prod,
}
"""The rules by op."""
