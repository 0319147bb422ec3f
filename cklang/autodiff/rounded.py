# SPDX-License-Identifier: MIT
"""Sums of gradients that products read: the sum of a bias reads what the products read.

A product takes a gradient rounded to the dtype of its other operand. Where a sum reads the same
gradient in f32, a kernel would store it twice, or compute it twice. The sum reads it rounded too,
and adds it in f32, as torch does with gradients that it keeps in f16.
"""

from dataclasses import replace

from cklang.autodiff.products import PRODUCTS
from cklang.ir.nodes import Function, Operation, Value
from cklang.types import bf16, f16


def with_shared_rounding(function: Function) -> Function:
    """Return a function whose sums read what is rounded for products, where that is there."""
    rounded = _rounded(function)
    if not rounded:
        return function
    casts = {cast.result.name for cast in rounded.values()}
    body: list[Operation] = []
    for operation in function.body:
        if operation.result.name in casts:
            continue
        name = operation.operands[0].name if operation.operands else ""
        if operation.op == "reduce_sum" and name in rounded:
            operation = replace(operation, operands=(rounded[name].result,))
        body.append(operation)
        if operation.result.name in rounded:
            body.append(rounded[operation.result.name])
    return replace(function, body=tuple(body))


def _rounded(function: Function) -> dict[str, Operation]:
    """Return the cast of each computed value that products and sums read, by the value's name."""
    definitions = function.definitions()
    summed = {step.operands[0].name for step in function.body if step.op == "reduce_sum"}
    rounded: dict[str, Operation] = {}
    for operation in function.body:
        for operand in operation.operands if operation.op in PRODUCTS else ():
            cast = _cast_of(operand, definitions)
            if cast is not None and cast.operands[0].name in summed & set(definitions):
                rounded.setdefault(cast.operands[0].name, cast)
    return rounded


def _cast_of(value: Value, definitions: dict[str, Operation]) -> Operation | None:
    """Return the cast to 16 bits that a value is, or is a transpose of."""
    operation = definitions.get(value.name)
    while operation is not None and operation.op == "transpose":
        operation = definitions.get(operation.operands[0].name)
    if operation is None or operation.op != "cast":
        return None
    return operation if operation.result.type.dtype in (f16, bf16) else None
