# SPDX-License-Identifier: MIT
"""Which of CK Tile's kernels computes what a kernel of rows computes.

The program of a kernel of rows is written as one expression, in which casts to f32 and repetitions
along axes have no place, and compared with the expressions that CK Tile's kernels compute.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import permutations
from types import MappingProxyType
from typing import TypeAlias

from cklang.families.ck_rows.key import UpstreamKernel
from cklang.ir.nodes import Function, Operation, Value
from cklang.ir.ops import OPS, Kind
from cklang.types import f32

Expression: TypeAlias = str | float | tuple["Expression", ...]
"""A tensor that is read, a number, or an op with its operands."""

_X, _Y, _GAIN, _BIAS, _SCALE = "x", "y", "gain", "bias", "scale"
_EPSILON, _MOST = "epsilon", "most"
_NUMBERS = (_EPSILON, _MOST)


def _normed(x: Expression) -> Expression:
    """Return x over its root mean square."""
    power = ("reduce_mean", ("square", x))
    return ("mul", x, ("rsqrt", ("add", power, _EPSILON)))


def _quantised(y: Expression) -> tuple[Expression, Expression]:
    """Return y over a scale of its row, and the scale."""
    scale = ("div", ("reduce_max", ("abs", y)), _MOST)
    return ("div", y, scale), scale


_POWERS = ("exp", ("sub", _X, ("reduce_max", _X)))
_SOFTMAX = ("div", _POWERS, ("reduce_sum", _POWERS))
_CENTRED = ("sub", _X, ("reduce_mean", _X))
_SUMMED = ("add", _X, _Y)

PATTERNS: Mapping[UpstreamKernel, tuple[Expression, ...]] = MappingProxyType(
    {
        UpstreamKernel.RMSNORM2D: (("mul", _normed(_X), _GAIN),),
        UpstreamKernel.LAYERNORM2D: (("add", ("mul", _normed(_CENTRED), _GAIN), _BIAS),),
        UpstreamKernel.REDUCE_SUM: (("reduce_sum", _X),),
        UpstreamKernel.REDUCE_MAX: (("reduce_max", _X),),
        UpstreamKernel.ELEMENTWISE_ADD: (_SUMMED,),
        UpstreamKernel.SMOOTHQUANT: _quantised(("mul", _X, _SCALE)),
        UpstreamKernel.ADD_RMSNORM2D_RDQUANT: (
            _SUMMED,
            *_quantised(("mul", _normed(_SUMMED), _GAIN)),
        ),
        UpstreamKernel.BATCHED_TRANSPOSE: (_X,),
    }
)
"""What each kernel computes: its results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A kernel of CK Tile's, and what of the program it reads."""

    kernel: UpstreamKernel
    operands: tuple[str, ...]
    """The names of x, y, gain and bias: as many as it has."""
    results: tuple[str, ...]
    """The names of what it writes, in its own order."""
    epsilon: float = 0.0
    most: float = 0.0
    """What the largest of a row becomes where rows are quantised."""


def matched(function: Function) -> Match | None:
    """Return the kernel that computes a program of rows; None if there is none.

    Example:
        >>> from cklang.ir.parser import parse_function
        >>> body = "%0: f32[8] = reduce_sum(%x) {axes = [1]} return %0"
        >>> matched(parse_function(f"func @f(%x: f16[8, 9]) -> f32[8] {{ {body} }}")).kernel.value
        'reduce_sum'
    """
    written = _written(function)
    for kernel, patterns in PATTERNS.items():
        if len(patterns) != len(written):
            continue
        for names in permutations(written):
            known: dict[str, Expression] = {}
            pairs = zip(patterns, names, strict=True)
            if all(_unifies(pattern, written[name], known) for pattern, name in pairs):
                return _match(kernel, names, known)
    return None


def is_softmax(function: Function) -> bool:
    """Tell whether a program of rows is the softmax of a tensor, and nothing more."""
    written = list(_written(function).values())
    return len(written) == 1 and _unifies(_SOFTMAX, written[0], {})


def _written(function: Function) -> dict[str, Expression]:
    """Return the expression of each result, by its name."""
    definitions = function.definitions()
    return {
        result.name: _expression(_unrounded(result, definitions), definitions)
        for result in function.results
    }


def _match(
    kernel: UpstreamKernel, results: tuple[str, ...], known: dict[str, Expression]
) -> Match | None:
    numbers = {name: known.pop(name) for name in _NUMBERS if name in known}
    names = tuple(name for name in known.values() if isinstance(name, str))
    if len(set(names)) != len(known):
        return None
    floats = {name: number for name, number in numbers.items() if isinstance(number, float)}
    return Match(kernel=kernel, operands=names, results=results, **floats)


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
    operands = tuple(_expression(operand, definitions) for operand in writer.operands)
    is_move = OPS[writer.op].kind is Kind.SHAPE
    result = writer.result
    is_widened = writer.op == "cast" and result.type.dtype == f32
    if is_move or is_widened:
        return operands[0]
    return (writer.op, *operands)


def _unifies(pattern: Expression, other: Expression, known: dict[str, Expression]) -> bool:
    """Tell whether an expression is a pattern whose names stand for what ``known`` says."""
    if isinstance(pattern, str):
        leaf = float if pattern in _NUMBERS else str
        return isinstance(other, leaf) and known.setdefault(pattern, other) == other
    if not isinstance(pattern, tuple) or not isinstance(other, tuple):
        return pattern == other
    if len(pattern) != len(other) or pattern[0] != other[0]:
        return False
    return all(_unifies(*pair, known) for pair in zip(pattern[1:], other[1:], strict=True))
