# SPDX-License-Identifier: MIT
"""Products whose operands span more than a buffer descriptor counts, cut into bands of E.

A band is some rows and columns of E with the parts of A, B and every epilogue operand that belong
to them: a product of its own, whose addresses are those of the product moved by a number of bytes.
Bands run one after the other on one stream and share a workspace.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, TypeVar

from cklang.families.gemm.key import Layout
from cklang.families.gemm.problem import Array, ComputedMatrix, Matrix, Problem, ScaleAccess
from cklang.widths import BUFFER_BYTES

__all__ = ["MOST_BYTES", "WHOLE", "Band", "bands_of", "most_bytes"]

MOST_BYTES = BUFFER_BYTES
"""Every operand of a product spans fewer bytes: buffer instructions take 32-bit byte offsets, of
which CK Tile uses the lower half."""

_GRAIN = 1024
"""Bands are multiples of the largest power of two up to this: whole tiles and whole vectors."""
_ALIGNED = 4
"""Alignments of addresses are known up to so many bytes."""

Extents = tuple[int, int]
"""Rows and columns of E."""
Accessed = Array | ScaleAccess
AnyNumber = TypeVar("AnyNumber", int, bool)


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """One of the products that a product is cut into."""

    index: int = 0
    count: int = 1
    largest: Extents = (0, 0)
    """Rows and columns of the largest band; (0, 0) if the product is not cut."""
    moves: tuple[int, ...] = ()
    """For each input of the problem: bytes from its address to the band's part."""

    def __str__(self) -> str:
        rows, columns = self.largest
        return (
            f"{self.count} bands of up to {rows} rows and {columns} columns, each operand of which "
            f"spans fewer than {most_bytes()} bytes"
        )


WHOLE = Band()
"""A product that is not cut."""


def most_bytes() -> int:
    """Return how many bytes every operand of one product spans fewer than."""
    return MOST_BYTES


