# SPDX-License-Identifier: MIT
"""Stores that a wave has not waited for when it arrives at a barrier, and another wave reads."""

from dataclasses import dataclass

import pytest

from cklang import emulator
from tests.support.assembly import DEVICES, WAVE, Module, assembled, fault_of
from tests.support.rdna import BARRIERS, GFX11, GFX12

pytestmark = pytest.mark.usefixtures("emulator")

GFX950 = "gfx950"
BARRIER = {GFX950: "s_barrier", **BARRIERS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """How a GPU spells loads, stores and the waits for them."""

    load: str
    store: str
    local_wait: str
    load_wait: str
    store_wait: str
    start: str


WORDS = {
    GFX950: Words(
        load="global_load_dword v3, v2, s[4:5]",
        store="global_store_dword v1, v9, s[4:5]",
        local_wait="s_waitcnt lgkmcnt(0)",
        load_wait="s_waitcnt vmcnt(0)",
        store_wait="s_waitcnt vmcnt(0)",
        start="s_load_dwordx4 s[4:7], s[0:1], 0x0\n  v_sub_u32 v2, {last}, v1",
    ),
    GFX11: Words(
        load="global_load_b32 v3, v2, s[4:5]",
        store="global_store_b32 v1, v9, s[4:5]",
        local_wait="s_waitcnt lgkmcnt(0)",
        load_wait="s_waitcnt vmcnt(0)",
        store_wait="s_waitcnt_vscnt null, 0x0",
        start="s_load_b128 s[4:7], s[0:1], 0x0\n  v_sub_nc_u32 v2, {last}, v1",
    ),
    GFX12: Words(
        load="global_load_b32 v3, v2, s[4:5]",
        store="global_store_b32 v1, v9, s[4:5]",
        local_wait="s_wait_dscnt 0x0\n  s_wait_kmcnt 0x0",
        load_wait="s_wait_loadcnt 0x0",
        store_wait="s_wait_storecnt 0x0",
        start="s_load_b128 s[4:7], s[0:1], 0x0\n  v_sub_nc_u32 v2, {last}, v1",
    ),
}
#: v1 is 4 × the thread's number, v2 that of a thread of the other wave, v9 another number for each.
SEND, TAKE = "ds_write_b32 v1, v9", "ds_read_b32 v3, v2"

FLAT_SEND = (
    *("s_mov_b64 s[10:11], src_shared_base", "v_mov_b32 v7, s11", "v_mov_b32 v6, v1"),
    "flat_store_dword v[6:7], v9",
)

#: Lines between the barriers, the check that reports them, and whether it does.
CASES: dict[str, tuple[tuple[str, ...], str, bool]] = {
    "waited for": ((SEND, "{local_wait}", "{barrier}", TAKE), "races", False),
    "not waited for": ((SEND, "{barrier}", TAKE), "races", True),
    "waited for behind the barrier": ((SEND, "{barrier}", "{local_wait}", TAKE), "races", True),
    "another counter": ((SEND, "{load_wait}", "{barrier}", TAKE), "races", True),
    "overwritten by another wave": ((SEND, "{barrier}", "v_not_b32 v9, v9", "ds_write_b32 v2, v9"),
                                    "races", True),
    "read under way": (
        (SEND, "{local_wait}", "{barrier}", TAKE, "{barrier}", "v_not_b32 v9, v9", SEND),
        "races",
        False,
    ),
    "of two stores the last": ((SEND, "{local_wait}", "v_not_b32 v9, v9", SEND, "{barrier}", TAKE),
                               "races", True),
    "a second barrier": ((SEND, "{barrier}", "{local_wait}", "{barrier}", TAKE), "races", False),
    "a flat store, waited for": ((*FLAT_SEND, "{local_wait}", "{barrier}", TAKE), "races", False),
    "a flat store, not waited for": ((*FLAT_SEND, "{barrier}", TAKE), "races", True),
    "global, waited for": (("{store}", "{store_wait}", "{barrier}", "{load}"), "global_races",
                           False),
    "global, not waited for": (("{store}", "{barrier}", "{load}"), "global_races", True),
    "global, another counter": (("{store}", "{local_wait}", "{barrier}", "{load}"), "global_races",
                                True),
    "global, no barrier": (("{store}", "{store_wait}", "{load}"), "global_races", True),
}  # fmt: skip


def body(arch: str, lines: tuple[str, ...]) -> str:
    words, last = WORDS[arch], 4 * (2 * WAVE[arch] - 1)
    start = ("v_lshlrev_b32 v1, 2, v0", "v_or_b32 v9, 1, v1", words.start, words.local_wait)
    text = "\n  ".join(("", *start, *lines, words.load_wait, words.local_wait))
    spelled = {name: getattr(words, name) for name in Words.__slots__}
    return text.format(barrier=BARRIER[arch], last=last, **{**spelled, "start": ""}).replace(
        "{last}", str(last)
    )


@pytest.fixture(scope="module", params=[GFX950, GFX11, GFX12])
def kernels(request: pytest.FixtureRequest) -> Module:
    arch: str = request.param
    bodies = {name: body(arch, lines) for name, (lines, _, _) in CASES.items()}
    return assembled(bodies, arch, lds=1024, wave=WAVE[arch])


@pytest.mark.parametrize("name", CASES)
def test_stores_before_a_barrier(kernels: Module, name: str) -> None:
    _, check, reported = CASES[name]
    assert not fault_of(kernels, name)  # nothing is asked for
    emulator.sanitize(check)
    message = fault_of(kernels, name)
    assert bool(message) == reported, message
    if not reported:
        return
    where = "global" if check == "global_races" else "local"
    assert f"race in {where} memory: " in message
    missing = "no barrier is between" if "no barrier" in name else "covers it before the barrier"
    assert missing in message


def test_one_wave_waits_for_nobody(kernels: Module) -> None:
    emulator.sanitize("races", "global_races")
    for name in CASES:
        assert not fault_of(kernels, name, waves=1)


def test_the_report_names_the_wait(kernels: Module) -> None:
    words = {
        GFX950: ("s_waitcnt lgkmcnt", "s_waitcnt vmcnt"),
        GFX11: ("s_waitcnt lgkmcnt", "s_waitcnt_vscnt"),
        GFX12: ("s_wait_dscnt", "s_wait_storecnt"),
    }[DEVICES[kernels.device]]
    for check, name, word in zip(
        ("races", "global_races"), ("not waited for", "global, not waited for"), words, strict=True
    ):
        emulator.sanitize(check)
        assert f"no {word} of that wave covers it before the barrier" in fault_of(kernels, name)
