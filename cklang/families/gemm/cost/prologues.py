# SPDX-License-Identifier: MIT
"""What it takes to compute the operands of a product as they are loaded.

An element of A is computed by each tile of its row, one of B by each tile of its column. The model
of products charges a load of the operand's own dtype; here the instructions of the function are
charged, and the bytes that its reads have beyond that.
"""

import math

from cklang.arch import ArchSpec
from cklang.families.cost_constants import fitted
from cklang.families.function_work import instructions, vector_time
from cklang.families.gemm.key import DKind, DOperand, GemmKey
from cklang.families.gemm.problem import Problem
from cklang.fusion.functions import Functions

_OF_READ = 2
"""Instructions for each read: its place, and the conversion to f32."""

_BYTES_PER_MICROSECOND = 1e6
"""Bytes per microsecond at one TB/s."""


def prologue_time(problem: Problem, key: GemmKey, functions: Functions, spec: ArchSpec) -> float:
    """Return what the functions of A and of B add to the predicted time, in µs."""
    s, tile = key.signature, key.algorithm.tile
    across = {"a": math.ceil(problem.n / tile[1]), "b": math.ceil(problem.m / tile[0])}
    elements = {"a": problem.m * problem.k, "b": problem.n * problem.k}
    time = 0.0
    for letter, reads, own in (("a", s.a, s.dtype_a), ("b", s.b, s.dtype_b)):
        if not reads:
            continue
        loads = elements[letter] * problem.products * across[letter]
        count = instructions(functions.get(f"prologue_{letter}")) + _OF_READ * len(reads)
        more = max(0, sum(map(_bytes, reads)) - own.bytes)
        time += vector_time(loads * count, spec)
        time += loads * more / (fitted(spec).constants.l2 * _BYTES_PER_MICROSECOND)
    return time


def _bytes(read: DOperand) -> int:
    """Return what a read moves for each element: rows and columns stay in the nearest cache."""
    return read.dtype.bytes if read.kind in (DKind.FULL, DKind.STRIDED) else 0
