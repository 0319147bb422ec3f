# SPDX-License-Identifier: MIT
"""How long the vector units compute the user's functions.

The cost models of families are fitted to kernels whose functions cost little. What a program gains
by computing a value once, or again in each kernel that reads it, depends on the functions.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from cklang.arch import ArchSpec
from cklang.ir.nodes import Function
from cklang.ir.ops import OPS, Kind

_WORKING = (Kind.POINTWISE, Kind.CAST, Kind.GATHER)
"""The kinds of ops that are instructions."""

_USUAL = 1
"""Instructions of an op that is not in :data:`INSTRUCTIONS`."""

INSTRUCTIONS: Mapping[str, int] = MappingProxyType(
    {
        "div": 11, "floor_divide": 42, "mod": 70, "reciprocal": 12, "clamp": 8, "sign": 6,
        "pow": 150, "exp": 16, "exp2": 7, "expm1": 44, "log": 13, "log2": 14, "log1p": 54,
        "sqrt": 18, "rsqrt": 28, "tanh": 16, "log10": 14, "erf": 44, "sin": 93, "cos": 89,
        "tan": 189, "asin": 463, "acos": 479, "atan": 420, "atan2": 418, "sinh": 114, "cosh": 88,
        "asinh": 172, "acosh": 165, "atanh": 149, "cbrt": 160, "erfc": 119, "hypot": 72, "fmod": 36,
        "elu": 6, "sigmoid": 28, "silu": 28, "gelu": 48, "gelu_tanh": 23, "softplus": 72,
        "mish": 90, "hardsigmoid": 8, "hardswish": 10, "softsign": 13,
    }
)  # fmt: skip
"""Instructions of a lane for an op that takes more than four, in f32, as
``benchmarks/op_instructions.py`` counts them on gfx942."""

_PEAK_PER_LANE = 4
"""Floating operations of a lane at the peak rate: packed, multiplication and addition."""

_MICROSECONDS = 1e6
"""In a second."""


def instructions(function: Function | None, common: Callable[[str], bool] | None = None) -> int:
    """Return how many instructions of a lane compute a function for one element.

    ``common`` tells by their names which parameters are the same for many elements: what is
    computed of these alone is computed once.

    Example:
        >>> from cklang.ir.parser import parse_function
        >>> instructions(parse_function(
        ...     "func @f(%x: f32[]) -> f32[] { %0: f32[] = add(%x, %x) return %0 }"))
        1
    """
    if function is None:
        return 0
    own = {param.name for param in function.params if common is None or not common(param.name)}
    count = 0
    for operation in function.body:
        if not any(operand.name in own for operand in operation.operands):
            continue
        own.add(operation.result.name)
        if OPS[operation.op].kind in _WORKING:
            count += INSTRUCTIONS.get(operation.op, _USUAL)
    return count


def vector_time(count: int, spec: ArchSpec) -> float:
    """Return how long all compute units take for so many instructions of a lane, in µs.

    Example:
        >>> from cklang.arch import arch
        >>> 0 < vector_time(10**9, arch("gfx942")) < 100
        True
    """
    lanes = spec.compute_units * spec.vector_flops_per_clock / _PEAK_PER_LANE
    return count / lanes / spec.clock_hz * _MICROSECONDS
