# SPDX-License-Identifier: MIT
"""The HIP library as hip-python sees it."""

import ctypes

import numpy as np
import pytest

from cklang import emulator
from cklang.arch import arch
from cklang.device import device
from tests.support.assembly import DEVICES, assembled, device_properties, hip, ok

pytestmark = pytest.mark.usefixtures("emulator")

_COPY = """
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  s_waitcnt lgkmcnt(0)
  global_load_dword v2, v1, s[4:5]
  s_waitcnt vmcnt(0)
  global_store_dword v1, v2, s[6:7]
"""


@pytest.mark.parametrize("name", DEVICES)
def test_properties_are_those_of_the_arch(name: str) -> None:
    api, spec, index = hip(), arch(name), DEVICES.index(name)
    properties = ok(device_properties(index))
    target = properties.gcnArchName
    text = target.decode() if isinstance(target, bytes) else target
    assert text.split(":")[0] == name
    assert device._emulated_target(index) == text, "read where HIP has it in its structure"
    units = spec.compute_units // spec.compute_units_per_multiprocessor
    assert properties.multiProcessorCount == units
    assert properties.sharedMemPerBlock == spec.lds_bytes
    assert properties.totalGlobalMem == spec.memory_bytes
    assert properties.warpSize == spec.wave_size
    assert properties.maxThreadsPerBlock == 1024
    assert properties.maxSharedMemoryPerMultiProcessor == spec.lds_bytes
    kind = api.hipDeviceAttribute_t.hipDeviceAttributeMultiprocessorCount
    assert ok(api.hipDeviceGetAttribute(kind, index)) == units


def test_memory() -> None:
    api = hip()
    ok(api.hipSetDevice(0))
    before = api.hipMemGetInfo()[1]
    pointer = ok(api.hipMalloc(4096))
    assert before - api.hipMemGetInfo()[1] == 4096
    data, back = np.arange(1024, dtype=np.uint32), np.zeros(1024, np.uint32)
    kinds = api.hipMemcpyKind
    ok(api.hipMemcpy(pointer, data, 4096, kinds.hipMemcpyHostToDevice))
    ok(api.hipMemcpy(back, pointer, 4096, kinds.hipMemcpyDeviceToHost))
    np.testing.assert_array_equal(data, back)
    too_long = api.hipMemcpy(pointer, np.zeros(2048, np.uint32), 8192, kinds.hipMemcpyHostToDevice)
    assert too_long[0].name == "hipErrorInvalidValue"
    ok(api.hipMemset(pointer, 7, 4096))
    ok(api.hipFree(pointer))
    assert api.hipFree(pointer)[0].name == "hipErrorInvalidValue"
    assert api.hipGetLastError()[0].name == "hipErrorInvalidValue"
    assert api.hipGetLastError()[0].name == "hipSuccess"


def test_launch_statistics_and_events() -> None:
    api = hip()
    module = assembled({"copy": _COPY})
    ok(api.hipDeviceReset())
    source, output = np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)
    stream = ok(api.hipStreamCreate())
    start, stop = ok(api.hipEventCreate()), ok(api.hipEventCreate())
    ok(api.hipEventRecord(start, stream))
    assert module.launch("copy", source, output) == "hipSuccess"
    ok(api.hipEventRecord(stop, stream))
    ok(api.hipEventSynchronize(stop))
    assert ok(api.hipEventElapsedTime(start, stop)) > 0
    np.testing.assert_array_equal(output, source)
    stats = emulator.stats(0)
    assert (stats.instructions, stats.waves, stats.workgroups) == (7, 1, 1)
    assert (stats.bytes_loaded, stats.bytes_stored) == (64 * 4 + 16, 64 * 4)
    assert emulator.fidelity(0)["global_load_dword"] == 1
    for handle in (start, stop):
        ok(api.hipEventDestroy(handle))
    ok(api.hipStreamDestroy(stream))


def test_launches_that_no_gpu_takes() -> None:
    api = hip()
    module = assembled({"copy": _COPY})
    function = ok(api.hipModuleGetFunction(module.handle, b"copy"))
    words, size = (ctypes.c_uint64 * 2)(), ctypes.c_size_t(8)
    extra = (ctypes.c_void_p * 5)(1, ctypes.addressof(words), 2, ctypes.addressof(size), 3)

    def status(*shape: int) -> str:
        return str(api.hipModuleLaunchKernel(function, *shape, None, None, extra)[0].name)

    assert status(1, 1, 1, 64, 1, 1, 0) == "hipErrorInvalidValue"  # 8 bytes of 16
    assert "16 bytes" in emulator.last_error()
    assert status(0, 1, 1, 64, 1, 1, 0) == "hipErrorInvalidConfiguration"
    assert status(1, 1, 1, 2048, 1, 1, 0) == "hipErrorInvalidConfiguration"
    assert status(1, 1, 1, 64, 1, 1, 1 << 20) == "hipErrorInvalidValue"
    assert api.hipModuleGetFunction(module.handle, b"none")[0].name == "hipErrorNotFound"
