# SPDX-License-Identifier: MIT
"""Memory that only a call has, planned by lifetimes: what does not live together shares bytes.

A temporary lives from the first launch that uses it to the last. All of a call lie in one block,
which the stream of the call takes and gives back in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cklang.errors import CkDeviceError, CkError, error

if TYPE_CHECKING:
    from cklang.device.device import Device

_OUT_OF_MEMORY = "hipErrorOutOfMemory"
_MOST_NAMED = 8
"""How many temporaries an error names, the largest ones."""

_ALIGNMENT = 256
"""Bytes: what hipMalloc aligns to, so that a temporary is as good as memory of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Temporary:
    """A value that lives within a call."""

    bytes: int
    first: int
    """The first launch that uses it."""
    last: int

    def __str__(self) -> str:
        return f"{byte_size(self.bytes)}, from launch {self.first + 1} to launch {self.last + 1}"

    def meets(self, other: Temporary) -> bool:
        """Whether there is a launch before and after which both are needed."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """One block of memory for all temporaries of a call."""

    bytes: int = 0
    offsets: tuple[int, ...] = ()
    """Where each temporary begins."""
    temporaries: tuple[tuple[str, Temporary], ...] = field(default=(), repr=False)
    """The temporaries by name, for messages; none if nobody says."""

    def explained(self, device: Device, refusal: CkDeviceError) -> CkError:
        """Return the error for a device that refused to allocate the block.

        It is D009 if so much memory is not free, else ``refusal``.
        """
        if _OUT_OF_MEMORY not in str(refusal):
            return refusal
        return error(
            "D009",
            device=device.name,
            need=byte_size(self.bytes),
            free=byte_size(device.free_bytes),
            notes=self._lines(),
        )

    def _lines(self) -> list[str]:
        largest = sorted(self.temporaries, key=lambda temporary: -temporary[1].bytes)
        lines = [f"{name}: {size}" for name, size in largest[:_MOST_NAMED]]
        rest = [entry.bytes for _, entry in largest[_MOST_NAMED:]]
        return [*lines, f"{len(rest)} more: {byte_size(sum(rest))}"] if rest else lines


def planned_workspace(temporaries: Sequence[Temporary]) -> Workspace:
    """Return where temporaries lie: the largest first, each at the lowest place that is free.

    Example:
        >>> a, b, c = (Temporary(bytes=256, first=i, last=i + 1) for i in (0, 1, 2))
        >>> planned_workspace([a, b, c])
        Workspace(bytes=512, offsets=(0, 256, 0))
    """
    offsets = [0] * len(temporaries)
    placed: list[int] = []
    order = sorted(range(len(temporaries)), key=lambda index: -temporaries[index].bytes)
    for index in order:
        mine = temporaries[index]
        taken = sorted(
            (offsets[other], offsets[other] + _padded(temporaries[other].bytes))
            for other in placed
            if mine.meets(temporaries[other])
        )
        start = 0
        for low, high in taken:
            if start + _padded(mine.bytes) <= low:
                break
            start = max(start, high)
        offsets[index] = start
        placed.append(index)
    ends = (
        offset + _padded(temporary.bytes)
        for offset, temporary in zip(offsets, temporaries, strict=True)
    )
    return Workspace(bytes=max(ends, default=0), offsets=tuple(offsets))


def byte_size(count: int) -> str:
    """Return a number of bytes as people read it.

    Example:
        >>> byte_size(1_500_000)
        '1.50 MB'
    """
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.2f} {unit}"
    return f"{count} B"


def _padded(size: int) -> int:
    return max(-(-size // _ALIGNMENT), 1) * _ALIGNMENT
