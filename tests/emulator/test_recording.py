# SPDX-License-Identifier: MIT
"""Recording what waves execute, and the times that the clock gives them."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

from cklang import emulator
from cklang.arch import arch
from cklang.emulator.clock.constants import constants_of
from cklang.emulator.clock.kernel import launch_time
from cklang.emulator.engine.library import packed_records
from cklang.emulator.engine.recording import SEGMENT_BYTES, recorded_launches
from cklang.errors import CkValueError
from tests.support.assembly import Module, assembled

pytestmark = pytest.mark.usefixtures("emulator")

_GROUPS = 6
_STORE = """
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  s_lshl_b32 s2, s2, 8
  v_add_u32 v2, s2, v1
  v_mov_b32 v3, 7
  s_waitcnt lgkmcnt(0)
  global_store_dword v2, v3, s[6:7]
"""
_LOOP = """
  s_mov_b32 s3, 5
again:
  s_sub_u32 s3, s3, 1
  s_cmp_lg_u32 s3, 0
  s_cbranch_scc1 again
"""


_LANES = """
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  v_mov_b32 v4, 1
  s_mov_b32 s3, 40
  s_mov_b64 s[10:11], exec
  s_waitcnt lgkmcnt(0)
turn:
  v_cmp_gt_u32 vcc, s3, v0
  s_and_saveexec_b64 s[8:9], vcc
  v_add_u32 v4, v4, v0
  v_add_u32 v5, v4, v4
  ds_write_b32 v1, v4
  s_mov_b64 exec, s[8:9]
  v_xor_b32 v6, 4, v1
  s_waitcnt lgkmcnt(0)
  ds_read_b32 v7, v6
  v_cmpx_ne_u32 vcc, s3, v0
  v_add_u32 v5, 1, v5
  s_waitcnt lgkmcnt(0)
  global_store_dword v1, v7, s[6:7]
  s_mov_b64 exec, s[10:11]
  v_add_u32 v1, 4, v1
  v_and_b32 v1, 0x1fc, v1
  s_sub_u32 s3, s3, 1
  s_cmp_lg_u32 s3, 0
  s_cbranch_scc1 turn
