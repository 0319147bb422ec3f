# SPDX-License-Identifier: MIT
"""Constants that a kernel reads from device memory, shared by the plans that have the same."""

from __future__ import annotations

import ctypes
import struct
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary, finalize

import numpy as np

from cklang import forks

if TYPE_CHECKING:
    from cklang.device.device import Device

_CELL = struct.Struct("<q")


class Cell:
    """Memory of a device that holds a number or a range of i32; it is freed with the object."""

    __slots__ = ("__weakref__", "address")

    def __init__(self, device: Device, number: int | range) -> None:
        packed = _packed(number)
        self.address = device.allocate(len(packed))
        # Freeing waits for the device, so no launch under way reads what is gone. A process that
        # ends gives everything back.
        finalize(self, device.free, self.address).atexit = False
        content = ctypes.create_string_buffer(packed, len(packed))
        device.copy_in(self.address, ctypes.addressof(content), len(packed))


def _packed(number: int | range) -> bytes:
    """Return what a cell holds: at least one word."""
    if isinstance(number, range):
        return np.arange(number.start, max(number.stop, 1), dtype=np.int32).tobytes()
    return _CELL.pack(number)


_cells: WeakValueDictionary[tuple[int, int | range], Cell] = WeakValueDictionary()
_lock = forks.lock()


def cell(device: Device, number: int | range) -> Cell:
    """Return the cell of ``device`` that holds ``number``: one for all who keep it."""
    with _lock:
        known = _cells.get((device.index, number))
        if known is None:
            known = _cells[device.index, number] = Cell(device, number)
        return known
