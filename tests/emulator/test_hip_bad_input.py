# SPDX-License-Identifier: MIT
"""Wrong calls get the error that a GPU would give; nothing that is passed ends the process."""

import ctypes
import os
import random
from pathlib import Path

import numpy as np
import pytest

from cklang import emulator
from cklang.emulator.engine.library import text_section
from tests.emulator.test_hip import _COPY
from tests.emulator.test_hip_program import bundle
from tests.support.assembly import (
    DEVICES,
    assemble,
    assembled,
    device_properties,
    hip,
    kind,
    ok,
    status,
)
from tests.support.processes import run_python

pytestmark = pytest.mark.usefixtures("emulator")


@pytest.fixture(scope="module")
def image() -> bytes:
    return assemble({"copy": _COPY})


def test_devices_that_are_not_there() -> None:
    api, count = hip(), len(DEVICES) + 100
    for number in (-1, count):
        for call in (api.hipSetDevice, device_properties, api.hipDeviceGet):
            assert status(call(number)) == "hipErrorInvalidDevice"
    assert ok(api.hipGetDevice()) in range(count)


@pytest.mark.parametrize(
    ("listed", "names"), [("1,0", ["gfx950", "gfx942"]), ("2,9,0", ["gfx90a"]), ("", [])]
)
def test_visible_devices(listed: str, names: list[str]) -> None:
    code = (
        "import ctypes, sys\nlibrary = ctypes.CDLL(sys.argv[1])\ncount = ctypes.c_int()\n"
        "status = library.hipGetDeviceCount(ctypes.byref(count))\n"
        "room = ctypes.create_string_buffer(8192)\nprint(status)\n"
        "for n in range(count.value):\n"
        "    assert library.hipGetDevicePropertiesR0600(room, n) == 0\n"
        "    print(room.raw[room.raw.index(b'gfx', 300):][:6].decode().rstrip(':'))\n"
    )
    environment = os.environ | {"HIP_VISIBLE_DEVICES": listed}
    done = run_python("-c", code, emulator.library_path(), env=environment)
    no_device = 100
    assert done.stdout.split() == [str(0 if names else no_device), *names]


def test_pointers_that_are_no_memory() -> None:
    api = hip()
    ok(api.hipSetDevice(0))
    there, gone = ok(api.hipMalloc(256)), int(ok(api.hipMalloc(256)))
    ok(api.hipFree(gone))
    for source in (None, 12, gone, 0x7FFF_FFFF_0000_0000):
        wrong = api.hipMemcpy(there, source, 4, kind("DeviceToDevice"))
        assert status(wrong) == "hipErrorInvalidValue"
        wrong = api.hipMemcpy(source, there, 4, kind("DeviceToDevice"))
        assert status(wrong) == "hipErrorInvalidValue"
        assert status(api.hipMemset(source, 0, 4)) == "hipErrorInvalidValue"
    assert status(api.hipFree(gone)) == "hipErrorInvalidValue"
    assert status(api.hipFree(int(there) + 8)) == "hipErrorInvalidValue"
    ok(api.hipFree(None))
    ok(api.hipDeviceSynchronize())  # the device is as before
    ok(api.hipFree(there))


def test_every_form_of_copy_and_fill_survives_wild_addresses() -> None:
    """From the device to an array and back: one, two and three dimensions, now and in order."""
    api = hip()
    ok(api.hipSetDevice(0))
    array, stream = np.zeros(64, np.uint8), ok(api.hipStreamCreate())
    small, large = (int(ok(api.hipMalloc(size))) for size in (256, 1 << 26))
    for address in (small, large):
        ok(api.hipFree(address))
    to_host, to_device = kind("DeviceToHost"), kind("HostToDevice")
    for wild in (12, small, large, 1 << 63, (1 << 64) - 64):
        for answer in (
            api.hipMemcpy(array, wild, 64, to_host),
            api.hipMemcpy(wild, array, 64, to_device),
            api.hipMemcpyAsync(array, wild, 64, to_host, stream),
            api.hipMemcpyAsync(wild, array, 64, to_device, stream),
            api.hipMemcpyWithStream(array, wild, 64, to_host, stream),
            api.hipMemcpyDtoH(array, wild, 64),
            api.hipMemcpyHtoD(wild, array, 64),
            api.hipMemcpyDtoHAsync(array, wild, 64, stream),
            api.hipMemcpy2D(array, 8, wild, 8, 8, 8, to_host),
            api.hipMemcpy2DAsync(wild, 8, array, 8, 8, 8, to_device, stream),
            api.hipMemset(wild, 1, 64),
            api.hipMemsetD32(wild, 1, 16),
            api.hipMemsetAsync(wild, 1, 64, stream),
            api.hipMemset2D(wild, 8, 1, 8, 8),
            api.hipHostRegister(wild, 64, 0),
        ):
            assert status(answer) == "hipErrorInvalidValue", wild
    ok(api.hipDeviceSynchronize())  # the device is as before
    assert not array.any()


