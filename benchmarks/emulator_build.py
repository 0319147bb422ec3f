# SPDX-License-Identifier: MIT
"""Compile the emulator into an empty cache, as the first call of a checkout does.

Prints the seconds that pass and the processor seconds of all compilers. ``python
benchmarks/emulator_build.py TREE...`` takes turns with other checkouts of cklang.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_BUILD = "from cklang.emulator.engine.build import library_path; library_path()"


def build(tree: Path) -> tuple[float, float]:
    """Return the seconds that a build of a checkout's emulator takes, and its processor seconds."""
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"CKLANG_CACHE_DIR": cache, "PYTHONPATH": str(tree)}
        environment.pop("CKLANG_PREBUILT", None)
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run([sys.executable, "-c", _BUILD], check=True, env=environment, cwd=cache)
        passed, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return passed, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


if __name__ == "__main__":
    trees = [Path(word).resolve() for word in sys.argv[1:]] or [Path(__file__).resolve().parents[1]]
    for tree in trees:
        passed, processor = build(tree)
        print(f"{tree.name}: {passed:.1f} s, {processor:.1f} s of processors", flush=True)
