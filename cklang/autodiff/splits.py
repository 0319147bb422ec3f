# SPDX-License-Identifier: MIT
"""Tensors that a program takes apart: their gradient is the gradients of the parts, joined.

The rule of a slice pads its gradient with zeros, and the gradients of several slices are added.
Where slices share a tensor out completely, as the halves of a rotary embedding or of a gated
layer do, a join gives the same without zeros and without a sum.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cklang.ir.nodes import Operation, Value
from cklang.ir.views import SLICE, bounds_of, steps_of
from cklang.types import Extent


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Slices of one tensor along one axis, in order, without gaps and overlaps."""

    axis: int
    parts: tuple[Operation, ...]

    @property
    def source(self) -> Value:
        """What is taken apart."""
        return self.parts[0].operands[0]


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
    by_source: dict[tuple[str, int], list[Operation]] = {}
    for operation in body:
        axis = _axis(operation)
        if axis is not None:
            by_source.setdefault((operation.operands[0].name, axis), []).append(operation)
    known: dict[str, Split] = {}
    for (_, axis), slices in by_source.items():
        parts = _chain(slices, axis)
        if parts:
            first = min((part.result.name for part in parts), key=places.__getitem__)
            known[first] = Split(axis=axis, parts=parts)
    return known


def _axis(operation: Operation) -> int | None:
    """Return the only axis that a slice cuts; None if it does anything else."""
    if operation.op != SLICE:
        return None
    (source,) = operation.operands
    extents = source.type.shape
    if operation.result.type.rank != len(extents) or set(steps_of(operation)) != {1}:
        return None
    bounds = zip(bounds_of(operation, "start"), bounds_of(operation, "stop"), strict=True)
    pairs = zip(bounds, extents, strict=True)
    partial = [axis for axis, (pair, extent) in enumerate(pairs) if pair != (0, extent)]
    return partial[0] if len(partial) == 1 else None


def _chain(slices: Sequence[Operation], axis: int) -> tuple[Operation, ...]:
    """Return slices that follow each other from the start of an axis to its end, if there are."""
    by_start = {bounds_of(slice_, "start")[axis]: slice_ for slice_ in slices}
    end = slices[0].operands[0].type.shape[axis]
    place: Extent = 0
    parts: list[Operation] = []
    while place != end:
        part = by_start.pop(place, None)
        if part is None:
            return ()
        parts.append(part)
        place = bounds_of(part, "stop")[axis]
    # The others are padded, each on its own.
    return tuple(parts)
