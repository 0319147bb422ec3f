# SPDX-License-Identifier: MIT
"""What clang puts into a HIP program: registration of device code, and <<<>>> launches."""

import ctypes
import struct
from collections.abc import Iterator

import numpy as np
import pytest

from cklang import emulator
from tests.support.assembly import DEVICES, assemble

pytestmark = pytest.mark.usefixtures("emulator")

_ADD = """
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  s_waitcnt lgkmcnt(0)
  global_load_dword v2, v1, s[4:5]
  s_getpc_b64 s[8:9]
  s_add_u32 s8, s8, offset@rel32@lo+4
  s_addc_u32 s9, s9, offset@rel32@hi+12
  s_load_dword s10, s[8:9], 0x0
  s_waitcnt vmcnt(0) lgkmcnt(0)
  v_add_u32 v2, s10, v2
  global_store_dword v1, v2, s[6:7]
  s_endpgm
.data
.protected offset
.globl offset
.type offset,@object
.size offset, 4
offset: .long 5
.text
"""
_MAGIC = 0x48495046
_HOST_TO_DEVICE, _DEVICE_TO_HOST = 1, 2
_INVALID_VALUE, _INVALID_SYMBOL, _INVALID_FUNCTION, _NO_BINARY = 1, 13, 98, 209


class Dim3(ctypes.Structure):
    _fields_ = [(axis, ctypes.c_uint32) for axis in "xyz"]


class FatWrapper(ctypes.Structure):
    _fields_ = [
        ("magic", ctypes.c_uint32),
        ("version", ctypes.c_uint32),
        ("bundle", ctypes.c_void_p),
        ("unused", ctypes.c_void_p),
    ]


def bundle(images: dict[str, bytes]) -> bytes:
    """A clang offload bundle of code objects by the name of their target."""
    entries = {"host-x86_64-unknown-linux-gnu-": b""}
    entries |= {f"hipv4-amdgcn-amd-amdhsa--{name}": image for name, image in images.items()}
    size = 32 + sum(24 + len(name) for name in entries)
    header, body = struct.pack("<24sQ", b"__CLANG_OFFLOAD_BUNDLE__", len(entries)), b""
    for name, image in entries.items():
        header += struct.pack("<QQQ", size + len(body), len(image), len(name)) + name.encode()
        body += image
    return header + body


class Program:
    """What the host part of a program with kernel `add` and variable `offset` does."""

    def __init__(self, images: dict[str, bytes]) -> None:
        self.api = emulator.load()
        self._bytes = ctypes.create_string_buffer(bundle(images))
        self._wrapper = FatWrapper(_MAGIC, 1, ctypes.addressof(self._bytes), None)
        self.kernel, self.variable = ctypes.c_uint64(), ctypes.c_uint32()
        self.managed = ctypes.c_void_p()
        register = getattr(self.api, "__hipRegisterFatBinary")
        register.restype = ctypes.c_void_p
        self.handle = ctypes.c_void_p(register(ctypes.byref(self._wrapper)))
        none = [None] * 5
        self.call("__hipRegisterFunction", self.handle, self.host(), b"add", b"add", -1, *none)
        variable = ctypes.byref(self.variable)
        size = ctypes.c_size_t(4)
        self.call("__hipRegisterVar", self.handle, variable, b"offset", b"offset", 0, size, 0, 0)

    def host(self) -> object:
        return ctypes.byref(self.kernel)

    def call(self, name: str, *arguments: object) -> int:
        return int(getattr(self.api, name)(*arguments) or 0)

    def launch(self, source: np.ndarray, output: np.ndarray) -> int:
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in (source, output)]
        arguments = (ctypes.c_void_p * 2)(*(ctypes.addressof(pointer) for pointer in pointers))
        nothing = ctypes.c_size_t(0)
        grid, block = Dim3(1, 1, 1), Dim3(64, 1, 1)
        # As in `add<<<1, 64>>>(source, output)`.
        assert self.call("__hipPushCallConfiguration", grid, block, nothing, None) == 0
        grid, block, stream = Dim3(), Dim3(), ctypes.c_void_p()
        shape = [ctypes.byref(part) for part in (grid, block, nothing, stream)]
        assert self.call("__hipPopCallConfiguration", *shape) == 0
        status = self.call("hipLaunchKernel", self.host(), grid, block, arguments, nothing, stream)
        return status or self.call("hipDeviceSynchronize")


@pytest.fixture(scope="module")
def images() -> dict[str, bytes]:
    return {arch: assemble({"add": _ADD}, arch) for arch in ("gfx942", "gfx90a")}


@pytest.fixture
def program(images: dict[str, bytes]) -> Iterator[Program]:
    one = Program(images)
    yield one
    one.call("hipSetDevice", 0)
    one.call("__hipUnregisterFatBinary", one.handle)
    one.call("hipGetLastError")


def arrays() -> tuple[np.ndarray, np.ndarray]:
    return np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)


