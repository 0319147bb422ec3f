# SPDX-License-Identifier: MIT
"""Text to nodes. Values are resolved; what ops mean is the verifier's business.

Typical mistakes have rows of their own: what to say, and texts that make the mistake. The parser
finds the row with an example that stops it at the same place of the grammar.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken

from cklang.errors import CkError, error
from cklang.ir.infer import nearest
from cklang.ir.nodes import Attr, Function, Module, Operation, Value
from cklang.source import Source, Span
from cklang.types import DTYPES, Dim, DType, TensorType, extent_from_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """One kind of mistake: what is wrong, how to write it, and examples of it."""

    problem: str
    fix: str
    examples: tuple[str, ...]


def _row(problem: str, fix: str, *examples: str) -> Mistake:
    return Mistake(problem=problem, fix=fix, examples=examples)


_HEAD = "func @f(%x: f32[]) -> f32[] { "

MISTAKES: tuple[Mistake, ...] = (
    _row("a text starts with a function", "write: func @name(...)", "module {", "%0: f32[]", "@f("),
    _row("a function's name starts with @", "write: func @name(...)", "func f(", "func %f("),
    _row("a parameter list is missing", "write: func @name(%x: f16[M, K])", "func @f {",
         "func @f ->"),
    _row("a value's name starts with %", "write: %x: f16[M, K]", "func @f(x: f16[M])",
         "func @f(%x: f16[], y"),
    _row("a parameter needs a type", "write: %x: f16[M, K]", "func @f(%x)",
         "func @f(%x, %y: f32[])"),
    _row("a type needs brackets for its shape", "write: f32[] for a scalar, f16[M, K] for a matrix",
         "func @f(%x: f32)", "func @f(%x: f32, %y: f32[])", "func @f(%x: f32[]) -> f32 {",
         _HEAD + "%0: f32 = exp(%x) return %0 }"),
    _row("an extent is a dim or an integer of 0 or more", "write: f16[M, 128]",
         "func @f(%x: f32[%M])", "func @f(%x: f32[M, ])", "func @f(%x: f32[M N])",
         'func @f(%x: f32["M"])'),
    _row("a function says what it returns", "write: func @f(...) -> f32[M, N] {",
         "func @f(%x: f32[]) {", "func @f() {"),
    _row("results are types, separated by commas", "write: -> f32[M, N] {   or, for none: -> () {",
         "func @f() -> {", "func @f() -> (f32[]) {", "func @f() -> %x {"),
    _row("a result needs its type before the =", "write: %0: f32[M, N] = add(%a, %b)",
         _HEAD + "%0 = exp(%x)"),
    _row("operands stand in parentheses after the op", "write: %0: f32[] = add(%a, %b)",
         _HEAD + "%0: f32[] = exp %x", _HEAD + "%0: f32[] = exp return",
         _HEAD + "%0: f32[] = exp {"),
    _row("there are no infix operators or nested expressions",
         "write each step as an operation: %0: f32[] = add(%a, %b)", _HEAD + "%0: f32[] = %x + %x",
         _HEAD + "%0: f32[] = %x", _HEAD + "%0: f32[] = 1.0", _HEAD + "%0: f32[] = (%x)",
         _HEAD + "%0: f32[] = -1"),
    _row("operands are values", "a number is an operation: %0: f32[] = constant() {value = 1.0}",
         _HEAD + "%0: f32[] = add(%x, 1.0)", _HEAD + "%0: f32[] = add(1, %x)",
         _HEAD + "%0: f32[] = add(x, %x)", _HEAD + "%0: f32[] = add(%x, exp(%x))"),
    _row("an attribute is written name = value", "write: {perm = [1, 0]}",
         _HEAD + "%0: f32[] = f(%x) {perm: [1, 0]}", _HEAD + "%0: f32[] = f(%x) {perm [1, 0]}",
         _HEAD + "%0: f32[] = f(%x) {1}", _HEAD + "%0: f32[] = f(%x) {[1, 0]}"),
    _row("an attribute is a number, a string, true, false, a dtype, a list or a function",
         "write: {perm = [1, 0]}   {to = f16}   {value = -1.5}",
         _HEAD + "%0: f32[] = f(%x) {a = %x}", _HEAD + "%0: f32[] = f(%x) {a = (1, 0)}",
         _HEAD + "%0: f32[] = f(%x) {a = }", _HEAD + "%0: f32[] = f(%x) {a = [%x]}",
         _HEAD + "%0: f32[] = f(%x) {a = @f}"),
    _row("a function ends with return", "write: return %0", _HEAD + "}",
         _HEAD + "%0: f32[] = f() }", _HEAD + "%0: f32[] = f() {a = 1} }"),
    _row("return takes values", "write: return %0", _HEAD + "return 1.0 }", _HEAD + "return x }",
         _HEAD + "return add(%x, %x) }"),
    _row("nothing may follow return", "close the function with }",
         _HEAD + "return %x %0: f32[] = f()", _HEAD + "return %x return"),
)  # fmt: skip
"""In order of the text."""


_Tree: TypeAlias = Tree[Token]
_Node: TypeAlias = _Tree | Token
_WORDS: Mapping[str, bool] = {"true": True, "false": False}


def parse(text: str, name: str = "<mini-IR>") -> Module:
    """Read a module.

    Args:
        text: The text; :mod:`cklang.ir.nodes` has the grammar.
        name: What messages call the text, such as a file name.

    Raises:
        CkSyntaxError: The text is not of the grammar (I003), a dtype is unknown (I004) or a
            value is used before it is defined (I005).
        CkValueError: A value is defined twice (I010), or attributes are out of order (I002).
    """
    source = Source(name=name, text=text)
    try:
        tree = _lark().parse(text)
    except UnexpectedInput as problem:
        raise _syntax_error(problem, source) from None
    reader = _Reader(source)
    return Module(functions=tuple(reader.function(child) for child in _trees(tree)))


def parse_function(text: str, name: str = "<mini-IR>") -> Function:
    """Read a text that holds exactly one function."""
    functions = parse(text, name).functions
    if len(functions) != 1:
        problem = f"{name} holds {len(functions)} functions"
        raise error("I003", problem=problem, fix="legal: one function")
    return functions[0]


@cache
def _lark() -> Lark:
    return Lark.open(
        "grammar.lark",
        rel_to=__file__,
        parser="lalr",
        propagate_positions=True,
        maybe_placeholders=False,
    )


def _trees(tree: _Tree) -> list[_Tree]:
    return [child for child in tree.children if isinstance(child, Tree)]


def _tokens(tree: _Tree) -> list[Token]:
    return [child for child in tree.children if isinstance(child, Token)]


class _Reader:
    """Makes nodes of the trees of one source."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def span(self, node: _Node) -> Span:
        """Return the place of a tree or token; lark counts columns from 1."""
        at = node if isinstance(node, Token) else node.meta
        return Span(
            source=self.source,
            line=at.line or 1,
            column=(at.column or 1) - 1,
            end_line=at.end_line or 1,
            end_column=(at.end_column or 1) - 1,
        )

    def function(self, tree: _Tree) -> Function:
        """Read a function; a region sees nothing of the function around it."""
        (symbol,) = _tokens(tree)
        params, results, *body, ending = _trees(tree)
        scope: dict[str, Value] = {}
        values = [self.define(scope, *param.children) for param in _trees(params)]
        operations = [self.operation(scope, operation) for operation in body]
        returned = self.uses(scope, _trees(ending)[0])
        self.check_results(results, returned)
        return Function(
            name=str(symbol)[1:],
            params=tuple(values),
            body=tuple(operations),
            results=returned,
            span=self.span(tree),
        )

    def check_results(self, tree: _Tree, returned: Sequence[Value]) -> None:
        """The types after -> are those of the returned values: written twice, they must agree."""
        types = [self.type(child) for child in _trees(tree)]
        if types != [value.type for value in returned]:
            declared = ", ".join(str(type_) for type_ in types) or "()"
            result_types = ", ".join(str(value.type) for value in returned) or "()"
            raise error(
                "I003",
                at=self.span(tree) if tree.children else None,
                problem=f"the function is declared to return {declared} but returns {result_types}",
                fix=f"write: -> {result_types}",
            )

    def operation(self, scope: dict[str, Value], tree: _Tree) -> Operation:
        """Read one operation and define its result."""
        name, op = _tokens(tree)
        tensor, operands, attrs = _trees(tree)
        # Operands are resolved first: a value is not defined by itself.
        used = self.uses(scope, operands)
        pairs = [(str(pair.children[0]), self.attr(pair.children[1])) for pair in _trees(attrs)]
        names = [key for key, _ in pairs]
        if len(set(names)) != len(names):
            raise error("I002", at=self.span(attrs), op=op, names=", ".join(names))
        return Operation(
            op=str(op),
            operands=used,
            attrs=tuple(sorted(pairs, key=lambda pair: pair[0])),
            result=self.define(scope, name, tensor),
            span=self.span(tree),
        )

    def define(self, scope: dict[str, Value], *named: _Node) -> Value:
        """Add a value to the scope from its name's token and its type's tree."""
        token, tensor = named
        if not isinstance(token, Token) or isinstance(tensor, Token):
            raise error("Z002", what="grammar.lark and parser.py disagree on a definition")
        value = Value(name=str(token)[1:], type=self.type(tensor))
        if value.name in scope:
            raise error("I010", at=self.span(token), name=value.name)
        scope[value.name] = value
        return value

    def uses(self, scope: Mapping[str, Value], tree: _Tree) -> tuple[Value, ...]:
        """Look up the values that are named."""
        tokens = _tokens(tree)
        for token in tokens:
            if str(token)[1:] not in scope:
                known = ", ".join(f"%{name}" for name in scope) or "nothing"
                raise error("I005", at=self.span(token), name=str(token)[1:], known=known)
        return tuple(scope[str(token)[1:]] for token in tokens)

    def type(self, tree: _Tree) -> TensorType:
        """Read a type."""
        dtype, *extents = _tokens(tree)
        return TensorType(
            dtype=self.dtype(dtype), shape=tuple(self.extent(token) for token in extents)
        )

    def extent(self, token: Token) -> Dim | int:
        """Read an extent."""
        if token.type == "NAME":
            return Dim(str(token))
        if token.type == "BLOCKS":
            name, _, size = token.partition("/")
            return Dim(name) / int(size)
        if token.type == "FORMULA":
            return self.formula(token)
        if int(token) < 0:
            raise error(
                "I003",
                at=self.span(token),
                problem=f"an extent cannot be {token}",
                fix="legal: 0 or more",
            )
        return int(token)

    def formula(self, token: Token) -> Dim | int:
        """Read an extent that is computed from dims."""
        try:
            return extent_from_text(token)
        except ValueError as problem:
            fix = "legal: sums and products of dims and integers, K//2"
            raise error("I003", at=self.span(token), problem=problem, fix=fix) from None

    def dtype(self, token: Token) -> DType:
        """Look up a dtype."""
        if token in DTYPES:
            return DTYPES[token]
        known = ", ".join(DTYPES)
        raise error(
            "I004",
            at=self.span(token),
            what="dtype",
            got=str(token),
            known=known,
            nearest=nearest(token, DTYPES),
        )

    def attr(self, node: _Node) -> Attr:
        """Read the value of an attribute."""
        if not isinstance(node, Token):
            if node.data == "function":
                return self.function(node)
            return tuple(self.attr(child) for child in node.children)
        match node.type:
            case "INT":
                return int(node)
            case "FLOAT":
                return float(node)
            case "STRING":
                return self.string(node)
        return _WORDS[node] if node in _WORDS else self.dtype(node)

    def string(self, token: Token) -> str:
        """Read a string; its escapes are JSON's."""
        try:
            return str(json.loads(token))
        except json.JSONDecodeError as problem:
            raise error(
                "I003",
                at=self.span(token),
                problem=f"the string is not legal: {problem.msg}",
                fix="escapes are JSON's: \\\" \\\\ \\n \\u00e9",
            ) from None


