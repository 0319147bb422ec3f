# SPDX-License-Identifier: MIT
"""A new process from its start to its first result; its kernel and launches are in the cache."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
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
    """Return the least seconds of ``repeat`` processes; one before them fills the caches.

    Python keeps its bytecode, as it does unless somebody forbids it.
    """
    here = str(Path(__file__).resolve().parent)
    fill = _SCRIPT.partition("record = ")[0]
    with tempfile.TemporaryDirectory() as bytecode:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)

        def run(script: str) -> float:
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", script, here], check=True, env=environment)
            return time.perf_counter() - start

        run(fill)
        return min(run(_SCRIPT) for _ in range(repeat))


if __name__ == "__main__":
    print(f"new process to first result: {measure():.2f} s")
