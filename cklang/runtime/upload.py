# SPDX-License-Identifier: MIT
"""Argument tables that follow a stream to the device: no call waits for the one before.

A stream reads pinned memory when it comes to the copy, which may be long after the call has
returned. Until then the memory belongs to that copy: an event behind it says when it is free. So a
table has as many pages of pinned memory as copies of it were ever under way at once.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cklang.runtime.device import Device

__all__ = ["Upload"]


@dataclass(frozen=True, slots=True)
class _Page:
    """A copy of the table in pinned memory."""

    address: int
    words: Any
    """Its 64-bit words."""
    copied: Any
    """The event behind its last copy."""


class Upload:
    """A table whose addresses each call writes; one thread at a time."""

    def __init__(self, device: Device, rows: bytes, patches: Sequence[tuple[int, int]]) -> None:
        """Take ``rows``, and (index of a 64-bit word, index of an address) for each address."""
        self._device = device
        self._rows = rows
        self._patches = tuple(patches)
        self._pages: list[_Page] = []

    @property
    def bytes(self) -> int:
        """The size of the table."""
        return len(self._rows)

    def send(self, target: int, addresses: Sequence[int], stream: int | None) -> None:
        """Put the table at ``target`` once ``stream`` comes to it, with ``addresses`` in it."""
        page = self._free_page()
        for word, address in self._patches:
            page.words[word] = addresses[address]
        self._device.copy_in_order(target, page.address, len(self._rows), stream)
        self._device.record(page.copied, stream)

    def _free_page(self) -> _Page:
        for page in self._pages:
            if self._device.passed(page.copied):
                return page
        page = self._new_page()
        self._pages.append(page)
        return page

    def _new_page(self) -> _Page:
        device = self._device
        address = device.allocate_pinned(len(self._rows))
        # Freeing waits for the device. A process that ends gives everything back.
        weakref.finalize(self, device.free_pinned, address).atexit = False
        ctypes.memmove(address, self._rows, len(self._rows))
        words = (ctypes.c_uint64 * (len(self._rows) // 8)).from_address(address)
        return _Page(address, words, device.event())
