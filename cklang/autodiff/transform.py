# SPDX-License-Identifier: MIT
"""Reverse-mode differentiation of a function of the mini-IR.

The backward function computes the operations of the forward one again, as far as a rule reads
their values; the planner fuses both. A gradient is f32 from the first sum to the last, and is
rounded once, to the dtype of its parameter.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from cklang.autodiff.rounded import with_shared_rounding
from cklang.autodiff.rules import ADVICE, ONCE, RULES
from cklang.autodiff.score_derivatives import by_product
from cklang.autodiff.shifts import shifts
from cklang.autodiff.splits import Split, splits
from cklang.autodiff.step import Context, Rule, Step
from cklang.autodiff.structure import whole
from cklang.autodiff.terms import Emitter, Term
from cklang.errors import error
from cklang.ir.builder import Builder, without_unused
from cklang.ir.nodes import Function, Operation, Value, attr_key
from cklang.ir.ops import OPS
from cklang.ir.score_derivative import is_one
from cklang.types import Kind, f32

_ATTENTION, _LOG_SUMS = "attention", "attention_lse"


class Pair(NamedTuple):
    """An attention and its log-sum-exps, of equal operands and attributes."""

    attention: Operation
    log_sums: Operation
    second: Operation
    """Which of them a function has later."""


def attention_pairs(body: Sequence[Operation]) -> Mapping[str, Pair]:
    """Return the pairs among operations, by the names of both results."""
    pairs: dict[str, Pair] = {}
    earlier: dict[object, Operation] = {}
    for operation in body:
        if operation.op not in (_ATTENTION, _LOG_SUMS):
            continue
        first = earlier.setdefault((operation.operands, attr_key(operation.attrs)), operation)
        if first.op != operation.op:
            by_op = {step.op: step for step in (first, operation)}
            pair = Pair(by_op[_ATTENTION], by_op[_LOG_SUMS], operation)
            pairs |= {step.result.name: pair for step in (first, operation)}
    return pairs


def backward(
    forward: Function,
    wrt: Sequence[str],
    cotangents: Sequence[str] | None,
    *,
    name: str,
    context: Context | None = None,
) -> Function:
    """Return the function that gives the gradients of a function by some of its parameters.

    Args:
        forward: A verified function.
        wrt: The names of the parameters.
        cotangents: A name for the gradient by each result, which become parameters after those of
            the function; "" for results of integers. None if the gradient by the one result is
            1.
        name: Of the function returned.
        context: What rules know and note. The function depends on what
            :func:`.attention.facts_of` gives for the extents of dims in it.

    Returns:
        A function of the parameters of ``forward`` and the cotangents, whose results are like the
        parameters ``wrt``.

    Raises:
        CkUnsupportedError: G020, a gradient passes an op without a rule.
    """
    builder = Builder(name, forward.span)
    emitter = Emitter(builder)
    again = _again(emitter, forward)
    names = [param.name for param in again.params]
    params = [again.params[names.index(name)] for name in wrt]
    active = _active(again, wrt)
    seeds: dict[str, Term] = {}
    for place, result in enumerate(again.results):
        if cotangents is None:
            seed = emitter.constant(1.0, result.type.shape)
        elif cotangents[place]:
            seed = emitter.term(builder.param(cotangents[place], result.type)).cast(f32)
        if result.name in active:
            _add(seeds, result, seed)
    gradients = _pulled(emitter, again.body, seeds, active, context or Context())
    emitter.span = forward.span
    results = _rounded(params, gradients, emitter)
    return without_unused(with_shared_rounding(builder.finish(*results)))


def score_derivative(score: Function) -> Function | None:
    """Return the derivative of an attention's score by the product, a region; None if it is 1."""
    derivative = by_product(partial(_pulled_back, Context()), score)
    return None if is_one(derivative) else derivative


def _active(forward: Function, wrt: Sequence[str]) -> set[str]:
    """Return the names of the values that depend on parameters by differentiable steps."""
    return _reached(forward.body, wrt, shifts(forward))


def _reached(
    body: Sequence[Operation], wrt: Sequence[str], constant: Collection[str] = ()
) -> set[str]:
    """Return ``wrt`` and what depends on it, but for integers, conditions and ``constant``."""
    active = set(wrt)
    for operation in body:
        name = operation.result.name
        depends = any(value.name in active for value in operation.operands)
        if depends and operation.result.type.dtype.kind is Kind.FLOAT and name not in constant:
            active.add(name)
    return active


def _again(emitter: Emitter, forward: Function) -> Function:
    """Append the operations of a function, equal ones once, and return it with the new values."""
    builder = emitter.builder
    values = {param.name: builder.param(param.name, param.type) for param in forward.params}
    params = tuple(values.values())
    body: dict[str, Operation] = {}
    for operation in forward.body:
        emitter.span = operation.span
        operands = tuple(values[operand.name] for operand in operation.operands)
        shape = operation.result.type.shape if OPS[operation.op].shape.declared else None
        value = emitter.apply(operation.op, operands, dict(operation.attrs), shape)
        values[operation.result.name] = value
        body.setdefault(value.name, replace(operation, operands=operands, result=value))
    results = tuple(values[result.name] for result in forward.results)
    return replace(forward, params=params, body=tuple(body.values()), results=results)


