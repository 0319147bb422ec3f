# SPDX-License-Identifier: MIT
"""The check for missing waits on RDNA: stores apart, named counters on gfx12, 16-bit halves."""

from dataclasses import dataclass

import numpy as np
import pytest

from tests.emulator import test_triton
from tests.support.assembly import Module, assembled
from tests.support.rdna import GFX11, GFX12, RDNA, WAITS

pytestmark = [pytest.mark.usefixtures("emulator"), pytest.mark.sanitize("waits")]

_START = """
  s_load_b128 s[4:7], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  v_mov_b32 v9, 0
  {all}
"""
LOAD, SECOND = "global_load_b32 v2, v1, s[4:5]", "global_load_b32 v3, v1, s[4:5] offset:128"
STORE, WORD = "global_store_b32 v1, v2, s[6:7]", "s_load_b32 s8, s[4:5], 0x0"
BLOCK, STORED_BLOCK = (
    "global_load_block v[2:33], v1, s[4:5]",
    "global_store_block v1, v[2:33], s[6:7]",
)
ONE_LEFT = {GFX11: "s_waitcnt vmcnt(1) lgkmcnt(1)", GFX12: "s_wait_loadcnt_dscnt 0x101"}
FLAT = ["v_mov_b32 v4, s4", "v_mov_b32 v5, s5", "flat_load_b32 v2, v[4:5]"]
LOWER, UPPER = ("global_load_d16_b16 v2, v1, s[4:5]", "global_load_d16_hi_b16 v2, v1, s[4:5]")


def loads(left: int) -> dict[str, str]:
    """Waits for all but some loads."""
    return {GFX11: f"s_waitcnt vmcnt({left})", GFX12: f"s_wait_loadcnt {left}"}


def local(left: int) -> dict[str, str]:
    return {GFX11: f"s_waitcnt lgkmcnt({left})", GFX12: f"s_wait_dscnt {left}"}


