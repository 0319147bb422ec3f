# SPDX-License-Identifier: MIT
"""An attention whose mask says what lengths of keys or ``min_seqlen_q`` leave out, for gradients.

==============  ====================  ==========================================================
operand         joins the mask        and
==============  ====================  ==========================================================
lengths of keys ``j < lengths[b]``    functions read ``lengths[b]`` in the place of ``k_len``
min_seqlen_q    ``q_len > least``     rows that were skipped have weights 0, and so gradients of 0
==============  ====================  ==========================================================

The gradients by keys beyond the length of a sequence are 0, and so are these keys and their values
before: what is in memory there may be anything.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TypeAlias

from cklang.autodiff.attention_kernels import roles_of
from cklang.autodiff.step import Step
from cklang.autodiff.terms import where
from cklang.errors import error
from cklang.ir.attention import LENGTHS, MIN_QUERIES, PAGES, READ_LIMIT, STARTS, region_params
from cklang.ir.builder import Builder, without_unused
from cklang.ir.nodes import Function, Operation, Value, make_attrs
from cklang.types import TensorType, f32

_READ = "read"


def has_masked_form(operation: Operation) -> bool:
    """Tell whether an attention has lengths of keys that a mask may express."""
    roles = roles_of(operation)
    others = (PAGES[0], STARTS[0])
    is_whole = not any(role in roles for role in others)
    return LENGTHS[0] in roles and is_whole and roles.count(_READ) < READ_LIMIT


def with_masked_keys(step: Step) -> tuple[Operation, tuple[int, ...]]:
    """Return an attention of whole sequences with a mask that hides what lengths of keys leave out.

    Returns:
        It, and the place that each of its operands has in the attention itself.
    """
    place = roles_of(step.operation).index(LENGTHS[0])
    operation, places = masked_by(step.operation, LENGTHS[0])
    known = {side: _cleared(step, side, place) for side in (1, 2)}
    operands = (known.get(index, step.operation.operands[index]) for index in places)
    return replace(operation, operands=tuple(operands)), places


def _cleared(step: Step, side: int, place: int) -> Value:
    """Return k or v with zeros beyond the length of each sequence."""
    emitter, term = step.emitter, step.operands[side]
    rows = emitter.arange(term.shape[2]).broadcast(term.shape, (2,))
    counts = step.operands[place].broadcast(term.shape, (0,))
    return where(rows < counts, term.cast(f32), 0.0).cast(term.dtype).value


def masked_by(
    operation: Operation, role: str, number: int | None = None
) -> tuple[Operation, tuple[int, ...]]:
    """Return an attention whose functions read the operand ``role`` instead, as their last tensor.

    Args:
        operation: An attention of fewer than ``READ_LIMIT`` tensors that functions read.
        role: ``lengths_k`` or ``min_seqlen_q``.
        number: What the operand is, if it is a constant, which nothing reads.

    Returns:
        It, and the place that each of its operands has in the attention itself.
    """
    roles = roles_of(operation)
    place = roles.index(role)
    more = (place,) if number is None else ()
    places = (*(index for index in range(len(roles)) if index != place), *more)
    operands = tuple(operation.operands[index] for index in places)
    kept = (*(own for own in roles if own != role), *[_READ] * len(more))
    reads = [operand.type for operand, own in zip(operands, kept, strict=True) if own == _READ]
    attrs = dict(operation.attrs)
    for name in ("score", "mask"):
        region = attrs[name]
        if not isinstance(region, Function):
            raise error("Z002", what=f"attention without the region {name} passes its rules")
        attrs[name] = _region(region, reads, role, number)
    attrs["roles"] = kept
    return replace(operation, operands=operands, attrs=make_attrs(**attrs)), places


def _region(
    region: Function, reads: Sequence[TensorType], role: str, number: int | None
) -> Function:
    """Return a function of a score that knows a length; a mask that hides others too."""
    builder = Builder(region.name)
    params = region_params(region.name, reads)
    values = {param.name: builder.param(param.name, param.type) for param in params}
    if number is None:
        tensor = values[params[-1].name]
        count = builder.append("element", tensor, *[values["b"]] * tensor.type.rank)
    else:
        count = builder.append("constant", value=number)
    condition = _HIDING[role](builder, values, count)
    for operation in region.body:
        operands = [values[operand.name] for operand in operation.operands]
        values[operation.result.name] = builder.apply(
            operation.op, operands, dict(operation.attrs), span=operation.span
        )
    result = values[region.results[0].name]
    if region.name == "mask":
        result = builder.append("logical_and", result, condition)
    return without_unused(builder.finish(result))


_Hide: TypeAlias = Callable[[Builder, dict[str, Value], Value], Value]
"""From what appends, a region's values by their names, which it may change, and the length: the
condition under which a score counts."""


def _keys_before(builder: Builder, values: dict[str, Value], length: Value) -> Value:
    values["k_len"] = length
    return builder.append("lt", values["j"], length)


def _more_queries(builder: Builder, values: dict[str, Value], least: Value) -> Value:
    return builder.append("gt", values["q_len"], least)


_HIDING: Mapping[str, _Hide] = MappingProxyType(
    {LENGTHS[0]: _keys_before, MIN_QUERIES[0]: _more_queries}
)
