# SPDX-License-Identifier: MIT
"""Run the statements of a program: assignments, constant conditions, unrolled loops, returns."""

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from cklang.errors import error
from cklang.frontend.environment import Environment
from cklang.frontend.expressions import evaluate
from cklang.frontend.helper import Definition
from cklang.frontend.loops import bind, constant_truth, items_of
from cklang.frontend.returns import results_of
from cklang.frontend.scope import CallSite, Scope
from cklang.frontend.values import Item


class _Flow(Enum):
    """How a block ended, when it did not return."""

    NEXT = "next"
    BREAK = "break"
    CONTINUE = "continue"


@dataclass(frozen=True, slots=True, kw_only=True)
class Return:
    """A return statement that was reached, and its value."""

    item: Item
    node: ast.Return


_End = Return | _Flow


def run(scope: Scope) -> Return:
    """Run the body of the function of ``scope``.

    Raises:
        CkSyntaxError: F070 if it ends without a return.
    """
    end = _block(scope, scope.definition.text.node.body)
    if isinstance(end, Return):
        return end
    last = scope.definition.text.node.body[-1]
    raise scope.error("F070", last, name=scope.definition.name)


def inline(
    scope: Scope,
    node: ast.Call,
    helper: Definition,
    bound: Mapping[str, Item],
    environment: Environment | None = None,
) -> Item:
    """Return what ``helper`` returns for the arguments ``bound``.

    With an ``environment`` it is an op: its results are cast and checked as its annotation says.
    """
    site = CallSite(span=scope.span(node), helper=helper)
    inner = replace(
        scope,
        definition=helper,
        locals=dict(bound),
        calls=(*scope.calls, site),
        environment=environment or scope.environment,
    )
    end = run(inner)
    if environment is None:
        return end.item
    results = results_of(inner, end.node, end.item)
    return tuple(results) if len(results) > 1 else results[0]


def _block(scope: Scope, body: Sequence[ast.stmt]) -> _End:
    for statement in body:
        end = _STATEMENTS[type(statement)](scope, statement)
        if end is not _Flow.NEXT:
            return end
    return _Flow.NEXT


def _return(scope: Scope, node: ast.Return) -> Return:
    if node.value is None:
        raise scope.error("F071", node, name=scope.definition.name)
    return Return(item=evaluate(scope, node.value), node=node)


def _for(scope: Scope, node: ast.For) -> _End:
    for item in items_of(scope, node.iter):
        bind(scope, node.target, item)
        end = _block(scope, node.body)
        if end is _Flow.BREAK:
            break
        if isinstance(end, Return):
            return end
    return _Flow.NEXT


def _if(scope: Scope, node: ast.If) -> _End:
    return _block(scope, node.body if constant_truth(scope, node.test) else node.orelse)


def _assign(scope: Scope, node: ast.Assign) -> _End:
    item = evaluate(scope, node.value)
    for target in node.targets:
        bind(scope, target, item)
    return _Flow.NEXT


def _augmented(scope: Scope, node: ast.AugAssign) -> _End:
    if not isinstance(node.target, ast.Name):
        raise error("Z002", what="the subset check let an assignment to no name through")
    left = ast.copy_location(ast.Name(id=node.target.id, ctx=ast.Load()), node.target)
    both = ast.copy_location(ast.BinOp(left=left, op=node.op, right=node.value), node)
    scope.locals[node.target.id] = evaluate(scope, both)
    return _Flow.NEXT


def _assert(scope: Scope, node: ast.Assert) -> _End:
    if constant_truth(scope, node.test):
        return _Flow.NEXT
    reason = scope.words(node.test) if node.msg is None else str(evaluate(scope, node.msg))
    raise scope.error("F074", node, reason=reason)


def _expression(scope: Scope, node: ast.Expr) -> _End:
    if isinstance(node.value, ast.Constant):  # the docstring
        return _Flow.NEXT
    evaluate(scope, node.value)
    raise scope.error("F007", node, words=scope.words(node))


_STATEMENTS: dict[type[ast.stmt], Callable[[Scope, Any], _End]] = {
    ast.Assert: _assert,
    ast.Assign: _assign,
    ast.AugAssign: _augmented,
    ast.Break: lambda _scope, _node: _Flow.BREAK,
    ast.Continue: lambda _scope, _node: _Flow.CONTINUE,
    ast.Expr: _expression,
    ast.For: _for,
    ast.If: _if,
    ast.Pass: lambda _scope, _node: _Flow.NEXT,
    ast.Return: _return,
}
