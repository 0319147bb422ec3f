# SPDX-License-Identifier: MIT
"""Limits of the code's size and style. A number may fall and never rise.

If a change lowers a number, write the new one here.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "cklang").rglob("*.py"))
PAGES = sorted({*(ROOT / "docs").glob("*.md"), ROOT / "README.md"})

LONGEST_MODULE = 600

MOST_COMPLEX = 10
LIMITS = {
    "functions above complexity 10, with conditional expressions, and/or, comprehensions": 143,
    'docstrings that begin with "Of"': 0,
    '"of which" in code and pages': 0,
    "`each` as the name of a variable": 4,
}

_BRANCHES = (
    *(ast.If, ast.IfExp, ast.For, ast.While, ast.ExceptHandler),
    *(ast.comprehension, ast.match_case),
)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def test_modules_are_short() -> None:
    lengths = {
        str(path.relative_to(ROOT / "cklang")): len(path.read_text("utf-8").splitlines())
        for path in SOURCES
    }
    assert not {name: count for name, count in lengths.items() if count > LONGEST_MODULE}


@pytest.mark.parametrize("what", LIMITS)
def test_numbers_only_fall(what: str) -> None:
    count = {
        "functions above complexity 10, with conditional expressions, and/or, comprehensions": (
            complex_functions
        ),
        'docstrings that begin with "Of"': _docstrings_of,
        '"of which" in code and pages': _of_which,
        "`each` as the name of a variable": _each,
    }[what]()
    assert count <= LIMITS[what]


def test_complexity_counts_what_decides() -> None:
    source = "def f(a, b):\n  if a and b or a: return [x for x in a if x]\n  return b if a else a"
    assert _complexity(ast.parse(source).body[0]) == 6


def complex_functions() -> int:
    nodes = (node for path in SOURCES for node in ast.walk(_tree(path)))
    return sum(isinstance(node, _FUNCTIONS) and _complexity(node) > MOST_COMPLEX for node in nodes)


def _complexity(function: ast.AST) -> int:
    """Return one more than the decisions of a function, those of nested functions left out."""
    total = 1
    pending = list(ast.iter_child_nodes(function))
    while pending:
        node = pending.pop()
        if isinstance(node, _FUNCTIONS):
            continue
        if isinstance(node, ast.BoolOp):
            total += len(node.values) - 1
        elif isinstance(node, _BRANCHES):
            total += 1
        pending += ast.iter_child_nodes(node)
    return total


def _docstrings_of() -> int:
    return sum(len(re.findall(r'"""Of\b', path.read_text("utf-8"))) for path in SOURCES)


def _of_which() -> int:
    texts = (path.read_text("utf-8") for path in (*SOURCES, *PAGES))
    return sum(len(re.findall(r"\bof which\b", text, re.IGNORECASE)) for text in texts)


def _each() -> int:
    return sum(name == "each" for path in SOURCES for name in _names(_tree(path)))


def _names(tree: ast.Module) -> Iterator[str]:
    """Yield the names that a module assigns to or takes as parameters."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))
