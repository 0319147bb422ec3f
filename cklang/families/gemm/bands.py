# SPDX-License-Identifier: MIT
"""Products whose operands span more than a buffer descriptor counts, cut into bands.

A band is some rows and columns of E and a part of K, with the parts of A, B and every epilogue
operand that belong to them: a product of its own, whose addresses are those of the product moved by
a number of bytes. Bands run one after the other on one stream and share a workspace. Those of the
same rows and columns and different parts of K come one after the other: ``k_bands.py`` makes a
chain of them, in which each adds its sums to those before.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from typing import Any

from cklang.families.gemm.key import Layout
from cklang.families.gemm.problem import (
    Array,
    ComputedMatrix,
    GatheredMatrix,
    Matrix,
    Problem,
    ScaleAccess,
)
from cklang.families.gemm.stores import comes_round
from cklang.fusion.plan import MAX_READS
from cklang.ir.log_sums import COLUMNS
from cklang.types import f32
from cklang.widths import BUFFER_BYTES, PACKED_ROW

MOST_BYTES = BUFFER_BYTES
"""Every operand of a product spans fewer bytes: buffer instructions take 32-bit byte offsets, of
which CK Tile uses the lower half."""

_TILES = (256, 64, 16)
"""The most rows and columns of a tile, and fewer rows."""

_GRAIN = 1024
"""Bands are multiples of the largest power of two up to this: whole tiles and whole vectors."""
_ALIGNED = 4
"""Alignments of addresses are known up to so many bytes."""
_SPARSE_GRAIN = 4
"""Elements along K among which a sparse A has two."""

Extents = tuple[int, int, int]
"""Rows and columns of E, and K."""
Accessed = Array | ScaleAccess

_AXES = (0, 1, 2)
_K = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """One of the products that a product is cut into."""

    index: int = 0
    counts: Extents = (1, 1, 1)
    """How many bands there are along the rows, the columns and K."""
    largest: Extents = (0, 0, 0)
    """Rows, columns and K of the largest band; zeros if the product is not cut."""
    moves: tuple[int, ...] = ()
    """For each input of the problem: bytes from its address to the band's part."""
    temporary: tuple[str, int] | None = None
    """Name and bytes of the memory that the call holds for partial sums."""
    batch: int = 0
    """Which part of the batch it belongs to."""
    batches: int = 1
    """Into how many parts the batch is cut, each a launch or several."""

    @property
    def number(self) -> int:
        """Which launch of the product it is."""
        return self.batch * self.count + self.index

    @property
    def cut(self) -> str:
        """What the product is cut into, in words; empty if it is not cut."""
        parts = [f"{self.batches} parts of the batch"] if self.batches > 1 else []
        return " and ".join(parts + ([str(self)] if self.count > 1 else []))

    @property
    def count(self) -> int:
        """How many bands there are."""
        return math.prod(self.counts)

    @property
    def place(self) -> Extents:
        """Which band it is along the rows, the columns and K, from 0; those along K run first."""
        rest, k = divmod(self.index, self.counts[_K])
        rows, columns = divmod(rest, self.counts[1])
        return rows, columns, k

    def __str__(self) -> str:
        rows, columns, k = self.largest
        along = f"{self.counts[0]} along the rows, {self.counts[1]} along the columns"
        size = f"{rows} rows and {columns} columns"
        if self.counts[_K] > 1:
            along += f", {self.counts[_K]} along K, whose sums the launches add up"
            size = f"{rows} rows, {columns} columns and {k} of K"
        return (
            f"{self.count} bands of up to {size} ({along}); each operand of a band "
            f"spans fewer than {most_bytes()} bytes"
        )


WHOLE = Band()
"""A product that is not cut."""


def most_bytes() -> int:
    """Return how many bytes every operand of one product spans fewer than."""
    return MOST_BYTES


def why_k_is_whole(problem: Problem) -> str | None:
    """Return why a product cannot be cut along K, or None if it can."""
    if problem.grouped:
        return "launches of a group run in no order along K"
    if problem.ends is not None:
        return "rows, or K, are in segments, whose ends only the kernel knows"
    if any(d.kind.written for d in problem.d):
        return "the epilogue has several results, and launches of a chain have one"
    if problem.e.layout.of_blocks:
        return "the epilogue stores log-sum-exps, and launches of a chain store sums"
    if problem.e.layout.at_indices:
        return "rows of the result go to indices, and launches of a chain store rows in order"
    if len(problem.d) >= MAX_READS:
        return f"the epilogue reads {len(problem.d)} operands, and partial sums would be one more"
    return None


