# SPDX-License-Identifier: MIT
"""A product as what its host shim is asked."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from cklang.families.gemm.host import GemmOperand, GemmProblem
from cklang.families.gemm.problem import (
    ComputedMatrix,
    GatheredMatrix,
    Matrix,
    PairProblem,
    Problem,
    ReadAccess,
    ScaleAccess,
)


def request_of(problem: Problem, addresses: Sequence[int]) -> GemmProblem:
    """Return what the host shim is asked of a problem, for the addresses of its inputs."""
    rest = iter(addresses)
    a, b = _side(problem.a, rest), _side(problem.b, rest)
    if isinstance(problem, PairProblem):
        b = (*b, _matrix(problem.b2, next(rest)))
    e, *places = _side(problem.e, rest)
    d = tuple(_read(operand, next(rest)) for operand in problem.d)
    scales_a, scales_b = (
        tuple(_scale(scale, rest)) for scale in (problem.scale_a, problem.scale_b)
    )
    return GemmProblem(
        m=problem.m,
        n=problem.n,
        k=problem.k,
        a=(*a, *scales_a),
        b=(*b, *scales_b),
        e=e,
        batch=problem.batch,
        d=(*d, *places),
        groups=0 if problem.ends is None else next(rest),
        group_count=problem.segments,
    )


def _side(side: Matrix | ComputedMatrix, pointers: Iterator[int]) -> tuple[GemmOperand, ...]:
    if isinstance(side, GatheredMatrix):
        table, indices = (_matrix(side, next(pointers)), _read(side.indices, next(pointers)))
        return table, replace(indices, inner=side.table)
    if isinstance(side, Matrix):
        return (_matrix(side, next(pointers)),)
    return tuple(_read(read, next(pointers)) for read in side.reads)


def _matrix(matrix: Matrix, pointer: int) -> GemmOperand:
    return GemmOperand(pointer=pointer, outer=matrix.stride, inner=1, batch=matrix.batch)


def _read(read: ReadAccess, pointer: int) -> GemmOperand:
    return GemmOperand(pointer=pointer, outer=read.stride_m, inner=read.stride_n, batch=read.batch)


def _scale(scale: ScaleAccess | None, pointers: Iterator[int]) -> Iterator[GemmOperand]:
    if scale is not None:
        yield GemmOperand(
            pointer=next(pointers), outer=scale.stride, inner=scale.stride_k, batch=scale.batch
        )
