# SPDX-License-Identifier: MIT
"""Put ops into the IR: widening, broadcasting, casts, views.

Every function takes the scope and the AST node that asked, so that each error has its place.
"""

import ast
import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest

from cklang.frontend.scope import Captured, Scope
from cklang.frontend.text import Located
from cklang.frontend.values import Item, Number, Tensor, describe, is_number
from cklang.ir import rules
from cklang.ir.casts import CASTS
from cklang.ir.nodes import Attr, Value
from cklang.ir.ops import OPS
from cklang.ir.rules import DTypeRule
from cklang.ir.views import APART, RESHAPE
from cklang.source import Span
from cklang.types import (
    DTYPES,
    Dim,
    DType,
    DTypeVar,
    Formula,
    Kind,
    Quotient,
    bf16,
    bool_,
    f16,
    f32,
    i8,
    i32,
    i64,
)
from cklang.widths import I32_MAX

_WIDER = {f16: f32, bf16: f32, i8: i32} | {d: f32 for d in DTYPES.values() if d.encoding}
_FLOAT_MAX = float.fromhex("0x1.fffffep127")
# The Python types whose constants go with a dtype, and the finite values that it holds.
_CONSTANTS = {f32: (int, float), i32: (int,), i64: (int,), bool_: (bool,)}
_OF_PYTHON = {int: i32, bool: bool_}
_RANGES = {
    f32: (-_FLOAT_MAX, _FLOAT_MAX),
    i32: (-I32_MAX - 1, I32_MAX),
    i64: (-(1 << 63), (1 << 63) - 1),
    bool_: (0, 1),
}


def pointwise(scope: Scope, node: Located, name: str, *items: Item, **attrs: Attr) -> Tensor:
    """Apply the pointwise op ``name`` to tensors and constants.

    Where integers meet floats they become f32, and so do those of a division. Where i32 meets i64
    it becomes i64.
    """
    rule = OPS[name].dtype
    wide = _promoted(scope, node, name, [_widen(scope, node, item) for item in items])
    targets = _constant_dtypes(rule, wide)
    tensors = [
        item if isinstance(item, Tensor) else _constant(scope, node, item, dtype)
        for item, dtype in zip(wide, targets, strict=True)
    ]
    dtypes = tuple(tensor.dtype for tensor in tensors)
    if rule.apply(dtypes, attrs) is None:
        raise _dtype_error(scope, node, name, items, tensors)
    shape, origins = common_shape(scope, node, tensors)
    places = _places(tensors, shape)
    operands = [_broadcast(scope, node, tensor, shape, places) for tensor in tensors]
    value = scope.unit.append(name, *operands, attrs=attrs, span=scope.span(node))
    return Tensor(value=value, shape=shape, axes=places, origins=origins)


def number(scope: Scope, node: Located, item: Item) -> Item:
    """Return ``item``; a dim as the number of its elements, an i32 that the call gives."""
    if not isinstance(item, Dim):
        return item
    if isinstance(item, Formula):
        return _sum(scope, node, item)
    if isinstance(item, Quotient):
        return pointwise(scope, node, "floor_divide", item.of, item.size)
    value = scope.unit.extent(item, scope.span(node))
    if value is None:
        raise scope.error("F068", node, dim=item)
    return Tensor.plain(value, ())


def _sum(scope: Scope, node: Located, formula: Formula) -> Item:
    """Return a sum of products of extents as a number."""
    total: Item = None
    for factors, count in formula.terms:
        term: Item = abs(count)
        for dim in factors:
            term = dim if term == 1 else pointwise(scope, node, "mul", dim, term)
        if total is None:
            total = term if count > 0 else pointwise(scope, node, "neg", term)
        else:
            total = pointwise(scope, node, "add" if count > 0 else "sub", total, term)
    return number(scope, node, total)


def _widen(scope: Scope, node: Located, item: Item) -> Item:
    item = number(scope, node, item)
    if not isinstance(item, Tensor):
        if not is_number(item):
            raise scope.error("F040", node, what=describe(item), advice=_number_advice(item))
        return item
    return _cast(scope, node, item, _WIDER.get(item.dtype, item.dtype))


def expect_tensor(scope: Scope, node: Located, name: str, item: Item) -> Tensor:
    """Return the operand of a function, a dim as a number."""
    item = number(scope, node, item)
    if isinstance(item, Tensor):
        return item
    problem = f"it takes a tensor, not {describe(item)}"
    advice = "pass a parameter, or what is computed of parameters"
    raise scope.error("F066", node, op=name, problem=problem, advice=advice)


