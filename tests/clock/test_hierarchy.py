# SPDX-License-Identifier: MIT
"""Caches with contents and shared bandwidth, on accesses whose costs are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cklang.arch import arch
from cklang.clock.constants import constants_of
from cklang.clock.hierarchy import (
    SCALE,
    Accesses,
    Levels,
    MemoryCosts,
    bytes_of,
    levels_of,
    memory_costs,
    retained,
    shared_lines,
    sharers,
)

GFX942 = constants_of("gfx942")
MI300X = arch("gfx942")
LEVELS = Levels(
    line_bytes=128,
    l1_lines=4,
    scalar_lines=2,
    l2_lines=64.0,
    far_share=1.0,
    cold_share=1.0,
    latency_l1=100.0,
    latency_l2=200.0,
    latency_far=500.0,
    latency_scalar=20.0,
    latency_cold=900.0,
    cycles_l2=5.0,
    cycles_far=15.0,
    stored_segments=2,
    cycles_stored=8.0,
)


def accesses(*segments: tuple[int, ...], kind: str = "load") -> Accesses:
    return Accesses(np.arange(len(segments)), [kind] * len(segments), segments)


def costs(wave: Accesses, levels: Levels = LEVELS) -> MemoryCosts:
    ((cost,),) = memory_costs([[wave]], levels, 1, 1)
    return cost


def test_a_line_is_fetched_once_and_then_in_the_l1() -> None:
    cost = costs(accesses((0, 1), (0,), (2, 3)))
    assert cost.latency.tolist() == [500, 100, 500]
    assert cost.path.tolist() == [15 * SCALE, 0, 15 * SCALE]
    assert cost.cycles.tolist() == [2, 1, 2]


def test_a_store_takes_as_long_as_if_it_filled_its_lines() -> None:
    stored = accesses((0, 1, 2, 3), (0, 2), (0, 1, 2), kind="store")
    assert costs(stored).cycles.tolist() == [4, 16, 16]
    halves = replace(LEVELS, stored_segments=1, cycles_stored=4.0)
    assert costs(stored, halves).cycles.tolist() == [4, 8, 12]
    assert costs(accesses((0, 2))).cycles.tolist() == [2]


def test_lines_beyond_the_l1_come_from_the_l2() -> None:
    rows = [(2 * line,) for line in range(5)]
    cost = costs(accesses(*rows, *rows))
    assert cost.latency.tolist() == [500] * 5 + [200] * 5
    assert cost.path[5:].tolist() == [5 * SCALE] * 5


def test_lines_beyond_the_share_of_the_l2_come_from_afar_again() -> None:
    rows = [(2 * line,) for line in range(40)]
    far = replace(LEVELS, l2_lines=10.0)
    latency = costs(accesses(*rows, *rows), far).latency[40:]
    assert (latency > 499).all()
    near = replace(LEVELS, l2_lines=200.0)
    assert (costs(accesses(*rows, *rows), near).latency[40:] == 200).all()


def test_an_access_waits_for_the_slowest_of_its_lines() -> None:
    half = replace(LEVELS, far_share=0.5)
    assert costs(accesses((0,)), half).latency.tolist() == [350]
    assert costs(accesses((0, 2)), half).latency.tolist() == [round(200 + 300 * 0.75)]


def test_stores_take_the_path_by_their_pieces_and_leave_lines_in_the_l2() -> None:
    cost = costs(accesses((0, 1), (0, 1), (2,), kind="store"))
    assert cost.path.tolist() == [15 * SCALE, 5 * SCALE, round(7.5 * SCALE)]
    assert cost.latency.tolist() == [200] * 3


def test_scalar_loads_have_a_cache_of_their_own() -> None:
    cost = costs(accesses((0,), (1,), (100,), (200,), (300,), (100,), (0,), kind="scalar"))
    # Two lines of arguments come together; of the others the cache holds two.
    assert cost.latency.tolist() == [900, 20, 900, 900, 900, 200, 200]
    warm = replace(LEVELS, cold_share=0.0)
    # The host has written the arguments; what the launch before has read is in the L2.
    assert costs(accesses((0,), (100,), kind="scalar"), warm).latency.tolist() == [900, 200]
    assert cost.path.tolist() == [0] * 7


def test_workgroups_share_the_lines_that_all_of_them_access() -> None:
    groups = [[accesses((0, 1), (10,))], [accesses((0, 1), (20,))]]
    assert shared_lines(groups, 128) == {0}
    assert shared_lines(groups[:1], 128) == frozenset()
    (one,), (two,), (three,) = memory_costs(groups, LEVELS, 3, 1)
    assert one.latency.tolist() == [500, 500]
    assert two.latency.tolist() == [100, 500]
    assert three.latency.tolist() == [100, 500]  # as the first, with a line of its own
    assert bytes_of(groups, "load", 128) == 256
    assert bytes_of(groups, "store", 128) == 0


def test_what_a_wave_loads_in_a_row_no_other_wave_takes_out_of_the_l1() -> None:
    def both(place: list[int]) -> list[list[int]]:
        halves = [((0,), (1,)), ((10,), (11,))]
        waves = [Accesses(np.array(place), ["load"] * 2, each) for each in halves]
        return [
            cost.latency.tolist()
            for cost in memory_costs([waves], replace(LEVELS, l1_lines=1), 1, 1)[0]
        ]

    assert both([3, 4]) == [[500, 100]] * 2
    assert both([3, 5]) == [[500, 200]] * 2  # the other wave's line has come in between


def levels(workgroups: int, footprint: float, each: float = 1024.0, *, warm: bool = True) -> Levels:
    return levels_of(
        GFX942, MI300X, workgroups=workgroups, resident=1, each=each, written=0.0,
        footprint=footprint, warm=warm,
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
    warm, cold = levels(64, 64 << 10), levels(64, 64 << 10, warm=False)
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
