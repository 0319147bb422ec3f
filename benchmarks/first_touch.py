# SPDX-License-Identifier: MIT
"""Processor time of filling device memory on the emulator for the first and for the second time.

    python benchmarks/first_touch.py [MEGABYTES]

What the first time takes longer are the pages that the operating system provides.
"""

from __future__ import annotations

import ctypes
import sys
import time

from cklang.emulator.engine import library


def fill(hip: ctypes.CDLL, memory: ctypes.c_void_p, size: int) -> float:
    """Return the processor seconds of one fill."""
    before = time.process_time()
    hip.hipMemset(memory, 1, ctypes.c_size_t(size))
    hip.hipDeviceSynchronize()
    return time.process_time() - before


def measured(size: int, rounds: int = 5) -> tuple[float, float]:
    """Return the least seconds of the first and of the second fill of fresh memory."""
    hip, memory = library.load(), ctypes.c_void_p()
    first, second = [], []
    for _ in range(rounds):
        hip.hipMalloc(ctypes.byref(memory), ctypes.c_size_t(size))
        first.append(fill(hip, memory, size))
        second.append(fill(hip, memory, size))
        hip.hipFree(memory)
    return min(first), min(second)


if __name__ == "__main__":
    megabytes = int(sys.argv[1]) if sys.argv[1:] else 256
    once, again = measured(megabytes << 20)
    print(
        f"{megabytes} MB: first fill {1e3 * once:.1f} ms, second {1e3 * again:.1f} ms of processors"
    )
