# SPDX-License-Identifier: MIT
"""HIP: what is asked of devices and contexts, what is set on them, and how errors are named."""

import ctypes

import pytest

from cklang import emulator
from cklang.arch import arch
from tests.support.assembly import DEVICES, device_properties, hip, ok, status

pytestmark = pytest.mark.usefixtures("emulator", "first_device")

_INVALID_VALUE, _INVALID_DEVICE = "hipErrorInvalidValue", "hipErrorInvalidDevice"


@pytest.mark.parametrize("number", range(len(DEVICES)))
def test_every_way_to_ask_for_a_property_agrees(number: int) -> None:
    api, spec = hip(), arch(DEVICES[number])
    properties = ok(device_properties(number))
    name = ok(api.hipDeviceGetName(256, number))
    name = name.decode() if isinstance(name, bytes) else str(name)
    assert name == f"{spec.product} (emulated)"
    assert properties.name in (name, name.encode())
    assert ok(api.hipDeviceTotalMem(number)) == spec.memory_bytes == properties.totalGlobalMem
    status_, *capability = api.hipDeviceComputeCapability(number)
    assert status_ == api.hipError_t.hipSuccess
    assert capability == [properties.major, properties.minor]
    assert [int(spec.name[3:-2]), int(spec.name[-2], 16)] == capability
    bus = ok(api.hipDeviceGetPCIBusId(64, number))
    text = bus if isinstance(bus, bytes) else str(bus).encode()
    assert int(text.split(b":")[1], 16) == properties.pciBusID
    assert ok(api.hipDeviceGetByPCIBusId(text)) == number
    uuid = ctypes.create_string_buffer(16)
    assert emulator.load().hipDeviceGetUuid(uuid, number) == 0
    assert uuid.raw.rstrip(b"\0") == f"emu-{spec.name}".encode()


def test_properties_in_the_layout_of_before_hip_6() -> None:
    """Name, memory and LDS come first there; the target's name stands behind 33 words."""
    library, room = emulator.load(), ctypes.create_string_buffer(4096)
    for name in ("hipGetDevicePropertiesR0000", "hipGetDeviceProperties"):
        for number, target in enumerate(DEVICES):
            assert getattr(library, name)(room, number) == 0
            spec = arch(target)
            memory, lds = (int.from_bytes(room.raw[at : at + 8], "little") for at in (256, 264))
            assert (memory, lds) == (spec.memory_bytes, spec.lds_bytes)
            assert int.from_bytes(room.raw[276:280], "little") == spec.wave_size
            assert room.raw.index(target.encode(), 300) > 0
    assert library.hipGetDevicePropertiesR0600(room, 0) == 0
    assert int.from_bytes(room.raw[288:296], "little") == arch(DEVICES[0]).memory_bytes


def test_versions_and_calls_by_name() -> None:
    api, library = hip(), emulator.load()
    version = ok(api.hipRuntimeGetVersion())
    assert ok(api.hipDriverGetVersion()) == version >= 60_000_000
    assert status(api.hipInit(1)) == _INVALID_VALUE
    address = ctypes.c_void_p()
    query_status = ctypes.c_int(7)
    ask = (ctypes.byref(address), version, ctypes.c_uint64(0), ctypes.byref(query_status))
    assert library.hipGetProcAddress(b"hipMemGetInfo", *ask) == 0
    assert query_status.value == 0
    call = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(address.value or 0)
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    assert call(ctypes.addressof(free), ctypes.addressof(total)) == 0
    assert total.value == arch(DEVICES[0]).memory_bytes
    assert library.hipGetProcAddress(b"hipNone", *ask) != 0
    assert query_status.value == 1


def test_peers() -> None:
    api = hip()
    assert ok(api.hipDeviceCanAccessPeer(0, 1)) == 1
    assert ok(api.hipDeviceCanAccessPeer(0, 0)) == 0
    assert status(api.hipDeviceCanAccessPeer(0, 99)) == _INVALID_DEVICE
    attribute = api.hipDeviceP2PAttr.hipDevP2PAttrAccessSupported
    assert ok(api.hipDeviceGetP2PAttribute(attribute, 0, 1)) == 1
    arrays = api.hipDeviceP2PAttr.hipDevP2PAttrHipArrayAccessSupported
    assert ok(api.hipDeviceGetP2PAttribute(arrays, 0, 1)) == 0
    assert status(api.hipDeviceEnablePeerAccess(0, 0)) == _INVALID_DEVICE
    ok(api.hipDeviceEnablePeerAccess(1, 0))
    assert status(api.hipDeviceEnablePeerAccess(1, 0)) == "hipErrorPeerAccessAlreadyEnabled"
    ok(api.hipDeviceDisablePeerAccess(1))
    assert status(api.hipDeviceDisablePeerAccess(1)) == "hipErrorPeerAccessNotEnabled"


