# SPDX-License-Identifier: MIT
"""The derivatives of a score function, as regions that a backward kernel of attention calls.

They are made by the gradient rules of pointwise ops, which are applied to the score's region.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from cklang.autodiff.step import Pull
from cklang.autodiff.terms import Emitter
from cklang.ir.attention_gradients import DERIVATIVE
from cklang.ir.builder import Builder, without_unused
from cklang.ir.nodes import Function, Operation, Value
from cklang.ir.ops import OPS, Kind
from cklang.ir.rules import Shape


class Read(NamedTuple):
    """The one element of a tensor that a score reads."""

    element: Value
    indices: tuple[str, ...]
    """The names of the score's indices, one for each axis of the tensor."""


def _elements(score: Function, place: int) -> list[Operation]:
    return [
        operation
        for operation in score.body
        if OPS[operation.op].kind is Kind.READ and operation.operands[0].name == f"d{place}"
    ]


def reads(score: Function, place: int) -> bool:
    """Tell whether a score reads its tensor ``place``, which may be the mask's alone."""
    return bool(_elements(score, place))


def read_of(score: Function, place: int) -> Read | None:
    """Return how a score reads its tensor ``place``; None unless it reads one element of it.

    The element is at some of the score's indices b, h, i and j, each at most once.
    """
    elements = _elements(score, place)
    if len(elements) != 1:
        return None
    indices = tuple(value.name for value in elements[0].operands[1:])
    is_direct = set(indices) <= set("bhij") and len(set(indices)) == len(indices)
    return Read(elements[0].result, indices) if is_direct else None


def fits(read: Read, shape: Shape, extents: Mapping[str, object]) -> bool:
    """Tell whether a tensor has the extents of the scores, or 1, along the indices of a read."""
    pairs = zip(read.indices, shape, strict=True)
    return all(extent in (1, extents[index]) for index, extent in pairs)


def by_product(pull: Pull, score: Function) -> Function:
    """Return the derivative of a score by the scaled product of query and key."""
    return _derivative(pull, score, score.params[0])


def by_read(pull: Pull, score: Function, read: Read) -> Function:
    """Return the derivative of a score by an element that it reads."""
    return _derivative(pull, score, read.element)


def _derivative(pull: Pull, score: Function, wrt: Value) -> Function:
    builder = Builder(DERIVATIVE)
    emitter = Emitter(builder)
    values = {param.name: builder.param(param.name, param.type) for param in score.params}
    body: dict[str, Operation] = {}
    for operation in score.body:
        emitter.span = operation.span
        operands = tuple(values[operand.name] for operand in operation.operands)
        value = emitter.apply(operation.op, operands, dict(operation.attrs))
        values[operation.result.name] = value
        body.setdefault(value.name, replace(operation, operands=operands, result=value))
    name, result = values[wrt.name].name, values[score.results[0].name]
    behind = [operation for operation in body.values() if operation.result.name != name]
    one = emitter.constant(1.0)
    gradient = pull(emitter, behind, {result.name: one}, [name]).get(name)
    if gradient is None:
        gradient = emitter.constant(0.0)
    return without_unused(builder.finish(gradient.value))
