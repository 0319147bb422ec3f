# SPDX-License-Identifier: MIT
"""Check that a program is what its text says: print it, parse the text, compare."""

from itertools import zip_longest

from cklang.errors import CkError, error
from cklang.ir.nodes import Function, print_function


def expect_round_trip(function: Function) -> Function:
    """Return ``function`` if its text is parsed as an equal one."""
    from cklang.ir.parser import parse_function

    text = print_function(function)
    try:
        parsed = parse_function(text, f"@{function.name}")
    except CkError as refusal:
        raise error("Z003", name=function.name, difference=str(refusal), text=text) from refusal
    if parsed != function:
        difference = _difference(function, parsed)
        raise error("Z003", name=function.name, difference=difference, text=text)
    return function


def _difference(function: Function, parsed: Function) -> str:
    """Return the first node that differs, both ways; the printer has no part in it."""
    for before, after in zip_longest(_nodes(function), _nodes(parsed)):
        if before != after:
            return f"the frontend made {before}\nthe parser read {after}"
    return "no node differs by itself"


def _nodes(function: Function) -> list[object]:
    body = (operation.identity for operation in function.body)
    return [function.name, *map(repr, function.params), *body, *map(repr, function.results)]
