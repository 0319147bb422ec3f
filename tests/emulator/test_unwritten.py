# SPDX-License-Identifier: MIT
"""The check of device memory that is read before anybody has written it."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from cklang import emulator
from tests.support.assembly import Module, assembled, hip, ok

pytestmark = [pytest.mark.usefixtures("emulator"), pytest.mark.sanitize("uninitialized")]

_BYTES = 1024
_START = "s_load_dwordx4 s[4:7], s[0:1], 0x0\n  v_lshlrev_b32 v1, 2, v0\n  s_waitcnt lgkmcnt(0)\n"
_BODIES = {
    "copy": "global_load_dword v2, v1, s[4:5]\n  s_waitcnt vmcnt(0)\n"
    "  global_store_dword v1, v2, s[6:7]",
    "wide": "v_lshlrev_b32 v1, 4, v0\n  global_load_dwordx4 v[4:7], v1, s[4:5]\n"
    "  s_waitcnt vmcnt(0)\n  global_store_dwordx4 v1, v[4:7], s[6:7]",
    "store": "global_store_dword v1, v0, s[4:5]",
    "add": "global_atomic_add v1, v0, s[4:5]",
    "scalar": "s_load_dword s8, s[4:5], 0x40\n  s_waitcnt lgkmcnt(0)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Device memory of `_BYTES` bytes."""

    address: int

    def fill(self, size: int = _BYTES, skip: int = 0) -> None:
        ok(hip().hipMemset(ctypes.c_void_p(self.address + skip), 1, size))

    def receive(self, data: np.ndarray) -> None:
        kind = hip().hipMemcpyKind.hipMemcpyHostToDevice
        ok(hip().hipMemcpy(ctypes.c_void_p(self.address), data.ctypes.data, data.nbytes, kind))

    def receive_from(self, other: Memory, size: int = _BYTES) -> None:
        kind = hip().hipMemcpyKind.hipMemcpyDeviceToDevice
        to, source = ctypes.c_void_p(self.address), ctypes.c_void_p(other.address)
        ok(hip().hipMemcpy(to, source, size, kind))


@pytest.fixture(scope="module")
def kernels() -> Module:
    bodies = {name: f"  {_START}  {text}\n" for name, text in _BODIES.items()}
    return assembled(bodies)


@pytest.fixture
def memory(kernels: Module) -> Iterator[tuple[Memory, Memory]]:
    ok(hip().hipSetDevice(kernels.device))
    both = [ok(hip().hipMalloc(_BYTES)) for _ in range(2)]
    yield Memory(address=int(both[0])), Memory(address=int(both[1]))
    for pointer in both:
        hip().hipFree(pointer)


def launch(module: Module, name: str, memory: tuple[Memory, Memory]) -> str:
    """Run a kernel of 64 lanes; "" or what is reported."""
    return module.fault(name, *(each.address for each in memory))


@pytest.mark.parametrize("name", ["copy", "wide", "add", "scalar"])
def test_reads_of_new_memory(kernels: Module, memory: tuple[Memory, Memory], name: str) -> None:
    message = launch(kernels, name, memory)
    assert "uninitialized device memory: " in message
    assert f"kernel {name}, workgroup (0, 0, 0), wave 0" in message
    assert "the nearest allocation is 1024 bytes of device memory" in message


@pytest.mark.parametrize("name", ["copy", "wide", "add", "scalar"])
def test_filled_memory(kernels: Module, memory: tuple[Memory, Memory], name: str) -> None:
    memory[0].fill()
    assert not launch(kernels, name, memory)


def test_copies(kernels: Module, memory: tuple[Memory, Memory]) -> None:
    memory[0].receive(np.zeros(256, np.uint32))
    memory[1].receive_from(memory[0])
    assert not launch(kernels, "copy", (memory[1], memory[0]))


def test_copies_of_new_memory_stay_new(kernels: Module, memory: tuple[Memory, Memory]) -> None:
    memory[0].fill(128)
    memory[1].receive_from(memory[0])
    message = launch(kernels, "copy", (memory[1], memory[0]))
    assert "wave 0, lane 32" in message


def test_kernels_write(kernels: Module, memory: tuple[Memory, Memory]) -> None:
    assert not launch(kernels, "store", memory)
    assert not launch(kernels, "copy", memory)
    assert not launch(kernels, "copy", (memory[1], memory[0]))


def test_holes_of_structures(kernels: Module, memory: tuple[Memory, Memory]) -> None:
    """Of 16 bytes that a lane reads at a time, 4 are written."""
    for lane in range(64):
        memory[0].fill(4, 16 * lane + 8)
    assert not launch(kernels, "wide", memory)
    assert "uninitialized device memory" in launch(kernels, "copy", memory)


def test_freed_memory_is_new_again(kernels: Module) -> None:
    ok(hip().hipSetDevice(kernels.device))
    for _ in range(3):
        first, second = (ok(hip().hipMalloc(_BYTES)) for _ in range(2))
        both = (Memory(address=int(first)), Memory(address=int(second)))
        assert "uninitialized device memory" in launch(kernels, "copy", both)
        both[0].fill()
        assert not launch(kernels, "copy", both)
        hip().hipFree(first)
        hip().hipFree(second)


def test_memory_of_the_host_is_not_followed(kernels: Module) -> None:
    data = np.zeros(256, np.uint32)
    address = Memory(address=data.ctypes.data)
    assert not launch(kernels, "copy", (address, address))


def test_nothing_is_checked_unless_asked(kernels: Module) -> None:
    emulator.sanitize()
    pointer = ok(hip().hipMalloc(_BYTES))
    both = Memory(address=int(pointer))
    assert not launch(kernels, "copy", (both, both))
    hip().hipFree(pointer)
