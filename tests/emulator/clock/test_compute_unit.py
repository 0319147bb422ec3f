# SPDX-License-Identifier: MIT
"""The model of a compute unit on short listings whose times are known."""

import numpy as np
import pytest

from cklang.emulator.clock.access_costs import SCALE
from cklang.emulator.clock.constants import constants_of
from cklang.emulator.clock.instruction import Instruction
from cklang.emulator.clock.waves import TimedWave, WaveStream, program, run

pytestmark = pytest.mark.usefixtures("compiler")
GFX942 = constants_of("gfx942")
MATRIX = Instruction("v_mfma_f32_16x16x16_bf16", ("v[0:3]", "v[8:9]", "v[10:11]", "v[0:3]"))
VECTOR = Instruction("v_add_f32_e32", ("v20", "v21", "v22"))
BARRIER = Instruction("s_barrier", ())
READ = Instruction("ds_read_b64", ("v[4:5]", "v6"))
LDS_WAIT = Instruction("s_waitcnt", (), "lgkmcnt(0)")


def simulate(
    listing: list[Instruction],
    *lines: list[int],
    simds: tuple[int, ...] = (0, 1, 2, 3),
    gpu: str = "gfx942",
) -> list[TimedWave]:
    streams = [
        WaveStream(np.array(line, dtype=np.int32), simd=simds[place % len(simds)])
        for place, line in enumerate(lines)
    ]
    return run(program(listing, constants_of(gpu)), streams)


def test_the_matrix_unit_is_taken_for_its_passes() -> None:
    (wave,) = simulate([MATRIX], [0, 0, 0])
    assert wave.start.tolist() == [0, 4, 16 + 4]
    assert wave.stall.tolist() == [0, 12, 12]


def test_vector_instructions_fit_between_matrix_instructions_of_another_wave() -> None:
    one, two = simulate([MATRIX, VECTOR], [0] * 4, [1] * 9, simds=(0,))
    assert np.diff(one.start + one.stall).tolist() == [16, 16, 16]
    # Of each 16 cycles the matrix instruction takes one slot of four; the rest are for the other.
    assert two.end == 4 * (9 + 3)


def test_the_older_wave_goes_first_and_the_priority_before_it() -> None:
    older, younger = simulate([VECTOR], [0] * 5, [0] * 5, simds=(0,))
    assert older.end == 20
    assert younger.start[0] + younger.stall[0] == 20
    urgent = Instruction("s_setprio", (), "3")
    older, younger = simulate([VECTOR, urgent], [0] * 5, [1, 0, 0, 0, 0], simds=(0,))
    assert younger.end < older.end


LIGHT, PLAIN, WIDE = (
    Instruction("v_mul_f32_e32", ("v20", "v21", "v22")),
    Instruction("v_xor_b32_e32", ("v23", "v24", "v25")),
    Instruction("v_mad_u64_u32", ("v[26:27]", "vcc", "v28", "v29", "v[30:31]")),
)


@pytest.mark.parametrize(
    ("older", "younger", "together"),
    [
        (LIGHT, LIGHT, True), (LIGHT, PLAIN, True), (LIGHT, WIDE, True),
        (PLAIN, LIGHT, True), (PLAIN, PLAIN, True), (PLAIN, WIDE, False),
        (WIDE, LIGHT, False), (WIDE, PLAIN, False), (WIDE, WIDE, False),
    ],
)  # fmt: skip
def test_vector_instructions_of_two_waves_share_a_slot_on_gfx950(
    older: Instruction, younger: Instruction, together: bool
) -> None:
    """Which pairs issue at one cycle in the traces; a third wave, and the same wave, never do."""
    one, two, three = simulate(
        [older, younger, LIGHT], [0] * 4, [1] * 4, [2] * 4, simds=(0,), gpu="gfx950"
    )
    assert (one.start + one.stall).tolist() == [0, 4, 8, 12]
    assert (two.start[0] + two.stall[0] == 0) == together
    if older is not WIDE:
        beside = two if together else three
        assert (beside.start + beside.stall).tolist() == [0, 4, 8, 12]
    slots = np.concatenate([wave.start + wave.stall for wave in (one, two, three)])
    assert np.unique(slots, return_counts=True)[1].max() <= 2


def test_loads_by_one_base_register_are_cold_once() -> None:
    """Scalar loads without addresses: other waves and later loads find what the first brought."""
    load = Instruction("s_load_dword", ("s4", "s[0:1]"))
    other = Instruction("s_load_dword", ("s5", "s[2:3]"))
    wait = Instruction("s_waitcnt", (), "lgkmcnt(0)")
    first, late = run(
        program([load, wait, other], GFX942),
        [
            WaveStream(np.array([0, 1, 0, 1, 2, 1], np.int32), simd=0),
            WaveStream(np.array([0, 1], np.int32), simd=1, begin=5000),
        ],
    )
    cold, warm = GFX942.cycles("smem_cold_latency"), GFX942.cycles("smem_latency")
    waited = first.duration[1::2]
    assert abs(waited[0] - cold) < 30
    assert waited[1] < warm + 30
    assert waited[2] >= cold - 8
    assert late.end - 5000 < warm + 30


