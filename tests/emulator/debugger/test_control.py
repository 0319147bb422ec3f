# SPDX-License-Identifier: MIT
"""Launches under control: forward, back, and what is read of them."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from cklang import emulator
from cklang.emulator.debugger.inside import _controlled
from cklang.emulator.debugger.wire import ControlledLaunch, Goal, Reason, Stop, StopAt, Until, Where
from tests.support.assembly import DEVICES, Module, assembled, hip, ok

pytestmark = pytest.mark.usefixtures("emulator")

_ROUNDS = 5
_COUNT = f"""
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  s_lshl_b32 s8, s2, 10
  v_add_u32 v1, s8, v1
  s_mov_b32 s3, 0
  s_waitcnt lgkmcnt(0)
count_again:
  s_add_u32 s3, s3, 1
  v_mov_b32 v2, s3
  global_store_dword v1, v2, s[6:7]
  s_cmp_lt_u32 s3, {_ROUNDS}
  s_cbranch_scc1 count_again
"""
_TICKET = """
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  v_mov_b32 v2, 1
  v_mov_b32 v4, 0
  s_memtime s[10:11]
  s_waitcnt lgkmcnt(0)
  global_atomic_add v3, v4, v2, s[4:5] sc0
  s_waitcnt vmcnt(0)
  s_barrier
  global_store_dword v1, v3, s[6:7]
"""
_LOCAL = """
  v_lshlrev_b32 v1, 2, v0
  v_mul_u32_u24 v2, 3, v0
  ds_write_b32 v1, v2 offset:64
  s_waitcnt lgkmcnt(0)
  s_mov_b64 exec, 0xffff
  scratch_store_dword off, v2, off offset:8
  v_mov_b32 v5, v2
  v_accvgpr_write_b32 a3, v2
"""
_WRONG = """
  s_mov_b64 s[6:7], 64
  v_lshlrev_b32 v1, 2, v0
  v_mov_b32 v2, 7
  global_store_dword v1, v2, s[6:7]
"""
_EARLY = """
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  s_add_u32 s8, s4, 1
  s_waitcnt lgkmcnt(0)
"""
_BODIES = {"count": _COUNT, "ticket": _TICKET, "local": _LOCAL, "wrong": _WRONG, "early": _EARLY}


@pytest.fixture(scope="module")
def module() -> Module:
    return assembled(_BODIES, lds=1024, scratch=64)


Control = Callable[[ControlledLaunch], None]


def launch(
    module: Module, name: str, control: Control, groups: int = 1, block: int = 64
) -> tuple[str, np.ndarray, np.ndarray]:
    """Run a kernel under control; return its status, and both of its arrays."""
    a, b = np.zeros(groups * block, np.uint32), np.zeros((groups, 256), np.uint32)
    with _controlled(control):
        status = module.launch(name, a, b, grid=groups, block=block)
    return str(status), a, b


def instruction(launch: ControlledLaunch, mnemonic: str) -> int:
    lines = emulator.disassemble("gfx942", launch.facts.code).splitlines()
    for line in lines:
        at, _, text = line.partition(": ")
        if int(at, 16) // 4 >= launch.entry and text.startswith(mnemonic):
            return int(at, 16) // 4
    raise AssertionError(mnemonic)


def back(launch: ControlledLaunch, count: int, wave: int = 0) -> Stop:
    return launch.run(Goal(Until.COUNT, 0, wave, count))


def test_what_a_launch_is(module: Module) -> None:
    def control(launch: ControlledLaunch) -> None:
        assert launch.facts.kernel == "count"
        assert (launch.facts.groups, launch.facts.block) == ((3, 1, 1), (128, 1, 1))
        assert [each.size for each in launch.arguments] == [8, 8]
        assert launch.where().reason is Reason.START
        assert not launch.waves()

    status, _, b = launch(module, "count", control, 3, 128)
    assert status == "hipSuccess"
    assert (b[:, :128] == _ROUNDS).all()


def test_every_instruction_forward_and_back(module: Module) -> None:
    """A wave's registers, and memory, are the same when the launch comes to a place again."""

    def state(launch: ControlledLaunch) -> tuple[object, ...]:
        (first, *_) = launch.waves()
        b = int.from_bytes(launch.memory(launch.kernarg + 8, 8), "little")
        return (
            launch.scalars(0, 0).tobytes(),
            launch.rows(0, 0, 0, 4).tobytes(),
            launch.memory(b, 512),
            first.dword,
            first.executed,
        )

    def control(launch: ControlledLaunch) -> None:
        states = []
        total = 7 + 5 * _ROUNDS - 1
        for count in range(total):
            stop = back(launch, count)
            assert (stop.reason, stop.group, stop.wave) == (Reason.STEP, 0, 0)
            states.append(state(launch))
        for count in (*reversed(range(total)), 7, 20, 3):
            back(launch, count)
            assert state(launch) == states[count]
        assert len(set(states)) == total

    status, _, b = launch(module, "count", control, 1, 128)
    assert status == "hipSuccess"
    assert (b[0, :128] == _ROUNDS).all()


