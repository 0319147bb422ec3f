# SPDX-License-Identifier: MIT
"""The table of gradient rules, and why the other ops of the op table have none."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from cklang.autodiff.attention import ATTENTION
from cklang.autodiff.indices import INDICES
from cklang.autodiff.pointwise import POINTWISE
from cklang.autodiff.products import PRODUCTS
from cklang.autodiff.step import Gradients, Rule, Step
from cklang.autodiff.structure import STRUCTURE
from cklang.autodiff.terms import Emitter, Term, where
from cklang.ir.attention_gradients import GRADIENTS
from cklang.ir.block_results import BLOCK_FIRST, BLOCK_PEAK
from cklang.ir.builder import Builder
from cklang.ir.grouped import SCALED_PRODUCTS
from cklang.ir.log_sums import PARTIALS
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


RULES: Mapping[str, Rule] = MappingProxyType(
    {**POINTWISE, **REDUCTIONS, **PRODUCTS, **ATTENTION, **INDICES, **STRUCTURE}
)
"""The rule of each op that has one."""

_ADVICE = {
    "take": "write table[ids] as a product with a one-hot matrix, or compute the gradient of "
    "the table outside: a scatter of dy to rows ids",
    "gemm24": "differentiate the dense product a @ b and prune the gradient by the pattern",
    **dict.fromkeys(
        SCALED_PRODUCTS,
        "differentiate the product of the operands before quantisation, in f16 or bf16",
    ),
    "element": "read the tensor outside of score and mask functions",
    "moe_weights": "take the scores, ck.softmax or ck.sigmoid, at the indices by ck.take",
    "scatter": "write it with scatter_add, whose rows have gradients",
    **dict.fromkeys(
        (*PARTIALS, BLOCK_PEAK, BLOCK_FIRST),
        "differentiate the op that was written, not a part of its plan",
    ),
    **dict.fromkeys(
        GRADIENTS, "differentiate the op that was written, whose gradient these are a part of"
    ),
}
ADVICE: Mapping[str, str] = MappingProxyType(
    {name: fix for name, fix in _ADVICE.items() if name in OPS and name not in RULES}
)
"""The ops that floats pass and that have no rule, with what to write instead."""

ONCE: Mapping[str, str] = MappingProxyType(
    {
        "reduce_prod": "write the product as ck.exp(ck.sum(ck.log(x))) where all elements are "
        "above 0",
        "cumprod": "write the products as ck.exp(ck.cumsum(ck.log(x), axis)) where all elements "
        "are above 0",
    }
)
"""Ops whose rule is not to be differentiated again, since it distinguishes zeros, with advice."""

_CONDITIONS = ("lt", "le", "gt", "ge", "eq", "ne", "isnan", "isfinite", "isinf", "signbit")
_NUMBERS = (
    "constant",
    "extent",
    "arange",
    "reduce_argmax",
    "reduce_argmin",
    "argsort",
    "moe_indices",
    "group_ends",
    "group_order",
    "sample",
)
WITHOUT_FLOATS = frozenset(
    (
        *(name for name in OPS if name.startswith(("bitwise_", "logical_"))),
        *("left_shift", "right_shift"),
        *_CONDITIONS,
        *(name for name in _NUMBERS if name in OPS),
    )
)
"""Ops that no gradient reaches: their results are integers and conditions, or constants."""
