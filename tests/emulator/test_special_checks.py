# SPDX-License-Identifier: MIT
"""Checks of what right kernels may do too: buffer ranges, births of NaN, orders of execution."""

import numpy as np
import pytest

from cklang import emulator
from tests.support.assembly import Module, assembled

pytestmark = pytest.mark.usefixtures("emulator")

_START = """
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  s_waitcnt lgkmcnt(0)
  s_mov_b32 s8, s4
  s_mov_b32 s9, s5
  s_mov_b32 s10, 256
  s_mov_b32 s11, 0x20000
"""
_LOAD = "global_load_dword v3, v1, s[4:5]\n  s_waitcnt vmcnt(0)\n  "

#: A kernel of two waves over the bits of 1, 2, 3, ... in f32: the check, and what it says.
CASES = {
    "in range": ("s_mov_b32 s10, 512\n  buffer_load_dword v3, v1, s[8:11], 0 offen", "range", ""),
    "out of range": ("buffer_load_dword v3, v1, s[8:11], 0 offen", "range",
                     "buffer_load_dword accesses byte 256 of a buffer"),
    "a dropped store": ("buffer_store_dword v1, v1, s[8:11], 0 offen offset:4", "range",
                        "buffer_store_dword accesses byte 256 of a buffer"),
    "masked lanes": (
        """v_cmp_lt_u32 vcc, 31, v0
  v_mov_b32 v2, 0x80000000
  s_nop 0
  v_cndmask_b32 v2, 0, v2, vcc
  v_add_u32 v2, v1, v2
  buffer_load_dword v3, v2, s[8:11], 0 offen""",
        "range",
        "",
    ),
    "lanes that come round": (
        """s_mov_b32 s10, 0x80000001
  v_or_b32 v2, 0x80000000, v1
  buffer_load_dword v3, v2, s[8:11], 0 offen""",
        "range",
        "buffer_load_dword accesses byte 2147483648 of a buffer",
    ),
    "a sum": (_LOAD + "v_add_f32 v4, v3, v3", "numeric", ""),
    "a quotient by 0": (
        _LOAD + "v_sub_f32 v4, v3, v3\n  v_rcp_f32 v5, v4\n  s_nop 1\n  v_add_f32 v6, v5, v5",
        "numeric",
        "an infinity is born: of v_rcp_f32 in lane 0",
    ),
    "infinities that are loaded": (
        "v_mov_b32 v3, 0x7f800000\n  v_add_f32 v4, 1.0, v3\n  v_max_f32 v4, v4, v4",
        "numeric",
        "",
    ),
    "a NaN of infinities": (
        "v_mov_b32 v3, 0x7f800000\n  v_sub_f32 v4, v3, v3\n  v_max_f32 v4, v4, v4",
        "numeric",
        "a NaN is born: of v_sub_f32 in lane 0",
    ),
    "an f16 overflows": ("v_mov_b32 v3, 0x47c35000\n  v_cvt_f16_f32 v4, v3\n  v_mov_b32 v5, v4",
                         "numeric", "an infinity is born: of v_cvt_f16_f32 in lane 0"),
    "pairs of f16": ("v_mov_b32 v3, 0x7bff0000\n  v_pk_add_f16 v4, v3, v3\n  v_mov_b32 v5, v4",
                     "numeric", "an infinity is born: of v_pk_add_f16 in lane 0"),
    "each its own place": ("global_store_dword v1, v1, s[6:7]", "schedule", ""),
    "the last one wins": ("v_mov_b32 v2, 0\n  global_store_dword v2, v0, s[6:7]", "schedule",
                          "results depend on the order of execution"),
    "a missing wait": (
        "v_mov_b32 v3, 0\n  global_load_dword v3, v1, s[4:5]\n  global_store_dword v1, v3, s[6:7]",
        "schedule",
        "CKLANG_SCHEDULE=1 repeats the order",
    ),
    "counted by all": ("v_mov_b32 v2, 0\n  v_mov_b32 v3, 1\n  global_atomic_add v2, v3, s[6:7]",
                       "schedule", ""),
}  # fmt: skip


@pytest.fixture(scope="module")
def module() -> Module:
    bodies = {name: f"{_START}  {text}\n" for name, (text, _, _) in CASES.items()}
    return assembled(bodies)


def launch(module: Module, name: str) -> tuple[str, np.ndarray]:
    """The report, and what was written."""
    source, output = np.arange(1, 129, dtype=np.float32), np.zeros(128, np.uint32)
    return module.fault(name, source, output, block=128), output


@pytest.mark.parametrize("name", CASES)
def test_special_checks(module: Module, name: str) -> None:
    _, check, said = CASES[name]
    assert not launch(module, name)[0]  # nothing is asked for
    emulator.sanitize("all")
    if "missing" not in name and "last one" not in name:
        assert not launch(module, name)[0]  # nor are these
    emulator.sanitize(check)
    message, _ = launch(module, name)
    assert bool(message) == bool(said), message
    assert said in message


def test_memory_is_left_as_the_usual_order_has_it(module: Module) -> None:
    emulator.sanitize("schedule")
    for name in ("counted by all", "the last one wins"):
        emulator.sanitize()
        usual = launch(module, name)[1]
        emulator.sanitize("schedule")
        np.testing.assert_array_equal(launch(module, name)[1], usual)


def test_the_order_that_a_report_names_repeats_the_result(module: Module) -> None:
    emulator.sanitize("schedule")
    message, _ = launch(module, "the last one wins")
    order = int(message.partition("in order ")[2].split()[0])
    becomes = int(message.partition("becomes ")[2].split()[0], 16)
    emulator.sanitize()
    emulator.schedule(order)
    assert launch(module, "the last one wins")[1][0] == becomes