def widened(scope: Scope, node: Located, tensor: Tensor) -> Tensor:
    """Return a tensor in the dtype in which pointwise functions take it."""
    return _cast(scope, node, tensor, _WIDER.get(tensor.dtype, tensor.dtype))


def is_float(item: Item) -> bool:
    """Tell whether ``item`` is an f32 tensor or a float constant."""
    return item.dtype == f32 if isinstance(item, Tensor) else isinstance(item, float)


def first_float(scope: Scope, tensor: Tensor) -> Span | None:
    """Return the place where what ``tensor`` is computed from first is a float.

    None: it is a parameter, or no float.
    """
    operations = {operation.result: operation for operation in scope.unit.builder.body}
    place, value = None, tensor.value
    while value.type.dtype == f32 and value in operations:
        operation = operations[value]
        place = operation.span
        # A constant and an integer that is cast follow the float that they meet.
        floats = (
            operand
            for operand in operation.operands
            if operand.type.dtype == f32
            and operand in operations
            and operations[operand].op not in ("constant", "cast")
        )
        value = next(floats, value)
        if value is operation.result:
            break
    return place


def _promoted(scope: Scope, node: Located, name: str, items: list[Item]) -> list[Item]:
    """Return the operands of an op with its integer tensors in the dtype in which they meet."""
    is_wide = any(isinstance(item, Tensor) and item.dtype == i64 for item in items)
    to = f32 if name == "div" or any(map(is_float, items)) else i64 if is_wide else None
    return [
        _cast(scope, node, item, to)
        if to and isinstance(item, Tensor) and item.dtype in (i32, i64)
        else item
        for item in items
    ]


def _number_advice(item: Item) -> str:
    if isinstance(item, Captured):
        return "read one element of it, as in slopes[h]"
    if callable(item):
        return "call it"
    return "operands are tensors, run-time scalars and numbers"


def _constant_dtypes(rule: DTypeRule, items: Sequence[Item]) -> list[DType]:
    """Say which dtype a constant takes in the place of each item."""
    if rule is rules.LOGICAL_DTYPE:
        return [bool_] * len(items)
    if rule is rules.INTEGER_DTYPE:
        is_wide = any(isinstance(item, Tensor) and item.dtype == i64 for item in items)
        return [i64 if is_wide else i32] * len(items)
    if rule is rules.FLOAT_DTYPE or rule is rules.CLASSIFY_DTYPE:
        return [f32] * len(items)
    if rule is rules.SELECT_DTYPE:
        return [bool_, *_peer_dtypes(items[1:])]
    return _peer_dtypes(items)


def _peer_dtypes(items: Sequence[Item]) -> list[DType]:
    dtypes = {item.dtype for item in items if isinstance(item, Tensor)}
    # Constants follow the tensors they meet; among themselves they are what they are in NumPy.
    dtypes = dtypes or {_OF_PYTHON.get(type(item), f32) for item in items}
    dtype = dtypes.pop() if len(dtypes) == 1 else f32
    return [dtype] * len(items)


def constant_number(scope: Scope, node: Located, value: Item, dtype: DType) -> Number:
    """Return the constant ``value`` as a number of ``dtype``: f32, i32, i64 or bool."""
    if not isinstance(value, Number) or type(value) not in _CONSTANTS.get(dtype, ()):
        raise scope.error("F044", node, value=repr(value), dtype=dtype)
    low, high = _RANGES[dtype]
    if not low <= value <= high and (isinstance(value, int) or math.isfinite(value)):
        ends = [str(end) if isinstance(end, int) else f"{end:.9g}" for end in (low, high)]
        raise scope.error("F043", node, value=repr(value), dtype=dtype, low=ends[0], high=ends[1])
    return float(value) if dtype == f32 else value


def _constant(scope: Scope, node: Located, value: Item, dtype: DType) -> Tensor:
    number = constant_number(scope, node, value, dtype)
    constant = scope.unit.append("constant", span=scope.span(node), attrs={"value": number})
    return _cast(scope, node, Tensor.plain(constant, ()), dtype)


def _dtype_error(
    scope: Scope, node: Located, name: str, items: Sequence[Item], tensors: Sequence[Tensor]
) -> Exception:
    got = " and ".join(str(item.dtype) for item in items if isinstance(item, Tensor))
    kinds = {tensor.dtype for tensor in tensors}
    rule = OPS[name].dtype
    if rule is rules.LOGICAL_DTYPE:
        advice = "compare first: x > 0 is a boolean"
    elif rule is rules.INTEGER_DTYPE:
        advice = "cast to an integer first: x.to(ck.i32) drops the fraction"
    elif rule is rules.SELECT_DTYPE and tensors[0].dtype != bool_:
        advice = "the first argument of ck.where is a comparison, as in ck.where(x > 0, x, y)"
    elif bool_ in kinds:
        advice = "write ck.where(condition, x, 0.0), or cast the condition: .to(ck.f32)"
    else:
        advice = "cast to f32 where it is meant: x.to(ck.f32)"
    return scope.error("F041", node, name=name, got=got, want=rule.text, advice=advice)


