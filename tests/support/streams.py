# SPDX-License-Identifier: MIT
"""Arrays that lie on a GPU, and streams that stand still: who waits there is seen."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from cklang.device.device import Device


class OnDevice:
    """An array as a library has it whose memory is the GPU's: the emulator's is the host's."""

    def __init__(self, array: Any) -> None:
        self.array = array

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return dict(self.array.__array_interface__)

    def data_ptr(self) -> int:
        return int(self.array.ctypes.data)

    def view(self, _: object) -> OnDevice:
        """Give the bytes, as torch does for ``torch.uint8``."""
        return OnDevice(self.array.view(np.uint8))


def on_device(device: Device, array: Any) -> OnDevice:
    """Copy an array to memory of a device's own.

    It is kept, as torch's allocator does: freeing memory waits for the device.
    """
    size = max(array.nbytes, 1)
    place = device.allocate(size)
    memory = (ctypes.c_char * size).from_address(place)
    on_gpu = np.frombuffer(memory, array.dtype, array.size).reshape(array.shape)
    on_gpu[...] = array
    return OnDevice(on_gpu)


@contextmanager
def held_up(device: Device, stream: int | None = None) -> Iterator[Callable[[], bool]]:
    """Hold up a stream of a device; gives whether it still is: it goes on after a minute."""
    from hip import hip

    word = ctypes.c_uint32(0)

    def go() -> None:
        word.value = 1

    timer = threading.Timer(60, go)
    timer.start()
    device.activate()
    equal = hip.hipStreamWaitValueEq
    assert hip.hipStreamWaitValue32(stream, ctypes.addressof(word), 1, equal, 2**32 - 1)[0] == 0
    try:
        yield lambda: word.value == 0
    finally:
        go()
        timer.cancel()
        device.synchronize(stream)
