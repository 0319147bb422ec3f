# SPDX-License-Identifier: MIT
"""What each expression of a program is worth: constants are computed, tensors become IR."""

import ast
import operator
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from cklang.dims import is_extent
from cklang.frontend import calls, emit
from cklang.frontend.helper import Fn
from cklang.frontend.intrinsics import COMPOSITES, INTRINSICS, METHODS
from cklang.frontend.loops import comprehension, constant_truth
from cklang.frontend.ops.gemm import matmul
from cklang.frontend.ops.indexing import view
from cklang.frontend.ops.masks import Joined, Mask
from cklang.frontend.ops.regions import read
from cklang.frontend.other_names import advice_for
from cklang.frontend.scope import Captured, Closure, Scope
from cklang.frontend.values import (
    Apart,
    Item,
    OpProgram,
    Tensor,
    describe,
    has_tensor,
    is_number,
)
from cklang.types import Dim, Kind, bool_

# Constants are computed while the user waits: no integer or sequence may grow without bound.
_MOST_BITS = 4096
_MOST_ITEMS = 65536


def _constant_power(base: Any, exponent: Any) -> Any:
    if isinstance(base, int) and isinstance(exponent, int):
        _expect_bits(base.bit_length() * max(exponent, 0))
    return operator.pow(base, exponent)


def _constant_shift(value: Any, count: Any) -> Any:
    if isinstance(value, int) and isinstance(count, int):
        _expect_bits(value.bit_length() + count)
    return operator.lshift(value, count)


def _constant_product(left: Any, right: Any) -> Any:
    for items, count in ((left, right), (right, left)):
        sequence = isinstance(items, tuple | list | str) and isinstance(count, int)
        if sequence and len(items) * count > _MOST_ITEMS:
            raise OverflowError(f"the result has more than {_MOST_ITEMS} items")
    return operator.mul(left, right)


def _expect_bits(bits: int) -> None:
    if bits > _MOST_BITS:
        raise OverflowError(f"the result may have more than {_MOST_BITS} bits")


_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: _constant_product,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _constant_power,
    ast.LShift: _constant_shift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.MatMult: operator.matmul,
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
    ast.Not: operator.not_,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda item, group: item in group,
    ast.NotIn: lambda item, group: item not in group,
}
_BINARY_OPS: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.FloorDiv: "floor_divide",
    ast.Mod: "mod",
    ast.LShift: "left_shift",
    ast.RShift: "right_shift",
}
# Operators by which an extent follows from others; it is a number where one is wanted.
_EXTENT_OPS = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv)
# Operators that work on the bits of integers, and on booleans.
_BIT_OPS: dict[type[ast.AST], tuple[str, str]] = {
    ast.BitAnd: ("bitwise_and", "logical_and"),
    ast.BitOr: ("bitwise_or", "logical_or"),
    ast.BitXor: ("bitwise_xor", "logical_xor"),
    ast.Invert: ("bitwise_not", "logical_not"),
}
# What & and | join to one mask of attention.
_MASKS = (Mask, Closure, Fn)
_JOIN_SIGNS: dict[type[ast.operator], str] = {ast.BitAnd: "&", ast.BitOr: "|"}
_COMPARE_OPS: dict[type[ast.cmpop], str] = {
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.Eq: "eq",
    ast.NotEq: "ne",
}
# Operators of Python that tensors do not have: how they are called and what to write.
_NO_OPERATOR: dict[type[ast.AST], tuple[str, str]] = {
    ast.BitXor: ("^", "write x ** y for a power; ^ is of integers and booleans"),
    ast.Is: ("is", "`is` compares constants; tensors compare with =="),
    ast.IsNot: ("is not", "`is not` compares constants; tensors compare with !="),
    ast.In: ("in", "compare with each constant and join with |"),
    ast.NotIn: ("not in", "compare with each constant and join with &"),
    ast.And: ("and", "write a & b: for tensors it works element by element"),
    ast.Or: ("or", "write a | b: for tensors it works element by element"),
    ast.Not: ("not", "write ~a: for tensors it works element by element"),
    ast.Invert: ("~", "write `not a` for constants"),
}
# What NumPy users try on a tensor.
_METHODS = {
    "t": "write x.T",
    "astype": "write x.to(ck.f16)",
    "view": "write x.reshape(...)",
    "chunk": "write x.split(parts, axis)",
    "clip": "write ck.clamp(x, lo, hi)",
    "item": "tensors have no values before the call; use a ck.const parameter",
}
# The methods of tensors that are no functions of ck, with arguments for an example.
_CALLED = {"to": "ck.f16", "transpose": "..."}
_PROPERTIES: dict[str, Callable[[Scope, ast.expr, Tensor], Item]] = {
    "T": emit.transpose,
    "mT": emit.matrix_transpose,
    "dtype": lambda _scope, _node, tensor: tensor.dtype,
    "ndim": lambda _scope, _node, tensor: len(tensor.shape),
    "shape": lambda _scope, _node, tensor: tensor.shape,
}