def common_shape(
    scope: Scope, node: Located, tensors: Sequence[Tensor]
) -> tuple[tuple[Dim | int, ...], tuple[str, ...]]:
    """Return the shape that all ``tensors`` broadcast to, as NumPy does, and its origins."""
    sides = [list(zip(tensor.shape, tensor.origins, strict=True))[::-1] for tensor in tensors]
    result: list[tuple[Dim | int, str]] = []
    for axis in zip_longest(*sides):
        extents = [entry for entry in axis if entry is not None]
        chosen = next((entry for entry in extents if entry[0] != 1), extents[0])
        for other in extents:
            if other[0] != 1 and not scope.unit.derived.same(other[0], chosen[0]):
                raise _shape_error(scope, node, tensors, chosen, other)
        result.append(chosen)
    result.reverse()
    return tuple(extent for extent, _ in result), tuple(origin for _, origin in result)


def _shape_error(
    scope: Scope,
    node: Located,
    tensors: Sequence[Tensor],
    one: tuple[Dim | int, str],
    other: tuple[Dim | int, str],
) -> Exception:
    shapes = " and ".join(brackets(tensor.shape) for tensor in tensors if tensor.shape)
    notes = [f"{extent} is {origin}" for extent, origin in (one, other)]
    return scope.error(
        "F042",
        node,
        *notes,
        shapes=shapes,
        one=one[0],
        other=other[0],
        advice=_shape_advice(scope, node, tensors),
    )


def _shape_advice(scope: Scope, node: Located, tensors: Sequence[Tensor]) -> str:
    if isinstance(node, ast.BinOp) and len(tensors) == 2:
        for side, this, that in (
            (node.left, tensors[0], tensors[1]),
            (node.right, tensors[1], tensors[0]),
        ):
            words = scope.words(side)
            if not words.isidentifier():
                continue
            if len(this.shape) == 1 and len(that.shape) == 2 and this.shape[0] == that.shape[0]:
                return f"for one number a row, write {words}[:, None]"
            if len(this.shape) == 2 and this.shape == that.shape[::-1]:
                return f"write {words}.T"
    return "axes align at the right and are equal or 1; x[:, None] adds an axis, x.T swaps two"


def brackets(shape: Sequence[Dim | int]) -> str:
    """Return a shape as messages show it."""
    return f"[{', '.join(str(extent) for extent in shape)}]"


def _places(tensors: Sequence[Tensor], shape: tuple[Dim | int, ...]) -> tuple[int, ...]:
    """Return the axes of ``shape`` that some tensor's value has; the others stay out of the IR."""
    own = {len(shape) - len(tensor.shape) + axis for tensor in tensors for axis in tensor.axes}
    return tuple(axis for axis in range(len(shape)) if axis in own)


def _broadcast(
    scope: Scope,
    node: Located,
    tensor: Tensor,
    shape: tuple[Dim | int, ...],
    places: tuple[int, ...],
) -> Value:
    """Return the value of ``tensor`` broadcast to the axes ``places`` of ``shape``."""
    extents = tuple(shape[place] for place in places)
    if tensor.value.type.shape == extents:
        return tensor.value
    first = len(shape) - len(tensor.shape)
    axes = tuple(places.index(first + axis) for axis in tensor.axes)
    return scope.unit.append(
        "broadcast", tensor.value, attrs={"dims": axes}, shape=extents, span=scope.span(node)
    )


def broadcast_to(
    scope: Scope, node: Located, tensor: Tensor, shape: tuple[Dim | int, ...]
) -> Tensor:
    """Repeat a tensor to a shape, as NumPy does.

    Raises:
        CkValueError: F042, it does not broadcast to the shape.
    """
    origins = ("an extent of the shape to broadcast to",) * len(shape)
    wanted = replace(tensor, shape=shape, axes=(), origins=origins)
    # Axes of the shape are not repeated themselves: an extent 1 there is what is wanted.
    for axis in range(1, min(len(tensor.shape), len(shape)) + 1):
        one, other = tensor.shape[-axis], shape[-axis]
        if one != 1 and not scope.unit.derived.same(one, other):
            pair = (one, tensor.origins[-axis]), (other, origins[-axis])
            raise _shape_error(scope, node, [tensor, wanted], *pair)
    if len(tensor.shape) > len(shape):
        pair = (len(tensor.shape), "the number of its axes"), (len(shape), "that of the shape")
        raise _shape_error(scope, node, [tensor, wanted], *pair)
    value = _broadcast(scope, node, tensor, shape, tuple(range(len(shape))))
    return Tensor.plain(value, origins)


