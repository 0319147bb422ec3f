# SPDX-License-Identifier: MIT
"""Tensors that a program takes apart: their gradient is the gradients of the parts, joined.

The rule of a slice pads its gradient with zeros, and the gradients of several slices are added.
Where slices share a tensor out completely, as the halves of a rotary embedding or the weights of
several layers in one tensor do, a join gives the same without zeros and without a sum.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cklang.ir.joins import MOST_PARTS
from cklang.ir.nodes import Operation, Value
from cklang.ir.views import SLICE, bounds_of, steps_of
from cklang.types import Extent

Bounds = tuple[Extent, Extent]


@dataclass(frozen=True, slots=True)
class Split:
    """Slices of one tensor that share it out: along one axis, and each piece along others."""

    axis: int
    pieces: tuple[Operation | Split, ...]
    """In order, without gaps and overlaps."""

    @property
    def source(self) -> Value:
        """What is taken apart."""
        return next(self.parts).operands[0]

    @property
    def parts(self) -> Iterator[Operation]:
        """The slices, in order."""
        for piece in self.pieces:
            if isinstance(piece, Split):
                yield from piece.parts
            else:
                yield piece


def splits(body: Sequence[Operation]) -> Mapping[str, Split]:
    """Return the splits of a function, by the name of the part that is defined first.

    Example:
        >>> from cklang.ir.parser import parse_function
        >>> halves = parse_function('''
        ... func @halves(%x: f32[M, 8]) -> f32[M, 4], f32[M, 4] {
        ...   %a: f32[M, 4] = slice(%x)
        ...     {axes = [0, 1], start = [0, 4], stop = ["M", 8], step = [1, 1]}
        ...   %b: f32[M, 4] = slice(%x)
        ...     {axes = [0, 1], start = [0, 0], stop = ["M", 4], step = [1, 1]}
        ...   return %a, %b
        ... }''')
        >>> {name: [str(part.result) for part in split.parts]
        ...  for name, split in splits(halves.body).items()}
        {'a': ['%b', '%a']}
    """
    places = {operation.result.name: place for place, operation in enumerate(body)}
    by_source: dict[str, list[Operation]] = {}
    for operation in body:
        if operation.op == SLICE and set(steps_of(operation)) == {1}:
            by_source.setdefault(operation.operands[0].name, []).append(operation)
    known: dict[str, Split] = {}
    for slices in by_source.values():
        split = _shared_out(slices, range(slices[0].operands[0].type.rank))
        if isinstance(split, Split):
            first = min((part.result.name for part in split.parts), key=places.__getitem__)
            known[first] = split
    return known


def _shared_out(slices: Sequence[Operation], axes: Sequence[int]) -> Operation | Split | None:
    """Return how slices, which are alike along all axes but ``axes``, share a tensor out.

    None if they do not; a slice, if one has all of it.
    """
    extents = slices[0].operands[0].type.shape
    groups = {axis: _by_bounds(slices, axis) for axis in axes}
    cut = [axis for axis in axes if groups[axis].keys() != {(0, extents[axis])}]
    for axis in cut:
        others = [other for other in cut if other != axis]
        chain = _chain(list(groups[axis]), extents[axis])
        shares = [_shared_out(groups[axis][bounds], others) for bounds in chain]
        pieces = tuple(share for share in shares if share is not None)
        if chain and len(pieces) == len(chain):
            return Split(axis, pieces)
    return None if cut else slices[-1]


def _by_bounds(slices: Sequence[Operation], axis: int) -> Mapping[Bounds, Sequence[Operation]]:
    """Return slices by their bounds along an axis."""
    groups: dict[Bounds, list[Operation]] = {}
    for slice_ in slices:
        bounds = bounds_of(slice_, "start")[axis], bounds_of(slice_, "stop")[axis]
        groups.setdefault(bounds, []).append(slice_)
    return groups


def _chain(bounds: Sequence[Bounds], end: Extent) -> Sequence[Bounds]:
    """Return bounds that follow each other from 0 to the end of an axis; none if they do not."""
    stops = dict(bounds)
    chain: list[Bounds] = []
    place: Extent = 0
    while place != end:
        if place not in stops or len(chain) == MOST_PARTS:
            return ()
        chain.append((place, stops.pop(place)))
        place = chain[-1][1]
    # The others are padded, each on its own.
    return chain