def test_breakpoints_forward_and_back(module: Module) -> None:
    def control(launch: ControlledLaunch) -> None:
        store = instruction(launch, "global_store")
        launch.set_breakpoints([StopAt(4, Where.CODE, store, wave=1, group=2)])
        forward = []
        while (stop := launch.run(Goal(Until.BREAKPOINT))).reason is Reason.BREAKPOINT:
            assert (stop.breakpoint, stop.group, stop.wave) == (4, 2, 1)
            forward.append((stop.step, int(launch.scalars(2, 1)[3])))
        assert stop.reason is Reason.ENDED
        backward = []
        while (stop := launch.run(Goal(Until.BREAKPOINT_BEFORE))).reason is Reason.BREAKPOINT:
            backward.append((stop.step, int(launch.scalars(2, 1)[3])))
        assert (stop.reason, stop.step) == (Reason.START, 0)
        assert [counter for _, counter in forward] == [1, 2, 3, 4, 5]
        assert backward == forward[::-1]

    status, _, b = launch(module, "count", control, 3, 128)
    assert status == "hipSuccess"
    assert (b[:, :128] == _ROUNDS).all()


def test_a_breakpoint_at_the_first_instruction(module: Module) -> None:
    def control(launch: ControlledLaunch) -> None:
        launch.set_breakpoints([StopAt(1, Where.CODE, launch.entry)])
        stops = [launch.run(Goal(Until.BREAKPOINT)) for _ in range(3)]
        assert [stop.reason for stop in stops] == [Reason.BREAKPOINT] * 2 + [Reason.ENDED]
        assert [stop.wave for stop in stops[:2]] == [0, 1]

    launch(module, "count", control, 1, 128)


def test_only_waves_with_the_lane(module: Module) -> None:
    def control(launch: ControlledLaunch) -> None:
        move = instruction(launch, "v_mov_b32_e32 v5")
        launch.set_breakpoints([StopAt(1, Where.CODE, move, lane=16)])
        assert launch.run(Goal(Until.BREAKPOINT)).reason is Reason.ENDED
        launch.set_breakpoints([StopAt(1, Where.CODE, move, lane=15)])
        assert launch.run(Goal(Until.BREAKPOINT_BEFORE)).reason is Reason.BREAKPOINT

    launch(module, "local", control)


def test_memory_is_watched(module: Module) -> None:
    addresses: list[int] = []

    def control(launch: ControlledLaunch) -> None:
        b = int.from_bytes(launch.memory(launch.kernarg + 8, 8), "little")
        addresses.append(b)
        lane = 70 * 4
        launch.set_breakpoints([StopAt(1, Where.WRITE, b + lane, b + lane + 4)])
        values = []
        while (stop := launch.run(Goal(Until.BREAKPOINT))).reason is Reason.BREAKPOINT:
            assert stop.wave == 1
            values.append(int.from_bytes(launch.memory(b + lane, 4), "little"))
        assert values == [0, 1, 2, 3, 4]
        launch.set_breakpoints([StopAt(1, Where.ACCESS, launch.kernarg, launch.kernarg + 4)])
        stop = launch.run(Goal(Until.BREAKPOINT_BEFORE))
        assert (stop.reason, stop.wave) == (Reason.BREAKPOINT, 1)

    _, _, b = launch(module, "count", control, 1, 128)
    assert addresses == [b.ctypes.data]


def test_atomics_and_clocks_repeat_themselves(module: Module) -> None:
    def control(launch: ControlledLaunch) -> None:
        store = instruction(launch, "global_store")
        launch.set_breakpoints([StopAt(1, Where.CODE, store, wave=3)])
        launch.run(Goal(Until.BREAKPOINT))
        tickets, clock = launch.rows(0, 3, 3, 1), launch.scalars(0, 3)[10:12]
        launch.run(Goal(Until.END))
        stop = launch.run(Goal(Until.BREAKPOINT_BEFORE))
        assert stop.wave == 3
        np.testing.assert_array_equal(launch.rows(0, 3, 3, 1), tickets)
        np.testing.assert_array_equal(launch.scalars(0, 3)[10:12], clock)
        assert 0 < clock[0] < stop.step

    status, a, b = launch(module, "ticket", control, 1, 256)
    assert status == "hipSuccess"
    assert a[0] == 256
    assert sorted(b[0].tolist()) == list(range(256))