def bands_of(problem: Problem) -> Iterator[tuple[Problem, Band]]:
    """Yield the products that ``problem`` is cut into, in the order in which they run.

    It is the problem itself if all its operands are short enough, and if no cut makes them so.
    Then the rule ``operand-size`` refuses it.
    """
    reaches = _reaches(problem)
    largest = _clear_of_start(problem, _largest(problem, reaches))
    if largest is None:
        yield problem, WHOLE
        return
    full_extents = (problem.m, problem.n, problem.k)
    # A sum over no element is a band too.
    starts = [
        range(0, max(e, 1), max(step, 1)) for e, step in zip(full_extents, largest, strict=True)
    ]
    counts = len(starts[0]), len(starts[1]), len(starts[2])
    for index, (m, n, k) in enumerate(product(*starts)):
        rows, columns, depth = largest
        extents = min(rows, problem.m - m), min(columns, problem.n - n), min(depth, problem.k - k)
        moves = tuple(reach.move(m, n, k) for reach in reaches)
        part = _part(problem, reaches, extents, moves)
        yield part, Band(index=index, counts=counts, largest=largest, moves=moves)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reach:
    """How far an operand goes with the rows and columns of E and with K, in elements."""

    steps: Extents
    """From one block of rows, of columns, or of K, to the next."""
    bits: int
    """Bits per element."""
    blocks: Extents = (1, 1, 1)
    """Rows, columns and elements along K that share a step."""
    rest: int = 1
    """What one block spans."""

    @property
    def bytes(self) -> int:
        """As a span counts them: those of an element, one of a packed element."""
        return max(self.bits // 8, 1)

    def along(self, axis: int, extent: int) -> int:
        """Return the elements between the first and the last of an extent of ``axis``."""
        return max(-(-extent // self.blocks[axis]) - 1, 0) * self.steps[axis]

    def span(self, extents: Sequence[int]) -> int:
        """Return the elements from the first to the last, gaps included."""
        return self.rest + sum(self.along(axis, extent) for axis, extent in enumerate(extents))

    def move(self, *corner: int) -> int:
        """Return the bytes from the first element to that of row, column and K ``corner``."""
        places = zip(corner, self.blocks, self.steps, strict=True)
        return sum(at // block * step for at, block, step in places) * self.bits // 8

    def is_far(self, extents: Sequence[int]) -> bool:
        """Whether it spans more than one product may touch."""
        return self.span(extents) * self.bytes >= most_bytes()


def _reaches(problem: Problem) -> list[_Reach]:
    """Return the reach of each input of a problem."""
    reaches = [_of_side(array, problem.a, 0) for array in problem.a.arrays]
    reaches += [_of_side(array, problem.b, 1) for array in problem.b.arrays]
    reaches += _of_result(problem.e)
    for d in problem.d:
        blocks = (1, d.kind.group or 1, 1)
        reaches.append(_Reach(steps=(d.stride_m, d.stride_n, 0), bits=d.dtype.bits, blocks=blocks))
    for axis, scale in enumerate((problem.scale_a, problem.scale_b)):
        if scale is not None:
            block, block_k = scale.block
            steps, blocks = _on(axis, scale.stride, scale.stride_k), _on(axis, block, block_k, 1)
            reaches.append(_Reach(steps=steps, bits=scale.dtype.bits, blocks=blocks))
    if problem.ends is not None:
        reaches.append(_Reach(steps=(0, 0, 0), bits=problem.ends.dtype.bits, rest=problem.segments))
    return reaches


def _of_result(e: Matrix) -> Iterator[_Reach]:
    """Yield the reach of E, then of the indices of its rows if it has some."""
    columns = COLUMNS if e.layout.of_blocks else 1
    if isinstance(e, GatheredMatrix):
        # Any band may store to any row of the table.
        yield _Reach(steps=(0, 1, 0), bits=e.dtype.bits, rest=(e.table - 1) * e.stride + 1)
        yield _Reach(steps=(e.indices.stride_m, 0, 0), bits=e.indices.dtype.bits)
        return
    yield _Reach(steps=(e.stride, 1, 0), bits=e.dtype.bits, blocks=(1, columns, 1))


def _of_side(array: Array, side: Matrix | ComputedMatrix, axis: int) -> _Reach:
    """Return the reach of what lies in memory of A (its rows are axis 0) or of B (1)."""
    bits = array.dtype.bits
    if isinstance(array, GatheredMatrix):
        # Any band may read any row of the table.
        return _Reach(steps=(0, 0, 1), bits=bits, rest=(array.table - 1) * array.stride + 1)
    if isinstance(array, Matrix):
        outer, inner = array.stride, 1
    else:
        outer, inner = array.stride_m, array.stride_n
    if side.prepared is not None:
        order = side.prepared
        tile = order.n * order.k
        steps, blocks = _on(axis, outer, tile), _on(axis, order.n, order.k, 1)
        return _Reach(steps=steps, bits=bits, blocks=blocks, rest=tile)
    if array.dtype.packed:
        steps, blocks = _on(axis, outer, PACKED_ROW), _on(axis, 1, PACKED_ROW, 1)
        return _Reach(steps=steps, bits=bits, blocks=blocks, rest=PACKED_ROW)
    k_is_inner = (side.layout is Layout.ROW) == (axis == 0)
    step, along_k = (outer, inner) if k_is_inner else (inner, outer)
    return _Reach(steps=_on(axis, step, along_k), bits=bits)


def _on(axis: int, value: int, along_k: int, other: int = 0) -> Extents:
    """Return ``value`` for rows (axis 0) or columns (1), ``other`` for the other of them."""
    return (value, other, along_k) if axis == 0 else (other, value, along_k)


def _largest(problem: Problem, reaches: Sequence[_Reach]) -> Extents | None:
    """Return the extents of the largest band; None if one product does, or if no cut does."""
    full_extents = (problem.m, problem.n, problem.k)
    if problem.e.layout.of_blocks:
        # The kernel counts the elements that it does not store, too.
        reaches = [*reaches, _Reach(steps=(problem.n, 1, 0), bits=problem.e.dtype.bits)]
    if not any(reach.is_far(full_extents) for reach in reaches):
        return None
    grains = [math.lcm(*(reach.blocks[axis] for reach in reaches)) for axis in _AXES]
    grains[_K] = math.lcm(grains[_K], _SPARSE_GRAIN if problem.sparse else 1)
    axes = _cut_axes(problem)
    largest = _cut(full_extents, reaches, grains, axes)
    if largest is None or largest[_K] == problem.k:
        return largest
    # Partial sums stand in f32 or i32, packed, and are no longer than other operands.
    sums = _Reach(steps=(largest[1], 1, 0), bits=f32.bits)
    return _cut(largest, [*reaches, sums], grains, axes)


def _cut_axes(problem: Problem) -> Sequence[int]:
    """Return the axes along which a product may be cut; rows are counted through all segments."""
    if problem.ends is not None:
        return _AXES[1:_K]
    return _AXES if why_k_is_whole(problem) is None else _AXES[:_K]


def _clear_of_start(problem: Problem, largest: Extents | None) -> Extents | None:
    """Return fewer rows for bands whose stores beyond the last row would wrap.

    With no tile does any of them then, or else with small tiles.
    """
    e, columns = problem.e, problem.n
    if e.layout.of_blocks or e.layout.at_indices or problem.ends is not None:
        return largest
    m, n, k = largest or (problem.m, columns, problem.k)
    for tile in _TILES:
        rows = m
        while comes_round(rows, n, (e.stride, 1), (tile, _TILES[0]), e.dtype.bytes):
            rows = _in_units(m, rows // 2, tile)
            if not rows:
                break
        else:
            return largest if rows == m else (rows, n, k)
    # One row takes no step. Of many rows that are so far apart the rule speaks.
    return (1, n, k) if m <= _TILES[-1] else largest


def _cut(
    full_extents: Extents, reaches: Sequence[_Reach], grains: Sequence[int], axes: Sequence[int]
) -> Extents | None:
    """Return extents with which no operand is too long, or None if there are none."""
    extents = list(full_extents)
    while far := next((reach for reach in reaches if reach.is_far(extents)), None):
        cuts = [(axis, _shorter(far, extents, axis, grains[axis])) for axis in axes]
        cuts = [(axis, shorter) for axis, shorter in cuts if shorter]
        if cuts:
            # The fewest bands; along K only if that makes fewer of them.
            axis, shorter = min(cuts, key=lambda cut: -(-extents[cut[0]] // cut[1]))
        else:
            # What the other axes span is too much already: half of the longest, and go on.
            longest = sorted(axes, key=lambda axis: -far.along(axis, extents[axis]))
            cuts = [(axis, _half(far, extents, axis, grains[axis])) for axis in longest]
            axis, shorter = next(((axis, half) for axis, half in cuts if half), (0, 0))
            if shorter == 0:
                return None
        extents[axis] = shorter
    return extents[0], extents[1], extents[2]


def _shorter(far: _Reach, extents: Sequence[int], axis: int, grain: int) -> int:
    """Return the extent along ``axis`` with which ``far`` is short enough; 0 if none is."""
    others = far.span(extents) - far.along(axis, extents[axis])
    room = (most_bytes() - 1) // far.bytes - others
    if room < 0 or not far.steps[axis]:
        return 0
    return _in_units(extents[axis], (room // far.steps[axis] + 1) * far.blocks[axis], grain)


def _half(far: _Reach, extents: Sequence[int], axis: int, grain: int) -> int:
    """Return half of the extent along ``axis``; 0 if ``far`` spans no less then."""
    if not far.along(axis, extents[axis]):
        return 0
    return _in_units(extents[axis], extents[axis] // 2, grain)


def _in_units(extent: int, most: int, grain: int) -> int:
    """Return what each of as few bands as ``most`` allows has of ``extent``.

    It is a multiple of ``grain``, and of a large power of two if ``most`` is that large; 0 if
    ``most`` is less than ``grain``. Bands are as equal as whole units let them be.
    """
    unit = math.lcm(grain, min(_GRAIN, 1 << max(most.bit_length() - 1, 0)))
    unit = unit if unit <= most else grain
    most = most // unit * unit
    if most == 0:
        return 0
    count = -(-extent // most)
    return -(-extent // (count * unit)) * unit


def _part(
    problem: Problem, reaches: Sequence[_Reach], extents: Extents, moves: Sequence[int]
) -> Problem:
    """Return the product of a band."""
    m, n, k = extents
    parts: Iterator[Any] = (
        _moved(operand, reach.span(extents), move)
        for operand, reach, move in zip(problem.inputs, reaches, moves, strict=True)
    )
    a, b = (_side(side, parts) for side in (problem.a, problem.b))
    e = _matrix(parts)
    d = tuple(islice(parts, len(problem.d)))
    scales = [
        None if scale is None else next(parts) for scale in (problem.scale_a, problem.scale_b)
    ]
    return replace(
        problem,
        m=m,
        n=n,
        k=k,
        a=replace(a, rows=m, columns=k),
        b=replace(b, rows=k, columns=n),
        e=replace(e, rows=m, columns=n),
        d=d,
        scale_a=scales[0],
        scale_b=scales[1],
    )


def _side(side: Matrix | ComputedMatrix, parts: Iterator[Any]) -> Matrix | ComputedMatrix:
    if isinstance(side, ComputedMatrix):
        return replace(side, reads=tuple(islice(parts, len(side.reads))))
    return _matrix(parts)


def _matrix(parts: Iterator[Any]) -> Matrix:
    """Return the next matrix, with the indices of its rows if it has some."""
    part: Matrix = next(parts)
    return replace(part, indices=next(parts)) if isinstance(part, GatheredMatrix) else part


def _moved(operand: Accessed, span: int, move: int) -> Accessed:
    """Return an operand that begins ``move`` bytes further on and spans other elements."""
    alignment = min(operand.alignment, math.gcd(move, _ALIGNED) if move else _ALIGNED)
    if isinstance(operand, Matrix):
        return replace(operand, alignment=alignment)
    return replace(operand, alignment=alignment, span=span)
