# SPDX-License-Identifier: MIT
"""HIP: every way to get memory, to ask about it, to copy it and to fill it."""

import ctypes
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from cklang import emulator
from tests.support.assembly import hip, kind, ok, status

pytestmark = pytest.mark.usefixtures("emulator", "first_device")

_INVALID_VALUE = "hipErrorInvalidValue"
_HOST, _DEVICE, _MANAGED = "hipMemoryTypeHost", "hipMemoryTypeDevice", "hipMemoryTypeManaged"


def bytes_at(address: object, size: int) -> np.ndarray:
    """Memory of the emulator as bytes: all of it is the host's."""
    return np.frombuffer((ctypes.c_ubyte * size).from_address(int(address)), np.uint8)  # type: ignore[call-overload]


def filled(structure: str, call: str, *arguments: object) -> Any:
    """A structure that a call writes: hip-python returns it, and before version 10 takes it."""
    api = hip()
    try:
        return ok(getattr(api, call)(*arguments))
    except TypeError:
        place = getattr(api, structure)()
        ok(getattr(api, call)(place, *arguments))
        return place


def attributes_of(pointer: object) -> Any:
    return filled("hipPointerAttribute_t", "hipPointerGetAttributes", pointer)


def _made(name: str) -> tuple[Any, Callable[[Any], Any]]:
    """256 bytes, and what gives them back."""
    api = hip()
    none = ctypes.c_void_p(None)
    return {
        "hipMalloc": lambda: (ok(api.hipMalloc(256)), api.hipFree),
        "hipExtMallocWithFlags": lambda: (ok(api.hipExtMallocWithFlags(256, 1)), api.hipFree),
        "hipMallocAsync": lambda: (
            ok(api.hipMallocAsync(256, none)),
            lambda memory: api.hipFreeAsync(memory, none),
        ),
        "hipMallocManaged": lambda: (ok(api.hipMallocManaged(256, 1)), api.hipFree),
        "hipHostMalloc": lambda: (ok(api.hipHostMalloc(256, 2)), api.hipHostFree),
        "hipHostAlloc": lambda: (ok(api.hipHostAlloc(256, 2)), api.hipFreeHost),
        "hipMemAllocHost": lambda: (ok(api.hipMemAllocHost(256)), api.hipFreeHost),
        "hipMallocHost": lambda: (ok(api.hipMallocHost(256)), api.hipHostFree),
    }[name]()


_KINDS = {
    "hipMalloc": _DEVICE,
    "hipExtMallocWithFlags": _DEVICE,
    "hipMallocAsync": _DEVICE,
    "hipMallocManaged": _MANAGED,
    "hipHostMalloc": _HOST,
    "hipHostAlloc": _HOST,
    "hipMemAllocHost": _HOST,
    "hipMallocHost": _HOST,
}


@pytest.mark.parametrize("name", _KINDS)
def test_what_is_known_of_memory(name: str) -> None:
    api, library = hip(), emulator.load()
    memory, release = _made(name)
    address = int(memory)
    inside = address + 100
    about = attributes_of(inside)
    assert about.type == getattr(api.hipMemoryType, _KINDS[name])
    assert about.device == 0
    assert bool(about.isManaged) == (name == "hipMallocManaged")
    status_, base, size = api.hipMemGetAddressRange(inside)
    assert (status_.name, int(base), size) == ("hipSuccess", address, 256)
    assert ok(api.hipMemPtrGetInfo(address)) == 256
    word = ctypes.c_uint64()
    for question, wanted in (("RANGE_START_ADDR", address), ("RANGE_SIZE", 256), ("MAPPED", 1)):
        word.value = 0
        code = getattr(api.hipPointer_attribute, f"HIP_POINTER_ATTRIBUTE_{question}")
        assert (
            library.hipPointerGetAttribute(ctypes.byref(word), int(code), ctypes.c_void_p(inside))
            == 0
        )
        assert word.value == wanted
    if _KINDS[name] == _HOST:
        assert int(ok(api.hipHostGetDevicePointer(inside, 0))) == inside
        flags = 2 if name in ("hipHostMalloc", "hipHostAlloc") else 0
        assert ok(api.hipHostGetFlags(address)) == flags
    ok(release(memory))
    ok(api.hipDeviceSynchronize())
    assert status(api.hipMemPtrGetInfo(address)) == _INVALID_VALUE
    assert status(api.hipMemGetAddressRange(address)) == "hipErrorNotFound"


