# SPDX-License-Identifier: MIT
"""Rows as their kernels see them: extents, strides, and what is asked of a host shim.

Axes that follow from each other in every tensor are one axis, so a whole tensor in memory is
mostly one long row, or rows along one axis.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest

from cklang.errors import error
from cklang.families.rowwise.functions import named_by_layout
from cklang.families.rowwise.fuse import FusedRows
from cklang.families.rowwise.host import RowwiseOperand, RowwiseRequest
from cklang.families.rowwise.key import RowwiseSignature, parts_of
from cklang.families.tensor_layout import TensorLayout, refuse_overlap
from cklang.fusion.functions import Functions
from cklang.fusion.sites import Axes
from cklang.types import DType


@dataclass(frozen=True, slots=True, kw_only=True)
class RowwiseTensor:
    """A tensor that a kernel reads or writes; strides in elements, 0 where it repeats."""

    value: str
    """Its name in the program."""
    dtype: DType
    rows: tuple[int, ...]
    """Strides along the axes that count rows."""
    elements: tuple[int, ...]
    """Strides along the axes of a row."""
    is_index: bool = False
    """Whether no memory has it: the value of an element is its place."""
    gathered: tuple[int, int] | None = None
    """For a tensor that is read at computed indices: the stride and extent of their axis."""
    offset: int = 0
    """The bytes from its address to its first element: half an element of i64."""

    @property
    def access(self) -> str:
        """How a row is read: the letter of :func:`.functions.named_by_layout`."""
        if self.is_index:
            return "x" if len(self.elements) == 1 else "y"
        if self.gathered is not None:
            return "g" if len(self.elements) == 1 else "h"
        if not any(self.elements):
            return "b"
        if self.elements == (1,):
            return "c"
        return "s" if len(self.elements) == 1 else "m"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowwiseProblem:
    """What is computed: its extents, and where each tensor lies."""

    signature: RowwiseSignature
    rows: tuple[int, ...]
    """Extents of the axes that count rows, outermost first."""
    elements: tuple[int, ...]
    """Extents of the axes of a row."""
    reads: tuple[RowwiseTensor, ...]
    outputs: tuple[RowwiseTensor, ...]
    """Outputs with a row of elements first, then those with one element per row."""
    compute_units: int = 1
    """Compute units of the GPU. Kernels without reductions share long rows among them, kernels that
    keep what rows have in common share the rows."""

    @property
    def count(self) -> int:
        """How many rows there are."""
        return math.prod(self.rows)

    @property
    def length(self) -> int:
        """The elements of a row."""
        return math.prod(self.elements)

    @property
    def tensors(self) -> tuple[RowwiseTensor, ...]:
        """All tensors in memory, by whose addresses the shim is asked."""
        return (*(operand for operand in self.reads if not operand.is_index), *self.outputs)

    @property
    def bytes(self) -> int:
        """What is read and written at least, each element once."""
        return sum(self.span(tensor) * tensor.dtype.bytes for tensor in self.tensors)

    def span(self, tensor: RowwiseTensor) -> int:
        """Return how many elements of a tensor are used: the product of the extents it runs along.

        Of one that is read at indices, each may be another.
        """
        if tensor.gathered is not None:
            return self.count * self.length
        pairs = zip((*self.rows, *self.elements), (*tensor.rows, *tensor.elements), strict=True)
        return math.prod(extent for extent, stride in pairs if stride)

    @property
    def forwards(self) -> RowwiseProblem:
        """The same with all strides positive, so that every tensor begins at its address."""

        def turned(tensor: RowwiseTensor) -> RowwiseTensor:
            rows, elements = (tuple(map(abs, row)) for row in (tensor.rows, tensor.elements))
            at = tensor.gathered
            gathered = None if at is None else (abs(at[0]), at[1])
            return replace(tensor, rows=rows, elements=elements, gathered=gathered)

        reads, outputs = (tuple(map(turned, tensors)) for tensors in (self.reads, self.outputs))
        return replace(self, reads=reads, outputs=outputs)

    def functions(self, functions: Functions) -> Functions:
        """Return a kernel's functions with names that say how each tensor is read."""
        return named_by_layout(functions, [operand.access for operand in self.reads])

    def request(self, addresses: Sequence[int]) -> RowwiseRequest:
        """Return what the host shim is asked, for the addresses of :attr:`tensors`."""
        left = iter(addresses)
        operands = tuple(
            RowwiseOperand(
                pointer=0 if operand.is_index else next(left),
                rows=operand.rows,
                elements=operand.elements,
            )
            for operand in (*self.reads, *self.outputs)
        )
        return RowwiseRequest(
            rows=self.rows,
            elements=self.elements,
            compute_units=self.compute_units,
            reads=(*operands[: len(self.reads)], *self._tables()),
            outputs=operands[len(self.reads) :],
        )

    def _tables(self) -> Iterator[RowwiseOperand]:
        """Yield stride and extent of each axis that is read at indices, in the place of a read."""
        for operand in self.reads:
            if operand.gathered is not None:
                stride, extent = operand.gathered
                yield RowwiseOperand(pointer=extent, rows=(stride,), elements=())

    def __str__(self) -> str:
        rows = "x".join(map(str, self.rows)) or "1"
        return f"[{rows}] rows of {self.length}: {self.signature.words}"


