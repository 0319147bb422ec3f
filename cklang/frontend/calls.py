# SPDX-License-Identifier: MIT
"""Calls in a program: the language's functions, helpers, and Python functions of constants."""

import ast
import builtins
import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from cklang.errors import CkError
from cklang.frontend import emit
from cklang.frontend.environment import Environment
from cklang.frontend.fitting import misfit
from cklang.frontend.helper import Definition, Fn
from cklang.frontend.intrinsics import COMPOSITES, INTRINSICS, METHODS, Intrinsic
from cklang.frontend.names import is_python
from cklang.frontend.op_calls import fitted
from cklang.frontend.ops.axes import permutation_of_method
from cklang.frontend.scope import ITERATIONS, Closure, Scope
from cklang.frontend.signature import Parameter
from cklang.frontend.values import Apart, Item, OpProgram, Tensor, describe, has_tensor
from cklang.types import ConstType, Dim, DType, TensorType, TensorVarType

_Call = tuple[tuple[Item, ...], Mapping[str, Item]]

# Functions of tuples, whatever is in them.
_STRUCTURAL = (enumerate, len, reversed, zip)
# Python's functions of numbers that a user may try on a tensor, by name.
_INSTEAD = {
    "max": "write ck.maximum(x, y), or ck.max(x, axis=-1) for the greatest along an axis",
    "min": "write ck.minimum(x, y), or ck.min(x, axis=-1) for the least along an axis",
    "round": "write ck.round(x)",
    "trunc": "write ck.trunc(x)",
    "floor": "write ck.floor(x)",
    "ceil": "write ck.ceil(x)",
    "float": "write x.to(ck.f32)",
    "int": "write x.to(ck.i32)",
    "bool": "compare: x != 0",
    "len": "write x.shape[0]",
    "range": "a loop is unrolled: its bound is a constant or a ck.const[int] parameter",
    "fabs": "write ck.abs(x)",
}


def call(
    scope: Scope,
    node: ast.Call,
    callee: Item,
    positional: tuple[Item, ...],
    named: Mapping[str, Item],
) -> Item:
    """Return the result of calling ``callee``.

    Raises:
        CkTypeError: F060 for something that cannot be called, F061 for arguments that do not fit,
            F062 for a Python function on tensors, F095 for a lambda that nothing calls.
    """
    if isinstance(callee, Closure):
        return _lambda(scope, node, callee, (positional, named))
    takes_lambdas = (
        callee.takes_lambdas if isinstance(callee, Intrinsic) else isinstance(callee, Fn)
    )
    if not takes_lambdas:
        _refuse_lambdas(scope, (*positional, *named.values()))
    if isinstance(callee, Intrinsic):
        name = f"ck.{callee.name}"
        bound = _bind(scope, node, name, callee.signature, (positional, named))
        return callee.emit(scope, node, bound)
    if isinstance(callee, Fn):
        return _helper(scope, node, callee.definition, (positional, named))
    if isinstance(callee, OpProgram | Apart):
        return _op(scope, node, callee, (positional, named))
    if callable(callee) and is_python(callee):
        return _python(scope, node, callee, positional, named)
    advice = "functions are those of ck, helpers made with @ck.fn, other ops, and math on constants"
    if isinstance(callee, DType):
        advice = f"to convert a tensor, write x.to(ck.{callee})"
    raise scope.error("F060", node, what=describe(callee), advice=advice)


def _lambda(scope: Scope, node: ast.Call, callee: Closure, call: _Call) -> Item:
    """Return what a lambda gives; it sees the names of the function that it is written in."""
    written = callee.node.args
    kinds = (
        (written.posonlyargs, inspect.Parameter.POSITIONAL_ONLY),
        (written.args, inspect.Parameter.POSITIONAL_OR_KEYWORD),
    )
    names = [inspect.Parameter(arg.arg, kind) for args, kind in kinds for arg in args]
    bound = _bind(scope, node, "the lambda", inspect.Signature(names), call)
    return scope.evaluate(callee.inside(scope.unit, bound), callee.node.body)


def _refuse_lambdas(scope: Scope, items: Sequence[Item]) -> None:
    for item in items:
        if isinstance(item, Closure):
            raise scope.error("F095", item.node)


def _bind(scope: Scope, node: ast.Call, name: str, signature: Any, call: _Call) -> dict[str, Item]:
    try:
        bound = signature.bind(*call[0], **call[1])
    except TypeError as exception:
        names = misfit(name, signature, call[1], exception)
        raise scope.error("F061", node, **names) from exception
    bound.apply_defaults()
    return dict(bound.arguments)


def method(scope: Scope, node: ast.Call, name: str, owner: Tensor, arguments: _Call) -> Item:
    """Return ``x.sum(-1)`` and its like; some take axes and extents without a tuple."""
    positional, named = arguments
    if name == "to":
        signature = INTRINSICS["cast"].signature
        signature = signature.replace(parameters=list(signature.parameters.values())[1:])
        return emit.cast(
            scope, node, owner, _bind(scope, node, "x.to", signature, arguments)["dtype"]
        )
    if name == "transpose":
        axes = (*positional, *named.values())
        return emit.permute(scope, node, owner, _order(scope, node, axes, len(owner.shape)))
    function = METHODS[name]
    if isinstance(function, Intrinsic) and function.variadic and len(positional) > 1:
        positional = (positional,)
    return call(scope, node, function, (owner, *positional), named)


