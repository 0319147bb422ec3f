# SPDX-License-Identifier: MIT
"""Which maxima a program only subtracts so that exponentials do not overflow.

``exp(x - m) / sum(exp(x - m))`` does not depend on m, whatever m is, so its gradient by m is zero.
Softmax, log-softmax and log-sum-exp are of this kind. The rules would give that zero as a sum of
terms that cancel, through comparisons of every element with the maximum; here it is derived.

A value moves with m as one of two kinds, if m grows by t: it grows by ``factor * t`` (LOG), or is
multiplied by ``exp(factor * t)`` (EXP). The table says how ops pass that on. If every result stays
where it is, m has no gradient. Axes are followed, since t may differ from row to row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeAlias

from cklang.ir.nodes import Function, Operation, Value
from cklang.ir.reductions import reduced_axes
from cklang.types import Kind as NumberKind

_EXTREMES = ("reduce_max", "reduce_min")


class _Kind(Enum):
    LOG = "log"
    EXP = "exp"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Motion:
    """How a value moves with the maximum; ``axes`` has its axis for each axis of the maximum."""

    kind: _Kind
    factor: int
    axes: tuple[int, ...]

    def times(self, factor: int) -> _Motion:
        return replace(self, factor=self.factor * factor)


class _UnknownError(Exception):
    """An op moves in another way."""


_Moved: TypeAlias = _Motion | None
"""None: it does not move."""


def shifts(function: Function) -> frozenset[str]:
    """Return the values by which the results of a function need not be differentiated.

    Example:
        >>> from cklang.ir.parser import parse_function
        >>> softmax = parse_function('''
        ... func @softmax(%x: f32[M, N]) -> f32[M, N] {
        ...   %m: f32[M] = reduce_max(%x) {axes = [1]}
        ...   %wide: f32[M, N] = broadcast(%m) {dims = [0]}
        ...   %y: f32[M, N] = sub(%x, %wide)
        ...   %p: f32[M, N] = exp(%y)
        ...   %sum: f32[M] = reduce_sum(%p) {axes = [1]}
        ...   %total: f32[M, N] = broadcast(%sum) {dims = [0]}
        ...   %result: f32[M, N] = div(%p, %total)
        ...   return %result
        ... }''')
        >>> sorted(shifts(softmax))
        ['m']
    """
    zeros = _zeros(function)
    return frozenset(
        value.name for value in _candidates(function) if _is_shift(function, value, zeros)
    )


def _candidates(function: Function) -> Iterator[Value]:
    """Yield maxima, and what is 0 instead where the maximum is infinite."""
    maxima = set()
    for operation in function.body:
        if operation.op in _EXTREMES:
            maxima.add(operation.result.name)
            yield operation.result
        elif operation.op == "where" and operation.operands[1].name in maxima:
            yield operation.result


def _zeros(function: Function) -> frozenset[str]:
    """Return the names of the values whose elements are all the constant 0."""
    zeros: set[str] = set()
    for operation in function.body:
        is_zero = operation.op == "constant" and operation.attr("value") == 0.0
        if is_zero or (operation.op == "broadcast" and operation.operands[0].name in zeros):
            zeros.add(operation.result.name)
    return frozenset(zeros)


def _is_shift(function: Function, value: Value, zeros: frozenset[str]) -> bool:
    start = _Motion(kind=_Kind.LOG, factor=1, axes=tuple(range(value.type.rank)))
    moved: dict[str, _Motion] = {value.name: start}
    try:
        for operation in function.body:
            motion = None
            if operation.result != value:
                motion = _passed(operation, moved, zeros)
            if motion is not None and motion.factor:
                moved[operation.result.name] = motion
    except _UnknownError:
        return False
    return not any(result.name in moved for result in function.results)


def _passed(operation: Operation, moved: Mapping[str, _Motion], zeros: frozenset[str]) -> _Moved:
    """Return how the result of an operation moves, or raise ``_UnknownError``."""
    operands = [moved.get(operand.name) for operand in operation.operands]
    is_float = operation.result.type.dtype.kind is NumberKind.FLOAT
    if not any(operands) or not is_float:
        # Conditions and integers have no derivative.
        return None
    if operation.op == "where":
        return _chosen(operation, operands, zeros)
    rule = _RULES.get(operation.op)
    if rule is None:
        raise _UnknownError
    return rule(operation, operands)


def _chosen(operation: Operation, operands: Sequence[_Moved], zeros: frozenset[str]) -> _Moved:
    _, one, other = operands
    pair = ((one, operation.operands[1]), (other, operation.operands[2]))
    for (mine, _), (theirs, value) in (pair, pair[::-1]):
        if mine is not None and mine.kind is _Kind.EXP and theirs is None and value.name in zeros:
            return mine
    if one == other:
        return one
    raise _UnknownError


def _of_kind(kind: _Kind, *operands: _Moved) -> None:
    """Check that operands move in one way, those that move with the same axes."""
    moving = [operand for operand in operands if operand is not None]
    if any(shift.kind is not kind for shift in moving) or len({shift.axes for shift in moving}) > 1:
        raise _UnknownError


def _combined(kind: _Kind, signs: tuple[int, int], one: _Moved, other: _Moved) -> _Moved:
    _of_kind(kind, one, other)
    factor = sum(
        shift.factor * sign for shift, sign in zip((one, other), signs, strict=True) if shift
    )
    like = one or other
    return None if like is None else replace(like, factor=factor)


def _added(sign: int) -> Callable[[Operation, Sequence[_Moved]], _Moved]:
    def rule(_operation: Operation, operands: Sequence[_Moved]) -> _Moved:
        one, other = operands
        if one is not None and one == other and one.kind is _Kind.EXP:
            return one
        return _combined(_Kind.LOG, (1, sign), one, other)

    return rule


def _multiplied(sign: int) -> Callable[[Operation, Sequence[_Moved]], _Moved]:
    return lambda _operation, operands: _combined(_Kind.EXP, (1, sign), *operands)


def _changed(kind: _Kind, to: _Kind) -> Callable[[Operation, Sequence[_Moved]], _Moved]:
    def rule(_operation: Operation, operands: Sequence[_Moved]) -> _Moved:
        (one,) = operands
        _of_kind(kind, one)
        return None if one is None else replace(one, kind=to)

    return rule


def _same(_operation: Operation, operands: Sequence[_Moved]) -> _Moved:
    return operands[0]


def _negative(_operation: Operation, operands: Sequence[_Moved]) -> _Moved:
    (one,) = operands
    return one.times(-1) if one is not None and one.kind is _Kind.LOG else one


def _inverse(_operation: Operation, operands: Sequence[_Moved]) -> _Moved:
    (one,) = operands
    _of_kind(_Kind.EXP, one)
    return None if one is None else one.times(-1)


def _broadcast(operation: Operation, operands: Sequence[_Moved]) -> _Moved:
    (one,), dims = operands, operation.attr("dims")
    return _placed(one, dims)


def _transposed(operation: Operation, operands: Sequence[_Moved]) -> _Moved:
    (one,), perm = operands, operation.attr("perm")
    order = [int(str(axis)) for axis in perm] if isinstance(perm, tuple) else []
    return _placed(one, tuple(order.index(axis) for axis in range(len(order))))


def _placed(one: _Moved, places: object) -> _Moved:
    if one is None or not isinstance(places, tuple):
        raise _UnknownError
    return replace(one, axes=tuple(int(str(places[axis])) for axis in one.axes))


def _reduced(*kinds: _Kind) -> Callable[[Operation, Sequence[_Moved]], _Moved]:
    def rule(operation: Operation, operands: Sequence[_Moved]) -> _Moved:
        (one,), gone = operands, reduced_axes(operation)
        if one is None or one.kind not in kinds or set(gone) & set(one.axes):
            raise _UnknownError
        axes = tuple(axis - sum(removed < axis for removed in gone) for axis in one.axes)
        return replace(one, axes=axes)

    return rule


_RULES: Mapping[str, Callable[[Operation, Sequence[_Moved]], _Moved]] = {
    "add": _added(1),
    "sub": _added(-1),
    "neg": _negative,
    "mul": _multiplied(1),
    "div": _multiplied(-1),
    "reciprocal": _inverse,
    "exp": _changed(_Kind.LOG, _Kind.EXP),
    "log": _changed(_Kind.EXP, _Kind.LOG),
    # Between floats a cast counts as the identity, as in its gradient rule.
    "cast": _same,
    "broadcast": _broadcast,
    "transpose": _transposed,
    "reduce_sum": _reduced(_Kind.EXP),
    "reduce_mean": _reduced(_Kind.EXP, _Kind.LOG),
    "reduce_max": _reduced(_Kind.EXP, _Kind.LOG),
    "reduce_min": _reduced(_Kind.EXP, _Kind.LOG),
}
