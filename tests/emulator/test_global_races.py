# SPDX-License-Identifier: MIT
"""The check of global memory between workgroups: what fences and atomic operations order."""

import re
from dataclasses import dataclass

import numpy as np
import pytest

from cklang import emulator
from tests.support.assembly import DEVICES, Module, assembled, symbol

pytestmark = [
    pytest.mark.usefixtures("emulator", "both_ways"),
    pytest.mark.sanitize("global_races"),
]

GFX90A, GFX942, GFX11, GFX12 = "gfx90a", "gfx942", "gfx1100", "gfx1201"
WAVE = {GFX90A: 64, GFX942: 64, GFX11: 32, GFX12: 32}


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """How a GPU spells what HIP's memory model needs, at device scope."""

    start: str
    wait: str
    release: str
    acquire: str
    publish: str
    look: str
    add: str
    store: str = "global_store_b32"
    load: str = "global_load_b32"
    wide: str = "global_store_b128"


_OLD_START = "s_load_dwordx4 s[4:7], s[0:1], 0x0\n  s_mov_b32 s20, s2"
_NEW_START = "s_load_b128 s[4:7], s[0:1], 0x0\n  s_mov_b32 s20, {group}"
_CDNA = {
    "start": _OLD_START,
    "wait": "s_waitcnt vmcnt(0) lgkmcnt(0)",
    "store": "global_store_dword",
    "load": "global_load_dword",
    "wide": "global_store_dwordx4",
    "add": "global_atomic_add v3, v9, s[6:7]",
}
_RDNA11 = "s_waitcnt vmcnt(0) lgkmcnt(0)\n  s_waitcnt_vscnt null, 0x0"
_RDNA12 = "s_wait_loadcnt 0\n  s_wait_storecnt 0\n  s_wait_kmcnt 0"
_WORDS = {
    GFX90A: Words(**_CDNA, release="s_waitcnt vmcnt(0)", acquire="buffer_wbinvl1",
                  publish="global_store_dword v3, v9, s[6:7] glc",
                  look="global_load_dword v4, v3, s[6:7] glc"),
    GFX942: Words(**_CDNA, release="buffer_wbl2 sc1\n  s_waitcnt vmcnt(0)",
                  acquire="buffer_inv sc1", publish="global_store_dword v3, v9, s[6:7] sc1",
                  look="global_load_dword v4, v3, s[6:7] sc1"),
    GFX11: Words(start=_NEW_START.format(group="s2"), wait=_RDNA11,
                 release="s_waitcnt_vscnt null, 0x0", acquire="buffer_gl1_inv\n  buffer_gl0_inv",
                 publish="global_store_b32 v3, v9, s[6:7] glc",
                 look="global_load_b32 v4, v3, s[6:7] glc",
                 add="global_atomic_add_u32 v3, v9, s[6:7]"),
    GFX12: Words(start=_NEW_START.format(group="ttmp9"), wait=_RDNA12, release="s_wait_storecnt 0",
                 acquire="global_inv scope:SCOPE_DEV",
                 publish="global_store_b32 v3, v9, s[6:7] scope:SCOPE_DEV",
                 look="global_load_b32 v4, v3, s[6:7] scope:SCOPE_DEV",
                 add="global_atomic_add_u32 v3, v9, s[6:7] scope:SCOPE_DEV"),
}  # fmt: skip

#: v1 is 4 × the thread's number, v2 the workgroup's, v3 is 0, v9 is 1; s[4:5] data, s[6:7] a flag.
_NUMBERS = (
    "v_lshlrev_b32 v1, 2, v0",
    "{wait}",
    "v_mov_b32 v2, s20",
    "v_mov_b32 v3, 0",
    "v_mov_b32 v9, 1",
)
_SECOND = ("s_cmp_eq_u32 s20, 1", "s_cbranch_scc1 second{n}")
_END = ("s_endpgm", "second{n}:")
_SEND = "{store} v1, v9, s[4:5]"
_TAKE = "{load} v5, v1, s[4:5]"
_SPIN = (
    "spin{n}:",
    "{look}",
    "{wait}",
    "v_readfirstlane_b32 s10, v4",
    "s_cmp_eq_u32 s10, 0",
    "s_cbranch_scc1 spin{n}",
)


