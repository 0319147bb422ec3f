# SPDX-License-Identifier: MIT
"""Check modules and functions against the rules of the language; collect all violations.

======== ========= ==========================================================
rule     code      the rule
======== ========= ==========================================================
ssa      I010      a name is defined once
ssa      I011      a value is defined before it is used, in the same function
ssa      I012      a value is used with the type it is defined with
op       I013      an op is a row of the op table
operands I014      an op has as many operands as its row says
attrs    I015-I017 an op has the attributes of its row, all, each of its kind
dtype    I018      operand dtypes obey the row's dtype rule
shape    I019      operand shapes obey the row's shape rule
type     I020      the declared result type is the one that the rules give
unused   I021      the result of an operation is used
module   I022      function names are unique
======== ========= ==========================================================

Regions (functions in attributes) are checked like functions.
"""

from collections.abc import Iterator, Mapping, Sequence

from cklang.errors import CkError, error
from cklang.ir.infer import problems, result_type
from cklang.ir.nodes import Attr, Function, Module, Operation, Value
from cklang.ir.ops import OPS


def verify(function: Function, *, allow_unused: bool = False) -> Function:
    """Return ``function`` if it obeys all rules.

    ``allow_unused`` leaves out the rule ``unused``; passes clean up after themselves with it.
    """
    errors = violations(function)
    if allow_unused:
        errors = [violation for violation in errors if violation.code != "I021"]
    _raise(errors, function.name)
    return function


def verify_module(module: Module) -> Module:
    """Return ``module`` if it and its functions obey all rules; raises as :func:`verify`."""
    errors = violations_of_module(module)
    _raise(errors, ", @".join(function.name for function in module.functions))
    return module


def violations(function: Function) -> list[CkError]:
    """Return all violations in ``function``, in order of the text."""
    scope: dict[str, Value] = {}
    errors: list[CkError] = []
    for param in function.params:
        errors += _define(scope, param, None)
    for operation in function.body:
        errors += _operation(scope, operation)
        errors += _define(scope, operation.result, operation)
    errors += _uses(scope, function.results, None)
    return errors + _unused(function)


def violations_of_module(module: Module) -> list[CkError]:
    """Return all violations in ``module``."""
    names = [function.name for function in module.functions]
    errors = [
        error("I022", at=function.span, name=function.name)
        for index, function in enumerate(module.functions)
        if function.name in names[:index]
    ]
    for function in module.functions:
        errors += violations(function)
    return errors


def _raise(errors: Sequence[CkError], name: str) -> None:
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise error("I023", notes=[str(note) for note in errors], name=name, count=len(errors))


def _define(scope: dict[str, Value], value: Value, by: Operation | None) -> list[CkError]:
    if value.name in scope:
        return [error("I010", at=by.span if by else None, name=value.name)]
    scope[value.name] = value
    return []


def _uses(
    scope: Mapping[str, Value], values: Sequence[Value], by: Operation | None
) -> Iterator[CkError]:
    at = by.span if by else None
    for value in values:
        known = scope.get(value.name)
        if known is None:
            names = ", ".join(f"%{name}" for name in scope) or "nothing"
            yield error("I011", at=at, name=value.name, known=names)
        elif known.type != value.type:
            yield error("I012", at=at, name=value.name, got=value.type, want=known.type)


def _operation(scope: Mapping[str, Value], operation: Operation) -> list[CkError]:
    errors = list(_uses(scope, operation.operands, operation))
    for _, attr in operation.attrs:
        for region in _regions(attr):
            errors += violations(region)
    return errors + _against_row(operation)


def _against_row(operation: Operation) -> list[CkError]:
    types = [operand.type for operand in operation.operands]
    attrs = dict(operation.attrs)
    declared = operation.result.type
    at = operation.span
    errors = problems(operation.op, types, attrs, shape=declared.shape, at=at)
    if errors:
        return errors
    want = result_type(OPS[operation.op], types, attrs, declared.shape)
    if want == declared:
        return []
    return [
        error("I020", at=at, name=operation.result.name, got=declared, op=operation.op, want=want)
    ]


def _regions(attr: Attr) -> Iterator[Function]:
    if isinstance(attr, Function):
        yield attr
    elif isinstance(attr, tuple):
        for item in attr:
            yield from _regions(item)


def _unused(function: Function) -> list[CkError]:
    used = {value.name for value in function.results}
    used |= {value.name for operation in function.body for value in operation.operands}
    return [
        error("I021", at=operation.span, name=operation.result.name)
        for operation in function.body
        if operation.result.name not in used
    ]