def evaluate(scope: Scope, node: ast.expr) -> Item:
    """Return what ``node`` is worth in ``scope``."""
    if node in scope.definition.names:
        return scope.meaning(scope.definition.names[node], node)
    return _EXPRESSIONS[type(node)](scope, node)


def _name(scope: Scope, node: ast.Name) -> Item:
    if node.id not in scope.locals:
        raise scope.error("F051", node, name=node.id)
    item = scope.locals[node.id]
    if isinstance(item, Captured) and not item.tensor.shape:
        return read(scope, node, item, ())
    return item


def _constant(_scope: Scope, node: ast.Constant) -> Item:
    return node.value


def _tuple(scope: Scope, node: ast.Tuple | ast.List) -> Item:
    return tuple(evaluate(scope, element) for element in node.elts)


def _attribute(scope: Scope, node: ast.Attribute) -> Item:
    item = evaluate(scope, node.value)
    if isinstance(item, Captured) and node.attr in ("dtype", "ndim", "shape"):
        item = item.tensor
    if isinstance(item, Tensor):
        if node.attr in _PROPERTIES:
            return _PROPERTIES[node.attr](scope, node, item)
        advice = _advice(node.attr)
        raise scope.error("F052", node, name=node.attr, what=describe(item), advice=advice)
    if isinstance(item, OpProgram) and node.attr == "apart":
        return Apart(op=item)
    advice = "attributes are those of tensors and of Python modules"
    raise scope.error("F052", node, name=node.attr, what=describe(item), advice=advice)


def _advice(name: str) -> str:
    """Say what to write instead of an attribute that tensors do not have."""
    if name in _CALLED or name in METHODS:
        return f"call it: x.{name}({_CALLED.get(name) or _example_argument(name)})"
    if name in _METHODS:
        return _METHODS[name]
    if name in INTRINSICS:
        return f"write ck.{name}{INTRINSICS[name].signature}"
    if name in COMPOSITES:
        return f"write ck.{name}(x)"
    return advice_for(name, (*_PROPERTIES, *_CALLED, *METHODS), "x.")


def _example_argument(method: str) -> str:
    """Return an argument for a method: the last axis if its first parameter is optional."""
    _, parameter, *_ = METHODS[method].signature.parameters.values()
    return "-1" if parameter.default is None else "..."


def _binary(scope: Scope, node: ast.BinOp) -> Item:
    sides = evaluate(scope, node.left), evaluate(scope, node.right)
    kind = type(node.op)
    if kind in _EXTENT_OPS and _are_extents(sides):
        with suppress(TypeError):
            return _BINARY[kind](*sides)
    left = emit.number(scope, node.left, sides[0])
    right = emit.number(scope, node.right, sides[1])
    if kind in _JOIN_SIGNS and any(isinstance(side, _MASKS) for side in (left, right)):
        return _joined(scope, node, left, right)
    if not has_tensor((left, right)):
        return _compute(scope, node, _BINARY[kind], left, right)
    if kind is ast.MatMult:
        return matmul(scope, node, left, right)
    if kind is ast.Pow:
        return _power(scope, node, left, right)
    if kind is ast.BitXor and any(map(emit.is_float, (left, right))):
        raise _no_operator(scope, node, kind, left, right)
    if kind in _BIT_OPS:
        return emit.pointwise(scope, node, _bit_op(kind, left, right), left, right)
    return emit.pointwise(scope, node, _BINARY_OPS[kind], left, right)


def _are_extents(items: Sequence[Item]) -> bool:
    """Tell whether all items are extents, and not all of them known."""
    return all(map(is_extent, items)) and any(isinstance(item, Dim) for item in items)


def _joined(scope: Scope, node: ast.BinOp, left: Item, right: Item) -> Joined:
    """Return two masks of attention as one."""
    sign = _JOIN_SIGNS[type(node.op)]
    for side, item in ((node.left, left), (node.right, right)):
        if not isinstance(item, _MASKS):
            advice = (
                "masks are joined with functions: ck.causal() & (lambda i, j: i // 7 == j // 7)"
            )
            raise scope.error("F056", side, sign=sign, got=describe(item), advice=advice)
    return Joined(sign, left, right)


def _bit_op(kind: type[ast.AST], *items: Item) -> str:
    """Return what an operator of bits or booleans does to ``items``."""
    of_integers, of_booleans = _BIT_OPS[kind]
    is_integer = any(isinstance(item, Tensor) and item.dtype.kind is Kind.INT for item in items)
    return of_integers if is_integer else of_booleans


def _power(scope: Scope, node: ast.BinOp, base: Item, exponent: Item) -> Item:
    # NumPy computes these powers by the same cheaper ops.
    special = {2: "square", 0.5: "sqrt", -1: "reciprocal"}
    if is_number(exponent) and not isinstance(exponent, bool) and exponent in special:
        return emit.pointwise(scope, node, special[exponent], base)
    return emit.pointwise(scope, node, "pow", base, exponent)


