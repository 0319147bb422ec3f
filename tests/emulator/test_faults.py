# SPDX-License-Identifier: MIT
"""What stops a kernel is reported with its place; what should end does."""

from pathlib import Path

import numpy as np
import pytest

from cklang import emulator
from cklang.emulator.hipcc import driver
from tests.support.assembly import DEVICES, Module, assemble, assembled, hip, ok
from tests.support.processes import run_python

pytestmark = pytest.mark.usefixtures("emulator")

BODIES = {
    "wild": "  v_mov_b32 v2, 0x1234\n  v_mov_b32 v3, 0x7fff\n  s_mov_b64 exec, 0x10\n"
    "  global_load_dword v4, v[2:3], off\n",
    # A range-checked buffer whose base is nowhere: lanes out of range must not be touched.
    "buffer": "  s_load_dwordx4 s[4:7], s[0:1], 0x0\n  s_mov_b32 s8, 0\n  s_mov_b32 s9, 0x10\n"
    "  s_mov_b32 s10, 0\n  s_mov_b32 s11, 0x20000\n  v_lshlrev_b32 v1, 2, v0\n  v_mov_b32 v2, -1\n"
    "  s_waitcnt lgkmcnt(0)\n  buffer_load_dword v2, v1, s[8:11], 0 offen\n"
    "  buffer_store_dword v2, v1, s[8:11], 0 offen\n  s_mov_b32 m0, 0\n"
    "  buffer_load_dword v1, s[8:11], 0 offen lds\n"
    "  s_waitcnt vmcnt(0)\n  global_store_dword v1, v2, s[6:7]\n",
    # Per-dword range checks: 4 of the 16 bytes are in range for lane 1.
    "partial": "  s_load_dwordx4 s[4:7], s[0:1], 0x0\n  s_waitcnt lgkmcnt(0)\n  s_mov_b32 s8, s4\n"
    "  s_mov_b32 s9, s5\n  s_mov_b32 s10, 20\n  s_mov_b32 s11, 0x20000\n  v_lshlrev_b32 v1, 4, v0\n"
    "  buffer_load_dwordx4 v[4:7], v1, s[8:11], 0 offen\n  s_waitcnt vmcnt(0)\n"
    "  global_store_dwordx4 v1, v[4:7], s[6:7]\n",
    "gds": "  ds_gws_init v0 gds\n",
    "trap": "  s_trap 2\n",
    "undecodable": "  .long 0xffffffff\n",
    # Workgroup 0 spins until workgroup 1 writes the flag.
    "spin": "  s_load_dwordx4 s[4:7], s[0:1], 0x0\n  v_mov_b32 v1, 0\n  v_mov_b32 v2, 1\n"
    "  s_waitcnt lgkmcnt(0)\n  s_cmp_eq_u32 s2, 0\n  s_cbranch_scc1 wait%=\n"
    "  global_store_dword v1, v2, s[6:7]\n  s_endpgm\nwait%=:\n"
    "  global_load_dword v3, v1, s[6:7] sc1\n  s_waitcnt vmcnt(0)\n  v_cmp_eq_u32 vcc, 1, v3\n"
    "  s_cbranch_vccz wait%=\n".replace("%=", "_spin"),
    # Four waves hand a value round through LDS, a barrier each time.
    "barrier": "  s_load_dwordx4 s[4:7], s[0:1], 0x0\n  v_lshlrev_b32 v1, 2, v0\n"
    "  ds_write_b32 v1, v0\n  s_waitcnt lgkmcnt(0)\n  s_barrier\n  v_xor_b32 v2, 0x3fc, v1\n"
    "  ds_read_b32 v3, v2\n  s_waitcnt lgkmcnt(0)\n  global_store_dword v1, v3, s[6:7]\n",
}


@pytest.fixture(scope="module")
def image() -> bytes:
    return assemble(BODIES, lds=1024)


@pytest.fixture
def module(image: bytes) -> Module:
    loaded = Module(image)
    ok(hip().hipDeviceReset())
    return loaded


def arrays() -> tuple[np.ndarray, np.ndarray]:
    return np.arange(1024, dtype=np.uint32), np.zeros(1024, np.uint32)


def test_a_wild_address_is_reported_and_the_device_fails_until_reset(module: Module) -> None:
    assert module.launch("wild", *arrays()) == "hipErrorIllegalAddress"
    text = emulator.fault(0)
    for part in (
        "0x7fff00001234",
        "kernel wild",
        "workgroup (0, 0, 0)",
        "wave 0",
        "lane 4",
        "pc 0x14",
    ):
        assert part in text
    assert "global_load_dword" in text
    assert hip().hipMalloc(4)[0].name == "hipSuccess"
    assert hip().hipDeviceSynchronize()[0].name == "hipErrorIllegalAddress"
    ok(hip().hipDeviceReset())
    assert module.launch("barrier", *arrays(), block=256) == "hipSuccess"


_FAULTY = """
#include <hip/hip_runtime.h>
template <class T> __device__ T fetched(const T* from) { return *from; }
extern "C" __global__ void k(const int* x, int* y)
{
    y[threadIdx.x] = x[threadIdx.x] + 1;
    if(threadIdx.x == 5)
        y[0] = fetched(reinterpret_cast<const int*>(0x7fff00001230ll));
}
"""


