# SPDX-License-Identifier: MIT
"""Copies of tensors into another order of axes in memory, which a kernel makes around another one.

Kernels of convolutions read and write memory with the channels last. A program that has them
elsewhere, as ``layout="nchw"`` does, asks for copies where its arrays are not so in memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from cklang.arch import ArchSpec
from cklang.device.arrays import alignment_of
from cklang.families.layout_copy.key import LayoutCopyKey, LayoutCopySignature
from cklang.families.layout_copy.lower import (
    LONGEST,
    MAX_BATCH,
    LayoutCopyRequest,
    LayoutCopyShim,
    LayoutCopySide,
    widths,
)
from cklang.families.memory_cost import memory_time
from cklang.families.stage import Stage
from cklang.families.tensor_layout import TensorLayout, packed_strides
from cklang.ir.nodes import Value
from cklang.widths import DWORD_BYTES

_REACHED = 0.75
"""The share of the memory's published rate that copies get: by the clock, copies of 100 MB to 4 GB
on an MI300X, of odd extents too."""

_MICROSECONDS = 1e6
"""In a second."""

_REACH = 1 << 30
"""Bytes along one axis of a tile; both together stay within a buffer descriptor's 2^31."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Axis:
    extent: int
    source: int
    """Stride in elements; so for ``target``."""
    target: int