def _order(scope: Scope, node: ast.Call, axes: tuple[Item, ...], rank: int) -> tuple[int, ...]:
    try:
        return permutation_of_method(axes, rank)
    except ValueError as refusal:
        problem, advice = refusal.args
        raise scope.error("F067", node, op="transpose", problem=problem, advice=advice) from None


def _python(
    scope: Scope,
    node: ast.Call,
    function: Callable[..., Any],
    positional: tuple[Item, ...],
    named: Mapping[str, Item],
) -> Item:
    if function is builtins.abs and len(positional) == 1 and isinstance(positional[0], Tensor):
        return emit.pointwise(scope, node, "abs", positional[0])
    _check_constants(scope, node, function, (*positional, *named.values()))
    try:
        result = function(*positional, **named)
    except Exception as exception:
        problem = f"{type(exception).__name__}: {exception}"
        raise scope.error("F055", node, words=scope.words(node), problem=problem) from exception
    # enumerate, zip and reversed give iterators, which would be used up by one loop.
    return result if isinstance(result, bool | int | float | str | range) else tuple(result)


def _same(name: str) -> str:
    known = name in {*INTRINSICS, *COMPOSITES}
    return f"write ck.{name}(x)" if known else "nothing in ck does the same"


def _check_constants(
    scope: Scope, node: ast.Call, function: Callable[..., Any], items: Sequence[Item]
) -> None:
    """Refuse tensors, and sequences that are too long, as arguments of a Python function."""
    name = function.__name__
    for item in items:
        hidden = has_tensor(item) and function not in _STRUCTURAL
        if isinstance(item, Tensor) or hidden or isinstance(item, Dim):
            advice = _INSTEAD.get(name) or _same(name)
            words = scope.words(node.func)
            raise scope.error("F062", node, name=words, got=describe(item), advice=advice)
        if isinstance(item, range | tuple) and len(item) > ITERATIONS:
            raise scope.error("F031", node, length=len(item), limit=ITERATIONS)


def _helper(scope: Scope, node: ast.Call, helper: Definition, call: _Call) -> Item:
    bound = _bound(scope, node, helper, call)
    for parameter in helper.parameters:
        item = bound[parameter.name]
        bound[parameter.name] = _argument(scope, node, helper, parameter, item)
    result = scope.inline(scope, node, helper, bound)
    if helper.results is not None:
        _check_results(scope, node, helper.name, helper.results, result)
    return result


def _op(scope: Scope, node: ast.Call, callee: OpProgram | Apart, call: _Call) -> Item:
    """Return the results of another op, whose program becomes part of this one."""
    op = (callee.op if isinstance(callee, Apart) else callee).definition
    items, environment = fitted(scope, node, op, _bound(scope, node, op, call))
    if isinstance(callee, Apart):
        return _apart(scope, node, op, items, environment)
    return scope.inline(scope, node, op, items, environment)


def _apart(
    scope: Scope,
    node: ast.Call,
    op: Definition,
    items: Mapping[str, Item],
    environment: Environment,
) -> Item:
    """Return the results of an op that has kernels of its own.

    What it takes and what it returns is in memory, so that no kernel computes both a part of the
    op and something around it.
    """
    scope.unit.calls_apart += 1
    number = scope.unit.calls_apart
    stored = {name: emit.apart(scope, node, item, number) for name, item in items.items()}
    result = scope.inline(scope, node, op, stored, environment)
    parts = result if isinstance(result, tuple) else (result,)
    outside = tuple(emit.apart(scope, node, part, number) for part in parts)
    return outside if isinstance(result, tuple) else outside[0]


def _bound(scope: Scope, node: ast.Call, callee: Definition, call: _Call) -> dict[str, Item]:
    if scope.definition is callee or any(site.helper is callee for site in scope.calls):
        raise scope.error("F012", node, name=callee.name)
    name = f"ck.{callee.name}" if callee.is_composite else callee.name
    return _bind(scope, node, name, callee.python, call)


def _check_results(
    scope: Scope,
    node: ast.Call,
    name: str,
    wanted: tuple[TensorType | TensorVarType, ...],
    result: Item,
) -> None:
    parts = result if isinstance(result, tuple) and len(wanted) > 1 else (result,)
    expected = [scope.concrete(type_, node) for type_ in wanted]
    fits = len(parts) == len(expected) and all(
        isinstance(part, Tensor) and _has_type(scope, part, type_)
        for part, type_ in zip(parts, expected, strict=True)
    )
    if not fits:
        shown = ", ".join(str(type_) for type_ in expected)
        raise scope.error("F065", node, name=name, want=shown, got=describe(result))


def _has_type(scope: Scope, tensor: Tensor, type_: TensorType) -> bool:
    same = tensor.dtype == type_.dtype and len(tensor.shape) == type_.rank
    pairs = zip(tensor.shape, type_.shape, strict=False)
    return same and all(scope.unit.derived.same(*pair) for pair in pairs)


def _argument(
    scope: Scope, node: ast.Call, helper: Definition, parameter: Parameter, item: Item
) -> Item:
    """Return ``item`` as it fits the annotation of a helper's parameter, if it has one."""
    annotation = parameter.type
    if annotation is None or (item is None and parameter.optional):
        return item
    if isinstance(annotation, ConstType):
        with suppress(CkError):
            return parameter.const_value(item)
    else:
        annotation = scope.concrete(annotation, node)
        if isinstance(item, Tensor) and _has_type(scope, item, annotation):
            return item
    names = {"name": parameter.name, "helper": helper.name}
    raise scope.error("F064", node, want=annotation, got=describe(item), **names)
