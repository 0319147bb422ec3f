# SPDX-License-Identifier: MIT
"""A failing call as a test to paste into a file, with the text of what cannot be imported."""

import ast
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

from cklang.frontend.program import Program, Signature
from cklang.runtime.op import Op
from cklang.testing.drawn_calls import Call
from cklang.types import DTypeVar

_MODULES = {"np": "import numpy as np", "numpy": "import numpy", "torch": "import torch"}
"""Imports of the names that functions to compare with usually read."""


def printed_test(call: Call, against: Callable[..., Any] | None, options: str) -> str:
    """Return a test that makes one call.

    A function that a module has by its name is imported; of another one, such as an op of a
    notebook, a lambda or a function in a test, the text is printed with the dims of the op.

    ``options`` are further arguments of ``check_call`` as Python, such as ``rtol=0.1``.
    """
    op = call.op
    name = op.program.name
    more = [] if against is None else [name_of(against)]
    definitions = [*_op_lines(op), *_against_lines(against)]
    text = "\n".join(definitions)
    words = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    return "\n".join(
        [
            *(line for module, line in _MODULES.items() if module in words),
            "import cklang as ck",
            "from cklang.testing import Call, check_call",
            "from cklang.testing.strategies import Layout, Values",
            *definitions,
            "",
            f"def test_{name}():",
            f"    call = {call.source()}",
            f"    check_call({', '.join(['call', *more, *([options] if options else [])])})",
        ]
    )


def name_of(function: Callable[..., Any] | None) -> str:
    """Return how a test names a function; one without a name is called ``expected``."""
    name = str(getattr(function, "__name__", "expected"))
    return name if name.isidentifier() else "expected"


def _op_lines(op: Op) -> list[str]:
    """Return the lines that define an op or import it."""
    program = op.program
    if not isinstance(program, Program):
        return []
    function = program.definition.function
    if _is_importable(function):
        return [f"from {function.__module__} import {program.name}"]
    text = textwrap.dedent(program.definition.text.source.text).rstrip()
    return ["", *_declarations(program.signature), "", *text.splitlines()]


def _declarations(signature: Signature) -> Iterator[str]:
    """Yield the lines that declare the dims and dtype variables of a signature."""
    names = sorted({dim.name for dim in signature.dims if dim.name.isidentifier()})
    if names:
        comma = "," if len(names) == 1 else ""
        yield f'{", ".join(names)}{comma} = ck.dims("{" ".join(names)}")'
    for variable in signature.variables.values():
        yield _variable(variable)


def _variable(variable: DTypeVar) -> str:
    choices = ", ".join(f"ck.{dtype.name}" for dtype in variable.choices)
    return f'{variable.name} = ck.dtype_var("{variable.name}", {choices})'


def _against_lines(function: Callable[..., Any] | None) -> list[str]:
    """Return the lines that define a function or import it; a remark where neither is possible."""
    if function is None:
        return []
    name = name_of(function)
    if _is_importable(function):
        return [f"from {function.__module__} import {name}"]
    text = _text(function)
    if text is None:
        return [f"# {name}: the function that check() compared with"]
    return ["", *text.splitlines()]


def _is_importable(function: Any) -> bool:
    """Tell whether a module has the function by its name."""
    module = getattr(function, "__module__", None) or "__main__"
    name = getattr(function, "__qualname__", "<unknown>")
    return module != "__main__" and name.isidentifier() and hasattr(sys.modules.get(module), name)


def _text(function: Callable[..., Any]) -> str | None:
    """Return the definition of a function, a lambda as ``expected = lambda ...``."""
    try:
        text = textwrap.dedent(inspect.getsource(function)).rstrip()
    except (OSError, TypeError):
        return None
    if getattr(function, "__name__", "") != "<lambda>":
        return text
    lambdas = _lambdas(text)
    return f"expected = {lambdas[0]}" if len(lambdas) == 1 else None


def _lambdas(text: str) -> list[str]:
    """Return the lambdas in lines of Python, which may be a part of a statement."""
    for cut in (text, f"({text.rstrip(',')})", f"f({text.rstrip(',')}"):
        try:
            tree = ast.parse(cut)
        except SyntaxError:
            continue
        return [ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Lambda)]
    return []
