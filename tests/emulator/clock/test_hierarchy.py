# SPDX-License-Identifier: MIT
"""What caches hold, and bandwidth that compute units share."""

import numpy as np
import pytest

from cklang.arch import arch
from cklang.emulator.clock.constants import constants_of
from cklang.emulator.clock.hierarchy import EMPTY, Kept, Levels, levels_of, retained, sharers
from cklang.emulator.clock.launch_memory import MemoryTraffic
from cklang.emulator.clock.waves import WaveStream

GFX942 = constants_of("gfx942")
MI300X = arch("gfx942")


def levels(
    workgroups: int, footprint: float, each: float = 1024.0, kept: Kept | None = None
) -> Levels:
    return levels_of(
        GFX942, MI300X, workgroups=workgroups, resident=1, each=each, written=0.0,
        footprint=footprint, kept=kept,
    )  # fmt: skip


def test_units_that_run_share_the_rates() -> None:
    few, many = levels(8, 1 << 20), levels(1 << 20, 1 << 30)
    cache, memory = GFX942.rates["last_level"], GFX942.rates["memory"]
    units = MI300X.compute_units / MI300X.chiplets
    assert many.cycles_l2 == pytest.approx(units * few.cycles_l2)
    assert few.cycles_l2 == pytest.approx(128 / GFX942["rate_l2"])
    # Memory is slower than the cache before it, and limits what does not fit there.
    assert many.cycles_far == pytest.approx(128 * units / memory.read, rel=0.05)
    assert few.cycles_far == pytest.approx(128 / cache.read)


def test_a_unit_with_more_workgroups_than_others_has_more_of_the_rates() -> None:
    """Of 512 workgroups, 208 compute units of 304 hold two at a time, the others one."""

    def share(workgroups: int, resident: int) -> float:
        found = levels_of(
            GFX942, MI300X, workgroups=workgroups, resident=resident, each=1024.0, written=0.0,
            footprint=1 << 30,
        )  # fmt: skip
        return 128 / found.cycles_l2 / GFX942["rate_l2"] * MI300X.chiplets

    assert share(304, 1) == pytest.approx(8 * 8 / 304)
    assert share(512, 2) == pytest.approx(8 * 8 * 2 / 512)
    assert share(5120, 2) == share(304, 1)


def test_what_is_written_decides_how_long_a_line_takes() -> None:
    def line(written: float, board: str) -> float:
        constants = constants_of("gfx942", board)
        found = levels_of(
            constants, MI300X, workgroups=1 << 20, resident=1, each=1024 * (1 - written),
            written=written * (1 << 30), footprint=1 << 30,
        )  # fmt: skip
        assert found.write * found.cycles_far == pytest.approx(
            128 * MI300X.compute_units / MI300X.chiplets / constants.rates["memory"].write, rel=0.01
        )
        return found.cycles_far

    for board in ("MI300X", "MI300A"):
        memory = constants_of("gfx942", board).rates["memory"]
        for written in (0, 0.25, 0.5, 1):
            expected = memory.cycles(written) / memory.cycles(0)
            assert line(written, board) / line(0, board) == pytest.approx(expected, rel=0.01)


def test_small_operands_stay_in_the_l2_and_large_ones_do_not() -> None:
    assert levels(64, 64 << 10).far_share == 0
    assert levels(1 << 20, 1 << 30).far_share == pytest.approx(1)
    assert levels(64, 64 << 10).latency_far < levels(1 << 20, 8 << 30).latency_far


def test_operands_of_a_cold_launch_are_in_memory() -> None:
    warm, cold = levels(64, 64 << 10), levels(64, 64 << 10, kept=EMPTY)
    assert (warm.far_share, cold.far_share) == (0, 1)
    assert cold.cycles_far > warm.cycles_far
    assert cold.latency_far > GFX942["chase_last_level"]


def test_workgroups_that_share_lines_keep_more_of_them() -> None:
    apart, together = levels(4096, 4096 << 16, 1 << 16), levels(4096, 1 << 20, 1 << 16)
    assert together.l2_lines > apart.l2_lines


def test_less_is_retained_the_more_is_accessed_between() -> None:
    shares = [retained(ratio) for ratio in np.linspace(0, 9, 91)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] == 1
    assert shares[-1] == 0
    # Half of the sets of 16 lines are full when the lines are as many as the cache holds.
    assert retained(1) == pytest.approx(0.5, abs=0.05)


def test_sharers_grow_with_the_readers_of_a_line_up_to_those_that_run() -> None:
    assert sharers(1e3, 1e3 * 4096, 4096, 8, 64) == 1
    assert sharers(1e6, 1e6, 4096, 8, 64) == 8
    assert sharers(1e6, 1e6, 4, 8, 1) == 1
    few, more = (sharers(1e3, 1e3 * 4096 / readers, 4096, 8, 4096) for readers in (9, 17))
    assert (few, more) == (2, 3)


# --- loads that wait in a queue before memory

STREAM = WaveStream(np.zeros(3, np.int32), 0, latency=np.array([100, 800, 800], np.int32))
TRAFFIC = MemoryTraffic([STREAM], [np.array([0.0, 0.5, 1.0])], cycles=500.0, queue=1600.0)


def test_memory_is_busy_for_what_it_brings() -> None:
    assert TRAFFIC.load(1000) == 0.5
    assert TRAFFIC.load(100) == 1
    assert TRAFFIC.load(0) == 0


def test_loads_wait_the_longer_the_busier_memory_is() -> None:
    assert TRAFFIC.waits(0) == 0
    assert TRAFFIC.waits(0.5) == pytest.approx(200)
    assert TRAFFIC.waits(1) == 1600
    (busy,) = TRAFFIC.busy(0.5)
    assert busy.latency is not None
    assert busy.latency.tolist() == [100, 900, 1000]


def test_without_levels_of_memory_nothing_waits() -> None:
    bare = MemoryTraffic([WaveStream(np.zeros(1, np.int32), 0)], (), 0.0, 0.0)
    assert bare.waits(bare.load(100)) == 0
