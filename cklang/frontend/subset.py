# SPDX-License-Identifier: MIT
"""The syntax of the language: which Python it is, and what to write instead of the rest.

This check needs no types, so it runs when a function is decorated.
"""

import ast
from collections.abc import Iterable, Sequence
from itertools import pairwise

from cklang.errors import error
from cklang.frontend.text import FunctionText, Located

_STATEMENTS = (
    ast.Assign, ast.Assert, ast.AugAssign, ast.Break, ast.Continue, ast.Expr, ast.For, ast.If,
    ast.Pass, ast.Return,
)  # fmt: skip
_EXPRESSIONS = (
    ast.Attribute, ast.BinOp, ast.BoolOp, ast.Call, ast.Compare, ast.Constant, ast.IfExp, ast.List,
    ast.ListComp, ast.Name, ast.Slice, ast.Subscript, ast.Tuple, ast.UnaryOp,
)  # fmt: skip

_FOR = "write `for i in range(n)` over a constant range, or over a constant tuple"
_LIST = "write a list, [x[i] for i in range(n)], over a constant range or tuple"
_TUPLE = "write a tuple of constants"
_OUTSIDE = "do it outside the function"
_HELPER = "write a helper at module level and decorate it with @ck.fn"
_ASSIGN = "assign on a line of its own first"

# What is refused, how it is called, and what to write instead.
_REFUSED: dict[type[ast.AST], tuple[str, str]] = {
    ast.While: ("a while loop", _FOR),
    ast.With: ("a with block", _OUTSIDE),
    ast.AsyncWith: ("a with block", _OUTSIDE),
    ast.AsyncFor: ("an async loop", _FOR),
    ast.Try: ("try", "nothing in a kernel raises; check the arguments before the call"),
    ast.TryStar: ("try", "nothing in a kernel raises; check the arguments before the call"),
    ast.Raise: ("raise", "write `assert condition` on compile-time constants"),
    ast.FunctionDef: ("a nested function", _HELPER),
    ast.AsyncFunctionDef: ("a nested function", _HELPER),
    ast.ClassDef: ("a class", _OUTSIDE),
    ast.Import: ("an import", "import at the top of the module"),
    ast.ImportFrom: ("an import", "import at the top of the module"),
    ast.Global: ("global", "return the value instead: a kernel changes no Python names"),
    ast.Nonlocal: ("nonlocal", "return the value instead: a kernel changes no Python names"),
    ast.Delete: ("del", "leave it out: values that are not used cost nothing"),
    ast.Match: ("match", "write if / elif on compile-time constants"),
    ast.AnnAssign: ("a type on a local name", "leave the type out, or cast: y = x.to(ck.f16)"),
    ast.NamedExpr: ("the walrus operator", _ASSIGN),
    ast.Lambda: ("a lambda that is no argument of a call", _HELPER),
    ast.Dict: ("a dict", _TUPLE),
    ast.Set: ("a set", _TUPLE),
    ast.SetComp: ("a set comprehension", _FOR),
    ast.DictComp: ("a dict comprehension", _FOR),
    ast.GeneratorExp: ("a generator expression", _LIST),
    ast.Await: ("await", "leave it out: a call waits for its values by itself"),
    ast.Yield: ("yield", "return the value"),
    ast.YieldFrom: ("yield", "return the value"),
    ast.JoinedStr: ("an f-string", "write a plain string"),
    ast.Starred: ("a starred expression", "write the values one by one"),
}
_LEAVES = (ast.Return, ast.Break, ast.Continue)
_LITERALS = (bool, int, float, str, type(None))


def check_subset(text: FunctionText) -> None:
    """Refuse every statement and expression of ``text`` that is not in the language."""
    body = text.node.body
    if ast.get_docstring(text.node, clean=False) is not None:
        body = body[1:]
    _block(text, body)
    if not any(isinstance(node, ast.Return) for part in body for node in ast.walk(part)):
        raise error("F009", at=text.header(), name=text.node.name)


def _block(text: FunctionText, body: Sequence[ast.stmt]) -> None:
    for index, statement in enumerate(body):
        _statement(text, statement)
        if isinstance(statement, _LEAVES) and index + 1 < len(body):
            word = text.words(statement).split()[0]
            raise error("F008", at=text.span(body[index + 1]), word=word, line=statement.lineno)


