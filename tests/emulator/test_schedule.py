# SPDX-License-Identifier: MIT
"""Orders of execution: memory operations that take effect late, and waves in other turns."""

import numpy as np
import pytest

from cklang import emulator
from cklang.errors import CkValueError
from tests.emulator import test_triton
from tests.support.assembly import Module, assembled
from tests.support.triton_kernels import MADE

pytestmark = pytest.mark.usefixtures("emulator")

_START = """
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  v_sub_u32 v2, 0x1fc, v1
  v_mov_b32 v3, 7
  s_waitcnt lgkmcnt(0)
"""
_STORE = "  global_store_dword v1, v3, s[6:7]\n"
#: What lanes of two waves store, as a function of the thread's number, in the latest order.
CASES = {
    "a load without a wait": ("  global_load_dword v3, v1, s[4:5]\n", lambda n: 0 * n + 7),
    "a load with its wait": (
        "  global_load_dword v3, v1, s[4:5]\n  s_waitcnt vmcnt(0)\n",
        lambda n: 3 * n,
    ),
    "its own store comes first": (
        (
            "  global_store_dword v1, v3, s[4:5]\n  global_load_dword v3, v1, s[4:5]\n"
            "  v_mov_b32 v1, v1\n  s_waitcnt vmcnt(0)\n"
        ),
        lambda n: 0 * n + 7,
    ),
    "data are read as it issues": (
        (
            "  ds_write_b32 v1, v1\n  v_mov_b32 v9, v1\n  v_mov_b32 v1, 0\n  v_mov_b32 v1, v9\n"
            "  ds_read_b32 v3, v1\n  s_waitcnt lgkmcnt(0)\n"
        ),
        lambda n: 4 * n,
    ),
    "a store without a wait before the barrier": (
        (
            "  ds_write_b32 v1, v3\n  s_waitcnt lgkmcnt(0)\n  s_barrier\n  ds_write_b32 v1, v1\n"
            "  s_barrier\n  ds_read_b32 v3, v2\n  s_waitcnt lgkmcnt(0)\n"
        ),
        None,
    ),
    "a store with its wait": (
        (
            "  ds_write_b32 v1, v1\n  s_waitcnt lgkmcnt(0)\n  s_barrier\n  ds_read_b32 v3, v2\n"
            "  s_waitcnt lgkmcnt(0)\n"
        ),
        lambda n: 4 * (127 - n),
    ),
    "halves of a register": (
        (
            "  global_load_short_d16 v3, v1, s[4:5]\n  global_load_short_d16_hi v3, v1, s[4:5]\n"
            "  s_waitcnt vmcnt(0)\n"
        ),
        lambda n: 3 * n * 0x10001,
    ),
    "an address that the load overwrites": (
        (
            "  v_mov_b32 v3, v1\n  global_load_dword v3, v3, s[4:5]\n  s_barrier\n"
            "  s_waitcnt vmcnt(0)\n"
        ),
        lambda n: 3 * n,
    ),
    "a scalar load without a wait": (
        "  s_mov_b32 s8, 5\n  s_load_dword s8, s[4:5], 0x4\n  v_mov_b32 v3, s8\n",
        lambda n: 0 * n + 5,
    ),
}


@pytest.fixture(scope="module")
def module() -> Module:
    bodies = {name: _START + text + _STORE for name, (text, _) in CASES.items()}
    return assembled(bodies, lds=1024)


def results(module: Module, name: str, order: int) -> np.ndarray:
    source, output = 3 * np.arange(128, dtype=np.uint32), np.zeros(128, np.uint32)
    emulator.schedule(order)
    assert not module.fault(name, source, output, block=128)
    return output


@pytest.mark.parametrize("name", CASES)
def test_the_latest_order(module: Module, name: str) -> None:
    expected = CASES[name][1]
    threads = np.arange(128, dtype=np.uint32)
    if expected is None:  # some wave reads what was there before
        assert not np.array_equal(results(module, name, 1), results(module, name, 0))
    else:
        np.testing.assert_array_equal(results(module, name, 1), expected(threads))


@pytest.mark.parametrize("name", [name for name in CASES if "with its wait" in name])
def test_kernels_that_wait_are_right_in_each_order(module: Module, name: str) -> None:
    usual = results(module, name, 0)
    for order in range(1, 9):
        np.testing.assert_array_equal(results(module, name, order), usual)


def test_an_order_repeats_itself(module: Module) -> None:
    name = "a store without a wait before the barrier"
    once = [results(module, name, order) for order in range(2, 12)]
    again = [results(module, name, order) for order in range(2, 12)]
    np.testing.assert_array_equal(once, again)
    assert len({each.tobytes() for each in once}) > 1


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("gpu", ["gfx942", "gfx950", "gfx1100", "gfx1201"])
def test_other_compilers_wait_where_they_must(gpu: str, order: int) -> None:
    emulator.schedule(order)
    for name in ("gemm_f16", "gemm_i8"):
        if name in MADE[gpu]:
            test_triton.test_gemm(gpu, name)
    test_triton.test_attention(gpu, "attention_f16")
    test_triton.test_sort(gpu)


def test_negative_numbers() -> None:
    with pytest.raises(CkValueError, match="must be 0 or more"):
        emulator.schedule(-1)
