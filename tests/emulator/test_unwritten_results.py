# SPDX-License-Identifier: MIT
"""The check of results that are copied to the host before anything has written all of them."""

import ctypes

import numpy as np
import pytest

from cklang import emulator
from tests.support.assembly import Module, assembled, hip, ok

pytestmark = [pytest.mark.usefixtures("emulator"), pytest.mark.sanitize("unwritten")]

_LANES = 64
_BYTES = 4 * _LANES
_STORE = (
    "s_load_dwordx2 s[4:5], s[0:1], 0x0\n  v_lshlrev_b32 v1, 2, v0\n  {guard}\n"
    "  s_waitcnt lgkmcnt(0)\n  global_store_dword v1, v0, s[4:5]"
)
_BODIES = {
    "every": _STORE.format(guard="s_nop 0"),
    "first": _STORE.format(guard="v_cmpx_gt_u32 vcc, 40, v0"),
}


@pytest.fixture(scope="module")
def kernels() -> Module:
    bodies = {name: f"  {text}\n" for name, text in _BODIES.items()}
    return assembled(bodies)


def result(module: Module, name: str, filled: int = 0) -> tuple[np.ndarray, str]:
    """What a kernel stores into new memory, of which the host fills some; and what is reported."""
    ok(hip().hipSetDevice(module.device))
    address = int(ok(hip().hipMalloc(_BYTES)))
    if filled:
        ok(hip().hipMemset(ctypes.c_void_p(address + _BYTES - filled), 0, filled))
    assert module.launch(name, address) == "hipSuccess"
    values = np.full(_LANES, -1, np.int32)
    kind = hip().hipMemcpyKind.hipMemcpyDeviceToHost
    (error,) = hip().hipMemcpy(values.ctypes.data, ctypes.c_void_p(address), _BYTES, kind)
    text = emulator.fault(module.device)
    assert (error.name == "hipSuccess") == (text == "")
    hip().hipDeviceReset()
    hip().hipFree(ctypes.c_void_p(address))
    return values, text


def test_a_complete_result_is_not_reported(kernels: Module) -> None:
    values, text = result(kernels, "every")
    assert text == ""
    np.testing.assert_array_equal(values, np.arange(_LANES))


def test_a_copy_of_what_nothing_has_written_is_reported(kernels: Module) -> None:
    _, text = result(kernels, "first")
    assert text.startswith("unwritten device memory: a copy to the host reads 96 bytes at address")
    assert "the address is at byte 160 of it" in text


def test_what_the_host_has_filled_is_written(kernels: Module) -> None:
    assert result(kernels, "first", filled=_BYTES - 160)[1] == ""
    assert "reads 32 bytes" in result(kernels, "first", filled=_BYTES - 192)[1]