def bands_of(problem: Problem) -> Iterator[tuple[Problem, Band]]:
    """Yield the products that ``problem`` is cut into, in the order in which they run.

    It is the problem itself if all its operands are short enough, and if no cut makes them so: a
    row or column that alone is too long, or a matrix that is too long along K. Then the rule
    ``operand-size`` refuses it.
    """
    reaches = _reaches(problem)
    largest = _largest(problem, reaches)
    if largest is None:
        yield problem, WHOLE
        return
    rows, columns = largest
    corners = [(m, n) for m in range(0, problem.m, rows) for n in range(0, problem.n, columns)]
    for index, (m, n) in enumerate(corners):
        extents = min(rows, problem.m - m), min(columns, problem.n - n)
        moves = tuple(reach.bytes * reach.place(m, n) for reach in reaches)
        part = _part(problem, reaches, extents, moves)
        yield part, Band(index=index, count=len(corners), largest=largest, moves=moves)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reach:
    """How far an operand goes with the rows and columns of E, in elements."""

    steps: Extents
    """From one block of rows, or of columns, to the next."""
    rest: int
    """What one row and column spans."""
    bytes: int
    """Of an element."""
    blocks: Extents = (1, 1)
    """Rows and columns that share an element; more than one for scales."""
    fixed: tuple[bool, bool] = (False, False)
    """Whether a part of the rows, or of the columns, cannot be told by an address."""

    def along(self, axis: int, extent: int) -> int:
        """Return the elements between the first and the last of ``extent`` rows or columns."""
        return (-(-extent // self.blocks[axis]) - 1) * self.steps[axis]

    def span(self, extents: Sequence[int]) -> int:
        """Return the elements from the first to the last, gaps included."""
        return self.rest + sum(self.along(axis, extent) for axis, extent in enumerate(extents))

    def place(self, *corner: int) -> int:
        """Return the elements from the first one to that of row and column ``corner``."""
        pairs = zip(corner, self.blocks, self.steps, strict=True)
        return sum(at // block * step for at, block, step in pairs)

    def is_far(self, extents: Sequence[int]) -> bool:
        """Whether it spans more than one product may touch."""
        return self.span(extents) * self.bytes >= most_bytes()


def _reaches(problem: Problem) -> list[_Reach]:
    """Return the reach of each input of a problem."""
    a, b, k = problem.a, problem.b, problem.k
    reaches = [_of_side(each, a, 0, k) for each in a.arrays]
    reaches += [_of_side(each, b, 1, k) for each in b.arrays]
    e = problem.e
    reaches.append(_Reach(steps=(e.stride, 1), rest=1, bytes=e.dtype.bytes))
    reaches += [
        _Reach(steps=(d.stride_m, d.stride_n), rest=1, bytes=d.dtype.bytes) for d in problem.d
    ]
    for axis, scale in enumerate((problem.scale_a, problem.scale_b)):
        if scale is not None:
            reaches.append(_of_scale(scale, axis, (problem.m, problem.n)[axis]))
    return reaches


def _of_side(each: Array, side: Matrix | ComputedMatrix, axis: int, k: int) -> _Reach:
    """Return the reach of what lies in memory of A (its rows are axis 0) or of B (1)."""
    if each.dtype.packed or side.prepared is not None:
        return _Reach(steps=(0, 0), rest=each.span, bytes=each.dtype.bytes, fixed=_only(axis, True))
    if isinstance(each, Matrix):
        outer, inner = each.stride, 1
    else:
        outer, inner = each.stride_m, each.stride_n
    k_is_inner = (side.layout is Layout.ROW) == (axis == 0)
    step, along_k = (outer, inner) if k_is_inner else (inner, outer)
    rest = 1 + max(k - 1, 0) * along_k
    return _Reach(steps=_only(axis, step), rest=rest, bytes=each.dtype.bytes)


def _of_scale(scale: ScaleAccess, axis: int, extent: int) -> _Reach:
    block = scale.block[0]
    rest = scale.span - (-(-extent // block) - 1) * scale.stride
    blocks = (block, 1) if axis == 0 else (1, block)
    return _Reach(
        steps=_only(axis, scale.stride), rest=rest, bytes=scale.dtype.bytes, blocks=blocks
    )


def _only(axis: int, value: AnyNumber) -> tuple[AnyNumber, AnyNumber]:
    """Return a pair with ``value`` at ``axis`` and nothing at the other."""
    nothing = type(value)()
    return (value, nothing) if axis == 0 else (nothing, value)


def _largest(problem: Problem, reaches: Sequence[_Reach]) -> Extents | None:
    """Return the extents of the largest band; None if one product does, or if no cut does."""
    extents = [problem.m, problem.n]
    if not any(reach.is_far(extents) for reach in reaches):
        return None
    grains = [math.lcm(*(reach.blocks[axis] for reach in reaches)) for axis in (0, 1)]
    fixed = [any(reach.fixed[axis] for reach in reaches) for axis in (0, 1)]
    while far := next((reach for reach in reaches if reach.is_far(extents)), None):
        open_axes = [axis for axis in (0, 1) if not fixed[axis]]
        axis = max(open_axes, key=lambda each: far.along(each, extents[each]), default=None)
        if axis is None or not far.along(axis, extents[axis]):
            return None
        shorter = _shorter(far, extents, axis, grains[axis])
        if shorter == 0:
            return None
        extents[axis] = shorter
    return extents[0], extents[1]


def _shorter(far: _Reach, extents: Sequence[int], axis: int, grain: int) -> int:
    """Return the extent along ``axis`` with which ``far`` may be short enough; 0 if none is.

    Where the other axis alone is too long, it is half of what it was, and the other one's turn
    comes next.
    """
    other = far.along(1 - axis, extents[1 - axis])
    room = (most_bytes() - 1) // far.bytes - far.rest - other
    most = extents[axis] // 2
    if room >= 0:
        most = (room // far.steps[axis] + 1) * far.blocks[axis]
    unit = math.lcm(grain, min(_GRAIN, 1 << max(most.bit_length() - 1, 0)))
    unit = unit if unit <= most else grain
    most = most // unit * unit
    if most == 0:
        return 0
    # As many bands as that takes, as equal as whole units let them be.
    count = -(-extents[axis] // most)
    return -(-extents[axis] // (count * unit)) * unit


def _part(
    problem: Problem, reaches: Sequence[_Reach], extents: Extents, moves: Sequence[int]
) -> Problem:
    """Return the product of a band."""
    m, n = extents
    parts: Iterator[Any] = (
        _moved(each, reach.span(extents), move)
        for each, reach, move in zip(problem.inputs, reaches, moves, strict=True)
    )
    a, b = (_side(side, parts) for side in (problem.a, problem.b))
    e: Matrix = next(parts)
    d = tuple(islice(parts, len(problem.d)))
    scales = [None if each is None else next(parts) for each in (problem.scale_a, problem.scale_b)]
    return replace(
        problem,
        m=m,
        n=n,
        a=replace(a, rows=m),
        b=replace(b, columns=n),
        e=replace(e, rows=m, columns=n),
        d=d,
        scale_a=scales[0],
        scale_b=scales[1],
    )


def _side(side: Matrix | ComputedMatrix, parts: Iterator[Any]) -> Matrix | ComputedMatrix:
    if isinstance(side, ComputedMatrix):
        return replace(side, reads=tuple(islice(parts, len(side.reads))))
    part: Matrix = next(parts)
    return part


def _moved(each: Accessed, span: int, move: int) -> Accessed:
    """Return an operand that begins ``move`` bytes further on and spans other elements."""
    alignment = min(each.alignment, math.gcd(move, _ALIGNED) if move else _ALIGNED)
    if isinstance(each, Matrix):
        return replace(each, alignment=alignment)
    return replace(each, alignment=alignment, span=span)