def test_settings_are_remembered() -> None:
    api = hip()
    stack = api.hipLimit_t.hipLimitStackSize
    before = ok(api.hipDeviceGetLimit(stack))
    ok(api.hipDeviceSetLimit(stack, before + 4096))
    assert ok(api.hipDeviceGetLimit(stack)) == before + 4096
    ok(api.hipDeviceSetLimit(stack, before))
    library, limit = emulator.load(), ctypes.c_size_t()
    unsupported_limit = 215
    assert library.hipDeviceGetLimit(ctypes.byref(limit), 99) == unsupported_limit
    caches, banks = api.hipFuncCache_t, api.hipSharedMemConfig
    for put, get, value, usual in (
        (api.hipDeviceSetCacheConfig, api.hipDeviceGetCacheConfig,
         caches.hipFuncCachePreferL1, caches.hipFuncCachePreferNone),
        (api.hipDeviceSetSharedMemConfig, api.hipDeviceGetSharedMemConfig,
         banks.hipSharedMemBankSizeEightByte, banks.hipSharedMemBankSizeDefault),
        (api.hipSetDeviceFlags, api.hipGetDeviceFlags, 4, 0),
    ):  # fmt: skip
        ok(put(value))
        assert ok(get()) == value
        ok(put(usual))
        assert ok(get()) == usual
    assert library.hipDeviceSetCacheConfig(9) == 1
    assert status(api.hipSetDeviceFlags(1 << 20)) == _INVALID_VALUE


def test_contexts_are_devices() -> None:
    api = hip()
    first = ok(api.hipCtxGetCurrent())
    second = ok(api.hipCtxCreate(0, 1))
    assert ok(api.hipCtxGetDevice()) == ok(api.hipGetDevice()) == 1
    assert int(ok(api.hipCtxGetCurrent())) == int(second) != int(first)
    ok(api.hipCtxPushCurrent(first))
    assert ok(api.hipGetDevice()) == 0
    assert int(ok(api.hipCtxPopCurrent())) == int(first)
    assert ok(api.hipGetDevice()) == 1
    ok(api.hipCtxPopCurrent())
    assert ok(api.hipGetDevice()) == 0
    assert status(api.hipCtxPopCurrent()) == "hipErrorInvalidContext"
    ok(api.hipCtxSetCurrent(second))
    assert ok(api.hipCtxGetDevice()) == 1
    ok(api.hipCtxSynchronize())
    assert ok(api.hipCtxGetFlags()) == 0
    assert ok(api.hipCtxGetApiVersion(second)) >= 1
    wild, invalid_context = ctypes.c_void_p(12), 201
    assert emulator.load().hipCtxSetCurrent(wild) == invalid_context
    ok(api.hipCtxDestroy(second))


def test_primary_contexts() -> None:
    api = hip()
    kept = ok(api.hipDevicePrimaryCtxRetain(1))
    ok(api.hipCtxSetCurrent(kept))
    assert ok(api.hipGetDevice()) == 1
    _, flags, active = api.hipDevicePrimaryCtxGetState(1)
    assert (flags, active) == (0, 1)
    assert status(api.hipDevicePrimaryCtxSetFlags(1, 0)) == "hipErrorContextAlreadyInUse"
    ok(api.hipDevicePrimaryCtxRelease(1))
    ok(api.hipDevicePrimaryCtxReset(1))
    for call in (api.hipDevicePrimaryCtxRetain, api.hipDevicePrimaryCtxReset):
        assert status(call(99)) == _INVALID_DEVICE


def test_errors_by_the_drivers_calls() -> None:
    api, library = hip(), emulator.load()
    code = int(api.hipError_t.hipErrorInvalidDevice)
    for name, wanted in (
        ("hipDrvGetErrorName", b"hipErrorInvalidDevice"),
        ("hipDrvGetErrorString", b"invalid device ordinal"),
    ):
        text = ctypes.c_char_p()
        assert getattr(library, name)(code, ctypes.byref(text)) == 0
        assert text.value == wanted
    api.hipGetLastError()
    api.hipSetDevice(99)
    assert status(api.hipExtGetLastError()) == _INVALID_DEVICE
    assert status(api.hipExtGetLastError()) == "hipSuccess"