@pytest.mark.parametrize("call", ["hipStreamWaitValue32", "hipStreamWriteValue32"])
def test_streams_that_wait_for_words_of_no_memory(call: str) -> None:
    library = emulator.load()
    rest = (1, 0, 0xFFFFFFFF) if "Wait" in call else (1, 0)
    wild = ctypes.c_void_p(1 << 20)
    for pointer, invalid_value in ((None, 1), (ctypes.c_void_p(13), 1)):
        assert getattr(library, call)(None, pointer, *rest) == invalid_value
    assert getattr(library, call)(None, wild, *rest) == 0
    assert status(hip().hipDeviceSynchronize()) == "hipErrorIllegalAddress"
    assert "0x100000, where no memory is" in emulator.fault(0)
    ok(hip().hipDeviceReset())


def test_graphs_that_copy_what_is_gone() -> None:
    api, library = hip(), emulator.load()
    ok(api.hipSetDevice(0))
    there, gone = ok(api.hipMalloc(256)), int(ok(api.hipMalloc(256)))
    graph, node = ctypes.c_void_p(), ctypes.c_void_p()
    assert library.hipGraphCreate(ctypes.byref(graph), 0) == 0
    place, source, size = (ctypes.c_void_p(int(there)), ctypes.c_void_p(gone), ctypes.c_size_t(4))
    add = library.hipGraphAddMemcpyNode1D
    assert add(ctypes.byref(node), graph, None, 0, place, source, size, 3) == 0
    ready = ctypes.c_void_p()
    assert library.hipGraphInstantiateWithFlags(ctypes.byref(ready), graph, 0) == 0
    ok(api.hipFree(gone))
    assert add(ctypes.byref(node), graph, None, 0, place, source, size, 3) == 1  # invalid value
    assert library.hipGraphLaunch(ready, None) == 0
    assert status(api.hipDeviceSynchronize()) == "hipErrorIllegalAddress"
    ok(api.hipDeviceReset())
    assert library.hipGraphExecDestroy(ready) == 0
    assert library.hipGraphDestroy(graph) == 0


def test_sizes_and_kinds() -> None:
    api, library = hip(), emulator.load()
    there = ok(api.hipMalloc(256))
    minus_one = ctypes.c_size_t(-1)
    pointer = ctypes.c_void_p(int(there))
    assert library.hipMemcpy(pointer, pointer, minus_one, 3) == 1  # hipErrorInvalidValue
    assert library.hipMemset(pointer, 0, minus_one) == 1
    assert library.hipMemsetD32(pointer, 0, minus_one) == 1
    assert library.hipMemcpy(pointer, pointer, ctypes.c_size_t(4), 77) == 21  # direction
    assert status(api.hipMalloc(1 << 60)) == "hipErrorOutOfMemory"
    assert status(api.hipMemcpy2D(there, 4, there, 4, 8, 2, kind("Default"))) == (
        "hipErrorInvalidPitchValue"
    )
    ok(api.hipFree(there))


def test_handles_of_nothing(image: bytes) -> None:
    api, library = hip(), emulator.load()
    stream, event = ok(api.hipStreamCreate()), ok(api.hipEventCreate())
    module = ok(api.hipModuleLoadData(image))
    function = ok(api.hipModuleGetFunction(module, b"copy"))
    ok(api.hipStreamDestroy(stream))
    ok(api.hipEventDestroy(event))
    ok(api.hipModuleUnload(module))
    for answer in (
        api.hipStreamSynchronize(stream),
        api.hipStreamQuery(stream),
        api.hipStreamDestroy(stream),
        api.hipEventRecord(event, None),
        api.hipEventSynchronize(event),
        api.hipEventDestroy(event),
        api.hipModuleUnload(module),
        api.hipModuleGetFunction(module, b"copy"),
        api.hipModuleLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, None, None, None),
    ):
        assert status(answer) == "hipErrorInvalidHandle"
    wild, invalid_value = ctypes.c_void_p(12), 1
    assert library.hipGraphDestroy(wild) == invalid_value
    assert library.hipGraphLaunch(wild, None) == invalid_value
    number = ctypes.c_int()
    assert library.hipGraphNodeGetType(wild, ctypes.byref(number)) == invalid_value


def test_code_for_another_gpu(image: bytes) -> None:
    api = hip()
    ok(api.hipSetDevice(DEVICES.index("gfx950")))
    for wrong in (image, bundle({"gfx942": image}), bundle({"gfx950:xnack+": image})):
        assert status(api.hipModuleLoadData(wrong)) == "hipErrorNoBinaryForGpu"
        assert "gfx950" in emulator.last_error()
    ok(api.hipSetDevice(0))
    ok(api.hipModuleLoadData(bundle({"gfx950": b"", "gfx942:sramecc+:xnack-": image})))
    with_xnack = bytearray(image)
    with_xnack[0x31] |= 0x03  # e_flags: xnack on
    assert status(api.hipModuleLoadData(bytes(with_xnack))) == "hipErrorNoBinaryForGpu"
    assert "xnack+" in emulator.last_error()


