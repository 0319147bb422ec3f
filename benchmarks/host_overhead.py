# SPDX-License-Identifier: MIT
"""Host time of a repeated call: everything but the emulated kernel, in microseconds."""

from __future__ import annotations

import statistics
import time

import numpy as np
from programs import arguments, linear_gelu

from cklang.device.device import open_device

SHAPE = (64, 64, 32)


def measure(calls: int = 300, rounds: int = 7) -> float:
    """Return the median host time of one call, in seconds.

    The time that the engine reports for the kernel is taken out of each call.
    """
    args = arguments(*SHAPE)
    out = np.empty(SHAPE[:2], np.float16)
    for _ in range(20):
        linear_gelu(*args, out=out)
    device = open_device()
    found = []
    for _ in range(rounds):
        times = []
        for _ in range(calls):
            start = time.perf_counter_ns()
            linear_gelu(*args, out=out)
            spent = time.perf_counter_ns() - start
            effort = device.effort()
            times.append(spent - (effort.engine_ns if effort is not None else 0))
        found.append(statistics.median(times) * 1e-9)
    return statistics.median(found)


if __name__ == "__main__":
    print(f"host time of a repeated call: {measure() * 1e6:.1f} us")
