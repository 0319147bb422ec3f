# SPDX-License-Identifier: MIT
"""The checks of local memory: accesses that no barrier orders, and reads of what nobody wrote."""

import re
from dataclasses import dataclass

import pytest

from cklang import emulator
from tests.emulator import test_foreign_aiter, test_triton
from tests.support.assembly import WAVE, Module, assembled, fault_of, hip, ok, symbol
from tests.support.rdna import BARRIERS, GFX11, GFX12, WAITS
from tests.support.triton_kernels import MADE

pytestmark = pytest.mark.usefixtures("emulator", "both_ways")

GFX950 = "gfx950"
BARRIER = {GFX950: "s_barrier", **BARRIERS}
WAIT = {GFX950: "s_waitcnt vmcnt(0) lgkmcnt(0)", **WAITS}
_START = {
    GFX950: "s_load_dwordx4 s[4:7], s[0:1], 0x0\n  v_lshlrev_b32 v1, 2, v0\n  v_or_b32 v9, 1, v1",
    GFX11: "s_load_b128 s[4:7], s[0:1], 0x0\n  v_lshlrev_b32 v1, 2, v0\n  v_or_b32 v9, 1, v1",
}
_START[GFX12] = _START[GFX11]
#: v1 is 4 × the thread's number, v2 the same in reverse order: another wave's for two waves. v9 is
#: another number for each thread.
_REVERSED = "v_sub_nc_u32 v2, {last}, v1"
SEND, TAKE = "ds_write_b32 v1, v9", "ds_read_b32 v3, v2"
CHANGE = "v_not_b32 v9, v9"
OWN = "ds_read_b32 v3, v1"
HALF = "s_mov_b64 exec, 0xff"
_TWICE = ("v_mov_b32 v8, 3", "v_lshlrev_b32 v5, 1, v1", "v_lshlrev_b32 v6, 1, v2")
SEND_TWO, TAKE_TWO = "ds_write_b64 v5, v[8:9]", "ds_read_b64 v[2:3], v6"
BACKWARDS = ("v_sub_nc_u32 v5, 0, v1", "v_add_nc_u32 v6, 8, v5")
"""v5 is −4 × the thread's number: compilers add the rest of `s[last - t]` as the offset."""
_FLAT = ("s_mov_b64 s[10:11], src_shared_base", "v_mov_b32 v7, s11")
FLAT_SEND = (*_FLAT, "v_mov_b32 v6, v1", "flat_store_dword v[6:7], v9")
FLAT_TAKE = (*_FLAT, "v_mov_b32 v6, v2", "flat_load_dword v3, v[6:7]")
CHANGE_FEW = "v_max_u32 v9, 9, v9"
"""Of the first two lanes of the first wave."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Lines of a kernel of two waves, and whether they race."""

    lines: tuple[str, ...]
    races: bool


def clean(*lines: str) -> Case:
    return Case(lines=lines, races=False)


def raced(*lines: str) -> Case:
    return Case(lines=lines, races=True)


