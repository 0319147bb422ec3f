# SPDX-License-Identifier: MIT
"""Memory of the emulated GPU for tensors, whose bounds its checks know to the byte."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from cklang import emulator
from cklang.errors import error
from cklang.pretend import tensor

_addresses: set[int] = set()
_Moved = Callable[[int, int], None]
_watchers: list[_Moved] = []
"""Who is told that a storage has moved, from one address to another."""


@contextmanager
def bounded() -> Iterator[None]:
    """Let each new tensor of the GPU have memory of its own that checks know."""
    before, tensor.PLACE[0] = tensor.PLACE[0], _placed
    try:
        yield
    finally:
        tensor.PLACE[0] = before


@contextmanager
def watched(moved: _Moved) -> Iterator[None]:
    """Call ``moved`` for each storage that moves."""
    _watchers.append(moved)
    try:
        yield
    finally:
        _watchers.remove(moved)


def _placed(host: torch.Tensor) -> torch.Tensor:
    storage = host.untyped_storage()
    size, address = storage.nbytes(), storage.data_ptr()
    if not size or address in _addresses:
        return host
    library, pointer = emulator.load(), ctypes.c_void_p()
    if library.hipHostMalloc(ctypes.byref(pointer), ctypes.c_size_t(size), 0) or not pointer.value:
        raise error("E002", path="hipHostMalloc", problem=f"no memory for {size} bytes")
    ctypes.memmove(pointer.value, address, size)
    block = (ctypes.c_uint8 * size).from_address(pointer.value)
    _addresses.add(pointer.value)
    weakref.finalize(block, _free, pointer.value)
    raw = torch.frombuffer(block, dtype=torch.uint8).untyped_storage()
    shape, strides = host.shape, host.stride()
    moved = torch.empty(0, dtype=host.dtype).set_(raw, host.storage_offset(), shape, strides)
    for watcher in _watchers:
        watcher(address, pointer.value)
    return moved


def _free(address: int) -> None:
    _addresses.discard(address)
    emulator.load().hipHostFree(ctypes.c_void_p(address))