_NO_AXIS = _Axis(extent=1, source=0, target=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutCopy:
    """A copy of all elements of a value to other places in memory."""

    source: str
    """The name of what is read; its address is one of the call."""
    target: str
    shape: tuple[int, ...]
    bytes: int
    """Bytes per element."""
    source_strides: tuple[int, ...]
    """In elements, along the axes of ``shape``."""
    target_strides: tuple[int, ...]
    source_alignment: int
    target_alignment: int
    why: str = ""
    """What it is made for, in messages."""

    @property
    def size(self) -> int:
        """How many bytes the elements have."""
        return math.prod(self.shape) * self.bytes

    @property
    def request(self) -> LayoutCopyRequest:
        """The copy as matrices: their columns are the source's nearest axis, rows the target's."""
        axes = self._axes()
        rows = min(axes, key=lambda axis: axis.target)
        rest = [axis for axis in axes if axis is not rows]
        columns = min(
            rest, key=lambda axis: axis.source, default=_Axis(extent=1, source=0, target=0)
        )
        batch = [axis for axis in rest if axis is not columns]
        rows, more = self._within_reach(rows)
        batch += more
        columns, more = self._within_reach(columns)
        batch += more
        return LayoutCopyRequest(
            rows=rows.extent,
            columns=columns.extent,
            batch=tuple(axis.extent for axis in batch),
            source=LayoutCopySide(
                row=rows.source, column=columns.source, batch=tuple(a.source for a in batch)
            ),
            target=LayoutCopySide(
                row=rows.target, column=columns.target, batch=tuple(a.target for a in batch)
            ),
        )

    def _within_reach(self, axis: _Axis) -> tuple[_Axis, list[_Axis]]:
        """Return an axis whose first elements a tile can address, and one of such pieces."""
        step, most = max(axis.source, axis.target), _REACH // self.bytes
        steps = min(axis.extent, LONGEST[self.bytes]) - 1
        if steps * step <= most:
            return axis, []
        longest = most // step + 1
        piece = next(n for n in range(longest, 0, -1) if axis.extent % n == 0)
        outer = _Axis(
            extent=axis.extent // piece, source=axis.source * piece, target=axis.target * piece
        )
        return replace(axis, extent=piece), [outer]

    def _axes(self) -> list[_Axis]:
        """Return the axes, outermost of the target first; axes that run on in both are merged."""
        extents_and_strides = zip(self.shape, self.source_strides, self.target_strides, strict=True)
        axes = [_Axis(extent=n, source=s, target=t) for n, s, t in extents_and_strides if n > 1]
        merged: list[_Axis] = []
        for axis in sorted(axes, key=lambda axis: -axis.target):
            outer = merged[-1] if merged else None
            if (
                outer
                and outer.source == axis.source * axis.extent
                and outer.target == axis.target * axis.extent
            ):
                merged[-1] = replace(axis, extent=outer.extent * axis.extent)
            else:
                merged.append(axis)
        return merged or [_NO_AXIS]

    def key(self, spec: ArchSpec) -> LayoutCopyKey:
        """Return the kernel that moves as much at once as extents, strides and addresses allow."""
        q = self.request
        rows, columns = ((q.rows, q.source.row), (q.columns, q.source.column))
        loads = self._width(columns, [rows, *zip(q.batch, q.source.batch, strict=True)])
        rows, columns = ((q.rows, q.target.row), (q.columns, q.target.column))
        stores = self._width(rows, [columns, *zip(q.batch, q.target.batch, strict=True)])
        loads = loads if self.source_alignment % DWORD_BYTES == 0 else 1
        stores = stores if self.target_alignment % DWORD_BYTES == 0 else 1
        signature = LayoutCopySignature(bytes=self.bytes, source_vector=loads, target_vector=stores)
        return LayoutCopyKey(signature, None, spec.name)

    def predicted(self, spec: ArchSpec) -> float:
        """Return how long the copy takes, in µs."""
        rate = _REACHED * spec.memory_bytes_per_second
        return memory_time(0, spec) + 2 * self.size / rate * _MICROSECONDS

    def stages(self, spec: ArchSpec, why: str) -> tuple[Stage, ...]:
        """Return the launches that make the copy; messages say ``why``.

        There are several if it has more axes than a kernel counts over.
        """
        return tuple(
            replace(
                piece.stage(spec, why),
                offsets=offsets,
                temporaries={self.source: self.size, self.target: self.size},
            )
            for piece, offsets in self._pieces()
        )

    def _pieces(self) -> Iterator[tuple[LayoutCopy, tuple[int, int]]]:
        """Yield copies of few axes, and by how many bytes their addresses move."""
        if len(self.request.batch) <= MAX_BATCH:
            yield self, (0, 0)
            return
        places = [place for place, extent in enumerate(self.shape) if extent > 1]
        near = {
            min(places, key=lambda place: strides[place])
            for strides in (self.source_strides, self.target_strides)
        }
        cut = min((p for p in places if p not in near), key=lambda place: self.shape[place])
        steps = self.source_strides[cut] * self.bytes, self.target_strides[cut] * self.bytes
        shape, source_strides, target_strides = (
            (*numbers[:cut], *numbers[cut + 1 :])
            for numbers in (self.shape, self.source_strides, self.target_strides)
        )
        piece = replace(
            self, shape=shape, source_strides=source_strides, target_strides=target_strides
        )
        for index in range(self.shape[cut]):
            for size, (source, target) in piece._pieces():
                yield size, (source + index * steps[0], target + index * steps[1])

    def stage(self, spec: ArchSpec, why: str) -> Stage:
        """Return the launch that makes the copy; messages say ``why``."""
        return Stage(
            key=self.key(spec),
            problem=replace(self, why=why),
            shim=LayoutCopyShim,
            values=(self.source, self.target),
            written=frozenset((self.target,)),
            request=self._request,
            temporaries={self.source: self.size, self.target: self.size},
        )

    def _request(self, addresses: Sequence[int]) -> LayoutCopyRequest:
        source, target, _ = addresses
        request = self.request
        return replace(
            request,
            source=replace(request.source, pointer=source),
            target=replace(request.target, pointer=target),
        )

    def _width(self, along: tuple[int, int], others: Sequence[tuple[int, int]]) -> int:
        """Return the elements of a vector along one axis; axes are extents and strides."""
        extent, step = along
        wide = step == 1 and all(n == 1 or s * self.bytes % DWORD_BYTES == 0 for n, s in others)
        legal = (width for width in widths(self.bytes) if width == 1 or wide)
        return next(width for width in legal if extent % width == 0)

    def __str__(self) -> str:
        shape, source, target = (
            ", ".join(map(str, numbers))
            for numbers in (self.shape, self.source_strides, self.target_strides)
        )
        text = f"[{shape}] of {self.bytes}-byte elements, strides [{source}] to [{target}]"
        return f"{text}, {self.why}" if self.why else text


# --- around a kernel


K = TypeVar("K")


@dataclass(frozen=True, slots=True, kw_only=True)
class WithCopies(Generic[K]):
    """A kernel, the layouts of its operands and results, and the copies around it."""

    kernel: K
    """An operand or result that is copied has the copy's name here."""
    storage: Mapping[str, TensorLayout]
    before: tuple[LayoutCopy, ...] = ()
    after: tuple[LayoutCopy, ...] = ()
    origins: Mapping[str, str] = field(default_factory=dict)
    """The name in the program of each copied value, by the copy's name."""

    @property
    def places(self) -> dict[str, TensorLayout]:
        """The storage by the names of the program, as the kernel itself sees it."""
        layouts = dict(self.storage)
        return layouts | {origin: layouts[name] for name, origin in self.origins.items()}


def copied_in_order(
    value: Value, order: Sequence[int | None], storage: Mapping[str, TensorLayout]
) -> tuple[Value, TensorLayout] | None:
    """Return a value in the place of ``value`` whose memory is in ``order``, if it needs one."""
    axes = [axis for axis in order if axis is not None]
    lies = storage[value.name]
    if len(axes) < len(order) or len(axes) < len(lies.shape) or 0 in lies.shape:
        return None
    last = axes[-1]
    reorders = last != len(lies.shape) - 1
    if not reorders or lies.shape[last] == 1 or lies.strides[last] == 1:
        return None
    name = "_".join([value.name, "by", *map(str, axes)])
    while name in storage:
        name += "_"
    strides = packed_strides(lies.shape, axes)
    layout = replace(lies, strides=strides, alignment=alignment_of(0))
    return Value(name=name, type=value.type), layout


def copy_of(layouts: Mapping[str, TensorLayout], source: str, target: str) -> LayoutCopy:
    """Return the copy of a value into another one of the same shape."""
    return LayoutCopy(
        source=source,
        target=target,
        shape=layouts[source].shape,
        bytes=layouts[source].dtype.bytes,
        source_strides=layouts[source].strides,
        target_strides=layouts[target].strides,
        source_alignment=layouts[source].alignment,
        target_alignment=layouts[target].alignment,
    )
