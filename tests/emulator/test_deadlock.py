# SPDX-License-Identifier: MIT
"""Kernels that wait for each other end; kernels that wait for ever end with a report."""

from collections.abc import Iterator

import numpy as np
import pytest

from cklang import emulator
from cklang.errors import CkValueError
from tests.support.assembly import Module, assemble, assembled, hip, ok

pytestmark = pytest.mark.usefixtures("emulator")

_LOAD = "  s_load_dwordx4 s[4:7], s[0:1], 0x0\n  v_mov_b32 v1, 0\n  s_waitcnt lgkmcnt(0)\n"


def wait(name: str, sleep: str = "", count: str = "v4") -> str:
    """Poll the first dword of the output until it is `count`."""
    return (
        f"wait_{name}:\n{sleep}  global_load_dword v3, v1, s[6:7] sc1\n  s_waitcnt vmcnt(0)\n"
        f"  v_cmp_ge_u32 vcc, v3, {count}\n  s_cbranch_vccz wait_{name}\n"
    )


#: Each workgroup's first lane adds one to the output; then all wait until the sum is in s8.
_ARRIVE = (
    "  v_mov_b32 v4, {groups}\n  v_mov_b32 v2, 1\n  s_mov_b64 s[10:11], exec\n  s_mov_b64 exec, 1\n"
    "  global_atomic_add v1, v2, s[6:7]\n  s_mov_b64 exec, s[10:11]\n"
)
BODIES = {
    "nobody": _LOAD + "  v_mov_b32 v4, 1\n" + wait("nobody"),
    "sleeper": _LOAD + "  v_mov_b32 v4, 1\n" + wait("sleeper", "  s_sleep 1\n"),
    # Wave 0 waits for a flag, the others for wave 0.
    "mixed": _LOAD + "  v_mov_b32 v4, 1\n  v_readfirstlane_b32 s9, v0\n  s_cmp_eq_u32 s9, 0\n"
    "  s_cbranch_scc1 wait_mixed\n  s_barrier\n  s_endpgm\n" + wait("mixed") + "  s_barrier\n",
    "grid_small": _LOAD + _ARRIVE.format(groups=600) + wait("grid_small", "  s_sleep 1\n"),
    "grid_large": _LOAD + _ARRIVE.format(groups=1000) + wait("grid_large", "  s_sleep 1\n"),
    # Workgroups hand a counter on, each waiting for its turn, last one first. One lane counts:
    # lanes store one after the other, and the next workgroup goes on after the first of them.
    "relay": _LOAD + "  v_mov_b32 v4, s2\n" + wait("relay") + "  v_cmp_gt_u32 vcc, v3, v4\n"
    "  s_cbranch_vccnz done_relay\n  v_add_u32 v5, 1, v4\n  s_mov_b64 exec, 1\n"
    "  global_store_dword v1, v5, s[6:7]\ndone_relay:\n",
    # 120 million instructions without a store.
    "busy": _LOAD + "  s_mov_b32 s8, 0\nbusy_loop:\n  s_add_u32 s8, s8, 1\n"
    "  s_cmp_lt_u32 s8, 0x2600000\n"
    "  s_cbranch_scc1 busy_loop\n  v_mov_b32 v2, s8\n  global_store_dword v1, v2, s[6:7]\n",
    # Three of four waves end before the barrier.
    "ended": _LOAD + "  v_readfirstlane_b32 s9, v0\n  s_cmp_eq_u32 s9, 0\n  s_cbranch_scc1 stay\n"
    "  s_endpgm\nstay:\n  s_barrier\n  v_mov_b32 v2, 7\n  global_store_dword v1, v2, s[6:7]\n",
}  # fmt: skip


@pytest.fixture(scope="module")
def image() -> bytes:
    return assemble(BODIES, lds=32768)


@pytest.fixture
def module(image: bytes) -> Iterator[Module]:
    loaded = Module(image)
    ok(hip().hipDeviceReset())
    yield loaded
    ok(hip().hipDeviceReset())


def arrays() -> tuple[np.ndarray, np.ndarray]:
    return np.zeros(64, np.uint32), np.zeros(64, np.uint32)


@pytest.mark.parametrize("name", ["nobody", "sleeper"])
def test_a_flag_that_nobody_sets(module: Module, name: str) -> None:
    emulator.deadlock_threshold(64)
    assert module.launch(name, *arrays(), grid=2) == "hipErrorLaunchTimeOut"
    text = emulator.fault(0)
    for part in (
        f"deadlock: no workgroup of kernel {name}",
        "workgroup (0, 0, 0), wave 0 repeats, pc 0x",
        "workgroup (1, 0, 0), wave 0 repeats, pc 0x",
    ):
        assert part in text


def test_the_report_tells_who_waits_at_a_barrier(module: Module) -> None:
    emulator.deadlock_threshold(64)
    assert module.launch("mixed", *arrays(), block=256) == "hipErrorLaunchTimeOut"
    text = emulator.fault(0)
    assert "wave 0 repeats" in text
    for wave in (1, 2, 3):
        assert f"wave {wave} waits at a barrier, pc 0x" in text
    assert "s_barrier" in text


@pytest.mark.parametrize(
    ("name", "threshold", "shape", "result"),
    [
        pytest.param("grid_small", 0, {"grid": 600}, 600, id="resident workgroups at a barrier"),
        pytest.param("relay", 64, {"grid": 40}, 40, id="workgroups wait for each other in turn"),
        pytest.param("busy", 16, {}, 0x2600000, id="silent work"),
        pytest.param("ended", 0, {"block": 256}, 7, id="ended waves count at a barrier"),
    ],
)
def test_what_is_no_deadlock(
    module: Module, name: str, threshold: int, shape: dict[str, int], result: int
) -> None:
    if threshold:
        emulator.deadlock_threshold(threshold)
    source, output = arrays()
    assert module.launch(name, source, output, **shape) == "hipSuccess"
    assert output[0] == result


def test_a_grid_barrier_of_more_workgroups_than_fit_is_reported(module: Module) -> None:
    emulator.deadlock_threshold(64)
    assert module.launch("grid_large", *arrays(), grid=1000) == "hipErrorLaunchTimeOut"
    text = emulator.fault(0)
    assert "392 of 1000 have no room to start beside the 608 that wait" in text
    assert "more waves" in text


def test_fewer_workgroups_under_way_leave_others_no_room(module: Module) -> None:
    """The limit is for kernels whose workgroups do not wait for each other."""
    emulator.deadlock_threshold(64)
    emulator.max_resident_workgroups(8)
    try:
        assert module.launch("grid_small", *arrays(), grid=600) == "hipErrorLaunchTimeOut"
        assert "592 of 600 have no room to start beside the 8 that wait" in emulator.fault(0)
        ok(hip().hipDeviceReset())
        source, output = arrays()
        assert module.launch("ended", source, output, grid=600, block=256) == "hipSuccess"
        assert output[0] == 7
    finally:
        emulator.max_resident_workgroups(0)
    with pytest.raises(CkValueError, match="0 or more"):
        emulator.max_resident_workgroups(-1)


def test_the_report_names_the_source_line() -> None:
    body = '.file 1 "flag.hip"\n.loc 1 42 0\n' + BODIES["nobody"].replace("nobody", "line")
    loaded = assembled({"k": body})
    emulator.deadlock_threshold(64)
    assert "flag.hip:42)" in loaded.fault("k", *arrays())