def test_memory_of_the_program() -> None:
    api = hip()
    array = np.zeros(256, np.uint8)
    unknown = attributes_of(array)
    assert unknown.type not in (
        api.hipMemoryType.hipMemoryTypeHost,
        api.hipMemoryType.hipMemoryTypeDevice,
    )
    ok(api.hipHostRegister(array, 256, 0))
    assert attributes_of(array).type == api.hipMemoryType.hipMemoryTypeHost
    assert int(ok(api.hipHostGetDevicePointer(array, 0))) == array.ctypes.data
    ok(api.hipHostUnregister(array))
    assert status(api.hipHostUnregister(array)) != "hipSuccess"


def test_advice_is_checked() -> None:
    api, library = hip(), emulator.load()
    memory = ok(api.hipMallocManaged(256, 1))
    address, none = ctypes.c_void_p(int(memory)), None
    for size, wanted in ((256, 0), (257, 1), (0, 1)):
        bytes_ = ctypes.c_size_t(size)
        assert library.hipMemAdvise(address, bytes_, 1, 0) == wanted
        assert library.hipMemPrefetchAsync(address, bytes_, 0, none) == wanted
    assert library.hipStreamAttachMemAsync(none, address, ctypes.c_size_t(0), 4) == 0
    wild = ctypes.c_void_p(12)
    assert library.hipStreamAttachMemAsync(none, wild, ctypes.c_size_t(0), 4) == 1
    ok(api.hipFree(memory))


def test_memory_pools() -> None:
    api, library = hip(), emulator.load()
    usual = int(ok(api.hipDeviceGetDefaultMemPool(1)))
    assert int(ok(api.hipDeviceGetMemPool(1))) == usual
    properties = api.hipMemPoolProps()
    properties.location.type = api.hipMemLocationType.hipMemLocationTypeDevice
    properties.location.id = 1
    pool = ok(api.hipMemPoolCreate(properties))
    handle = ctypes.c_void_p(int(pool))
    ok(api.hipDeviceSetMemPool(1, pool))
    assert int(ok(api.hipDeviceGetMemPool(1))) == int(pool)
    assert status(api.hipDeviceSetMemPool(0, pool)) == _INVALID_VALUE
    ok(api.hipSetDevice(1))
    used = ctypes.c_uint64()
    attributes = api.hipMemPoolAttr
    ask = int(attributes.hipMemPoolAttrUsedMemCurrent)
    assert library.hipMemPoolGetAttribute(handle, ask, ctypes.byref(used)) == 0
    before = used.value
    memory = ok(api.hipMallocFromPoolAsync(4096, pool, None))
    assert library.hipMemPoolGetAttribute(handle, ask, ctypes.byref(used)) == 0
    assert used.value == before + 4096
    ok(api.hipMemset(memory, 3, 4096))
    assert (bytes_at(memory, 4096) == 3).all()
    ok(api.hipFreeAsync(memory, None))
    ok(api.hipMemPoolTrimTo(pool, 0))
    kept, threshold = ctypes.c_uint64(1 << 20), int(attributes.hipMemPoolAttrReleaseThreshold)
    assert library.hipMemPoolSetAttribute(handle, threshold, ctypes.byref(kept)) == 0
    assert library.hipMemPoolGetAttribute(handle, threshold, ctypes.byref(used)) == 0
    assert used.value == 1 << 20
    assert library.hipMemPoolSetAttribute(handle, 99, ctypes.byref(kept)) == 1
    assert library.hipMemPoolSetAccess(handle, None, ctypes.c_size_t(0)) == 0
    access, read_and_write = ctypes.c_int(), 3
    assert library.hipMemPoolGetAccess(ctypes.byref(access), handle, None) == 0
    assert access.value == read_and_write
    ok(api.hipMemPoolDestroy(pool))
    assert int(ok(api.hipDeviceGetMemPool(1))) == usual
    assert (
        library.hipMallocFromPoolAsync(
            ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(4), handle, None
        )
        == 1
    )
    assert library.hipMemPoolDestroy(ctypes.c_void_p(usual)) == 1


