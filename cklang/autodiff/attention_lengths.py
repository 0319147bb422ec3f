# SPDX-License-Identifier: MIT
"""An attention whose sequences have lengths of keys as one with a mask, for products.

``j < lengths[b]`` joins the mask, and functions read ``lengths[b]`` in the place of ``k_len``. The
gradients by keys beyond the length of a sequence are 0, and so are these keys and their values
before: what is in memory there may be anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cklang.autodiff.step import Step
from cklang.errors import error
from cklang.ir.attention import LENGTHS, PAGES, READ_LIMIT, STARTS, region_params
from cklang.ir.builder import Builder, without_unused
from cklang.ir.nodes import Function, Operation, Value, make_attrs
from cklang.types import TensorType

__all__ = ["has_masked_form", "with_masked_keys"]

_READ = "read"


def _roles(operation: Operation) -> tuple[str, ...]:
    roles = operation.attr("roles")
    return tuple(map(str, roles)) if isinstance(roles, tuple) else ()


def has_masked_form(operation: Operation) -> bool:
    """Tell whether an attention has lengths of keys that a mask may express."""
    roles = _roles(operation)
    others = (PAGES[0], STARTS[0])
    is_whole = not any(role in roles for role in others)
    return LENGTHS[0] in roles and is_whole and roles.count(_READ) < READ_LIMIT


def with_masked_keys(step: Step) -> tuple[Operation, tuple[int, ...]]:
    """Return an attention of whole sequences with a mask that hides what lengths of keys leave out.

    Returns:
        It, and the place that each of its operands has in the attention itself.
    """
    operation = step.operation
    roles = _roles(operation)
    place = roles.index(LENGTHS[0])
    places = (*(each for each in range(len(roles)) if each != place), place)
    known = {0: operation.operands[0]} | {side: _cleared(step, side, place) for side in (1, 2)}
    operands = tuple(known.get(each, operation.operands[each]) for each in places)
    reads = [
        operand.type
        for operand, role in zip(operation.operands, roles, strict=True)
        if role == _READ
    ]
    lengths = operation.operands[place].type
    attrs = dict(operation.attrs)
    for name in ("score", "mask"):
        region = attrs[name]
        if not isinstance(region, Function):
            raise error("Z002", what=f"attention without the region {name} passes its rules")
        attrs[name] = _region(region, reads, lengths)
    attrs["roles"] = (*(role for role in roles if role != LENGTHS[0]), _READ)
    return replace(operation, operands=operands, attrs=make_attrs(**attrs)), places


def _cleared(step: Step, side: int, place: int) -> Value:
    """Return k or v with zeros beyond the length of each sequence."""
    emitter, term = step.emitter, step.operands[side]
    rows = emitter.arange(term.shape[2]).broadcast(term.shape, (2,))
    counts = step.operands[place].broadcast(term.shape, (0,))
    zeros = emitter.constant(0.0, term.shape).cast(term.dtype)
    return (rows < counts).call("where", term, zeros).value


def _region(region: Function, reads: Sequence[TensorType], lengths: TensorType) -> Function:
    """Return a function of a score that reads the number of keys; a mask that hides others too."""
    builder = Builder(region.name)
    params = region_params(region.name, [*reads, lengths])
    values = {param.name: builder.param(param.name, param.type) for param in params}
    count = builder.append("element", values[params[-1].name], values["b"])
    values["k_len"] = count
    for operation in region.body:
        operands = [values[each.name] for each in operation.operands]
        values[operation.result.name] = builder.apply(
            operation.op, operands, dict(operation.attrs), span=operation.span
        )
    result = values[region.results[0].name]
    if region.name == "mask":
        inside = builder.append("lt", values["j"], count)
        result = builder.append("logical_and", result, inside)
    return without_unused(builder.finish(result))