def _syntax_error(problem: UnexpectedInput, source: Source) -> CkError:
    """Turn lark's complaint into ours: the known mistake it looks like, or what may come next."""
    span = _span_of(problem, source)
    if isinstance(problem, UnexpectedCharacters):
        words = f"{problem.char!r} begins nothing in the mini-IR"
        return error("I003", at=span, problem=words, fix="comments start with #, values with %")
    if isinstance(problem, UnexpectedEOF) or _at_end(problem):
        return error("I003", at=span, problem="the text ends inside a function", fix="close it: }")
    row = _known_mistake(problem)
    if row is not None:
        return error("I003", at=span, problem=row.problem, fix=row.fix)
    expected = ", ".join(sorted(getattr(problem, "accepts", None) or ())) or "nothing more"
    words = f"{str(getattr(problem, 'token', ''))!r} is not expected here"
    return error("I003", at=span, problem=words, fix=f"expected: {expected}")


def _place(problem: UnexpectedInput) -> tuple[object, str] | None:
    """Where the grammar stood and what it met: the same for the same mistake in any text."""
    if not isinstance(problem, UnexpectedToken):
        return None
    return (problem.state.position, problem.token.type)


@cache
def _mistakes() -> Mapping[tuple[object, str], Mistake]:
    places: dict[tuple[object, str], Mistake] = {}
    for row in MISTAKES:
        for text in row.examples:
            try:
                _lark().parse(text)
            except UnexpectedInput as problem:
                place = _place(problem)
                if place is not None:
                    places.setdefault(place, row)
    return places


def _known_mistake(problem: UnexpectedInput) -> Mistake | None:
    """Return the row with an example of the same place and token, else of the same place."""
    place = _place(problem)
    if place is None:
        return None
    rows = _mistakes()
    near = (row for (position, _), row in rows.items() if position == place[0])
    return rows.get(place) or next(near, None)


def _at_end(problem: UnexpectedInput) -> bool:
    return isinstance(problem, UnexpectedToken) and problem.token.type == "$END"


def _span_of(problem: UnexpectedInput, source: Source) -> Span:
    if isinstance(problem, UnexpectedEOF) or _at_end(problem) or problem.line < 1:
        lines = source.text.splitlines() or [""]
        line, column, width = len(lines), len(lines[-1]), 1
    else:
        line, column = problem.line, problem.column - 1
        width = len(getattr(problem, "token", "x")) or 1
    return Span(source=source, line=line, column=column, end_line=line, end_column=column + width)
