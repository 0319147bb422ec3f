# SPDX-License-Identifier: MIT
"""Read-modify-write operations on LDS and memory, register indexing, and modes of rounding."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.support.assembly import Module, assembled

pytestmark = pytest.mark.usefixtures("emulator")

# All lanes work on one dword of zeros; the old values that they saw go to the output from dword 64.
_LDS = """
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  v_mov_b32 v4, 0
  v_mov_b32 v5, 0
  s_waitcnt lgkmcnt(0)
  global_load_dword v2, v1, s[4:5]
  ds_write_b32 v4, v5
  s_waitcnt vmcnt(0) lgkmcnt(0)
  {op} v3, v4, v2
  s_waitcnt lgkmcnt(0)
  ds_read_b32 v6, v4
  s_waitcnt lgkmcnt(0)
  global_store_dword v4, v6, s[6:7]
  global_store_dword v1, v3, s[6:7] offset:256
"""
_MEMORY = """
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  v_mov_b32 v4, 0
  s_waitcnt lgkmcnt(0)
  global_load_dword v2, v1, s[4:5]
  s_waitcnt vmcnt(0)
  {op} v3, v4, v2, s[6:7] sc0
  s_waitcnt vmcnt(0)
  global_store_dword v1, v3, s[6:7] offset:256
"""
Step = Callable[[Any, Any], Any]
"""What an atomic leaves of the old word and its operand."""


def packed(dtype: Any) -> Step:
    def add(a: Any, b: Any) -> Any:
        x, y = (np.array([v], np.uint32).view(np.uint16).view(dtype) for v in (a, b))
        total = (x.astype(np.float32) + y.astype(np.float32)).astype(dtype)
        return total.view(np.uint32)[0]

    return add


def floats(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.array([a, b], np.uint32).view(np.float32).sum(dtype=np.float32).view(np.uint32)


STEPS: dict[str, tuple[str, str, Step]] = {
    "add": ("ds_add_rtn_u32", "global_atomic_add", lambda a, b: a + b),
    "sub": ("ds_sub_rtn_u32", "global_atomic_sub", lambda a, b: a - b),
    "umax": ("ds_max_rtn_u32", "global_atomic_umax", np.maximum),
    "smin": (
        "ds_min_rtn_i32",
        "global_atomic_smin",
        lambda a, b: np.minimum(a.view(np.int32), b.view(np.int32)).view(np.uint32),
    ),
    "and": ("ds_and_rtn_b32", "global_atomic_and", lambda a, b: a & b),
    "or": ("ds_or_rtn_b32", "global_atomic_or", lambda a, b: a | b),
    "xor": ("ds_xor_rtn_b32", "global_atomic_xor", lambda a, b: a ^ b),
    "inc": (
        "ds_inc_rtn_u32",
        "global_atomic_inc",
        lambda a, b: np.uint32(0) if a >= b else a + np.uint32(1),
    ),
    "swap": ("ds_wrxchg_rtn_b32", "global_atomic_swap", lambda a, b: b),
    "f32": ("ds_add_rtn_f32", "global_atomic_add_f32", floats),
    "f16": ("ds_pk_add_rtn_f16", "global_atomic_pk_add_f16", packed(np.float16)),
    "bf16": ("ds_pk_add_rtn_bf16", "global_atomic_pk_add_bf16", packed(ml_dtypes.bfloat16)),
}
# v[20 + s8] through indexed reads; and one division of f32 in each direction of rounding.
_INDEXED = (
    "  s_load_dwordx4 s[4:7], s[0:1], 0x0\n  v_lshlrev_b32 v1, 2, v0\n"
    + "".join(f"  v_mov_b32 v{20 + n}, {n + 3}\n" for n in range(4))
    + "  v_mov_b32 v2, 50\n  s_mov_b32 s8, 2\n  s_set_gpr_idx_on s8, gpr_idx(SRC0)\n"
    "  v_mov_b32 v3, v20\n  s_set_gpr_idx_mode gpr_idx(DST)\n  v_mov_b32 v20, v2\n"
    "  s_set_gpr_idx_off\n  v_mul_u32_u24 v3, v3, v22\n  s_waitcnt lgkmcnt(0)\n"
    "  global_store_dword v1, v3, s[6:7]\n"
)
_ROUND = """
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  s_waitcnt lgkmcnt(0)
  global_load_dword v2, v1, s[4:5]
  s_waitcnt vmcnt(0)
  s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), {mode}
  v_add_f32 v3, 1.0, v2
  global_store_dword v1, v3, s[6:7]
"""


@pytest.fixture(scope="module")
def module() -> Module:
    bodies = {"indexed": _INDEXED}
    for name, (local, memory, _) in STEPS.items():
        bodies[f"lds_{name}"] = _LDS.format(op=local)
        bodies[f"mem_{name}"] = _MEMORY.format(op=memory)
    for mode in range(4):
        bodies[f"round{mode}"] = _ROUND.format(mode=mode)
    return assembled(bodies, lds=256)


@pytest.mark.parametrize("place", ["lds", "mem"])
@pytest.mark.parametrize("name", STEPS)
def test_lanes_follow_each_other(module: Module, place: str, name: str) -> None:
    rng = np.random.default_rng(0)
    data = rng.integers(0, 2**32, 64, dtype=np.uint32)
    if name == "f32":
        data = rng.normal(size=64).astype(np.float32).view(np.uint32)
    elif "f16" in name:
        dtype = np.float16 if name == "f16" else ml_dtypes.bfloat16
        data = rng.normal(size=128).astype(dtype).view(np.uint32)
    output = np.zeros(128, np.uint32)
    assert module.launch(f"{place}_{name}", data, output) == "hipSuccess"
    value, returned = np.uint32(0), []
    with np.errstate(over="ignore"):
        for operand in data:
            returned.append(value)
            value = np.uint32(STEPS[name][2](value, operand))
    np.testing.assert_array_equal(output[64:], returned)
    assert output[0] == value


def test_indexed_registers(module: Module) -> None:
    source, output = np.zeros(64, np.uint32), np.zeros(64, np.uint32)
    assert module.launch("indexed", source, output) == "hipSuccess"
    assert (output == 5 * 50).all()  # v22 was read through v20, then written through it


@pytest.mark.parametrize("mode", range(4), ids=["nearest", "up", "down", "zero"])
def test_rounding_modes(module: Module, mode: int) -> None:
    values = np.random.default_rng(1).normal(size=64).astype(np.float32)
    output = np.zeros(64, np.uint32)
    assert module.launch(f"round{mode}", values.view(np.uint32), output) == "hipSuccess"
    exact = values.astype(np.float64) + 1
    near = exact.astype(np.float32)
    over = near.astype(np.float64) > exact
    under = near.astype(np.float64) < exact
    up = np.where(under, np.nextafter(near, np.float32(np.inf)), near)
    down = np.where(over, np.nextafter(near, np.float32(-np.inf)), near)
    want = (near, up, down, np.where(exact < 0, up, down))[mode]
    np.testing.assert_array_equal(output.view(np.float32), want)