def message(*, release: bool, acquire: bool) -> tuple[str, ...]:
    """Workgroup 0 writes data and then a flag, for which workgroup 1 waits."""
    first = (*_SECOND, _SEND, *(("{release}",) if release else ()), "{publish}", *_END)
    return (*first, *_SPIN, *(("{acquire}",) if acquire else ()), _TAKE)


_FOUR = (
    *("v_lshlrev_b32 v1, 2, v1", "v_mov_b32 v10, 1", "v_mov_b32 v11, 2"),
    *("v_mov_b32 v12, 3", "v_mov_b32 v13, 4"),
)
_WIDE = "{wide} v1, v[10:13], s[4:5]"

#: Lines of kernels of two workgroups, and whether they race.
CASES = {
    "each its own": (("v_lshl_add_u32 v1, v2, 8, v1", "{store} v1, v2, s[4:5]"), False),
    "both write": (("{store} v1, v2, s[4:5]",), True),
    "both write the same": (("{store} v1, v9, s[4:5]",), False),
    "both read": ((_TAKE,), False),
    "both add": (("{add}",), False),
    "neighbouring bytes": (
        ("v_lshl_add_u32 v1, v0, 1, v2", "global_store_{byte} v1, v9, s[4:5]"),
        False,
    ),
    "both write four, the same": ((*_FOUR, _WIDE), False),
    "both write four, one of them another": ((*_FOUR, "v_mov_b32 v12, v2", _WIDE), True),
    "both write four of their own": (
        (*_FOUR, "v_lshl_add_u32 v1, v2, 10, v1", _WIDE, "v_not_b32 v12, v12", _WIDE),
        False,
    ),
    "both write far apart": (("v_lshlrev_b32 v1, 3, v1", "{store} v1, v2, s[4:5]"), True),
    "each its own far apart": (
        ("v_lshlrev_b32 v1, 3, v1", "v_lshl_add_u32 v1, v2, 2, v1", "{store} v1, v2, s[4:5]"),
        False,
    ),
    "one writes, one reads": ((*_SECOND, _SEND, *_END, _TAKE), True),
    "one reads, one writes": ((*_SECOND, _TAKE, *_END, _SEND), True),
    "one adds, one reads": ((*_SECOND, "{add}", *_END, "{load} v5, v3, s[6:7]"), True),
    "one adds, one looks": ((*_SECOND, "{add}", *_END, "{look}"), False),
    "a message": (message(release=True, acquire=True), False),
    "a message without acquire": (message(release=True, acquire=False), True),
    "a message without release": (message(release=False, acquire=True), True),
}


def lines_of(arch: str, number: int, lines: tuple[str, ...]) -> str:
    words = _WORDS[arch]
    spelled = {name: getattr(words, name) for name in Words.__slots__}
    text = "\n  ".join((words.start, *_NUMBERS, *lines))
    return f"  {text}\n".format(
        n=number, byte="byte" if WAVE[arch] == 64 else "b8", group="", **spelled
    )


@pytest.fixture(scope="module", params=WAVE)
def kernels(request: pytest.FixtureRequest) -> Module:
    arch: str = request.param
    bodies = {name: lines_of(arch, n, lines) for n, (name, (lines, _)) in enumerate(CASES.items())}
    return assembled(bodies, arch, wave=WAVE[arch])


def fault_of(module: Module, name: str) -> str:
    data, flag = np.full(1024, 7, np.uint32), np.zeros(64, np.uint32)
    return module.fault(name, data, flag, grid=2, block=WAVE[DEVICES[module.device]])


@pytest.mark.parametrize("name", CASES)
def test_races_between_workgroups(kernels: Module, name: str) -> None:
    message = fault_of(kernels, name)
    assert bool(message) == CASES[name][1], message
    if not message:
        return
    said = re.search(
        r"race in global memory: (\w+) (reads|writes) address 0x\w+, which workgroup "
        r"\(([01]), 0, 0\) has (read|written) at pc 0x\w+: (\w+) ",
        message,
    )
    assert said is not None, message
    assert (said[2], said[4]) != ("reads", "read")
    assert said[1].startswith("global_")
    assert said[5].startswith("global_")
    assert f"kernel {symbol(name)}, workgroup ({1 - int(said[3])}, 0, 0), wave 0" in message


def test_nothing_is_checked_unless_asked(kernels: Module) -> None:
    emulator.sanitize()
    assert not fault_of(kernels, "both write")


def test_all_is_every_check(kernels: Module) -> None:
    emulator.sanitize("all")
    assert "race in global memory" in fault_of(kernels, "both write")
