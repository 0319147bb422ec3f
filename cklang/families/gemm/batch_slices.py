# SPDX-License-Identifier: MIT
"""Batches of more axes than a kernel counts over, cut into launches.

A launch has one index of the axis that is shortest; its addresses are those of the product moved by
a number of bytes.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TypeVar

from cklang.families.gemm.host import MAX_BATCH
from cklang.families.gemm.problem import ComputedMatrix, GatheredMatrix, Matrix, Operand, Problem

AnyOperand = TypeVar("AnyOperand", bound=Operand)
_ALIGNED = 4
"""Alignments of addresses are known up to so many bytes."""


def slices_of(problem: Problem) -> Iterator[tuple[Problem, tuple[int, ...]]]:
    """Yield the products that a product with a long batch is cut into.

    Each is a product with at most three batch axes, and how many bytes the address of each of
    ``problem.inputs`` moves. A product with a shorter batch is yielded as it is.
    """
    if len(problem.batch) <= MAX_BATCH:
        yield problem, (0,) * len(problem.inputs)
        return
    axis = problem.batch.index(min(problem.batch))
    for index in range(problem.batch[axis]):
        moves = tuple(_move(input_, axis, index) for input_ in problem.inputs)
        for part, more in slices_of(_slice(problem, axis, index)):
            yield part, tuple(map(sum, zip(moves, more, strict=True)))


def _move(operand: Operand, axis: int, index: int) -> int:
    return operand.batch[axis] * index * operand.dtype.bits // 8


def _slice(problem: Problem, axis: int, index: int) -> Problem:
    scale_a, scale_b = (
        None if scale is None else _without(scale, axis, index)
        for scale in (problem.scale_a, problem.scale_b)
    )
    return replace(
        problem,
        batch=(*problem.batch[:axis], *problem.batch[axis + 1 :]),
        a=_side(problem.a, axis, index),
        b=_side(problem.b, axis, index),
        e=_matrix(problem.e, axis, index),
        d=tuple(_without(operand, axis, index) for operand in problem.d),
        scale_a=scale_a,
        scale_b=scale_b,
    )


def _side(side: Matrix | ComputedMatrix, axis: int, index: int) -> Matrix | ComputedMatrix:
    if isinstance(side, Matrix):
        return _matrix(side, axis, index)
    return replace(side, reads=tuple(_without(operand, axis, index) for operand in side.reads))


def _matrix(matrix: Matrix, axis: int, index: int) -> Matrix:
    if isinstance(matrix, GatheredMatrix):
        indices = _without(matrix.indices, axis, index)
        return replace(_without(matrix, axis, index), indices=indices)
    return _without(matrix, axis, index)


def _without(operand: AnyOperand, axis: int, index: int) -> AnyOperand:
    """Return an operand at one index of a batch axis, which may be less aligned than its first."""
    move = _move(operand, axis, index)
    return replace(
        operand,
        batch=(*operand.batch[:axis], *operand.batch[axis + 1 :]),
        alignment=min(operand.alignment, math.gcd(move, _ALIGNED) if move else _ALIGNED),
    )
