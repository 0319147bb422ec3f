# SPDX-License-Identifier: MIT
"""Let the functions of an attention read tensors as they are stored.

A score that reads ``bias.T[i, j]`` reads ``bias[j, i]``: transposes and repetitions of what is read
become other indices.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from cklang.ir.emitter import permutation, repeated_axes
from cklang.ir.nodes import Attr, Function, Operation, Value, make_attrs
from cklang.ir.rewrite import needed_operations


def with_stored_reads(function: Function) -> Function:
    """Return a function whose attentions, and their gradients, read no transposed tensors."""
    definitions = function.definitions()
    body = [_with_stored_reads(operation, definitions) for operation in function.body]
    if all(new is old for new, old in zip(body, function.body, strict=True)):
        return function
    return replace(function, body=tuple(needed_operations(body, function.results)))


def _with_stored_reads(operation: Operation, definitions: Mapping[str, Operation]) -> Operation:
    roles = dict(operation.attrs).get("roles")
    if not isinstance(roles, tuple) or "read" not in roles:
        return operation
    operands = list(operation.operands)
    stored: dict[str, tuple[Value, Sequence[int]]] = {}
    reads = [place for place, role in enumerate(roles) if role == "read"]
    for number, place in enumerate(reads):
        base, axes = _stored(operands[place], definitions)
        if base != operands[place]:
            stored[f"d{number}"] = base, axes
            operands[place] = base
    if not stored:
        return operation
    attrs = {name: _read_anew(attr, stored) for name, attr in operation.attrs}
    return replace(operation, operands=tuple(operands), attrs=make_attrs(**attrs))


def _stored(value: Value, definitions: Mapping[str, Operation]) -> tuple[Value, tuple[int, ...]]:
    """Return what ``value`` is a transpose or repetition of, and the axis of each of its axes."""
    axes = tuple(range(value.type.rank))
    while (operation := definitions.get(value.name)) is not None:
        if operation.op == "transpose":
            order = permutation(operation)
            below = tuple(order.index(axis) for axis in range(len(order)))
        elif operation.op == "broadcast":
            below = repeated_axes(operation)
        else:
            break
        (value,) = operation.operands
        axes = tuple(axes[axis] for axis in below)
    return value, axes


def _read_anew(attr: Attr, stored: Mapping[str, tuple[Value, Sequence[int]]]) -> Attr:
    """Return a function that reads other tensors by its parameters; another attribute as it is."""
    if not isinstance(attr, Function):
        return attr
    params = {
        param: replace(param, type=stored[param.name][0].type)
        for param in attr.params
        if param.name in stored
    }
    body = []
    for operation in attr.body:
        tensor, *indices = operation.operands or (None,)
        if operation.op == "element" and tensor in params:
            at = [indices[axis] for axis in stored[tensor.name][1]]
            operation = replace(operation, operands=(params[tensor], *at))
        body.append(operation)
    return replace(
        attr, params=tuple(params.get(param, param) for param in attr.params), body=tuple(body)
    )
