# SPDX-License-Identifier: MIT
"""Which GPUs have arrays, textures and surfaces (``test_device_programs`` uses them)."""

import ctypes
from pathlib import Path

import numpy as np
import pytest

from cklang import emulator
from cklang.emulator.hipcc import driver
from cklang.errors import CkBuildError
from tests.support.assembly import DEVICES, assembled, hip, ok
from tests.support.assembly import kind as kind_of_copy

_WITHOUT = {"gfx942", "gfx950"}
_NOT_SUPPORTED = 801
_IMAGE_SUPPORT, _MOST_2D = 10014, 43


@pytest.mark.usefixtures("compiler")
def test_code_for_gpus_without_images_is_refused(tmp_path: Path) -> None:
    source, said = tmp_path / "fetch.hip", list[str]()
    source.write_text(
        "#include <hip/hip_runtime.h>\n"
        "__global__ void fetch(hipTextureObject_t t, float* y) { *y = tex1Dfetch<float>(t, 0); }\n"
    )
    words = ["--offload-device-only", "-c", str(source), "-o", str(tmp_path / "fetch.o")]
    driver.build(["--offload-arch=gfx1201", *words], said.append)
    with pytest.raises(CkBuildError):
        driver.build(["--offload-arch=gfx942", *words], said.append)
    assert "this GPU has no image instructions" in "".join(said)


class _Format(ctypes.Structure):
    _fields_ = [("bits", ctypes.c_int * 4), ("kind", ctypes.c_int)]


@pytest.mark.usefixtures("emulator")
@pytest.mark.parametrize("number", range(len(DEVICES)))
def test_devices_say_whether_they_have_images(number: int) -> None:
    library, value, array = emulator.load(), ctypes.c_int(), ctypes.c_void_p()
    expected = int(DEVICES[number] not in _WITHOUT)
    assert library.hipSetDevice(number) == 0
    try:
        for attribute in (_IMAGE_SUPPORT, _MOST_2D):
            assert library.hipDeviceGetAttribute(ctypes.byref(value), attribute, number) == 0
            assert bool(value.value) == expected
        channels, size = _Format((ctypes.c_int * 4)(32), 2), ctypes.c_size_t(8)
        arguments = (ctypes.byref(array), ctypes.byref(channels), size, size, 0)
        assert library.hipMallocArray(*arguments) == (0 if expected else _NOT_SUPPORTED)
        if expected:
            assert library.hipFreeArray(array) == 0
        else:
            assert f"{DEVICES[number]} has no image instructions" in emulator.last_error()
    finally:
        library.hipGetLastError()
        library.hipSetDevice(0)


class _Linear(ctypes.Structure):
    _fields_ = [
        ("kind", ctypes.c_int),
        ("data", ctypes.c_void_p),
        ("channels", _Format),
        ("size", ctypes.c_size_t),
        ("rest", ctypes.c_char * 16),
    ]


#: A texel of linear memory, read as code does that was compiled with ROCm's own headers.
_FETCH = """
  s_load_{four} s[4:7], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  s_waitcnt lgkmcnt(0)
  s_load_{four} s[8:11], s[4:5], 0x0
  s_waitcnt lgkmcnt(0)
  buffer_load_format_x v2, v0, s[8:11], 0 idxen
  s_waitcnt vmcnt(0)
  global_store_{one} v1, v2, s[6:7]
"""


@pytest.mark.usefixtures("emulator")
@pytest.mark.parametrize(
    ("arch", "four", "one"), [("gfx90a", "dwordx4", "dword"), ("gfx1100", "b128", "b32")]
)
@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.float32])
def test_code_of_rocms_headers_reads_linear_memory(
    arch: str, four: str, one: str, dtype: type
) -> None:
    kind = "iuf".index(np.dtype(dtype).kind)
    texels: np.ndarray = (100 * np.arange(-20, 20)).astype(dtype)
    result = np.zeros(64, np.uint32)
    module = assembled({"fetch": _FETCH.format(four=four, one=one)}, arch)
    try:
        memory = ok(hip().hipMalloc(texels.nbytes))
        ok(hip().hipMemcpy(memory, texels, texels.nbytes, kind_of_copy("HostToDevice")))
        channels = _Format((ctypes.c_int * 4)(8 * texels.itemsize), kind)
        resource = _Linear(2, int(memory), channels, texels.nbytes)
        texture = ctypes.c_void_p()
        create = emulator.load().hipCreateTextureObject
        assert create(ctypes.byref(texture), ctypes.byref(resource), bytes(64), None) == 0
        assert module.launch("fetch", texture.value or 0, result) == "hipSuccess"
        assert emulator.load().hipDestroyTextureObject(texture) == 0
        ok(hip().hipFree(memory))
    finally:
        ok(hip().hipSetDevice(0))
    words = texels if dtype == np.float32 else texels.astype(np.int32)
    assert result[:40].tolist() == words.view(np.uint32).tolist()
    assert not result[40:].any()