def materialise(scope: Scope, node: Located, tensor: Tensor) -> Value:
    """Return the value of ``tensor`` with all its axes in the IR."""
    places = tuple(range(len(tensor.shape)))
    return _broadcast(scope, node, tensor, tensor.shape, places)


def viewed(scope: Scope, node: Located, tensor: Tensor) -> Value:
    """Return the value of ``tensor`` with all its axes for a kernel that reads it from memory.

    An axis of one element more is another shape of the same memory, where a broadcast would be
    a computation.
    """
    if len(tensor.axes) == len(tensor.shape):
        return materialise(scope, node, tensor)
    span = scope.span(node)
    return scope.unit.append(RESHAPE, tensor.value, shape=tensor.shape, span=span)


def _cast(scope: Scope, node: Located, tensor: Tensor, dtype: DType) -> Tensor:
    if tensor.dtype == dtype:
        return tensor
    value = scope.unit.append("cast", tensor.value, attrs={"to": dtype}, span=scope.span(node))
    return Tensor(value=value, shape=tensor.shape, axes=tensor.axes, origins=tensor.origins)


def cast(scope: Scope, node: Located, item: Item, to: Item) -> Tensor:
    """Convert a tensor to a dtype: ``x.to(ck.f16)``.

    Raises:
        CkTypeError: F057 for something that is no dtype, F040 for something that is no tensor,
            F045 for a conversion that kernels do not make.
    """
    if isinstance(to, DTypeVar):
        to = scope.dtype(to, node)
    if not isinstance(to, DType):
        raise scope.error("F057", node, what="the dtype of a cast", got=describe(to))
    item = number(scope, node, item)
    if is_number(item):
        item = _constant(scope, node, item, f32 if to.kind is Kind.FLOAT else to)
    if not isinstance(item, Tensor):
        raise scope.error("F040", node, what=describe(item), advice=_number_advice(item))
    if item.dtype != to and (item.dtype, to) not in CASTS:
        raise scope.error("F045", node, source=item.dtype, to=to)
    return _cast(scope, node, item, to)


def transpose(scope: Scope, node: Located, tensor: Tensor) -> Tensor:
    """Swap the axes of a matrix: ``x.T``.

    Raises:
        CkTypeError: F046 if the rank is not 2.
    """
    rank = len(tensor.shape)
    if rank != 2:
        advice = "x[:, None] makes a column of a vector"
        if rank > 2:
            advice = "write x.mT to swap the last two axes"
        raise scope.error("F046", node, name="T", type=tensor.type, rank=rank, advice=advice)
    return permute(scope, node, tensor, (1, 0))


def matrix_transpose(scope: Scope, node: Located, tensor: Tensor) -> Tensor:
    """Swap the last two axes: ``x.mT``."""
    rank = len(tensor.shape)
    if rank < 2:
        advice = "x[:, None] makes a column of a vector"
        raise scope.error("F046", node, name="mT", type=tensor.type, rank=rank, advice=advice)
    return permute(scope, node, tensor, (*range(rank - 2), rank - 1, rank - 2))


def apart(scope: Scope, node: Located, item: Item, call: int) -> Item:
    """Return a tensor that is in memory between an op called apart and its caller.

    Numbers are never in memory, and are returned as they are.

    Args:
        scope: Of the caller.
        node: The call.
        item: An argument or a result of it.
        call: Its number among such calls of the program.
    """
    if not isinstance(item, Tensor) or not item.shape:
        return item
    value = materialise(scope, node, item)
    value = scope.unit.append(APART, value, attrs={"call": call}, span=scope.span(node))
    return Tensor.plain(value, item.origins)


def permute(scope: Scope, node: Located, tensor: Tensor, perm: tuple[int, ...]) -> Tensor:
    """Put the axes of a tensor in another order: axis i of the result is axis ``perm[i]``."""
    if perm == tuple(range(len(perm))):
        return tensor
    # Axes that None added have no place in the value, wherever they go.
    places = tuple(place for place, axis in enumerate(perm) if axis in tensor.axes)
    order = tuple(tensor.axes.index(perm[place]) for place in places)
    value = tensor.value
    if order != tuple(range(len(order))):
        value = scope.unit.append("transpose", value, attrs={"perm": order}, span=scope.span(node))
    return Tensor(
        value=value,
        shape=tuple(tensor.shape[axis] for axis in perm),
        axes=places,
        origins=tuple(tensor.origins[axis] for axis in perm),
    )
