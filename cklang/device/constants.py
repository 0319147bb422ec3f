# SPDX-License-Identifier: MIT
"""Constants that a kernel reads from device memory, shared by the plans that have the same."""

from __future__ import annotations

import ctypes
import struct
import threading
from weakref import WeakValueDictionary, finalize

from cklang.device.device import Device

__all__ = ["Cell", "cell"]

_CELL = struct.Struct("<q")


class Cell:
    """Eight bytes of a device that hold one number; they are given back with the object."""

    __slots__ = ("__weakref__", "address")

    def __init__(self, device: Device, number: int) -> None:
        self.address = device.allocate(_CELL.size)
        # Freeing waits for the device, so no launch under way reads what is gone. A process that
        # ends gives everything back.
        finalize(self, device.free, self.address).atexit = False
        content = ctypes.create_string_buffer(_CELL.pack(number), _CELL.size)
        device.copy_in(self.address, ctypes.addressof(content), _CELL.size)


_cells: WeakValueDictionary[tuple[int, int], Cell] = WeakValueDictionary()
_lock = threading.Lock()


def cell(device: Device, number: int) -> Cell:
    """Return the cell of ``device`` that holds ``number``: one for all who keep it."""
    with _lock:
        known = _cells.get((device.index, number))
        if known is None:
            known = _cells[device.index, number] = Cell(device, number)
        return known
