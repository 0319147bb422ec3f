# SPDX-License-Identifier: MIT
"""The check for missing waits: each rule of the counters, and every way to break one."""

import numpy as np
import pytest

from cklang import emulator, knobs
from cklang.errors import CkValueError
from tests.emulator import test_triton
from tests.support.assembly import Module, assembled, symbol

pytestmark = [pytest.mark.usefixtures("emulator", "both_ways"), pytest.mark.sanitize("waits")]

_START = """
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  v_mov_b32 v9, 0
  s_waitcnt lgkmcnt(0)
"""
LOAD = "global_load_dword v2, v1, s[4:5]"
SECOND = "global_load_dword v3, v1, s[4:5] offset:256"
STORE = "global_store_dword v1, v2, s[6:7]"
ALL = "s_waitcnt vmcnt(0) lgkmcnt(0)"

#: Kernels that wait as they should.
CLEAN = {
    "a load, a wait, its use": [LOAD, "s_waitcnt vmcnt(0)", STORE],
    "the first of two": [LOAD, SECOND, "s_waitcnt vmcnt(1)", STORE],
    "stores count too": [LOAD, "global_store_dword v1, v9, s[6:7]", "s_waitcnt vmcnt(1)", STORE],
    "stored data are free at once": ["v_mov_b32 v2, 1", STORE, "v_mov_b32 v2, 2"],
    "the second of two loads to one register": [LOAD, LOAD, "s_waitcnt vmcnt(0)", STORE],
    "LDS": ["ds_read_b32 v2, v1", "ds_read_b32 v3, v1", "s_waitcnt lgkmcnt(1)", STORE],
    "scalar": ["s_load_dword s8, s[4:5], 0x0", "s_waitcnt lgkmcnt(0)", "v_mov_b32 v2, s8"],
    "flat": ["v_mov_b32 v4, s4", "v_mov_b32 v5, s5", "flat_load_dword v2, v[4:5]", ALL, STORE],
    "loads to LDS write no register": [
        "s_mov_b32 m0, 0",
        "global_load_lds_dword v1, s[4:5]",
        "v_mov_b32 v2, 3",
    ],
    "accumulation registers": [
        "global_load_dword a2, v1, s[4:5]",
        ALL,
        "v_accvgpr_read_b32 v2, a2",
    ],
}
#: Kernels that do not, and what the report says.
BROKEN = {
    "no wait": ([LOAD, STORE], "reads v2", "vmcnt"),
    "the wrong counter": ([LOAD, "s_waitcnt lgkmcnt(0)", STORE], "reads v2", "vmcnt"),
    "a count too high": ([LOAD, SECOND, "s_waitcnt vmcnt(2)", STORE], "reads v2", "vmcnt"),
    "the second of two": ([LOAD, SECOND, "s_waitcnt vmcnt(1)", "v_add_u32 v2, v2, v3"], "reads v3",
                          "vmcnt"),
    "overwritten": ([LOAD, "v_mov_b32 v2, 0"], "overwrites v2", "vmcnt"),
    "part of a wide load": (["global_load_dwordx4 v[4:7], v1, s[4:5]", "v_mov_b32 v2, v6"],
                            "reads v6", "vmcnt"),
    "LDS": (["ds_read_b32 v2, v1", "s_waitcnt vmcnt(0)", STORE], "reads v2", "lgkmcnt"),
    "loads of two kinds to one register": ([LOAD, "ds_read_b32 v2, v1"], "overwrites v2", "vmcnt"),
    "scalar": (["s_load_dword s8, s[4:5], 0x0", "v_mov_b32 v2, s8"], "reads s8", "lgkmcnt"),
    "scalar loads finish in any order": (
        [
            "s_load_dword s8, s[4:5], 0x0",
            "s_load_dword s9, s[4:5], 0x4",
            "s_waitcnt lgkmcnt(1)",
            "v_mov_b32 v2, s8",
        ],
        "reads s8",
        "lgkmcnt",
    ),
    "a flat load needs both": (
        [
            "v_mov_b32 v4, s4",
            "v_mov_b32 v5, s5",
            "flat_load_dword v2, v[4:5]",
            "s_waitcnt vmcnt(0)",
            STORE,
        ],
        "reads v2",
        "vmcnt",
    ),
    "an atomic's old value": (["global_atomic_add v2, v1, v9, s[6:7] sc0", STORE], "reads v2",
                              "vmcnt"),
    "accumulation registers": (["global_load_dword a2, v1, s[4:5]", "v_accvgpr_read_b32 v2, a2"],
                               "reads a2", "vmcnt"),
    "a branch on vcc": (["s_load_dwordx2 vcc, s[4:5], 0x0", "s_cbranch_vccz end", "end: s_nop 0"],
                        "reads vcc_lo", "lgkmcnt"),
}  # fmt: skip


def body(lines: list[str]) -> str:
    return _START + "".join(f"  {line}\n" for line in lines)


@pytest.fixture(scope="module")
def module() -> Module:
    bodies = {f"clean {name}": body(lines) for name, lines in CLEAN.items()}
    bodies |= {f"broken {name}": body(lines) for name, (lines, _, _) in BROKEN.items()}
    return assembled(bodies, lds=256)


def fault_of(module: Module, name: str) -> str:
    return module.fault(name, np.arange(256, dtype=np.uint32), np.zeros(256, np.uint32))


@pytest.mark.parametrize("name", CLEAN)
def test_right_waits_pass(module: Module, name: str) -> None:
    assert not fault_of(module, f"clean {name}")


@pytest.mark.parametrize("name", BROKEN)
def test_missing_waits_are_found(module: Module, name: str) -> None:
    lines, what, counter = BROKEN[name]
    message = fault_of(module, f"broken {name}")
    assert "missing wait: " in message
    assert what in message
    assert f"no s_waitcnt {counter} covers the load at pc 0x" in message
    assert f"kernel {symbol(f'broken {name}')}, workgroup (0, 0, 0), wave 0" in message
    loads = [line.split()[0] for line in lines if "v_" not in line and "s_waitcnt" not in line]
    assert any(f": {load} " in message for load in loads)


def test_nothing_is_checked_unless_asked(module: Module) -> None:
    emulator.sanitize()
    for name in BROKEN:
        assert not fault_of(module, f"broken {name}")


def test_names() -> None:
    with pytest.raises(CkValueError, match="must be one of waits, races, uninitialized"):
        emulator.sanitize("bugs")
    with knobs.scope(CKLANG_SANITIZE="waits"):
        assert knobs.SANITIZE.get() == {"waits"}
    with knobs.scope(CKLANG_SANITIZE="all"):
        assert knobs.SANITIZE.get() == set(knobs.SANITIZERS)
    with (
        knobs.scope(CKLANG_SANITIZE="waits,bugs"),
        pytest.raises(CkValueError, match="comma-separated"),
    ):
        knobs.SANITIZE.get()


@pytest.mark.parametrize("kind", test_triton.KINDS)
@pytest.mark.parametrize("gpu", ["gfx942", "gfx950"])
def test_other_compilers_wait_where_they_must(gpu: str, kind: str) -> None:
    """Triton's kernels keep loads under way across their loops; none is used too early."""
    test_triton.all_of(kind, gpu)