def _statement(text: FunctionText, node: ast.stmt) -> None:
    if not isinstance(node, _STATEMENTS):
        raise _refusal(text, node)
    if isinstance(node, ast.Assign | ast.AugAssign | ast.For):
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            _target(text, target)
    if isinstance(node, ast.Expr):
        _expression(text, node.value)
        if not isinstance(node.value, ast.Call):
            raise error("F007", at=text.span(node), words=text.words(node))
    if isinstance(node, ast.For) and node.orelse:
        what, instead = "else after a loop", "put the statements after the loop"
        raise error("F004", at=text.span(node.orelse[0]), what=what, instead=instead)
    for field in ("value", "test", "iter", "msg"):
        part = getattr(node, field, None)
        if part is not None:
            _expression(text, part)
    for field in ("body", "orelse"):
        _block(text, getattr(node, field, ()))


def _target(text: FunctionText, node: ast.expr) -> None:
    if isinstance(node, ast.Tuple):
        for element in node.elts:
            _target(text, element)
    elif isinstance(node, ast.Attribute | ast.Subscript):
        words = text.words(node)
        base = text.words(node.value)
        raise error("F006", at=text.span(node), words=words, base=base)
    elif not isinstance(node, ast.Name):
        raise _refusal(text, node)


def _expression(text: FunctionText, node: ast.expr) -> None:
    if not isinstance(node, _EXPRESSIONS):
        raise _refusal(text, node)
    if isinstance(node, ast.Constant) and not isinstance(node.value, _LITERALS):
        what = f"the literal {text.words(node)}"
        instead = "constants are numbers, booleans, strings and tuples of them"
        raise error("F004", at=text.span(node), what=what, instead=instead)
    if isinstance(node, ast.Compare) and len(node.ops) > 1:
        raise _chained(text, node)
    if isinstance(node, ast.Call):
        _options(text, node)
    if isinstance(node, ast.ListComp):
        _loops(text, node)
    for child in _parts(node):
        if isinstance(child, ast.Lambda | ast.BinOp) and isinstance(node, ast.Call):
            _argument(text, child)
        elif isinstance(child, ast.expr):
            _expression(text, child)


def _options(text: FunctionText, node: ast.Call) -> None:
    for keyword in node.keywords:
        if keyword.arg is None:
            what, instead = "** in a call", "write the options one by one"
            raise error("F004", at=text.span(keyword.value), what=what, instead=instead)
        _argument(text, keyword.value)


def _loops(text: FunctionText, node: ast.ListComp) -> None:
    """Check the targets of a comprehension."""
    for loop in node.generators:
        if loop.is_async:
            raise error("F004", at=text.span(node), what="an async loop", instead=_FOR)
        _target(text, loop.target)


def _parts(node: ast.expr) -> Iterable[ast.AST]:
    """Return what an expression is made of; an index may have a ``...``, which is none."""
    if isinstance(node, ast.ListComp):
        return [node.elt, *(part for loop in node.generators for part in (loop.iter, *loop.ifs))]
    if not isinstance(node, ast.Subscript):
        return ast.iter_child_nodes(node)
    indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return [node.value, *(index for index in indices if not is_ellipsis(index))]


def is_ellipsis(node: ast.expr) -> bool:
    """Tell whether an expression is ``...``."""
    return isinstance(node, ast.Constant) and node.value is ...


def _argument(text: FunctionText, node: ast.expr) -> None:
    """Check an argument of a call, which alone may be a lambda: what it is for, the call says.

    So may the operands of & and | in one, which join masks.
    """
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr):
        _argument(text, node.left)
        _argument(text, node.right)
        return
    if not isinstance(node, ast.Lambda):
        _expression(text, node)
        return
    arguments = node.args
    named = (*arguments.posonlyargs, *arguments.args)
    plain = (arguments.vararg, arguments.kwarg, *arguments.kwonlyargs, *arguments.defaults)
    if any(value is not None for value in plain) or not named:
        instead = "write names alone, as in lambda s, h: s * slopes[h]"
        what = f"{text.words(node).partition(':')[0]}"
        raise error("F004", at=text.span(node), what=what, instead=instead)
    _expression(text, node.body)


def _chained(text: FunctionText, node: ast.Compare) -> Exception:
    sides = [node.left, *node.comparators]
    pairs = [
        ast.unparse(ast.Compare(left=left, ops=[sign], comparators=[right]))
        for sign, (left, right) in zip(node.ops, pairwise(sides), strict=True)
    ]
    return error(
        "F005",
        at=text.span(node),
        tensors=" & ".join(f"({pair})" for pair in pairs),
        constants=" and ".join(pairs),
    )


def _refusal(text: FunctionText, node: Located) -> Exception:
    known = _REFUSED.get(type(node))
    # A statement or expression of a later Python than this table has a name of its own at least.
    what, instead = known or (type(node).__name__, "see the language page for what can be written")
    return error("F004", at=text.span(node), what=what, instead=instead)