def test_a_barrier_waits_for_the_last_wave() -> None:
    fast, slow = simulate([VECTOR, BARRIER], [1, 0], [0, 0, 0, 1, 0])
    assert fast.start[1] == slow.start[4] == 12 + GFX942.cycles("barrier")


def test_a_wave_that_has_ended_does_not_hold_a_barrier() -> None:
    ended, other = simulate([VECTOR, BARRIER], [0], [0, 1, 0])
    assert other.end < 100
    assert ended.end == 4


def test_a_lone_lds_read_takes_what_the_traces_show() -> None:
    (wave,) = simulate([READ, LDS_WAIT], [0, 1])
    assert wave.end == 56


def test_reads_of_four_waves_share_the_lds() -> None:
    waves = simulate([READ], *[[0] * 40] * 4)
    gaps = np.diff(waves[0].start + waves[0].stall)
    assert gaps[-10:].tolist() == [16] * 10


def test_loads_on_their_way_are_limited_by_bytes() -> None:
    load = Instruction("buffer_load_dwordx4", ("v[0:3]", "v6", "s[0:3]"))
    (wave,) = simulate([load], [0] * 40)
    limit = GFX942.cycles("vmem_outstanding_bytes") // 1024
    issued = wave.start + wave.stall
    assert issued[limit] >= GFX942.cycles("vmem_latency") > issued[limit - 1]


def test_a_dependent_vector_instruction_waits_on_rdna() -> None:
    chain = Instruction("v_add_f32_e32", ("v0", "v0", "v1"))
    (wave,) = simulate([chain], [0, 0, 0], gpu="gfx1100")
    assert np.diff(wave.start + wave.stall).tolist() == [5, 5]


def test_the_next_workgroup_comes_when_the_last_has_ended() -> None:
    line = np.zeros(10, dtype=np.int32)
    first, second = run(
        program([VECTOR], GFX942),
        [WaveStream(line, simd=0), WaveStream(line, simd=0, group=1, after=0)],
    )
    assert second.start[0] == first.end + GFX942.cycles("workgroup_launch")


LOAD = Instruction("global_load_dword", ("v30", "v[2:3]"))
LOAD_WAIT = Instruction("s_waitcnt", (), "vmcnt(0)")


def end_of_loads(count: int, path: int, op: Instruction = LOAD, write: float = 1.0) -> int:
    """Return when the last of some loads is there, of a wave that issues them one after another."""
    lines = np.array([0] * count + [1], dtype=np.int32)
    stream = WaveStream(
        lines,
        simd=0,
        latency=np.full(count + 1, 200, np.int32),
        path=np.full(count + 1, path, np.int32),
        write=write,
    )
    (wave,) = run(program([op, LOAD_WAIT], GFX942), [stream])
    return wave.end


def test_loads_share_the_way_behind_the_l1() -> None:
    free, shared = end_of_loads(50, 0), end_of_loads(50, 20 * SCALE)
    assert free < 50 * 20
    assert shared == pytest.approx(50 * 20 + 200, abs=30)
    # One alone has the latency and its own part of the way.
    assert end_of_loads(1, 20 * SCALE) == end_of_loads(1, 0) + 20


def test_a_compute_unit_may_be_ahead_of_its_share_after_a_pause() -> None:
    pause = Instruction("s_sleep", (), "100")
    burst = [*[0] * 20, 1]
    lines = np.array([*burst, 2, *burst], dtype=np.int32)
    stream = WaveStream(
        lines,
        simd=0,
        latency=np.full(len(lines), 200, np.int32),
        path=np.full(len(lines), 20 * SCALE, np.int32),
    )
    (wave,) = run(program([LOAD, LOAD_WAIT, pause], GFX942), [stream])
    ends = wave.start + wave.duration
    first, second = ends[20] - wave.start[0], ends[-1] - wave.start[-21]
    assert first == pytest.approx(200 + 20 * 20, abs=30)
    assert second < 200 + 20 * 20 / 2


def test_stores_take_the_way_longer_where_writes_are_slower() -> None:
    store = Instruction("global_store_dword", ("v[2:3]", "v30"))
    for ratio in (1.0, 1.4):
        end = end_of_loads(200, 20 * SCALE, store, ratio)
        assert end == pytest.approx(200 * 20 * ratio + 200, rel=0.03)


def test_a_wave_that_takes_a_place_begins_when_it_is_dispatched() -> None:
    lines = np.zeros(1, dtype=np.int32)
    launch = GFX942.cycles("workgroup_launch")
    for begin, expected in ((0, 4 + launch), (50_000, 50_000)):
        streams = [
            WaveStream(lines, simd=0),
            WaveStream(lines, simd=0, group=1, after=0, begin=begin),
        ]
        assert run(program([VECTOR], GFX942), streams)[1].start[0] == expected