@pytest.fixture
def stream() -> Iterator[Any]:
    handle = ok(hip().hipStreamCreate())
    yield handle
    ok(hip().hipStreamDestroy(handle))


_PLAIN = {
    "hipMemcpy_spt": lambda api, to, frm, n, s: api.hipMemcpy_spt(to, frm, n, kind("Default")),
    "hipMemcpyAsync_spt": lambda api, to, frm, n, s: api.hipMemcpyAsync_spt(
        to, frm, n, kind("Default"), s
    ),
    "hipMemcpyDtoD": lambda api, to, frm, n, s: api.hipMemcpyDtoD(to, frm, n),
    "hipMemcpyDtoDAsync": lambda api, to, frm, n, s: api.hipMemcpyDtoDAsync(to, frm, n, s),
    "hipMemcpyHtoDAsync": lambda api, to, frm, n, s: api.hipMemcpyHtoDAsync(to, frm, n, s),
    "hipMemcpyPeer": lambda api, to, frm, n, s: api.hipMemcpyPeer(to, 0, frm, 1, n),
    "hipMemcpyPeerAsync": lambda api, to, frm, n, s: api.hipMemcpyPeerAsync(to, 0, frm, 1, n, s),
}  # fmt: skip


@pytest.mark.parametrize("name", _PLAIN)
def test_copies_of_one_dimension(name: str, stream: Any) -> None:
    api = hip()
    source, target = ok(api.hipMalloc(256)), ok(api.hipMalloc(256))
    bytes_at(source, 256)[:] = np.arange(256)
    bytes_at(target, 256)[:] = 7
    ok(_PLAIN[name](api, target, source, 200, stream))
    ok(api.hipStreamSynchronize(stream))
    ok(api.hipDeviceSynchronize())
    np.testing.assert_array_equal(bytes_at(target, 256)[:200], np.arange(200))
    assert (bytes_at(target, 256)[200:] == 7).all()
    if "Peer" in name:
        assert status(api.hipMemcpyPeer(target, 99, source, 0, 4)) == "hipErrorInvalidDevice"
    for memory in (source, target):
        ok(api.hipFree(memory))


_FILLS = {
    "hipMemset_spt": (1, lambda api, to, s: api.hipMemset_spt(to, 0xAB, 64)),
    "hipMemsetAsync_spt": (1, lambda api, to, s: api.hipMemsetAsync_spt(to, 0xAB, 64, s)),
    "hipMemsetD8": (1, lambda api, to, s: api.hipMemsetD8(to, 0xAB, 64)),
    "hipMemsetD8Async": (1, lambda api, to, s: api.hipMemsetD8Async(to, 0xAB, 64, s)),
    "hipMemsetD16": (2, lambda api, to, s: api.hipMemsetD16(to, 0xABCD, 32)),
    "hipMemsetD16Async": (2, lambda api, to, s: api.hipMemsetD16Async(to, 0xABCD, 32, s)),
    "hipMemsetD32Async": (4, lambda api, to, s: api.hipMemsetD32Async(to, 0x1BCD0123, 16, s)),
}  # fmt: skip
_VALUES = {1: 0xAB, 2: 0xABCD, 4: 0x1BCD0123}