def scalar(left: int) -> dict[str, str]:
    return {GFX11: f"s_waitcnt lgkmcnt({left})", GFX12: f"s_wait_kmcnt {left}"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A kernel: lines, a wait being one for each GPU; what the report says, if anything."""

    lines: tuple[str | dict[str, str], ...]
    said: str = ""
    counter: str = ""
    archs: tuple[str, ...] = RDNA


def clean(*lines: str | dict[str, str], archs: tuple[str, ...] = RDNA) -> Case:
    return Case(lines=lines, archs=archs)


def broken(
    *lines: str | dict[str, str], said: str, counter: str, archs: tuple[str, ...] = RDNA
) -> Case:
    return Case(lines=lines, said=said, counter=counter, archs=archs)


CASES = {
    "a load and its wait": clean(LOAD, loads(0), STORE),
    "the first of two": clean(LOAD, SECOND, loads(1), STORE),
    "stored data are free at once": clean("v_mov_b32 v2, 1", STORE, "v_mov_b32 v2, 2"),
    "scalar": clean(WORD, scalar(0), "v_mov_b32 v2, s8"),
    "flat": clean(*FLAT, WAITS, STORE),
    "the first of two flat loads": clean(*FLAT, "flat_load_b32 v3, v[4:5]", ONE_LEFT, STORE),
    "SOPK": clean(LOAD, "s_waitcnt_vmcnt null, 0x0", STORE, archs=(GFX11,)),
    "SOPK of LDS": clean("ds_load_b32 v2, v1", "s_waitcnt_lgkmcnt null, 0x0", STORE,
                         archs=(GFX11,)),
    "two counters in one": clean(LOAD, "ds_load_b32 v3, v1", "s_wait_loadcnt_dscnt 0x0", STORE,
                                 archs=(GFX12,)),
    "of stores and LDS": clean("ds_load_b32 v2, v1", "s_wait_storecnt_dscnt 0x3f00", STORE,
                               archs=(GFX12,)),
    "an invalidated cache counts": clean(LOAD, "global_inv scope:SCOPE_DEV", "s_wait_loadcnt 0x1",
                                         STORE, archs=(GFX12,)),
    "everything": clean(LOAD, WORD, "s_wait_idle", STORE, "v_mov_b32 v2, s8", archs=(GFX11,)),
    "the other half": clean(LOWER, "v_mov_b16 v2.h, v1.l", loads(0), STORE, archs=(GFX11,)),
    "both halves in order": clean(LOWER, UPPER, loads(1), "v_mov_b16 v3.l, v2.l", archs=(GFX11,)),
    "a block leaves out registers": clean("s_mov_b32 m0, 0xe", BLOCK, STORE, archs=(GFX12,)),
    "a stored block leaves out registers": clean(LOAD, "s_mov_b32 m0, 0xe", STORED_BLOCK,
        archs=(GFX12,)),
    "no wait": broken(LOAD, STORE, said="reads v2", counter="loads"),
    "a store is no load": broken(LOAD, "global_store_b32 v1, v9, s[6:7]", loads(1), STORE,
                                 said="reads v2", counter="loads"),
    "the wrong counter": broken(LOAD, scalar(0), STORE, said="reads v2", counter="loads"),
    "the wrong counter of LDS": broken("ds_load_b32 v2, v1", scalar(0), STORE, said="reads v2",
                                       counter="dscnt", archs=(GFX12,)),
    "the wrong scalar counter": broken(WORD, local(0), "v_mov_b32 v2, s8", said="reads s8",
                                       counter="kmcnt", archs=(GFX12,)),
    "overwritten": broken(LOAD, "v_mov_b32 v2, 0", said="overwrites v2", counter="loads"),
    "a dual instruction reads": broken(LOAD, "v_dual_mov_b32 v4, v9 :: v_dual_mov_b32 v5, v2",
                                       said="reads v2", counter="loads"),
    "a dual instruction overwrites": broken(LOAD, "v_dual_mov_b32 v5, v9 :: v_dual_mov_b32 v2, v0",
                                            said="overwrites v2", counter="loads"),
    "LDS": broken("ds_load_b32 v2, v1", loads(0), STORE, said="reads v2", counter="local"),
    "scalar loads finish in any order": broken(WORD, "s_load_b32 s9, s[4:5], 0x4", scalar(1),
        "v_mov_b32 v2, s8", said="reads s8", counter="scalar"),
    "a flat load needs both": broken(*FLAT, local(0), STORE, said="reads v2", counter="loads"),
    "the same half": broken(UPPER, "v_mov_b16 v3.l, v2.h", said="reads v2", counter="loads",
                            archs=(GFX11,)),
    "the second half": broken(LOWER, UPPER, loads(1), "v_mov_b16 v3.l, v2.h", said="reads v2",
                              counter="loads", archs=(GFX11,)),
    "a block": broken("s_mov_b32 m0, 0x1", BLOCK, STORE, said="reads v2", counter="loads",
                      archs=(GFX12,)),
    "a stored block": broken(
        *(LOAD, "s_mov_b32 m0, 0x1", STORED_BLOCK), said="reads v2", counter="loads", archs=(GFX12,)
    ),
    "a message": broken("s_sendmsg_rtn_b32 s8, sendmsg(MSG_RTN_GET_REALTIME)", "v_mov_b32 v2, s8",
                        said="reads s8", counter="scalar"),
}  # fmt: skip
COUNTERS = {
    GFX11: {
        "loads": "s_waitcnt vmcnt",
        "local": "s_waitcnt lgkmcnt",
        "scalar": "s_waitcnt lgkmcnt",
    },
    GFX12: {"loads": "s_wait_loadcnt", "local": "s_wait_dscnt", "scalar": "s_wait_kmcnt"},
}
EACH = [(arch, name) for name, case in CASES.items() for arch in case.archs]


def body(arch: str, case: Case) -> str:
    lines = [line if isinstance(line, str) else line[arch] for line in case.lines]
    return _START.format(all=WAITS[arch]) + "".join(f"  {line}\n" for line in lines)


@pytest.fixture(scope="module")
def modules() -> dict[str, Module]:
    by_arch = {}
    for arch in RDNA:
        bodies = {name: body(arch, case) for name, case in CASES.items() if arch in case.archs}
        by_arch[arch] = assembled(bodies, arch, lds=256, wave=32)
    return by_arch


@pytest.mark.parametrize(("arch", "name"), EACH)
def test_a_kernel(modules: dict[str, Module], arch: str, name: str) -> None:
    case = CASES[name]
    source, output = np.arange(128, dtype=np.uint32), np.zeros(128, np.uint32)
    message = modules[arch].fault(name, source, output, block=32)
    assert bool(message) == bool(case.said), message
    if not message:
        return
    assert f"missing wait: {message.split()[2]} {case.said}, but no" in message
    counter = COUNTERS[arch].get(case.counter, f"s_wait_{case.counter}")
    assert f"{counter} covers the load at pc 0x" in message


@pytest.mark.parametrize("kind", test_triton.KINDS)
@pytest.mark.parametrize("gpu", RDNA)
def test_other_compilers_wait_where_they_must(gpu: str, kind: str) -> None:
    test_triton.all_of(kind, gpu)