RACES = {
    "a barrier between": clean(SEND, "{wait}", "{barrier}", TAKE),
    "a wave's own": clean(SEND, "{wait}", OWN),
    "everyone reads": clean(TAKE, OWN),
    "everyone reads backwards": clean(*BACKWARDS, "ds_read_b32 v3, v5 offset:{last}"),
    "everyone reads by flat loads": clean(*FLAT_TAKE),
    "atomic operations": clean("ds_add_u32 v1, v9", "ds_add_u32 v2, v9", "ds_add_u32 v1, v9"),
    "neighbouring bytes": clean("v_lshrrev_b32 v4, 2, v1", "ds_write_b8 v4, v9"),
    "the same again": clean(SEND, "{wait}", "{barrier}", TAKE, SEND),
    "a value that waves share": clean("v_mov_b32 v5, 0", "v_mov_b32 v6, 7", "ds_write_b32 v5, v6",
                                      "ds_read_b32 v3, v5"),
    "nothing new behind the barrier": clean(SEND, "{wait}", "{barrier}", SEND, TAKE),
    "no two new": clean(*_TWICE, SEND_TWO, "{wait}", "{barrier}", SEND_TWO, TAKE_TWO),
    "dwords of bytes": clean("v_lshrrev_b32 v4, 2, v1", "ds_write_b8 v4, v9", "{wait}", "{barrier}",
                             SEND, "{wait}", "{barrier}", TAKE),
    "beyond the end": clean("v_mov_b32 v2, 0x8000", "ds_write_b32 v2, v9", "ds_read_b32 v3, v2"),
    "backwards, behind a barrier": clean(
        *BACKWARDS, SEND, "{wait}", "{barrier}", "ds_read_b32 v3, v5 offset:{last}"
    ),
    "flat accesses, a barrier between": clean(*FLAT_SEND, "{wait}", "{barrier}", *FLAT_TAKE),
    "a wave's own by flat accesses": clean(*FLAT_SEND, "{wait}", OWN),
    "the same value by flat stores": clean(
        *_FLAT, "v_mov_b32 v6, 0", "v_mov_b32 v8, 7", "flat_store_dword v[6:7], v8"
    ),
    "read after write": raced(SEND, "{wait}", TAKE),
    "read backwards": raced(*BACKWARDS, SEND, "{wait}", "ds_read_b32 v3, v5 offset:{last}"),
    "written backwards": raced(*BACKWARDS, SEND, "ds_write_b32 v5, v9 offset:{last}"),
    "two read backwards": raced(
        *BACKWARDS, SEND, "{wait}", "ds_read2_b32 v[4:5], v6 offset0:0 offset1:{last_dword}"
    ),
    "read by flat loads": raced(SEND, "{wait}", *FLAT_TAKE),
    "written by flat stores": raced(*FLAT_SEND, "{wait}", TAKE),
    "an atomic operation and a flat load": raced("ds_add_u32 v1, v9", "{wait}", *FLAT_TAKE),
    "write after read": raced(TAKE, "{wait}", SEND),
    "both write": raced(SEND, "ds_write_b32 v2, v9"),
    "the barrier comes too early": raced("{barrier}", SEND, TAKE),
    "reused too soon": raced(SEND, "{wait}", "{barrier}", TAKE, CHANGE, SEND),
    "few are new": raced(SEND, "{wait}", "{barrier}", CHANGE_FEW, SEND, TAKE),
    "few of two are new": raced(
        *_TWICE, SEND_TWO, "{wait}", "{barrier}", CHANGE_FEW, SEND_TWO, TAKE_TWO
    ),
    "of lanes at one place the last stores what is there": raced(SEND, "{wait}", "{barrier}",
        "v_and_b32 v5, -8, v1", "v_xor_b32 v6, 4, v9", "ds_write_b32 v5, v6", TAKE),
    "an atomic operation and a read": raced("ds_add_u32 v1, v9", "{wait}", TAKE),
    "the second place of two": raced(SEND, "v_mov_b32 v5, 0",
                                     "ds_read2_b32 v[6:7], v5 offset0:0 offset1:100"),
    "64 times as far": raced(SEND, "v_mov_b32 v5, 0",
                             "ds_read2st64_b32 v[6:7], v5 offset0:0 offset1:1"),
    "wide accesses": raced(SEND, "v_and_b32 v5, -16, v2", "ds_read_b128 v[4:7], v5"),
}  # fmt: skip


def lines_for(arch: str, lines: tuple[str, ...], threads: int) -> str:
    start = [_START[arch], _REVERSED.format(last=4 * (threads - 1)), WAIT[arch]]
    text = "\n  ".join((*start, *lines))
    if arch == GFX950:
        text = text.replace("v_sub_nc_u32", "v_sub_u32").replace("v_add_nc_u32", "v_add_u32")
    words = {"wait": WAIT[arch], "barrier": BARRIER[arch], "last": 4 * (threads - 1)}
    return f"  {text}\n".format(**words, last_dword=threads - 1)


@pytest.fixture(scope="module", params=[GFX950, GFX11, GFX12])
def kernels(request: pytest.FixtureRequest) -> Module:
    arch: str = request.param
    bodies = {name: lines_for(arch, case.lines, 2 * WAVE[arch]) for name, case in RACES.items()}
    return assembled(bodies, arch, lds=1024, wave=WAVE[arch])


