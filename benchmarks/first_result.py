# SPDX-License-Identifier: MIT
"""A new process from its start to its first result, with the kernel in the cache."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

_SCRIPT = """
import sys
sys.path.insert(0, sys.argv[1])
from programs import arguments, linear_gelu
linear_gelu(*arguments(128, 128, 64))
record = linear_gelu.last
assert record is not None and record.cached, "the kernel should have been in the cache"
"""


def measure(repeat: int = 3) -> float:
    """Return the least seconds of ``repeat`` processes; one before them fills the cache."""
    here = str(Path(__file__).resolve().parent)
    fill = _SCRIPT.partition("record = ")[0]
    subprocess.run([sys.executable, "-c", fill, here], check=True)
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", _SCRIPT, here], check=True)
        times.append(time.perf_counter() - start)
    return min(times)


if __name__ == "__main__":
    print(f"new process to first result: {measure():.2f} s")
