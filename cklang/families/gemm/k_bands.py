# SPDX-License-Identifier: MIT
"""Bands of K as a chain of launches over partial sums that stay in memory of the call's own.

With P the partial sums, [M, N] in f32 (i32 for integers), and A1, B1... the bands of A and B along
K::

    first    P = A1 B1
    middle   P = A2 B2 + P
    last     E = epilogue(An Bn + P, D...)

Each is an ordinary product whose epilogue differs, and reads one operand more. P is changed in
place: a thread reads the elements that it stores, in the distribution in which it stores them, and
before that. So do both epilogues (``epilogue.hpp``, ``direct.hpp``), and where workgroups share a
tile, one of them alone runs the epilogue.

Batches of more axes than a kernel counts over are cut into launches too. A launch has one index of
the axis that is shortest; its addresses are those of the product moved by a number of bytes.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from enum import Enum, unique
from itertools import accumulate
from operator import mul
from typing import TypeVar

from cklang.families.gemm.bands import WHOLE, Band, bands_of
from cklang.families.gemm.host import MAX_BATCH
from cklang.families.gemm.key import Algorithm, DKind, Layout
from cklang.families.gemm.plan import FusedGemm
from cklang.families.gemm.problem import (
    ComputedMatrix,
    GatheredMatrix,
    Matrix,
    Operand,
    Problem,
    ReadAccess,
)
from cklang.fusion.parts import joined
from cklang.fusion.plan import Read
from cklang.ir.infer import infer
from cklang.ir.nodes import Function, Operation, Value
from cklang.types import DType
from cklang.widths import ACCESS_BYTES, DWORD_BYTES

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


AnyAlgorithm = TypeVar("AnyAlgorithm")


@unique
class Link(Enum):
    """Which launch of a chain along K it is."""

    FIRST = "first"
    MIDDLE = "middle"
    LAST = "last"


def link_of(band: Band) -> Link | None:
    """Return which launch of a chain ``band`` is; None if its product is not cut along K."""
    _, _, place = band.place
    _, _, count = band.counts
    if count == 1:
        return None
    if place == 0:
        return Link.FIRST
    return Link.LAST if place == count - 1 else Link.MIDDLE


def launches_of(kernel: FusedGemm, problem: Problem) -> Iterator[tuple[FusedGemm, Problem, Band]]:
    """Yield the launches that compute ``problem``, in order: kernel, problem and band of each.

    They use ``kernel`` unchanged unless K is cut.
    """
    if problem.sums > 1:
        yield kernel, problem, WHOLE
        return
    links: dict[Link, tuple[FusedGemm, str]] = {}
    for part, band in _parts(problem):
        link = link_of(band)
        if link is None:
            yield kernel, part, band
            continue
        if link not in links:
            changed = kernel_of(kernel, link)
            links[link] = changed, changed.functions.digest
        own, functions = links[link]
        linked, own_band = _linked(part, band, link, f"the partial sums of {kernel.result}")
        yield own, replace(linked, functions=functions), own_band


def _parts(problem: Problem) -> Iterator[tuple[Problem, Band]]:
    """Yield the bands of each slice of a batch."""
    slices = list(slices_of(problem))
    for number, (whole, moves) in enumerate(slices):
        for part, band in bands_of(whole):
            if len(slices) > 1:
                own = band.moves or (0,) * len(moves)
                both = tuple(map(sum, zip(moves, own, strict=True)))
                band = replace(band, moves=both, batch=number, batches=len(slices))
            yield part, band


def kernel_of(kernel: FusedGemm, link: Link) -> FusedGemm:
    """Return the kernel of one launch of the chain that computes ``kernel`` in bands of K."""
    functions = dict(kernel.functions)
    own = functions["epilogue"]
    sums = replace(kernel.result.type, dtype=own.params[0].type.dtype)
    before = Read(value=Value(name=_fresh(kernel, "before"), type=sums), axes=kernel.axes)
    after = Value(name=_fresh(kernel, "sums"), type=sums)
    reads, result = {
        Link.FIRST: ((), after),
        Link.MIDDLE: ((before,), after),
        Link.LAST: ((*kernel.reads, before), kernel.result),
    }[link]
    functions["epilogue"] = _REGIONS[link](own)
    return replace(kernel, epilogue=joined(list(functions.values())), reads=reads, result=result)


def _fresh(kernel: FusedGemm, word: str) -> str:
    """Return a name that no value of the kernel has."""
    taken = {value.name for value in (*kernel.inputs, kernel.result)}
    name = f"{kernel.result.name}_{word}"
    while name in taken:
        name += "_"
    return name


def _alone(epilogue: Function) -> Function:
    """Return the region that gives the accumulator."""
    acc = epilogue.params[0]
    return replace(epilogue, params=(acc,), body=(), results=(acc,))


def _added(epilogue: Function) -> Function:
    """Return the region that adds one operand to the accumulator."""
    acc = epilogue.params[0]
    operand = replace(acc, name="d0")
    add = _sum(acc, operand, "0")
    return replace(epilogue, params=(acc, operand), body=(add,), results=(add.result,))


def _after_adding(epilogue: Function) -> Function:
    """Return the region with one operand more, its last, added to the accumulator."""
    acc, *operands = epilogue.params
    operand = replace(acc, name=f"d{len(operands)}")
    taken = {operation.result.name for operation in epilogue.body}
    # Joining numbers results anew; until then this one needs a name of its own.
    add = _sum(acc, operand, next(n for n in map(str, range(len(taken) + 1)) if n not in taken))
    instead = {acc.name: add.result}
    body = tuple(
        replace(step, operands=tuple(instead.get(x.name, x) for x in step.operands))
        for step in epilogue.body
    )
    return replace(
        epilogue,
        params=(acc, *operands, operand),
        body=(add, *body),
        results=tuple(instead.get(result.name, result) for result in epilogue.results),
    )


def _sum(x: Value, y: Value, name: str) -> Operation:
    result = Value(name=name, type=infer("add", [x.type, y.type], {}))
    return Operation(op="add", operands=(x, y), result=result)


_REGIONS = {Link.FIRST: _alone, Link.MIDDLE: _added, Link.LAST: _after_adding}
"""The epilogue of each launch, from the kernel's own."""


