# SPDX-License-Identifier: MIT
"""The pointwise functions of a kernel as one region, which so has one text and one identity."""

from collections.abc import Sequence
from dataclasses import replace

from cklang.ir.nodes import Function, Operation, Value


def joined(functions: Sequence[Function]) -> Function:
    """Return several regions as one: all their parameters, bodies and results in order.

    The first one's parameters keep their names; those of others have names of their own already.
    """
    params = [value for function in functions for value in function.params]
    names = {value.name: value for value in params}
    body: list[Operation] = []
    results: list[Value] = []
    for function in functions:
        known = {value.name: names[value.name] for value in function.params}
        for operation in function.body:
            result = replace(operation.result, name=str(len(body)))
            operands = tuple(known[operand.name] for operand in operation.operands)
            known[operation.result.name] = result
            body.append(replace(operation, operands=operands, result=result))
        results += (known[value.name] for value in function.results)
    return Function(
        name=functions[0].name, params=tuple(params), body=tuple(body), results=tuple(results)
    )


def split(function: Function, counts: Sequence[int], first: int = 1) -> list[Function]:
    """Return the regions that :func:`joined` made one of; each has ``counts`` parameters.

    The first one has ``first`` results, each other one has one.
    """
    parts = []
    start = 0
    results = [function.results[:first], *((result,) for result in function.results[first:])]
    for count, own in zip(counts, results, strict=True):
        needed = {result.name for result in own}
        body = []
        for operation in reversed(function.body):
            if operation.result.name in needed:
                needed |= {operand.name for operand in operation.operands}
                body.append(operation)
        parts.append(
            Function(
                name=function.name,
                params=function.params[start : start + count],
                body=tuple(reversed(body)),
                results=own,
            )
        )
        start += count
    return parts
