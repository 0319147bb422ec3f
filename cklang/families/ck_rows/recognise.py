# SPDX-License-Identifier: MIT
"""Which of CK Tile's kernels computes what a kernel of rows computes.

The program of a kernel of rows is written as one expression, in which casts to f32 and repetitions
along axes have no place, and compared with the expressions that CK Tile's kernels compute.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from cklang.families.ck_rows.key import UpstreamKernel
from cklang.ir.nodes import Function, Operation, Value
from cklang.ir.ops import OPS, Kind
from cklang.types import f32

__all__ = ["Match", "matched"]

Expression: TypeAlias = str | float | tuple["Expression", ...]
"""A tensor that is read, a number, or an op with its operands."""

_X, _Y, _GAIN, _BIAS, _EPSILON = "x", "y", "gain", "bias", "epsilon"


def _normed(x: Expression) -> Expression:
    """Return x over its root mean square."""
    power = ("reduce_mean", ("square", x))
    return ("mul", x, ("rsqrt", ("add", power, _EPSILON)))


_CENTRED = ("sub", _X, ("reduce_mean", _X))

PATTERNS: Mapping[UpstreamKernel, Expression] = MappingProxyType(
    {
        UpstreamKernel.RMSNORM2D: ("mul", _normed(_X), _GAIN),
        UpstreamKernel.LAYERNORM2D: ("add", ("mul", _normed(_CENTRED), _GAIN), _BIAS),
        UpstreamKernel.REDUCE_SUM: ("reduce_sum", _X),
        UpstreamKernel.REDUCE_MAX: ("reduce_max", _X),
        UpstreamKernel.ELEMENTWISE_ADD: ("add", _X, _Y),
        UpstreamKernel.BATCHED_TRANSPOSE: _X,
    }
)
"""What each kernel computes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A kernel of CK Tile's, and what of the program it reads."""

    kernel: UpstreamKernel
    operands: tuple[str, ...]
    """The names of x, gain and bias, or of x and y: as many as it has."""
    epsilon: float = 0.0


def matched(function: Function) -> Match | None:
    """Return the kernel that computes a program of rows; None if there is none.

    Args:
        function: What a kernel of rows computes.

    Example:
        >>> from cklang.ir.parser import parse_function
        >>> body = "%0: f32[8] = reduce_sum(%x) {axes = [1]} return %0"
        >>> matched(parse_function(f"func @f(%x: f16[8, 9]) -> f32[8] {{ {body} }}")).kernel.value
        'reduce_sum'
    """
    if len(function.results) != 1:
        return None
    definitions = function.definitions()
    expression = _expression(_unrounded(function.results[0], definitions), definitions)
    for kernel, pattern in PATTERNS.items():
        known: dict[str, Expression] = {}
        if _unifies(pattern, expression, known):
            epsilon = known.pop(_EPSILON, 0.0)
            names = tuple(name for name in known.values() if isinstance(name, str))
            if len(set(names)) == len(known) and isinstance(epsilon, float):
                return Match(kernel=kernel, operands=names, epsilon=epsilon)
    return None


def _unrounded(value: Value, definitions: Mapping[str, Operation]) -> Value:
    """Return what is rounded to the dtype of a result; on the way a rounding is a function."""
    writer = definitions.get(value.name)
    is_rounding = writer is not None and writer.op == "cast" and value.type.dtype != f32
    return writer.operands[0] if writer is not None and is_rounding else value


def _expression(value: Value, definitions: Mapping[str, Operation]) -> Expression:
    writer = definitions.get(value.name)
    if writer is None:
        return value.name
    if writer.op == "constant":
        number = writer.attr("value")
        return float(number) if isinstance(number, int | float) else ()
    operands = tuple(_expression(each, definitions) for each in writer.operands)
    is_move = OPS[writer.op].kind is Kind.SHAPE
    result = writer.result
    is_widened = writer.op == "cast" and result.type.dtype == f32
    if is_move or is_widened:
        return operands[0]
    return (writer.op, *operands)


def _unifies(pattern: Expression, other: Expression, known: dict[str, Expression]) -> bool:
    """Tell whether an expression is a pattern whose names stand for what ``known`` says."""
    if isinstance(pattern, str):
        leaf = float if pattern == _EPSILON else str
        return isinstance(other, leaf) and known.setdefault(pattern, other) == other
    if not isinstance(pattern, tuple) or not isinstance(other, tuple):
        return pattern == other
    if len(pattern) != len(other) or pattern[0] != other[0]:
        return False
    return all(_unifies(*each, known) for each in zip(pattern[1:], other[1:], strict=True))
