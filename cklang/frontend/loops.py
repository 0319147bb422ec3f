# SPDX-License-Identifier: MIT
"""Loops over constants, which are unrolled: ``for`` statements and list comprehensions."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace

from cklang.frontend.scope import ITERATIONS, Scope
from cklang.frontend.values import Item, describe, has_tensor


def items_of(scope: Scope, node: ast.expr) -> Iterator[Item]:
    """Yield what a loop goes over."""
    items = scope.evaluate(scope, node)
    if not isinstance(items, range | tuple):
        raise scope.error("F072", node, words=scope.words(node), got=describe(items))
    if len(items) > ITERATIONS:
        raise scope.error("F031", node, length=len(items), limit=ITERATIONS)
    for item in items:
        scope.count(node, 1)
        yield item


def bind(scope: Scope, target: ast.expr, item: Item) -> None:
    """Give the names of a target their values."""
    if isinstance(target, ast.Name):
        scope.locals[target.id] = item
        return
    if isinstance(target, ast.Tuple):
        want = len(target.elts)
        if not isinstance(item, tuple) or len(item) != want:
            got = f"{len(item)} values" if isinstance(item, tuple) else describe(item)
            raise scope.error("F073", target, want=want, got=got)
        for element, part in zip(target.elts, item, strict=True):
            bind(scope, element, part)


def comprehension(scope: Scope, node: ast.ListComp) -> tuple[Item, ...]:
    """Return the items of a list comprehension; its names are its own."""
    inner = replace(scope, locals=dict(scope.locals))
    return tuple(_elements(inner, node.elt, node.generators))


def _elements(
    scope: Scope, element: ast.expr, loops: Sequence[ast.comprehension]
) -> Iterator[Item]:
    if not loops:
        yield scope.evaluate(scope, element)
        return
    first, *rest = loops
    for item in items_of(scope, first.iter):
        bind(scope, first.target, item)
        if all(constant_truth(scope, test) for test in first.ifs):
            yield from _elements(scope, element, rest)


def constant_truth(scope: Scope, node: ast.expr) -> bool:
    """Return whether the constant condition ``node`` holds."""
    item = scope.evaluate(scope, node)
    if has_tensor(item):
        raise scope.error("F050", node, words=scope.words(node), got=describe(item))
    return bool(item)