def test_files(tmp_path: Path, image: bytes) -> None:
    api = hip()
    assert status(api.hipModuleLoad(bytes(tmp_path / "none"))) == "hipErrorFileNotFound"
    (tmp_path / "empty").write_bytes(b"")
    assert status(api.hipModuleLoad(bytes(tmp_path / "empty"))) == "hipErrorInvalidImage"
    (tmp_path / "kernel.co").write_bytes(image)
    ok(api.hipSetDevice(0))
    ok(api.hipModuleUnload(ok(api.hipModuleLoad(bytes(tmp_path / "kernel.co")))))


def test_cooperative_launches_must_fit() -> None:
    module = assembled({"nothing": ""}, lds=32768)
    function = ok(hip().hipModuleGetFunction(module.handle, b"nothing"))
    pointers = (ctypes.c_void_p * 2)()
    values = [ctypes.c_uint64(0), ctypes.c_uint64(0)]
    for n, value in enumerate(values):
        pointers[n] = ctypes.addressof(value)
    library = emulator.load()

    def launch(blocks: int) -> int:
        handle = ctypes.c_void_p(int(function))
        return int(
            library.hipModuleLaunchCooperativeKernel(
                handle, blocks, 1, 1, 64, 1, 1, 0, None, pointers
            )
        )

    too_large = 720
    assert launch(609) == too_large
    assert "608" in emulator.last_error()
    assert launch(608) == 0
    ok(hip().hipDeviceSynchronize())


def test_last_errors() -> None:
    api = hip()
    hip().hipGetLastError()
    assert status(api.hipSetDevice(-1)) == "hipErrorInvalidDevice"
    ok(api.hipGetDevice())  # success does not clear it
    assert status(api.hipPeekAtLastError()) == "hipErrorInvalidDevice"
    assert status(api.hipGetLastError()) == "hipErrorInvalidDevice"
    assert status(api.hipGetLastError()) == "hipSuccess"


def test_every_error_has_a_name_and_a_text() -> None:
    library = emulator.load()
    for call in (library.hipGetErrorName, library.hipGetErrorString):
        call.restype = ctypes.c_char_p
    aliases = {
        "hipErrorMemoryAllocation",
        "hipErrorInitializationError",
        "hipErrorMapBufferObjectFailed",
        "hipErrorInvalidResourceHandle",
        "hipErrorTbd",
    }
    for name, code in hip().hipError_t.__members__.items():
        if name in aliases:
            continue
        assert library.hipGetErrorName(int(code)).decode() == name
        assert library.hipGetErrorString(int(code)).decode() not in {"", "unknown error"} or (
            name == "hipErrorUnknown"
        )
    assert library.hipGetErrorName(12345) == b"hipErrorUnknown"


_FUZZ = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
image, seen = open(sys.argv[2], "rb").read(), set()
for line in open(sys.argv[3]):
    size, *flips = map(int, line.split())
    bad = bytearray(image[:size])
    for flip in flips:
        bad[flip // 8] ^= 1 << flip % 8
    data = (ctypes.c_char * (len(bad) + 1)).from_buffer(bad + b"\\0")
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    status = library.hipModuleLoadData(ctypes.byref(module), data)
    seen.add(status)
    if status == 0:
        if library.hipModuleGetFunction(ctypes.byref(function), module, b"copy") == 0:
            arguments = (ctypes.c_void_p * 8)()
            place = ctypes.create_string_buffer(4096)
            words = (ctypes.c_uint64 * 512)(*[ctypes.addressof(place)] * 512)
            length = ctypes.c_size_t(4096)
            extra = (ctypes.c_void_p * 5)(
                1, ctypes.addressof(words), 2, ctypes.addressof(length), 3)
            library.hipModuleLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, None, None, extra)
            library.hipDeviceSynchronize()
            library.hipDeviceReset()
        library.hipModuleUnload(module)
print(sorted(seen))
"""


def test_damaged_code_objects(image: bytes, tmp_path: Path) -> None:
    """Truncations anywhere, and flipped bits outside of the code; what loads is launched."""
    text = image.index(text_section(image))
    code = range(text, text + 256)
    draw = random.Random(7)
    cases = [[size] for size in range(0, len(image), 37)]
    while len(cases) < 1200:
        flips = [draw.randrange(len(image) * 8) for _ in range(draw.randint(1, 4))]
        if not any(flip // 8 in code for flip in flips):
            cases.append([len(image), *flips])
    (tmp_path / "image").write_bytes(image)
    (tmp_path / "cases").write_text("".join(" ".join(map(str, case)) + "\n" for case in cases))
    words = ["-c", _FUZZ, emulator.library_path(), tmp_path / "image", tmp_path / "cases"]
    # The arguments are addresses of this process's own memory.
    environment = {**os.environ, "CKLANG_FAULT": "continue", "HSA_XNACK": "1"}
    done = run_python(*words, env=environment)
    assert {0, 200} <= set(map(int, done.stdout.strip("[]\n").split(",")))
