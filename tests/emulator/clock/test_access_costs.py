# SPDX-License-Identifier: MIT
"""What accesses cost at caches and shared paths, on accesses whose costs are known."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from cklang.emulator.clock.access_costs import (
    SCALE,
    MemoryCosts,
    RecordedAccesses,
    bytes_of,
    memory_costs,
    scalar_requests,
)
from cklang.emulator.clock.hierarchy import Levels, retained
from cklang.emulator.clock.records import KINDS, heads_of
from cklang.emulator.engine.recording import PackedWaves

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

Access = tuple[str, tuple[int, ...]]
Wave = Sequence[Access]
"""The kind and the segments of each access; ``wait`` is no access."""


def accesses(*segments: tuple[int, ...], kind: str = "read") -> list[Access]:
    return [(kind, each) for each in segments]


def _array(values: npt.ArrayLike, dtype: type[np.generic], each: int = 1) -> bytes:
    data = np.asarray(values, dtype)
    padded = data.tobytes() + bytes(-data.nbytes % 8)
    return np.uint64(data.size // each).tobytes() + padded


def _packed(workgroup: int, number: int, wave: Wave) -> bytes:
    """Return a wave of memory instructions and waits, as the emulator writes it."""
    memory = [[at, 4, len(each)] for at, (kind, each) in enumerate(wave) if kind != "wait"]
    flat = [segment for _, segments in wave for segment in segments]
    return b"".join(
        (
            np.array([workgroup, number], np.uint64).tobytes(),
            # Two stretches of one instruction.
            _array([int(kind == "wait") for kind, _ in wave], np.uint32),
            _array(np.full(len(wave), 64), np.uint8),
            _array([0, 1], np.uint32),
            _array([0, 1], np.uint32),
            _array([], np.uint32, 2),
            _array([], np.uint32),
            _array(memory, np.uint32, 3),
            _array(flat, np.uint64),
            _array([], np.uint64, 3),
        )
    )


def recorded(*groups: Sequence[Wave]) -> RecordedAccesses:
    """Return the accesses of workgroups, each with its waves."""
    waves = [(g, n, wave) for g, group in enumerate(groups) for n, wave in enumerate(group)]
    data = np.frombuffer(b"".join(_packed(*each) for each in waves), np.uint8)
    packed = PackedWaves(data, len(waves))
    kinds = [KINDS.index(kind) for _, _, wave in waves for kind, _ in wave if kind != "wait"]
    return RecordedAccesses(packed, heads_of(packed), np.array(kinds, np.uint8), range(len(groups)))


def costs(wave: Wave, levels: Levels = LEVELS) -> MemoryCosts:
    (cost,) = memory_costs(recorded([wave]), levels, 1, 1)
    return cost


def test_a_line_is_fetched_once_and_then_in_the_l1() -> None:
    cost = costs(accesses((0, 1), (0,), (2, 3)))
    assert cost.place.tolist() == [0, 1, 2]
    assert cost.latency.tolist() == [500, 100, 500]
    assert cost.path.tolist() == [15 * SCALE, 0, 15 * SCALE]
    assert cost.cycles.tolist() == [2, 1, 2]


def test_what_comes_from_memory_waits_there() -> None:
    half = replace(LEVELS, memory_share=0.5, far_share=0.5)
    cost = costs(accesses((0, 2), (0,)), half)
    assert cost.behind.tolist() == [0.75 * 0.5, 0]
    assert cost.memory.tolist() == [0.5, 0]


def test_a_store_takes_as_long_as_if_it_filled_its_lines() -> None:
    stored = accesses((0, 1, 2, 3), (0, 2), (0, 1, 2), kind="write")
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
    some = replace(LEVELS, l2_lines=37.0)
    kept = retained(40 / 37)
    assert 0.1 < kept < 0.9
    latency = costs(accesses(*rows, *rows), some).latency[40:]
    assert (latency == round(200 * kept + 500 * (1 - kept))).all()


def test_an_access_waits_for_the_slowest_of_its_lines() -> None:
    half = replace(LEVELS, far_share=0.5)
    assert costs(accesses((0,)), half).latency.tolist() == [350]
    assert costs(accesses((0, 2)), half).latency.tolist() == [round(200 + 300 * 0.75)]


def test_stores_take_the_path_by_their_pieces_and_leave_lines_in_the_l2() -> None:
    for kind in ("write", "atomic"):
        cost = costs(accesses((0, 1), (0, 1), (2,), kind=kind))
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
    groups = recorded([accesses((0, 1), (10,))], [accesses((0, 1), (20,))])
    one, two, three = memory_costs(groups, LEVELS, 3, 1)
    assert one.latency.tolist() == [500, 500]
    assert two.latency.tolist() == [100, 500]
    assert three.latency.tolist() == [100, 500]  # as the first, with a line of its own
    assert bytes_of(groups, 128) == (256, 0)
    # A single workgroup shares nothing with those that repeat it.
    _, again = memory_costs(replace(groups, groups=[0]), LEVELS, 2, 1)
    assert again.latency.tolist() == [500, 500]


WAIT: Access = ("wait", ())


def test_waves_take_turns() -> None:
    first = [*accesses((0,)), WAIT, *accesses((2,))]
    second = [*accesses((4,)), WAIT, *accesses((0,)), WAIT, *accesses((0,))]
    one, two = memory_costs(recorded([first, second]), LEVELS, 1, 1)
    assert (one.latency.tolist(), two.latency.tolist()) == ([500, 500], [500, 100, 100])
    few = replace(LEVELS, l1_lines=2)
    one, two = memory_costs(recorded([first, second]), few, 1, 1)
    assert two.latency.tolist() == [500, 200, 100]  # the other wave's second line came before


def test_what_a_wave_loads_in_a_row_no_other_wave_takes_out_of_the_l1() -> None:
    def both(*between: Access) -> list[list[int]]:
        waves = [[*accesses((at,)), *between, *accesses((at + 1,))] for at in (0, 10)]
        costs = memory_costs(recorded(waves), replace(LEVELS, l1_lines=1), 1, 1)
        return [cost.latency.tolist() for cost in costs]

    assert both() == [[500, 100]] * 2
    assert both(WAIT) == [[500, 200]] * 2  # the other wave's line has come in between


def test_bytes_are_means_of_workgroups() -> None:
    mixed = [*accesses((0, 1), (0, 2)), *accesses((8,), kind="write"), ("scalar", (99,))]
    groups = recorded([mixed, accesses((1,))], [accesses((1,))])
    assert bytes_of(groups, 128) == ((2 + 1) * 128 / 2, 128 / 2)


def test_nothing_accessed_costs_nothing() -> None:
    cost = costs([])
    assert [len(column) for column in (cost.place, cost.latency, cost.path)] == [0, 0, 0]
    assert bytes_of(recorded([[]]), 128) == (0, 0)


def asked(
    groups: RecordedAccesses, count: int, together: int, queue: int = 30, lines: int = 8
) -> list[list[int]]:
    """Return requests, misses, duplicates and lines, of a round and of all workgroups."""
    two_lines = np.arange(2, dtype=np.int32)
    sums = scalar_requests(
        groups, two_lines, np.array([0, 1], np.uint8),
        lines=lines, count=count, together=together, queue=queue,
    )  # fmt: skip
    return [row.tolist() for row in sums]


def test_scalar_loads_of_a_line_on_its_way_are_answered_with_it() -> None:
    wave = [*accesses((0,), (0,), kind="scalar"), WAIT, *accesses((0,), kind="scalar")]
    # Of three waves, 6 requests come before the line is there: one fetches it, 5 are answered.
    assert asked(recorded([wave, wave, wave]), 1, 1) == [[9, 1, 5, 1]] * 2
    assert asked(recorded([wave, wave, wave]), 1, 1, queue=2) == [[9, 1, 2, 1]] * 2


def test_arguments_are_fetched_once_by_each_scalar_cache() -> None:
    wave = [*accesses((0,), kind="scalar"), WAIT, *accesses((100,), kind="scalar")]
    # Other lines are each workgroup's own if not all of them load the line.
    assert asked(recorded([wave]), 4, 2) == [[4, 3, 1, 3], [8, 5, 1, 5]]
    assert asked(recorded([wave], [wave]), 4, 2) == [[4, 2, 2, 2], [8, 2, 2, 2]]


def test_scalar_loads_drop_the_line_used_longest_ago() -> None:
    lines = accesses((0,), (100,), (200,), (0,), kind="scalar")
    apart = [each for access in lines for each in (access, WAIT)]
    assert asked(recorded([apart]), 1, 1, lines=2) == [[4, 4, 0, 4]] * 2
    assert asked(recorded([apart]), 1, 1, lines=3) == [[4, 3, 0, 3]] * 2
    wide = [("scalar", (0, 1)), WAIT, ("scalar", (0, 1))]
    assert asked(recorded([wide]), 1, 1) == [[2, 1, 0, 2]] * 2
    assert asked(recorded([accesses((0,))]), 1, 1) == [[0, 0, 0, 0]] * 2
