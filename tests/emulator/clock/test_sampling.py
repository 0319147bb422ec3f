# SPDX-License-Identifier: MIT
"""How many workgroups are recorded, and which of them are timed."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from cklang.emulator.clock.sampling import SAMPLES, recorded_with, representative
from cklang.emulator.engine.recording import PackedWaves, RecordedLaunch


def packed(workgroup: int, executed: int) -> bytes:
    """Return a wave as the emulator writes it, which executes one stretch again and again."""

    def array(values: npt.NDArray[np.generic]) -> bytes:
        data = values.tobytes()
        return len(values).to_bytes(8, "little") + data + bytes(-len(data) % 8)

    stretches, enabled = np.zeros(executed, np.uint32), np.zeros(executed, np.uint8)
    first, none = np.zeros(1, np.uint32), np.zeros(0, np.uint32)
    words = b"".join(map(array, [first, first, *5 * [none]]))
    head = np.array([workgroup, 0], np.uint64).tobytes()
    return head + array(stretches) + array(enabled) + words


def waves_of(*executed: int) -> PackedWaves:
    data = b"".join(packed(number, count) for number, count in enumerate(executed))
    return PackedWaves(np.frombuffer(data, np.uint8), len(executed))


EMPTY = RecordedLaunch(
    kernel="k", gpu="gfx942", code=b"", groups=(1, 1, 1), block=(64, 1, 1), lds_bytes=0, vgprs=8,
    sgprs=8, scratch_bytes=0, lanes=64, resident=1, bytes_loaded=0, bytes_stored=0,
    executed=np.zeros(0, np.uint64), files=(), sources=np.zeros((0, 4), np.uint32),
    waves=waves_of(),
)  # fmt: skip


def launch(total: int, *executed: int) -> RecordedLaunch:
    return replace(EMPTY, groups=(total, 1, 1), waves=waves_of(*executed))


def test_the_first_workgroup_stands_for_others_like_it() -> None:
    assert len(representative(launch(8, 100, 105, 110)).waves) == 1
    assert len(representative(launch(8, 100, 200)).waves) == 2
    assert representative(launch(8, 100)).waves[0].executed == 100


@pytest.mark.parametrize(
    ("total", "work", "asked", "kept"),
    [
        (16, lambda place: 100, [3], 1),
        (2, lambda place: 100, [3], 1),
        # Three divides the grid, whose places are then the same of an axis of four.
        (12, lambda place: 100 * (1 + place % 4), [3, 5, SAMPLES], SAMPLES),
        (16, lambda place: 100 * (1 + place), [3, SAMPLES], SAMPLES),
    ],
)
def test_more_workgroups_are_recorded_where_they_differ(
    total: int, work: object, asked: list[int], kept: int
) -> None:
    counts = []

    def record(count: int) -> list[RecordedLaunch]:
        counts.append(count)
        places = [index * total // count for index in range(min(count, total))]
        assert callable(work)
        return [launch(total, *map(work, places))]

    (recorded,) = recorded_with(record)
    assert counts == asked
    assert len(recorded.waves) == kept
