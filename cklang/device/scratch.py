# SPDX-License-Identifier: MIT
"""Device memory for intermediate results of calls that wait for their kernels.

Such a call has done with its memory when it returns, so the next call can have it at once. Taking
memory from the HIP library and giving it back takes longer than a launch.
"""

from __future__ import annotations

from collections.abc import Sequence

from cklang import forks

__all__ = ["Scratch"]

LIMIT = 64 << 20
"""Bytes that a device keeps while nobody uses them."""


class Scratch:
    """Idle memory of one device, by size; any thread may use it."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._idle: dict[int, list[int]] = {}
        self._bytes = 0
        self._lock = forks.lock()

    def __reduce__(self) -> tuple[type[Scratch], tuple[int]]:
        """Copy and pickle the limit alone: the memory stays with this device."""
        return Scratch, (self._limit,)

    def acquire(self, sizes: Sequence[int]) -> list[int | None]:
        """Return the address of idle memory for each of some sizes in bytes; None if there is none.

        What is given is no longer kept.
        """
        idle, addresses = self._idle, list[int | None]()
        with self._lock:
            for size in sizes:
                kept = idle.get(size)
                addresses.append(kept.pop() if kept else None)
                self._bytes -= size if addresses[-1] is not None else 0
        return addresses

    def keep(self, sizes: Sequence[int], addresses: Sequence[int]) -> list[int]:
        """Keep memory that nobody uses any more; return the addresses that are too much."""
        too_much = []
        with self._lock:
            for size, address in zip(sizes, addresses, strict=True):
                if self._bytes + size > self._limit:
                    too_much.append(address)
                    continue
                self._bytes += size
                self._idle.setdefault(size, []).append(address)
        return too_much
