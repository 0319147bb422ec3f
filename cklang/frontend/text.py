# SPDX-License-Identifier: MIT
"""Find the source text of a Python function and turn its AST nodes into spans."""

import ast
import inspect
import linecache
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from types import FunctionType
from typing import Any

from cklang.errors import error
from cklang.source import Source, Span

Located = ast.expr | ast.stmt | ast.arg | ast.keyword
"""The kinds of AST node that know their place."""

_RECEIVERS = ("self", "cls")

_Definition = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionText:
    """The text of one function and its tree, with the line numbers of its file."""

    source: Source
    node: ast.FunctionDef

    def span(self, node: Located) -> Span:
        """Return where ``node`` is written, with columns counted in characters."""
        return _span(self.source, node)

    def header(self) -> Span:
        """Return the span of ``def name``."""
        return _header(self.source, self.node)

    def words(self, node: Located) -> str:
        """Return the text of ``node`` as it was written, on one line."""
        lines = self.source.text.splitlines()
        first = node.lineno - self.source.first_line
        last = (node.end_lineno or node.lineno) - self.source.first_line
        span = self.span(node)
        part = lines[first : last + 1]
        part[-1] = part[-1][: span.end_column]
        part[0] = part[0][span.column :]
        return " ".join(line.strip() for line in part)


def _span(source: Source, node: Located) -> Span:
    end_line = node.end_lineno or node.lineno
    end_offset = node.end_col_offset or node.col_offset
    return Span(
        source=source,
        line=node.lineno,
        column=_column(source, node.lineno, node.col_offset),
        end_line=end_line,
        end_column=_column(source, end_line, end_offset),
    )


def _header(source: Source, node: _Definition) -> Span:
    start = _span(source, node)
    keyword = "async def " if isinstance(node, ast.AsyncFunctionDef) else "def "
    return Span(
        source=source,
        line=start.line,
        column=start.column,
        end_line=start.line,
        end_column=start.column + len(keyword) + len(node.name),
    )


def _column(source: Source, line: int, offset: int) -> int:
    # The ast module counts bytes of UTF-8.
    text = source.line(line) or ""
    return len(text.encode()[:offset].decode(errors="replace"))


def read_function(function: Callable[..., Any], decorator: str) -> FunctionText:
    """Return the text of ``function`` below its ``decorator`` (``ck.op`` or ``ck.fn``)."""
    if not isinstance(function, FunctionType) or hasattr(function, "__wrapped__"):
        wrapped = isinstance(function, FunctionType)
        got = "wrapper made by another decorator" if wrapped else type(function).__name__
        raise error("F001", decorator=decorator, got=got)
    name = function.__name__
    if name == "<lambda>":
        raise error("F003", what="a lambda", decorator=decorator)
    code = function.__code__
    linecache.checkcache(code.co_filename)
    text = "".join(linecache.getlines(code.co_filename, function.__globals__))
    definition = _find(text, name, code.co_firstlineno) if text else None
    if definition is None:
        raise error("F002", name=name, file=code.co_filename)
    node, is_method = definition
    lines = text.splitlines()[code.co_firstlineno - 1 : node.end_lineno]
    source = Source(
        name=code.co_filename, text="\n".join(lines) + "\n", first_line=code.co_firstlineno
    )
    if isinstance(node, ast.AsyncFunctionDef):
        what = "an async function"
    elif inspect.isgeneratorfunction(function):
        what = "a generator"
    else:
        _expect_no_receiver(source, node, is_method, decorator)
        return FunctionText(source=source, node=node)
    raise error("F003", at=_header(source, node), what=what, decorator=decorator)


def _expect_no_receiver(
    source: Source, node: ast.FunctionDef, is_method: bool, decorator: str
) -> None:
    """Refuse a function of a class that takes its object: ops and helpers there are static."""
    first = next(iter((*node.args.posonlyargs, *node.args.args)), None)
    if is_method and first is not None and first.arg in _RECEIVERS and first.annotation is None:
        at = _span(source, first)
        raise error("F018", at=at, name=node.name, receiver=first.arg, decorator=decorator)


@lru_cache(maxsize=16)
def _definitions(text: str) -> tuple[tuple[_Definition, bool], ...]:
    try:
        tree = ast.parse(text)
    except SyntaxError:
        # The file was changed since it was imported.
        return ()
    return tuple(_walk(tree, False))


def _walk(parent: ast.AST, in_class: bool) -> Iterator[tuple[_Definition, bool]]:
    for child in ast.iter_child_nodes(parent):
        if isinstance(child, _Definition):
            yield child, in_class
            yield from _walk(child, False)
        elif not isinstance(child, ast.expr):
            yield from _walk(child, isinstance(child, ast.ClassDef) or in_class)


def _find(text: str, name: str, first_line: int) -> tuple[_Definition, bool] | None:
    for node, in_class in _definitions(text):
        start = min([node.lineno, *(d.lineno for d in node.decorator_list)])
        if node.name == name and start == first_line:
            return node, in_class
    return None