_Merged = list[tuple[int, list[int]]]
"""Extents, and the stride of each tensor along each."""


def problem_of(
    kernel: FusedRows, memory: Mapping[str, TensorLayout], dims: Mapping[str, int]
) -> RowwiseProblem:
    """Return the problem of a kernel."""
    indices = kernel.indices
    own = {name: TensorLayout.packed(value, dims) for name, value in indices.items()}
    layouts = {**memory, **own}
    _refuse_unusable(kernel, layouts)
    stages = kernel.stages
    is_element = [kernel.space.varies(axes) for axes in kernel.places]
    written = sorted(
        zip(is_element, kernel.results, kernel.places, strict=True),
        key=lambda result: not result[0],
    )
    places: list[tuple[str, Axes]] = [(read.value.name, read.axes) for read in kernel.reads]
    places += [(value.name, axes) for _, value, axes in written]
    row_axes, element_axes = _merged_axes(kernel, places, layouts)
    tensors = [
        RowwiseTensor(
            value=name,
            dtype=layouts[name].dtype,
            rows=tuple(steps[place] for _, steps in row_axes),
            elements=tuple(steps[place] for _, steps in element_axes),
            is_index=name in indices,
            gathered=_axis_of(layouts[name], axis),
        )
        for place, ((name, _), axis) in enumerate(zip_longest(places, kernel.gathered))
    ]
    reads, results = tensors[: len(kernel.reads)], tensors[len(kernel.reads) :]
    functions = named_by_layout(stages.functions, [operand.access for operand in reads])
    count = sum(is_element)
    of_elements, of_rows = _parts(results[:count]), _parts(results[count:])
    return RowwiseProblem(
        signature=RowwiseSignature(
            reductions=stages.reductions,
            integers=stages.integers,
            kept=stages.kept,
            common=stages.common,
            elements=_dtypes(of_elements),
            rows=_dtypes(of_rows),
            row_axes=len(row_axes),
            functions=functions.digest,
        ),
        rows=_lengths(row_axes),
        elements=_lengths(element_axes),
        reads=tuple(reads),
        outputs=(*of_elements, *of_rows),
    )


def _parts(tensors: Sequence[RowwiseTensor]) -> tuple[RowwiseTensor, ...]:
    """Return the outputs as which a kernel stores results."""
    return tuple(chain.from_iterable(map(_parts_of, tensors)))


def _parts_of(tensor: RowwiseTensor) -> Iterator[RowwiseTensor]:
    dtypes = parts_of(tensor.dtype)
    rows, elements = (
        tuple(len(dtypes) * stride for stride in strides)
        for strides in (tensor.rows, tensor.elements)
    )
    for place, dtype in enumerate(dtypes):
        offset = place * dtype.bytes
        yield replace(tensor, dtype=dtype, rows=rows, elements=elements, offset=offset)


