# SPDX-License-Identifier: MIT
"""Nodes to text: one spelling for each node, which :mod:`cklang.ir.parser` reads back."""

from __future__ import annotations

import json
from collections.abc import Sequence

from cklang.ir.nodes import Attr, Function, Module, Operation, Value
from cklang.types import DType

__all__ = ["print_attr", "print_function", "print_module", "print_operation"]

_INDENT = "  "


def print_module(module: Module, *, locations: bool = False) -> str:
    """Return the text of a module; ``locations`` adds each operation's place as a comment."""
    texts = [print_function(function, locations=locations) for function in module.functions]
    return "\n\n".join(texts) + "\n" if texts else ""


def print_function(function: Function, *, locations: bool = False) -> str:
    """Return the text of a function, without a newline at its end."""
    return "\n".join(_function_lines(function, locations))


def print_operation(operation: Operation) -> str:
    """Return the text of one operation."""
    return "\n".join(_operation_lines(operation, False))


def print_attr(attr: Attr) -> str:
    """Return the text of an attribute."""
    match attr:
        case bool():
            return "true" if attr else "false"
        case int() | float():
            return repr(attr)
        case str():
            return json.dumps(attr)
        case DType():
            return attr.name
        case tuple():
            return f"[{', '.join(print_attr(item) for item in attr)}]"
        case Function():
            return print_function(attr)


def _typed(values: Sequence[Value]) -> str:
    return ", ".join(f"{value}: {value.type}" for value in values)


def _function_lines(function: Function, locations: bool) -> list[str]:
    types = ", ".join(str(value.type) for value in function.results) or "()"
    lines = [f"func @{function.name}({_typed(function.params)}) -> {types} {{"]
    for operation in function.body:
        lines += [_INDENT + line for line in _operation_lines(operation, locations)]
    names = ", ".join(str(value) for value in function.results)
    return [*lines, f"{_INDENT}return {names}".rstrip(), "}"]


def _operation_lines(operation: Operation, locations: bool) -> list[str]:
    operands = ", ".join(str(value) for value in operation.operands)
    attrs = ", ".join(f"{name} = {print_attr(attr)}" for name, attr in operation.attrs)
    text = f"{_typed([operation.result])} = {operation.op}({operands})"
    lines = (text + (f" {{{attrs}}}" if attrs else "")).split("\n")
    if locations and operation.span is not None:
        lines[-1] += f"  # {operation.span}"
    return lines