@pytest.mark.parametrize("name", RACES)
def test_races(kernels: Module, name: str) -> None:
    assert not fault_of(kernels, name)  # nothing is asked for
    emulator.sanitize("races")
    message = fault_of(kernels, name)
    assert bool(message) == RACES[name].races, message
    if not message:
        return
    said = re.search(
        r"race in local memory: (\w+) (reads|writes) byte 0x\w+, which wave [01] "
        r"has (read|written) at pc 0x\w+: (\w+) .*, and no barrier is between",
        message,
    )
    assert said is not None
    assert (said[2], said[3]) != ("reads", "read")
    assert said[1].startswith(("ds_", "flat_"))
    assert said[4].startswith(("ds_", "flat_"))
    assert f"kernel {symbol(name)}, workgroup (0, 0, 0), wave " in message


def test_one_wave_races_with_nobody(kernels: Module) -> None:
    emulator.sanitize("races")
    for name in RACES:
        assert not fault_of(kernels, name, waves=1)


@pytest.mark.parametrize(
    ("lines", "ordered"),
    [
        ((SEND, "s_wait_dscnt 0x0", "s_barrier_signal -1", "s_barrier_wait -1", TAKE), True),
        ((SEND, "s_wait_dscnt 0x0", "s_barrier_signal -1", TAKE, "s_barrier_wait -1"), False),
        (("s_barrier_signal -1", SEND, "s_wait_dscnt 0x0", "s_barrier_wait -1", TAKE), False),
    ],
)
def test_split_barriers(lines: tuple[str, ...], ordered: bool) -> None:
    """What lies between arriving and waiting is ordered with nothing that the others do there."""
    bodies = {"split": lines_for(GFX12, lines, 64)}
    module = assembled(bodies, GFX12, lds=1024, wave=32)
    emulator.sanitize("races")
    message = fault_of(module, "split")
    assert (message == "") == ordered
    assert ordered or "race in local memory" in message


@pytest.mark.parametrize(("first", "raced"), [("0", True), ("0x200", False)])
def test_loads_to_local_memory_write_it(first: str, raced: bool) -> None:
    lines = (f"s_mov_b32 m0, {first}", "global_load_lds_dwordx4 v1, s[4:5]", "{wait}", OWN)
    bodies = {"load": lines_for(GFX950, lines, 128)}
    module = assembled(bodies, GFX950, lds=4096)
    emulator.sanitize("races")
    # Both waves load to the same place.
    assert "global_load_lds_dwordx4 writes byte" in fault_of(module, "load")
    # One wave reads what it has loaded, or, 512 bytes further, what nobody has.
    emulator.sanitize("uninitialized")
    message = fault_of(module, "load", waves=1)
    assert (message == "") == raced
    assert raced or "uninitialized local memory: ds_read_b32 reads byte 0x0" in message


def test_uninitialized_memory(kernels: Module) -> None:
    emulator.sanitize("uninitialized")
    written = ("a barrier between", "backwards, behind a barrier", "both write", "beyond the end")
    for name in (*written, "flat accesses, a barrier between"):
        assert not fault_of(kernels, name)
    unwritten = ("everyone reads", "everyone reads backwards", "everyone reads by flat loads")
    for name in (*unwritten, "atomic operations"):
        assert "which the workgroup has not written" in fault_of(kernels, name)


#: The part of A that its masked loads leave out is never written, and is read all the same.
_READS_GARBAGE = ("gfx950", "gemm_f32")


@pytest.mark.parametrize("kind", test_triton.KINDS)
@pytest.mark.parametrize("gpu", MADE)
def test_other_compilers_order_what_they_share(gpu: str, kind: str) -> None:
    for name in MADE[gpu]:
        checks = ("races", "uninitialized")[: 1 + ((gpu, name) != _READS_GARBAGE)]
        emulator.sanitize(*checks)
        if name.startswith(kind):
            test_triton.KINDS[kind](gpu, name)


def test_hand_written_kernels_do_not() -> None:
    """The package's layer norm writes to local memory what slower waves still read."""
    emulator.sanitize("races")
    with pytest.raises(AssertionError, match="hipErrorLaunchFailure"):
        test_foreign_aiter.test_layer_norm(quantised=False)
    assert "race in local memory: ds_write" in emulator.fault(0)
    ok(hip().hipDeviceReset())
