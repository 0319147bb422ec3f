# SPDX-License-Identifier: MIT
"""The check of memory: accesses that end in another allocation, beyond LDS, or are misaligned."""

import ctypes
from collections.abc import Iterator

import pytest

from cklang import emulator
from tests.support.assembly import Module, assembled, hip, ok

pytestmark = [pytest.mark.usefixtures("emulator"), pytest.mark.sanitize("memory")]

_BYTES = 1000
_START = "s_load_dwordx4 s[4:7], s[0:1], 0x0\n  v_lshlrev_b32 v1, 2, v0\n  s_waitcnt lgkmcnt(0)\n"
# The distance from the first allocation to the second, in v1, for lane 0 alone.
_DISTANCE = (
    "s_sub_u32 s8, s6, s4\n  v_mov_b32 v1, s8\n  v_mov_b32 v2, 7\n  s_mov_b64 exec, 1\n"
    "  s_mov_b32 s12, s4\n  s_mov_b32 s13, s5\n  s_mov_b32 s14, -1\n  s_mov_b32 s15, 0x20000\n"
)

#: What a kernel does with two allocations of 1000 bytes, and what the report says; "": nothing.
CASES = {
    "its own": ("global_load_dword v3, v1, s[4:5]", ""),
    "another allocation": (_DISTANCE + "global_load_dword v3, v1, s[4:5]", "its base"),
    "another allocation, stored": (_DISTANCE + "global_store_dword v1, v2, s[4:5]", "its base"),
    "another allocation, of a buffer": (
        _DISTANCE + "buffer_load_dword v3, v1, s[12:15], 0 offen",
        "its base",
    ),
    "the other's own base": ("global_load_dword v3, v1, s[6:7]", ""),
    "a byte behind": ("global_load_dword v3, v1, s[4:5] offset:748", "0 bytes behind its end"),
    "the last byte": ("s_mov_b64 exec, 1\n  global_load_ubyte v3, v1, s[4:5] offset:999", ""),
    "far behind": ("v_add_u32 v1, 0x100000, v1\n  global_load_dword v3, v1, s[4:5]", "behind its"),
    "before": ("global_load_dword v3, v1, s[4:5] offset:-4", "4 bytes before it"),
    "LDS": ("ds_read_b32 v3, v1 offset:768", ""),
    "beyond LDS": ("ds_write_b32 v1, v1 offset:772", "byte 0x400 of local memory"),
    "LDS, backwards": ("v_sub_u32 v5, 0, v1\n  ds_read_b32 v3, v5 offset:252", ""),
    "before LDS": ("v_sub_u32 v5, 0, v1\n  ds_read_b32 v3, v5 offset:248", "byte -0x4 of local"),
    "dropped by an address of -1": ("v_mov_b32 v5, -1\n  ds_write_b32 v5, v1", ""),
    "read at an address of -1": ("v_mov_b32 v5, -1\n  ds_read_u8 v3, v5", "byte -0x1 of local"),
    "a scalar load": ("s_load_dword s8, s[4:5], 0x8\n  s_waitcnt lgkmcnt(0)", ""),
    "a misaligned scalar load": (
        "s_mov_b32 s9, 6\n  s_load_dword s8, s[4:5], s9\n  s_waitcnt lgkmcnt(0)",
        "misaligned: s_load_dword loads from address 0x",
    ),
}


@pytest.fixture(scope="module")
def module() -> Module:
    bodies = {name: f"{_START}{text}\n" for name, (text, _) in CASES.items()}
    return assembled(bodies, lds=1024)


@pytest.fixture
def memory(module: Module) -> Iterator[list[int]]:
    """Two allocations, the second at the higher address: distances are unsigned."""
    ok(hip().hipSetDevice(module.device))
    pointers = [ok(hip().hipMalloc(_BYTES)) for _ in range(2)]
    yield sorted(int(pointer) for pointer in pointers)
    for pointer in pointers:
        hip().hipFree(pointer)


@pytest.mark.parametrize("name", CASES)
def test_memory(module: Module, memory: list[int], name: str) -> None:
    said = CASES[name][1]
    message = module.fault(name, *memory)
    assert bool(message) == bool(said), message
    assert said in message
    if said == "its base":
        assert "out of bounds: " in message
        assert f"the {_BYTES} bytes at 0x{memory[0]:x}" in message
        assert f"{_BYTES} bytes of device memory at 0x{memory[1]:x}" in message
        assert "the address is at byte 0 of it" in message


def test_without_the_check_another_allocation_is_memory(module: Module, memory: list[int]) -> None:
    emulator.sanitize()
    for name in ("another allocation", "beyond LDS", "a misaligned scalar load", "a byte behind"):
        assert not module.fault(name, *memory)


def test_freed_memory(module: Module) -> None:
    pointer = ok(hip().hipMalloc(_BYTES))
    address = int(pointer)
    ok(hip().hipFree(pointer))
    message = module.fault("its own", address, address)
    assert "the address is at byte 0 of memory that was freed" in message


def test_double_free() -> None:
    pointer = ok(hip().hipMalloc(_BYTES))
    address = ctypes.c_void_p(int(pointer))
    ok(hip().hipFree(pointer))
    assert hip().hipFree(address)[0].name == "hipErrorInvalidValue"
    assert "was freed before" in emulator.last_error()
    assert hip().hipFree(ctypes.c_void_p(0x1234))[0].name == "hipErrorInvalidValue"
    assert "is not the beginning of an allocation" in emulator.last_error()