def _linked(part: Problem, band: Band, link: Link, name: str) -> tuple[Problem, Band]:
    """Return a band of K as a launch of its chain: E, D and their addresses are changed.

    ``name`` is that of the memory of the partial sums.
    """
    dtype = part.signature.dtype_acc
    sums, read = _sums(part, name, dtype), _sums_read(part, name, dtype)
    first = len(part.a.arrays) + len(part.b.arrays)
    last = first + 1 + len(part.d)
    sides, (e, *d), scales = band.moves[:first], band.moves[first:last], band.moves[last:]
    result, reads, own = {
        Link.FIRST: (sums, (), (0,)),
        Link.MIDDLE: (sums, (read,), (0, 0)),
        Link.LAST: (part.e, (*part.d, read), (e, *d, 0)),
    }[link]
    size = math.prod((*part.batch, part.m, part.n)) * dtype.bytes
    return (
        replace(part, e=result, d=reads),
        replace(band, moves=(*sides, *own, *scales), temporary=(name, size)),
    )


def _sums(part: Problem, name: str, dtype: DType) -> Matrix:
    """Return the partial sums of a band as E, packed."""
    return Matrix(
        value=name,
        dtype=dtype,
        alignment=DWORD_BYTES,
        batch=_batch_steps(part),
        layout=Layout.ROW,
        rows=part.m,
        columns=part.n,
        stride=part.n,
    )


def _sums_read(part: Problem, name: str, dtype: DType) -> ReadAccess:
    """Return the same as an operand of the epilogue."""
    return ReadAccess(
        value=name,
        dtype=dtype,
        alignment=DWORD_BYTES,
        batch=_batch_steps(part),
        kind=DKind.FULL,
        stride_m=part.n,
        stride_n=1,
        span=part.m * part.n,
    )


def _batch_steps(part: Problem) -> tuple[int, ...]:
    """Return the elements from one packed [M, N] to the next along each batch axis."""
    steps = accumulate(reversed(part.batch), mul, initial=part.m * part.n)
    return tuple(reversed(list(steps)[:-1]))


def fitted(algorithm: AnyAlgorithm, band: Band) -> AnyAlgorithm:
    """Return the algorithm that a user named for a kernel, for one launch of its chain.

    The launch stores and reads partial sums with the widest accesses that the stores of the
    kernel's own result allow; all else is as named.
    """
    link = link_of(band)
    if link is None or not isinstance(algorithm, Algorithm):
        return algorithm
    width = min(algorithm.vector_e, ACCESS_BYTES // DWORD_BYTES)
    if link is Link.LAST:
        return replace(algorithm, vector_d=(*algorithm.vector_d, width))
    return replace(algorithm, vector_e=width, vector_d=(width,) * (link is Link.MIDDLE))