def expect_differentiable_rules(forward: Function, wrt: Sequence[str]) -> None:
    """Check that the gradients of a function may be differentiated again."""
    active = _active(forward, wrt)
    for operation in forward.body:
        if operation.op in ONCE and operation.result.name in active:
            fix = ONCE[operation.op]
            raise error("G026", at=operation.span, op=operation.op, name=forward.name, fix=fix)


def _add(gradients: dict[str, Term], value: Value, part: Term) -> None:
    """Add a part of the gradient by a value: several uses of it add up."""
    known = gradients.get(value.name)
    gradients[value.name] = part if known is None else known + part


def _pulled(
    emitter: Emitter,
    body: Sequence[Operation],
    seeds: Mapping[str, Term],
    active: Collection[str],
    context: Context,
) -> dict[str, Term]:
    """Return the gradients by all active values that the seeds depend on.

    ``seeds`` are the gradients by some results of ``body``; ``active`` are the values by which to
    differentiate, those between among them. ``emitter`` appends to the backward function.
    """
    gradients = dict(seeds)
    by_first, pairs = splits(body), attention_pairs(body)
    parts_of_splits = {part.result for split in by_first.values() for part in split.parts}
    for own in reversed(body):
        split = by_first.get(own.result.name)
        if split is not None and split.source.name in active:
            _add_joined(gradients, split, emitter)
        pair = pairs.get(own.result.name)
        operation, log_sums = _of_pair(pair, own, gradients)
        gradient = gradients.get(operation.result.name)
        is_done = own.result in parts_of_splits or (pair is not None and own is pair.second)
        if gradient is None or is_done or own.result.name not in active:
            continue
        emitter.span = operation.span or emitter.span
        needed = tuple(value.name in active for value in operation.operands)
        step = Step(
            emitter=emitter,
            operation=operation,
            gradient=gradient,
            needed=needed,
            pull=partial(_pulled_back, context),
            context=context,
            log_sums=log_sums,
        )
        parts = _rule(step)(step)
        for value, is_needed, part in zip(operation.operands, needed, parts, strict=True):
            if is_needed and part is not None:
                _add(gradients, value, part)
    return gradients


def _of_pair(
    pair: Pair | None, own: Operation, gradients: Mapping[str, Term]
) -> tuple[Operation, Term | None]:
    """Return whose rule is applied, and the gradient by the log-sum-exps beside its own.

    One rule serves the attention and its log-sum-exps, when the first of both is reached: all uses
    of either are differentiated by then.
    """
    if pair is None:
        return own, None
    log_sums = gradients.get(pair.log_sums.result.name)
    if pair.attention.result.name in gradients:
        return pair.attention, log_sums
    return pair.log_sums, None


def _add_joined(gradients: dict[str, Term], split: Split, emitter: Emitter) -> None:
    """Add the gradient by a tensor that is taken apart: those by its parts, joined."""
    known = {part.result: gradients.get(part.result.name) for part in split.parts}
    if not any(known.values()):
        return
    emitter.span = next(split.parts).span or emitter.span
    terms = {
        part: emitter.constant(0.0, part.type.shape) if term is None else term
        for part, term in known.items()
    }
    _add(gradients, split.source, whole(split, terms))


def _pulled_back(
    context: Context,
    emitter: Emitter,
    body: Sequence[Operation],
    seeds: Mapping[str, Term],
    wrt: Sequence[str],
) -> Mapping[str, Term]:
    return _pulled(emitter, body, seeds, _reached(body, wrt), context)


def _rule(step: Step) -> Rule:
    rule = RULES.get(step.operation.op)
    if rule is None:
        op, name = step.operation.op, step.emitter.builder.name
        fix = ADVICE.get(op, "compute it in an op of its own")
        raise error("G020", at=step.operation.span, op=op, name=name, fix=fix)
    return rule


def _rounded(
    params: Sequence[Value], gradients: Mapping[str, Term], emitter: Emitter
) -> list[Value]:
    """Return a gradient for each parameter in its dtype; zeros for one that nothing depends on."""
    results: list[Value] = []
    for param in params:
        term = gradients.get(param.name)
        if term is None:
            term = emitter.constant(0.0, param.type.shape)
        value = term.cast(param.type.dtype).value
        results.append(_copy(emitter, value) if value in results else value)
    return results


def _copy(emitter: Emitter, value: Value) -> Value:
    """Return another value with the same elements: no two results are one value."""
    perm = tuple(range(value.type.rank))
    return emitter.builder.append("transpose", value, span=emitter.span, perm=perm)