def test_values_of_a_wave(module: Module) -> None:
    def control(launch: ControlledLaunch) -> None:
        launch.set_breakpoints([StopAt(1, Where.CODE, instruction(launch, "s_endpgm"), wave=1)])
        launch.run(Goal(Until.BREAKPOINT))
        data = np.frombuffer(launch.local(0, 64, 128 * 4), np.uint32)
        np.testing.assert_array_equal(data, 3 * np.arange(128))
        assert len(launch.local(0, 1000, 64)) == 24
        assert launch.scratch(0, 1, 5, 8, 4) == (3 * 69).to_bytes(4, "little")
        assert launch.scratch(0, 1, 20, 8, 4) == bytes(4)
        assert launch.scratch(0, 1, 20, 60, 64) == bytes(4)
        agprs = launch.rows(0, 1, launch.first_agpr, 4)
        assert agprs[3, :17].tolist() == [*range(3 * 64, 3 * 80, 3), 0]
        (first, second) = launch.waves()
        assert (second.exec, second.state, first.group) == (0xFFFF, "ready", 0)
        assert launch.memory(64, 16) == b""
        assert len(launch.rows(0, 7, 0, 1)) == len(launch.rows(9, 0, 0, 1)) == 0
        assert len(launch.rows(0, 0, 1000, 4)) == 0

    launch(module, "local", control, 1, 128)


def test_steps_of_all_waves(module: Module) -> None:
    def control(launch: ControlledLaunch) -> None:
        stop = launch.run(Goal(Until.STEP, count=40))
        assert (stop.step, stop.wave) == (40, 1)
        assert sum(wave.executed for wave in launch.waves()) == 40
        assert launch.run(Goal(Until.STEP, count=10)).step == 10

    launch(module, "count", control, 1, 128)


def test_lines(module: Module) -> None:
    """Two lines take turns: every two instructions of the loop are one."""

    def control(launch: ControlledLaunch) -> None:
        lines = np.zeros(len(launch.facts.code) // 4, np.uint32)
        first = instruction(launch, "s_add_u32 s3")
        lines[first : first + 2], lines[first + 2 : first + 6] = 1, 2
        launch.set_lines(lines)
        launch.set_breakpoints([StopAt(1, Where.LINE, 2)])
        assert launch.run(Goal(Until.BREAKPOINT)).reason is Reason.BREAKPOINT
        (wave,) = launch.waves()
        assert wave.dword == first + 2
        for line in (1, 2, 1):
            launch.run(Goal(Until.LINE))
            assert lines[launch.waves()[0].dword] == line
        counts = []
        while launch.run(Goal(Until.LINE_BEFORE)).reason is not Reason.START:
            counts.append(launch.waves()[0].executed)
        assert counts == [6 + 5 + 2, 6 + 5, 6 + 2, 6]

    launch(module, "count", control)


@pytest.fixture
def _reset() -> Iterator[None]:
    yield
    ok(hip().hipSetDevice(DEVICES.index("gfx942")))
    ok(hip().hipDeviceReset())


@pytest.mark.usefixtures("_reset")
@pytest.mark.parametrize(("name", "word"), [("wrong", "fault"), ("early", "s4")])
def test_a_fault_stops_and_can_be_stepped_back(name: str, word: str) -> None:
    own = assembled(_BODIES, lds=1024, scratch=64)
    emulator.sanitize("waits")
    stops = []

    def control(launch: ControlledLaunch) -> None:
        stop = launch.run(Goal(Until.BREAKPOINT))
        stops.append(stop)
        failing = launch.waves()[0]
        assert (stop.group, stop.wave) == (0, 0)
        back(launch, failing.executed - 1)
        assert launch.waves()[0].dword < failing.dword
        again = launch.run(Goal(Until.END))
        assert (again.reason, again.message) == (Reason.FAULT, stop.message)

    status, _, _ = launch(own, name, control)
    assert stops[0].reason is Reason.FAULT
    assert word in stops[0].message
    assert status != "hipSuccess"


def test_an_exception_of_the_controller_is_raised(module: Module) -> None:
    def control(launch: ControlledLaunch) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        launch(module, "count", control)


def test_orders_of_execution_under_control(module: Module) -> None:
    """The seeded orders repeat themselves, too."""
    turns: list[list[tuple[int, int | None]]] = []

    def control(launch: ControlledLaunch) -> None:
        store = instruction(launch, "global_store")
        launch.set_breakpoints([StopAt(1, Where.CODE, store)])
        taken = []
        while (stop := launch.run(Goal(Until.BREAKPOINT))).reason is Reason.BREAKPOINT:
            taken.append((stop.step, stop.wave))
        turns.append(taken)

    for order in (0, 3, 3):
        emulator.schedule(order)
        status, _, b = launch(module, "count", control, 2, 256)
        assert status == "hipSuccess"
        assert (b == _ROUNDS).all()
    assert turns[0] != turns[1]
    assert turns[1] == turns[2]