def _unary(scope: Scope, node: ast.UnaryOp) -> Item:
    item = emit.number(scope, node.operand, evaluate(scope, node.operand))
    kind = type(node.op)
    if kind is ast.Invert and isinstance(item, bool):
        # Python's ~True is -2, NumPy's is False.
        raise _no_operator(scope, node, kind, item)
    if not has_tensor(item):
        return _compute(scope, node, _UNARY[kind], item)
    if kind is ast.Not:
        raise _no_operator(scope, node, kind, item)
    if kind is ast.UAdd and isinstance(item, Tensor) and item.dtype != bool_:
        return item
    name = _bit_op(kind, item) if kind is ast.Invert else "neg"
    return emit.pointwise(scope, node, name, item)


def _boolean(scope: Scope, node: ast.BoolOp) -> Item:
    item: Item = None
    for value in node.values:
        item = evaluate(scope, value)
        if has_tensor(item):
            raise _no_operator(scope, node, type(node.op), item)
        if bool(item) is isinstance(node.op, ast.Or):
            break
    return item


def _compare(scope: Scope, node: ast.Compare) -> Item:
    left = emit.number(scope, node.left, evaluate(scope, node.left))
    right = emit.number(scope, node.comparators[0], evaluate(scope, node.comparators[0]))
    kind = type(node.ops[0])
    is_choice = kind in (ast.Is, ast.IsNot) and right is None
    if is_choice or not has_tensor((left, right)):
        return _compute(scope, node, _COMPARE[kind], left, right)
    if kind not in _COMPARE_OPS:
        raise _no_operator(scope, node, kind, left, right)
    return emit.pointwise(scope, node, _COMPARE_OPS[kind], left, right)


def _choice(scope: Scope, node: ast.IfExp) -> Item:
    return evaluate(scope, node.body if constant_truth(scope, node.test) else node.orelse)


def _call(scope: Scope, node: ast.Call) -> Item:
    function = node.func
    method = isinstance(function, ast.Attribute) and function not in scope.definition.names
    if method and isinstance(function, ast.Attribute) and function.attr in {*_CALLED, *METHODS}:
        owner = emit.number(scope, function.value, evaluate(scope, function.value))
        if isinstance(owner, Tensor):
            return calls.method(scope, node, function.attr, owner, _arguments(scope, node))
    callee = evaluate(scope, function)
    positional, named = _arguments(scope, node)
    return calls.call(scope, node, callee, positional, named)


def _arguments(scope: Scope, node: ast.Call) -> tuple[tuple[Item, ...], dict[str, Item]]:
    positional = tuple(evaluate(scope, argument) for argument in node.args)
    named = {str(keyword.arg): evaluate(scope, keyword.value) for keyword in node.keywords}
    return positional, named


def _subscript(scope: Scope, node: ast.Subscript) -> Item:
    item = evaluate(scope, node.value)
    if isinstance(item, Tensor):
        return view(scope, node, item)
    if isinstance(item, Captured):
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return read(scope, node, item, tuple(evaluate(scope, part) for part in parts))
    return _compute(scope, node, operator.getitem, item, evaluate(scope, node.slice))


def _slice(scope: Scope, node: ast.Slice) -> Item:
    bounds = (node.lower, node.upper, node.step)
    return slice(*(None if bound is None else evaluate(scope, bound) for bound in bounds))


def _compute(scope: Scope, node: ast.expr, function: Callable[..., Any], *items: Item) -> Item:
    """Compute on constants in Python."""
    try:
        return function(*items)
    except Exception as exception:
        problem = f"{type(exception).__name__}: {exception}"
        raise scope.error("F055", node, words=scope.words(node), problem=problem) from exception


def _no_operator(scope: Scope, node: ast.expr, kind: type[ast.AST], *items: Item) -> Exception:
    sign, advice = _NO_OPERATOR[kind]
    culprit = next((item for item in items if has_tensor(item)), items[0])
    return scope.error("F056", node, sign=sign, got=describe(culprit), advice=advice)


_EXPRESSIONS: dict[type[ast.expr], Callable[[Scope, Any], Item]] = {
    ast.Attribute: _attribute,
    ast.BinOp: _binary,
    ast.BoolOp: _boolean,
    ast.Call: _call,
    ast.Compare: _compare,
    ast.Constant: _constant,
    ast.IfExp: _choice,
    # A program changes no list, so it is the tuple of its items.
    ast.List: _tuple,
    ast.ListComp: comprehension,
    ast.Lambda: lambda scope, node: Closure(node=node, scope=scope),
    ast.Name: _name,
    ast.Slice: _slice,
    ast.Subscript: _subscript,
    ast.Tuple: _tuple,
    ast.UnaryOp: _unary,
}
