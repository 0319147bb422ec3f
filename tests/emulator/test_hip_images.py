# SPDX-License-Identifier: MIT
"""Which GPUs have arrays, textures and surfaces (``test_device_programs`` uses them)."""

import ctypes
from pathlib import Path

import pytest

from cklang import emulator
from cklang.emulator.hipcc import driver
from cklang.errors import CkBuildError
from tests.support.assembly import DEVICES

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
