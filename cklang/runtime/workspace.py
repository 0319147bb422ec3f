# SPDX-License-Identifier: MIT
"""Memory that only a call has, planned by lifetimes: what does not live together shares bytes.

A temporary lives from the first launch that uses it to the last. All of a call lie in one block,
which the stream of the call takes and gives back in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Temporary", "Workspace", "planned_workspace"]

_ALIGNMENT = 256
"""Bytes: what hipMalloc aligns to, so that a temporary is as good as memory of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Temporary:
    """A value that lives within a call."""

    bytes: int
    first: int
    """The first launch that uses it."""
    last: int

    def meets(self, other: Temporary) -> bool:
        """Whether there is a launch before and after which both are needed."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """One block of memory for all temporaries of a call."""

    bytes: int = 0
    offsets: tuple[int, ...] = ()
    """Where each temporary begins."""


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
    ends = (offset + _padded(each.bytes) for offset, each in zip(offsets, temporaries, strict=True))
    return Workspace(bytes=max(ends, default=0), offsets=tuple(offsets))


def _padded(size: int) -> int:
    return max(-(-size // _ALIGNMENT), 1) * _ALIGNMENT