@pytest.mark.parametrize("device", ["gfx942", "gfx90a"])
def test_a_launch_loads_the_code_of_its_device(program: Program, device: str) -> None:
    source, output = arrays()
    assert program.call("hipSetDevice", DEVICES.index(device)) == 0
    assert program.launch(source, output) == 0
    np.testing.assert_array_equal(output, source + 5)


def test_texture_references_are_variables(program: Program) -> None:
    """What clang registers for a texture reference is found as a variable is."""
    reference, address = ctypes.c_uint64(), ctypes.c_void_p()
    place = ctypes.byref(reference)
    program.call("__hipRegisterTexture", program.handle, place, b"offset", b"offset", 2, 0, 0)
    assert program.call("hipGetSymbolAddress", ctypes.byref(address), place) == 0
    assert ctypes.c_uint32.from_address(address.value or 0)


def test_devices_without_code_are_refused_at_the_launch(program: Program) -> None:
    program.call("hipSetDevice", DEVICES.index("gfx950"))
    assert program.launch(*arrays()) == _NO_BINARY
    assert "gfx950" in emulator.last_error()


def test_variables(program: Program) -> None:
    source, output = arrays()
    variable, value = ctypes.byref(program.variable), ctypes.c_uint32(40)
    four, zero = ctypes.c_size_t(4), ctypes.c_size_t(0)
    to_symbol = (variable, ctypes.byref(value), four, zero, _HOST_TO_DEVICE)
    assert program.call("hipMemcpyToSymbol", *to_symbol) == 0
    assert program.launch(source, output) == 0
    np.testing.assert_array_equal(output, source + 40)
    back, size, address = ctypes.c_uint32(), ctypes.c_size_t(), ctypes.c_void_p()
    from_symbol = (ctypes.byref(back), variable, four, zero, _DEVICE_TO_HOST)
    assert program.call("hipMemcpyFromSymbol", *from_symbol) == 0
    assert back.value == 40
    assert program.call("hipGetSymbolSize", ctypes.byref(size), variable) == 0
    assert size.value == 4
    assert program.call("hipGetSymbolAddress", ctypes.byref(address), variable) == 0
    assert ctypes.c_uint32.from_address(address.value or 0).value == 40
    beyond = (ctypes.byref(back), variable, four, ctypes.c_size_t(1), _DEVICE_TO_HOST)
    assert program.call("hipMemcpyFromSymbol", *beyond) == _INVALID_VALUE
    assert program.call("hipGetSymbolSize", ctypes.byref(size), program.host()) == _INVALID_SYMBOL


def test_what_a_kernel_of_the_program_takes(program: Program) -> None:
    blocks, grid, block = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    nothing = ctypes.c_size_t(0)
    name = "hipOccupancyMaxActiveBlocksPerMultiprocessor"
    assert program.call(name, ctypes.byref(blocks), program.host(), 256, nothing) == 0
    assert blocks.value == 4  # 128 registers: 4 waves on each of 4 SIMDs
    best = (ctypes.byref(grid), ctypes.byref(block), program.host(), nothing, 0)
    assert program.call("hipOccupancyMaxPotentialBlockSize", *best) == 0
    assert (grid.value, block.value) == (304, 1024)
    other = ctypes.byref(program.variable)
    assert program.call(name, ctypes.byref(blocks), other, 256, nothing) == _INVALID_FUNCTION


def test_streams_use_all_compute_units(program: Program) -> None:
    program.call("hipSetDevice", 0)
    mask = (ctypes.c_uint32 * 10)()
    assert program.call("hipExtStreamGetCUMask", None, 10, mask) == 0
    assert sum(word.bit_count() for word in mask) == 304


def test_kernels_are_gone_with_their_binary(images: dict[str, bytes]) -> None:
    program = Program(images)
    program.call("hipSetDevice", 0)
    assert program.launch(*arrays()) == 0
    program.call("__hipUnregisterFatBinary", program.handle)
    assert program.launch(*arrays()) == _INVALID_FUNCTION


def test_managed_variables_are_shared_memory(images: dict[str, bytes]) -> None:
    body = _ADD.replace("s_load_dword s10, s[8:9], 0x0", _THROUGH_POINTER)
    body = body.replace("offset: .long 5", "offset: .quad 0").replace("offset, 4", "offset, 8")
    program = Program({"gfx942": assemble({"add": body})})
    initial = ctypes.c_uint32(9)
    pointer = ctypes.c_void_p()
    program.call(
        "__hipRegisterManagedVar", program.handle, ctypes.byref(pointer), ctypes.byref(initial),
        b"offset", ctypes.c_size_t(4), 4,
    )  # fmt: skip
    shared = ctypes.c_uint32.from_address(pointer.value or 0)
    assert shared.value == 9
    shared.value = 11
    source, output = arrays()
    program.call("hipSetDevice", 0)
    assert program.launch(source, output) == 0
    np.testing.assert_array_equal(output, source + 11)
    program.call("__hipUnregisterFatBinary", program.handle)


_THROUGH_POINTER = """s_load_dwordx2 s[8:9], s[8:9], 0x0
  s_waitcnt lgkmcnt(0)
  s_load_dword s10, s[8:9], 0x0"""