@pytest.mark.parametrize("arch", ["gfx942", "gfx1201"])
@pytest.mark.parametrize("debug", ["", "-g0"])
def test_the_source_line_of_a_wild_address(arch: str, debug: str, tmp_path: Path) -> None:
    """Compiled code with a line table says where, and code without one says the rest."""
    source, output = tmp_path / "faulty.hip", tmp_path / "faulty.co"
    source.write_text(_FAULTY)
    words = ["-O2", *debug.split(), f"--offload-arch={arch}", "--offload-device-only", "-c"]
    driver.build([*words, str(source), "-o", str(output)], print)
    loaded = Module(output.read_bytes(), arch)
    text = loaded.fault("k", *arrays())
    for part in ("0x7fff00001230", "kernel k, workgroup (0, 0, 0), wave 0", "pc 0x", "_load_"):
        assert part in text
    line = 1 + next(n for n, row in enumerate(_FAULTY.splitlines()) if "return *from" in row)
    assert (f"faulty.hip:{line}" in text) == (debug != "-g0")


_HOST = """
import sys
from pathlib import Path
import numpy as np
from cklang import emulator
from tests.support.assembly import Module
emulator.sanitize("waits")
module = Module(Path(sys.argv[1]).read_bytes())
print(module.launch("_Z5touchPii", np.zeros(64, np.uint32), np.zeros(64, np.uint32)))
print(emulator.last_error())
"""


def test_a_python_host_hears_what_a_check_has_found(tmp_path: Path) -> None:
    """The report is on stderr, and the reason of the call that failed; C++'s names are readable."""
    body = (
        "  s_load_dwordx4 s[4:7], s[0:1], 0x0\n  v_lshlrev_b32 v1, 2, v0\n"
        "  s_waitcnt lgkmcnt(0)\n  global_load_dword v2, v1, s[4:5]\n"
        "  global_store_dword v1, v2, s[6:7]\n"
    )
    file = tmp_path / "touch.co"
    file.write_bytes(assemble({"_Z5touchPii": body}))
    done = run_python("-c", _HOST, file)
    status, reason = done.stdout.split("\n", 1)
    assert status == "hipErrorLaunchFailure"
    assert reason.startswith("missing wait: global_store_dword reads v2")
    assert "kernel touch(int*, int), workgroup (0, 0, 0), wave 0" in reason
    assert done.stderr.startswith("Kernel failed on GPU node-1 (gfx942, emulated)")
    assert reason.strip() in done.stderr


@pytest.mark.parametrize(
    ("name", "status", "text"),
    [
        ("gds", "hipErrorLaunchFailure", "ds_gws_init"),
        ("trap", "hipErrorAssert", "s_trap 2"),
        ("undecodable", "hipErrorLaunchFailure", "cannot decode 0xffffffff"),
    ],
)
def test_what_cannot_run_is_named(module: Module, name: str, status: str, text: str) -> None:
    assert module.launch(name, *arrays()) == status
    assert text in emulator.fault(0)
    assert f"kernel {name}" in emulator.fault(0)
    ok(hip().hipDeviceReset())


def test_addresses_out_of_a_buffers_range_are_never_touched(module: Module) -> None:
    source, output = arrays()
    assert module.launch("buffer", source, output) == "hipSuccess"
    assert not output[:64].any()


def test_range_checks_are_per_dword(module: Module) -> None:
    source, output = arrays()
    source += 1
    assert module.launch("partial", source, output) == "hipSuccess"
    np.testing.assert_array_equal(output[:8], [1, 2, 3, 4, 5, 0, 0, 0])
    assert not output[8:256].any()


def test_a_workgroup_that_spins_lets_others_run(module: Module) -> None:
    assert module.launch("spin", *arrays(), grid=2) == "hipSuccess"


def test_barriers_join_the_waves(module: Module) -> None:
    source, output = arrays()
    assert module.launch("barrier", source, output, block=256) == "hipSuccess"
    np.testing.assert_array_equal(output[:256], np.arange(256) ^ 255)


def test_wrong_files_are_refused(image: bytes) -> None:
    api = hip()
    ok(api.hipSetDevice(0))
    for size in (0, 10, 64, 300, len(image) // 2):
        cut = image[:size] + bytes(4096)
        assert api.hipModuleLoadData(cut)[0].name == "hipErrorInvalidImage"
    ok(api.hipSetDevice(DEVICES.index("gfx90a")))
    assert api.hipModuleLoadData(image)[0].name == "hipErrorNoBinaryForGpu"
    assert "gfx942" in emulator.last_error()
    ok(api.hipSetDevice(0))


def test_flushed_denormals() -> None:
    body = (
        "  s_load_dwordx4 s[4:7], s[0:1], 0x0\n  v_mov_b32 v1, 0\n  v_mov_b32 v2, 1\n"
        "  v_add_f32 v2, v2, v2\n  s_waitcnt lgkmcnt(0)\n  global_store_dword v1, v2, s[6:7]\n"
    )
    for denormals, expected in ((0, 0), (3, 2)):
        source, output = arrays()
        loaded = assembled({"k": body}, denormals=denormals)
        assert loaded.launch("k", source, output) == "hipSuccess"
        assert output[0] == expected
