# SPDX-License-Identifier: MIT
"""Rules about the batch of a problem."""

import math

from cklang.arch import ArchSpec
from cklang.families.bounds import at_most, first, multiple
from cklang.families.gemm.key import Algorithm
from cklang.families.gemm.problem import Operand, Problem
from cklang.families.gemm.rules import RULES
from cklang.families.gemm.rules.problem import arrays_of
from cklang.families.rule import Violation
from cklang.widths import DWORD_BYTES

_MOST = 65535
"""Workgroups along y of a grid, which count the batch."""


@RULES.problem("batch", "the batch is the second axis of the grid", reads=())
def _batch(problem: Problem, algorithm: Algorithm, spec: ArchSpec) -> Violation | None:
    return at_most("the batch", math.prod(problem.batch), _MOST)


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
    return first(
        multiple(
            f"a batch stride of {name} in bytes",
            stride * operand.dtype.bytes,
            min(width * operand.dtype.bytes, DWORD_BYTES),
        )
        for name, operand, width in operands
        for stride in operand.batch
    )
