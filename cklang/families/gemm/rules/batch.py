# SPDX-License-Identifier: MIT
"""Rules about the batch of a problem."""

from __future__ import annotations

import math

from cklang.arch import ArchSpec
from cklang.families.bounds import multiple
from cklang.families.gemm.key import Algorithm
from cklang.families.gemm.problem import Operand, Problem
from cklang.families.gemm.rules import RULES
from cklang.families.gemm.rules.problem import arrays_of
from cklang.families.rule import Violation
from cklang.widths import DWORD_BYTES

__all__: list[str] = []

_MOST = 65535
"""Workgroups along y of a grid, which count the batch."""


@RULES.problem("batch", "the batch is the second axis of the grid", reads=())
def _batch(problem: Problem, algorithm: Algorithm, spec: ArchSpec) -> Violation | None:
    count = math.prod(problem.batch)
    if count <= _MOST:
        return None
    return Violation(what="the batch", value=str(count), bound=f"at most {_MOST}")


@RULES.problem(
    "batch-alignment",
    "every matrix of a batch starts as aligned as the vectors that it is read in",
    reads=("vector_a", "vector_b", "vector_e", "vector_d"),
)
def _batch_alignment(problem: Problem, algorithm: Algorithm, spec: ArchSpec) -> Violation | None:
    operands: list[tuple[str, Operand, int]] = [
        *arrays_of("A", problem.a, algorithm.vector_a),
        *arrays_of("B", problem.b, algorithm.vector_b),
        ("E", problem.e, algorithm.vector_e),
    ]
    reads = zip(problem.d, algorithm.vector_d, strict=False)
    operands += [(f"D{index}", d, width) for index, (d, width) in enumerate(reads)]
    for name, operand, width in operands:
        size = operand.dtype.bytes
        for stride in operand.batch:
            what = f"a batch stride of {name} in bytes"
            violation = multiple(what, stride * size, min(width * size, DWORD_BYTES))
            if violation is not None:
                return violation
    return None
