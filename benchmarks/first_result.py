# SPDX-License-Identifier: MIT
"""A new process from its start to its first result; its kernel and launches are in the cache.

``python benchmarks/first_result.py --wheel WHEEL`` installs a wheel that has the emulator and
stencils inside (``docs/dispatch.md``, *Compiled before anybody asks*) into a fresh environment, and
times README's example there with an empty cache.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
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
    """Return the least seconds of ``repeat`` processes; one before them fills the caches."""
    return min(passed for passed, _ in processes(repeat))


def processes(repeat: int) -> list[tuple[float, float]]:
    """Return the seconds and processor seconds of ``repeat`` processes; another fills the caches.

    Python keeps its bytecode, as it does unless somebody forbids it.
    """
    here = str(Path(__file__).resolve().parent)
    fill = _SCRIPT.partition("record = ")[0]
    with tempfile.TemporaryDirectory() as bytecode:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)

        def run(script: str) -> tuple[float, float]:
            before, start = os.times(), time.perf_counter()
            subprocess.run([sys.executable, "-c", script, here], check=True, env=environment)
            passed, after = time.perf_counter() - start, os.times()
            used = after.children_user + after.children_system
            return passed, used - before.children_user - before.children_system

        run(fill)
        return [run(_SCRIPT) for _ in range(repeat)]


_FIRST_CALL = """
import sys, time
start = time.perf_counter()
sys.path.insert(0, sys.argv[1])
from programs import arguments, linear_gelu
linear_gelu(*arguments(384, 512, 256), device="emu:gfx942")
print(f"{time.perf_counter() - start:.2f}")
"""


def measure_fresh(wheel: Path) -> Iterator[tuple[str, float]]:
    """Yield what is done in a fresh environment and the seconds that it takes."""
    here = str(Path(__file__).resolve().parent)
    with tempfile.TemporaryDirectory() as folder:
        python = Path(folder, "venv", "bin", "python")
        environment = {**os.environ, "CKLANG_CACHE_DIR": str(Path(folder, "cache"))}
        for name in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "CKLANG_PREBUILT", "VIRTUAL_ENV"):
            environment.pop(name, None)
        subprocess.run([sys.executable, "-m", "venv", python.parents[1]], check=True)
        install = [str(python), "-m", "pip", "install", "-q", f"{wheel}[emu]"]
        steps = {
            "installing": install,
            "the first result": [str(python), "-c", _FIRST_CALL, here],
            "that of the next process": [str(python), "-c", _FIRST_CALL, here],
        }
        for what, command in steps.items():
            start = time.perf_counter()
            subprocess.run(command, check=True, env=environment, cwd=folder)
            yield what, time.perf_counter() - start


if __name__ == "__main__":
    if sys.argv[1:2] == ["--wheel"]:
        for what, seconds in measure_fresh(Path(sys.argv[2]).resolve()):
            print(f"{what}: {seconds:.2f} s")
    else:
        taken = processes(3)
        passed, used = (min(column) for column in zip(*taken, strict=True))
        print(f"new process to first result: {passed:.2f} s, {used:.2f} s of processors")
