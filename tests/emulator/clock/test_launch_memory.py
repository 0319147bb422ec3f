# SPDX-License-Identifier: MIT
"""Loads that wait in a queue before memory."""

from __future__ import annotations

import numpy as np
import pytest

from cklang.emulator.clock.launch_memory import MemoryTraffic
from cklang.emulator.clock.waves import WaveStream

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