"""
"""A loop that enables other lanes within what is otherwise straight code."""


def _reads(stride: int) -> str:
    reads = "\n".join(["  ds_read_b32 v2, v1"] * 8)
    return f"  v_mul_u32_u24 v1, {stride}, v0\n{reads}\n  s_waitcnt lgkmcnt(0)"


@pytest.fixture(scope="module")
def module() -> Module:
    bodies = {
        "store": _STORE,
        "loop": _LOOP,
        "lanes": _LANES,
        "apart": _reads(4),
        "one_bank": _reads(128),
    }
    return assembled(bodies, lds=8192)


def record(
    module: Module, name: str, groups: int = 1, wanted: int = 1, *, alone: bool = False
) -> tuple[emulator.RecordedLaunch, np.ndarray]:
    output = np.zeros(64 * _GROUPS, np.uint32)
    with emulator.timing(wanted, alone=alone) as recording:
        assert module.launch(name, output, output, grid=groups) == "hipSuccess"
    (launch,) = recording.launches
    return launch, output


def test_a_loop_is_recorded_as_it_is_executed(module: Module) -> None:
    launch, _ = record(module, "loop")
    (wave,) = launch.waves
    assert len(wave.line) == 1 + 3 * 5 + 1
    assert np.bincount(wave.line)[wave.line[1]] == 5


@pytest.fixture
def ordinary() -> Iterator[None]:
    """Puts back how launches run."""
    yield
    emulator.sanitize()
    emulator.translation("hot")
    with suppress(CkValueError):
        emulator.vector_width(512)


@pytest.mark.usefixtures("ordinary")
@pytest.mark.parametrize("checks", [(), ("hazards",), ("waits", "races", "memory", "hazards")])
@pytest.mark.parametrize("bits", [256, 512])
def test_translated_waves_are_recorded_as_interpreted_ones(
    bits: int, checks: tuple[str, ...], module: Module
) -> None:
    try:
        emulator.vector_width(bits)
    except CkValueError:
        pytest.skip("the CPU has no such vectors")
    emulator.sanitize(*checks)
    launches: list[emulator.RecordedLaunch] = []
    outputs = []
    output = np.zeros(256, np.uint32)
    for how in ("off", "all"):
        emulator.translation(how)
        output[:] = 0
        with emulator.timing(2) as recording:
            assert module.launch("lanes", output, output, grid=4) == "hipSuccess"
        launches += recording.launches
        outputs.append(output.copy())
    interpreted, translated = launches
    assert (outputs[0] == outputs[1]).all()
    assert (interpreted.executed == translated.executed).all()
    assert [wave.workgroup for wave in translated.waves] == [0, 2]
    first, again = interpreted.waves[0], translated.waves[0]
    assert np.unique(first.lanes).tolist() == [*range(1, 41), 63, 64]
    assert len(first.lds) == 80
    assert len(first.patterns) > 2
    scalar = int(first.memory[0, 2])  # pieces of the arguments, which are elsewhere each time
    for column in ("line", "lanes", "lds_address"):
        assert np.array_equal(getattr(first, column), getattr(again, column)), column
    assert np.array_equal(first.memory[1:], again.memory[1:])
    assert np.array_equal(first.segments[scalar:], again.segments[int(again.memory[0, 2]) :])


def test_some_workgroups_are_recorded_and_all_run(module: Module) -> None:
    launch, output = record(module, "store", _GROUPS, 2)
    assert [wave.workgroup for wave in launch.waves] == [0, 3]
    assert (output == 7).all()


def test_no_other_workgroup_runs_where_that_is_asked(module: Module) -> None:
    launch, output = record(module, "store", _GROUPS, 3, alone=True)
    assert sorted(wave.workgroup for wave in launch.waves) == [0, 2, 4]
    assert np.flatnonzero(output.reshape(_GROUPS, 64).any(1)).tolist() == [0, 2, 4]


def test_nothing_is_recorded_behind_the_statement(module: Module) -> None:
    _, _ = record(module, "store")
    output = np.zeros(64 * _GROUPS, np.uint32)
    assert module.launch("store", output, output, grid=_GROUPS) == "hipSuccess"
    assert (output == 7).all()
    assert not recorded_launches(packed_records())


def test_lanes_of_one_bank_take_longer(module: Module) -> None:
    constants, spec = constants_of("gfx942"), arch("gfx942")
    cycles = {}
    for name in ("apart", "one_bank"):
        launch, _ = record(module, name)
        assert launch.waves[0].lds_address.shape == (8, 64)
        time, (wave,) = launch_time(launch, spec, constants)
        cycles[name] = time.cycles
        assert not time.unknown
        assert len(wave.start) == len(launch.waves[0].line)
    # 64 lanes at 64 words of one bank are 64 passes; without conflicts issue is slower than 2.
    assert cycles["one_bank"] - cycles["apart"] == 8 * 64 - (7 * 4 + 2)


def test_more_workgroups_than_a_unit_executes_are_extrapolated(module: Module) -> None:
    launch, _ = record(module, "loop")
    constants, spec = constants_of("gfx942"), arch("gfx942")
    full = launch.resident // spec.compute_units * spec.compute_units
    one, six, nine = (
        launch_time(replace(launch, groups=(rounds * full, 1, 1)), spec, constants)[0]
        for rounds in (1, 6, 9)
    )
    assert one.resident == six.resident == launch.resident // spec.compute_units
    assert one.cycles < six.cycles < nine.cycles
    assert (nine.cycles - six.cycles) / 3 == pytest.approx((six.cycles - one.cycles) / 5)
    assert nine.us == pytest.approx(nine.cycles / spec.clock_hz * 1e6)


def test_lines_of_global_memory_count_once(module: Module) -> None:
    output = np.zeros(64 * _GROUPS, np.uint32)
    with emulator.timing(_GROUPS) as recording:
        assert module.launch("store", output, output, grid=_GROUPS) == "hipSuccess"
    (launch,) = recording.launches
    size = emulator.MEMORY_LINE
    first, last = output.ctypes.data // size, (output.ctypes.data + output.nbytes - 1) // size
    own = {*range(first, last + 1)}
    segments = np.concatenate([wave.segments for wave in launch.waves])
    lines = set((segments // (size // SEGMENT_BYTES)).tolist())
    assert own <= lines
    # The rest is what all workgroups read of the kernel's argument.
    assert 1 <= len(lines - own) <= 2
    assert launch.memory_bytes == size * len(lines)