def _dtypes(tensors: Sequence[RowwiseTensor]) -> tuple[DType, ...]:
    return tuple(tensor.dtype for tensor in tensors)


def _refuse_unusable(kernel: FusedRows, layouts: Mapping[str, TensorLayout]) -> None:
    for value in kernel.results:
        refuse_overlap(layouts[value.name])
    for read in kernel.reads:
        if layouts[read.value.name].prepared is not None:
            raise error("A052", name=layouts[read.value.name].name)


def _merged_axes(
    kernel: FusedRows, places: Sequence[tuple[str, Axes]], layouts: Mapping[str, TensorLayout]
) -> tuple[_Merged, _Merged]:
    """Return the axes of rows and those of elements: one of each at least."""
    strides = [_strides(layouts[name], axes) for name, axes in places]
    extents = _extents(kernel, places, layouts)
    # Rows follow each other as the memory of the first result does, or of the first operand.
    in_memory = [place for place, (name, _) in enumerate(places) if name not in kernel.indices]
    leader = strides[in_memory[0] if kernel.space.row else len(kernel.reads)]
    rows, elements = _axes(kernel.space.lead, kernel.space.row, extents, leader)
    row_axes = _merged(rows, extents, strides)
    element_axes = _merged(elements, extents, strides)
    if not kernel.space.row and row_axes:
        *row_axes, last = row_axes
        element_axes = [last]
    alone = (1, [0] * len(places))
    return row_axes or [alone], element_axes or [alone]


def _lengths(axes: _Merged) -> tuple[int, ...]:
    return tuple(extent for extent, _ in axes)


def _axis_of(layout: TensorLayout, axis: int | None) -> tuple[int, int] | None:
    """Return stride and extent of an axis that is read at indices."""
    return None if axis is None else (layout.strides[axis], layout.shape[axis])


def _extents(
    kernel: FusedRows, places: Sequence[tuple[str, Axes]], layouts: Mapping[str, TensorLayout]
) -> list[int]:
    """Return the extents of the space: each is that of a tensor that runs along it."""
    lengths: list[list[int]] = [[] for _ in kernel.space.extents]
    for name, axes in places:
        for axis, place in enumerate(axes):
            if place is not None:
                lengths[axis].append(layouts[name].shape[place])
    least = [extent if isinstance(extent, int) else 1 for extent in kernel.space.extents]
    pairs = zip(least, lengths, strict=True)
    return [0 if 0 in shapes else max([extent, *shapes]) for extent, shapes in pairs]


def _strides(layout: TensorLayout, axes: Axes) -> tuple[int, ...]:
    """Return a tensor's stride along each axis of the space."""
    return tuple(
        0 if own is None or layout.shape[own] == 1 else layout.strides[own] for own in axes
    )


def _axes(
    lead: Sequence[int], row: Sequence[int], extents: Sequence[int], leader: Sequence[int]
) -> tuple[list[int], list[int]]:
    """Return the axes of rows and of elements, those with the longest strides first."""

    def ordered(axes: Sequence[int]) -> list[int]:
        return sorted((a for a in axes if extents[a] != 1), key=lambda a: -abs(leader[a]))

    return ordered(lead), ordered(row)


def _merged(
    axes: Sequence[int], extents: Sequence[int], strides: Sequence[Sequence[int]]
) -> _Merged:
    """Return extent and each tensor's stride of the axes; those that follow each other are one."""
    merged: _Merged = []
    for axis in axes:
        steps = [stride[axis] for stride in strides]
        if merged:
            extent, outer = merged[-1]
            if all(a == b * extents[axis] for a, b in zip(outer, steps, strict=True)):
                merged[-1] = (extent * extents[axis], steps)
                continue
        merged.append((extents[axis], steps))
    return merged
