# SPDX-License-Identifier: MIT
"""Device memory for intermediate results of calls that wait for their kernels.

Such a call has done with its memory when it returns, so the next call can have it at once. Taking
memory from the HIP library and giving it back takes longer than a launch.
"""

from __future__ import annotations

from cklang import forks

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

    def acquire(self, size: int) -> int | None:
        """Return the address of ``size`` idle bytes and keep them no longer; None if none are."""
        with self._lock:
            idle = self._idle.get(size)
            if not idle:
                return None
            self._bytes -= size
            return idle.pop()

    def keep(self, size: int, address: int) -> bool:
        """Keep memory that nobody uses any more; return whether there is room for it."""
        with self._lock:
            if self._bytes + size > self._limit:
                return False
            self._bytes += size
            self._idle.setdefault(size, []).append(address)
            return True
