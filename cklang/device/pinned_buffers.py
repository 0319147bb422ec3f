# SPDX-License-Identifier: MIT
"""What a call writes and its launch reads, in order with the stream: no call waits for another.

A stream reads host memory when it comes to the copy or the launch, which may be long after the call
has returned. Until then the memory belongs to that call: an event behind it says when it is free.
So there are as many buffers of pinned memory as calls were ever under way at once.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cklang import forks

if TYPE_CHECKING:
    from cklang.device.device import Device


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class PinnedBuffer:
    """Pinned memory of one call, which the device reads at the same address."""

    address: int
    words: Any
    """Its 64-bit words."""
    read: Any
    """The event behind the last thing that reads it."""


class PinnedBufferPool:
    """Pinned buffers that begin with one content, which calls change and release."""

    def __init__(self, device: Device, content: bytes) -> None:
        """Take what a new buffer holds, in whole 64-bit words."""
        self._device = device
        self._content = content
        self._free: list[PinnedBuffer] = []
        self._lock = forks.lock()

    def acquire(self) -> PinnedBuffer:
        """Return a buffer that nothing reads; it is new or holds what a call before put there."""
        with self._lock:
            for place, buffer in enumerate(self._free):
                if self._device.passed(buffer.read):
                    return self._free.pop(place)
        return self._new()

    def release(self, buffer: PinnedBuffer, stream: int | None) -> None:
        """Let others have ``buffer`` after what ``stream`` has by now."""
        self._device.record(buffer.read, stream)
        with self._lock:
            self._free.append(buffer)

    def _new(self) -> PinnedBuffer:
        device, size = self._device, len(self._content)
        address = device.allocate_pinned(size)
        ctypes.memmove(address, self._content, size)
        words = (ctypes.c_uint64 * (size // 8)).from_address(address)
        buffer = PinnedBuffer(address, words, device.event())
        # Freeing waits for the device. A process that ends gives everything back.
        weakref.finalize(buffer, device.free_pinned, address).atexit = False
        return buffer


Patch = tuple[int, int, int]
"""Index of a 64-bit word, index of an address, and bytes to add to that."""


class Upload:
    """A table on its way to the device, into which each call writes addresses."""

    def __init__(
        self, device: Device, rows: bytes, patches: Sequence[Patch], owners: Sequence[object] = ()
    ) -> None:
        """Take ``rows``, where each address goes in them, and what owns memory that they name."""
        self._device = device
        self._pool = PinnedBufferPool(device, rows)
        self._patches = tuple(patches)
        self._owners = tuple(owners)
        self.bytes = len(rows)
        """The size of the table."""

    def send(self, target: int, addresses: Sequence[int], stream: int | None) -> None:
        """Put the table at ``target`` once ``stream`` comes to it, with ``addresses`` in it."""
        buffer = self._pool.acquire()
        for word, address, bytes_ in self._patches:
            buffer.words[word] = addresses[address] + bytes_
        self._device.copy_in_order(target, buffer.address, self.bytes, stream)
        self._pool.release(buffer, stream)