@pytest.mark.parametrize("name", _FILLS)
def test_fills_of_one_dimension(name: str, stream: Any) -> None:
    api = hip()
    width, fill = _FILLS[name]
    memory = ok(api.hipMalloc(80))
    bytes_at(memory, 80)[:] = 0
    ok(fill(api, memory, stream))
    ok(api.hipStreamSynchronize(stream))
    ok(api.hipDeviceSynchronize())
    want = np.full(64 // width, _VALUES[width], f"<u{width}").view(np.uint8)
    np.testing.assert_array_equal(
        bytes_at(memory, 80), np.concatenate([want, np.zeros(16, np.uint8)])
    )
    ok(api.hipFree(memory))


def _cube(depth: int) -> tuple[Any, int, np.ndarray]:
    """Device memory of rows of 20 bytes, six a slice: address, pitch, and [slice, row, byte]."""
    api = hip()
    if depth == 1:
        status_, memory, pitch = api.hipMallocPitch(20, 6)
        assert status_.name == "hipSuccess"
    else:
        extent = api.hipExtent()
        extent.width, extent.height, extent.depth = 20, 6, depth
        pitched = filled("hipPitchedPtr", "hipMalloc3D", extent)
        memory, pitch = pitched.ptr, pitched.pitch
        assert (pitched.xsize, pitched.ysize) == (20, 6)
    assert pitch >= 20
    assert pitch % 256 == 0
    return memory, pitch, bytes_at(memory, pitch * 6 * depth).reshape(depth, 6, pitch)


def test_pitched_memory() -> None:
    api = hip()
    status_, memory, pitch = api.hipMemAllocPitch(20, 6, 4)
    assert (status_.name, pitch % 256) == ("hipSuccess", 0)
    assert ok(api.hipMemPtrGetInfo(memory)) == 6 * pitch
    assert status(api.hipMemAllocPitch(20, 6, 3)) == _INVALID_VALUE
    ok(api.hipFree(memory))


@pytest.mark.parametrize("name", ["hipMemcpy2D_spt", "hipMemcpy2DAsync_spt"])
def test_copies_of_two_dimensions(name: str, stream: Any) -> None:
    api = hip()
    memory, pitch, cells = _cube(1)
    cells[:] = 7
    rows = np.arange(6 * 32, dtype=np.uint8).reshape(6, 32)
    last = (stream,) if "Async" in name else ()
    ok(getattr(api, name)(memory, pitch, rows, 32, 12, 5, kind("HostToDevice"), *last))
    ok(api.hipStreamSynchronize(stream))
    np.testing.assert_array_equal(cells[0, :5, :12], rows[:5, :12])
    assert (cells[0, 5] == 7).all()
    assert (cells[0, :, 12:] == 7).all()
    ok(api.hipFree(memory))


def _parameters_2d(memory: object, pitch: int, rows: np.ndarray) -> Any:
    """From row 1, byte 3 of an array to row 2, byte 5 of device memory: 4 rows of 12 bytes."""
    api = hip()
    copy = api.hip_Memcpy2D()
    copy.srcMemoryType = api.hipMemoryType.hipMemoryTypeHost
    copy.srcHost, copy.srcPitch, copy.srcXInBytes, copy.srcY = rows, 32, 3, 1
    copy.dstMemoryType = api.hipMemoryType.hipMemoryTypeDevice
    copy.dstDevice, copy.dstPitch, copy.dstXInBytes, copy.dstY = memory, pitch, 5, 2
    copy.WidthInBytes, copy.Height = 12, 4
    return copy


@pytest.mark.parametrize("name", ["hipMemcpyParam2D", "hipMemcpyParam2DAsync"])
def test_copies_described_by_a_structure(name: str, stream: Any) -> None:
    api = hip()
    memory, pitch, cells = _cube(1)
    cells[:] = 7
    rows = np.arange(6 * 32, dtype=np.uint8).reshape(6, 32)
    last = (stream,) if "Async" in name else ()
    ok(getattr(api, name)(_parameters_2d(memory, pitch, rows), *last))
    ok(api.hipStreamSynchronize(stream))
    want = np.full_like(cells[0], 7)
    want[2:6, 5:17] = rows[1:5, 3:15]
    np.testing.assert_array_equal(cells[0], want)
    ok(api.hipFree(memory))


def _runtime_3d(memory: object, pitch: int, cube: np.ndarray) -> Any:
    api = hip()
    copy = api.hipMemcpy3DParms()
    copy.srcPtr.ptr, copy.srcPtr.pitch = cube, 32
    copy.srcPtr.xsize, copy.srcPtr.ysize = 32, 6
    copy.srcPos.x, copy.srcPos.y, copy.srcPos.z = 3, 1, 1
    copy.dstPtr.ptr, copy.dstPtr.pitch = memory, pitch
    copy.dstPtr.xsize, copy.dstPtr.ysize = 20, 6
    copy.dstPos.x, copy.dstPos.y, copy.dstPos.z = 5, 2, 0
    copy.extent.width, copy.extent.height, copy.extent.depth = 12, 4, 2
    copy.kind = kind("HostToDevice")
    return copy


def _driver_3d(memory: object, pitch: int, cube: np.ndarray) -> Any:
    api = hip()
    copy = api.HIP_MEMCPY3D()
    copy.srcMemoryType = api.hipMemoryType.hipMemoryTypeHost
    copy.srcHost, copy.srcPitch, copy.srcHeight = cube, 32, 6
    copy.srcXInBytes, copy.srcY, copy.srcZ = 3, 1, 1
    copy.dstMemoryType = api.hipMemoryType.hipMemoryTypeDevice
    copy.dstDevice, copy.dstPitch, copy.dstHeight = memory, pitch, 6
    copy.dstXInBytes, copy.dstY, copy.dstZ = 5, 2, 0
    copy.WidthInBytes, copy.Height, copy.Depth = 12, 4, 2
    return copy


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("hipMemcpy3D", _runtime_3d),
        ("hipMemcpy3DAsync", _runtime_3d),
        ("hipDrvMemcpy3D", _driver_3d),
        ("hipDrvMemcpy3DAsync", _driver_3d),
    ],
)
def test_copies_of_three_dimensions(name: str, parameters: Callable[..., Any], stream: Any) -> None:
    api = hip()
    memory, pitch, cells = _cube(3)
    cells[:] = 7
    cube = np.arange(3 * 6 * 32, dtype=np.uint16).astype(np.uint8).reshape(3, 6, 32)
    last = (stream,) if "Async" in name else ()
    ok(getattr(api, name)(parameters(memory, pitch, cube), *last))
    ok(api.hipStreamSynchronize(stream))
    want = np.full_like(cells, 7)
    want[:2, 2:6, 5:17] = cube[1:, 1:5, 3:15]
    np.testing.assert_array_equal(cells, want)
    ok(api.hipFree(memory))


@pytest.mark.parametrize("name", ["hipMemset2DAsync", "hipMemset3D", "hipMemset3DAsync"])
def test_fills_of_more_dimensions(name: str, stream: Any) -> None:
    api = hip()
    depth = 1 if "2D" in name else 3
    memory, pitch, cells = _cube(depth)
    cells[:] = 7
    want = np.full_like(cells, 7)
    if depth == 1:
        ok(api.hipMemset2DAsync(memory, pitch, 0x1EE, 12, 4, stream))
        want[0, :4, :12] = 0xEE
    else:
        pitched, extent = api.hipPitchedPtr(), api.hipExtent()
        pitched.ptr, pitched.pitch, pitched.xsize, pitched.ysize = memory, pitch, 20, 6
        extent.width, extent.height, extent.depth = 12, 4, 2
        last = (stream,) if "Async" in name else ()
        ok(getattr(api, name)(pitched, 0xEE, extent, *last))
        want[:2, :4, :12] = 0xEE
    ok(api.hipStreamSynchronize(stream))
    np.testing.assert_array_equal(cells, want)
    ok(api.hipFree(memory))
