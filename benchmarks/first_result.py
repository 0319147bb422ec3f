# SPDX-License-Identifier: MIT
"""A new process from its start to its first result; its kernel and launches are in the cache.

``python benchmarks/first_result.py`` times new processes that import NumPy, import cklang, and make
a first call; ``--beside CHECKOUT`` those of another checkout in turn with them.

``python benchmarks/first_result.py --wheel WHEEL`` installs a wheel that has the emulator and
stencils inside (``docs/dispatch.md``, *Compiled before anybody asks*) into a fresh environment, and
times README's example there with an empty cache. Programs behind it, such as
``examples/15_llama_block.py``, are timed whole, each with an empty cache of its own. With names of
GPUs behind it, an op of each family is called on them then.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

_HEAD = "import sys; sys.path.insert(0, sys.argv[1])"
_FILL = f"""{_HEAD}
from programs import arguments, linear_gelu
linear_gelu(*arguments(128, 128, 64))
"""
_RESULT = f"""{_FILL}
record = linear_gelu.last
assert record is not None and record.cached, "the kernel should have been in the cache"
"""
SCRIPTS = {
    "import numpy": "import numpy",
    "import cklang": "import cklang",
    "first result": _RESULT,
}
"""What new processes do, by what it is called."""

_HERE = Path(__file__).resolve().parents[1]


def measure(repeat: int = 3) -> float:
    """Return the least seconds of ``repeat`` processes; one before them fills the caches."""
    taken = processes(repeat, [_HERE])[_HERE, "first result"]
    return min(passed for passed, _ in taken)


def processes(
    repeat: int, trees: Sequence[Path]
) -> dict[tuple[Path, str], list[tuple[float, float]]]:
    """Return the seconds and processor seconds of ``repeat`` processes of each kind.

    Those of several checkouts take turns, and others before them fill the caches. Python keeps its
    bytecode, as it does unless somebody forbids it.
    """
    with tempfile.TemporaryDirectory() as bytecode:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)

        def run(tree: Path, script: str) -> tuple[float, float]:
            command = [sys.executable, "-c", script, str(tree / "benchmarks")]
            own = {**environment, "PYTHONPATH": str(tree)}
            before, start = os.times(), time.perf_counter()
            subprocess.run(command, check=True, env=own, cwd=tree, stderr=subprocess.DEVNULL)
            passed, after = time.perf_counter() - start, os.times()
            used = after.children_user + after.children_system
            return passed, used - before.children_user - before.children_system

        for tree in trees:
            run(tree, _FILL)
        kinds = [(tree, name) for name in SCRIPTS for tree in trees]
        taken: dict[tuple[Path, str], list[tuple[float, float]]] = {kind: [] for kind in kinds}
        for _ in range(repeat):
            for tree, name in kinds:
                taken[tree, name].append(run(tree, SCRIPTS[name]))
        return taken


_FIRST_CALL = """
import sys, time
start = time.perf_counter()
sys.path.insert(0, sys.argv[1])
from programs import arguments, linear_gelu
linear_gelu(*arguments(384, 512, 256), device="emu:gfx942")
print(f"{time.perf_counter() - start:.2f}")
"""


def measure_fresh(
    wheel: Path, gpus: Sequence[str] = (), programs: Sequence[Path] = ()
) -> Iterator[tuple[str, float]]:
    """Yield what is done in a fresh environment and the seconds that it takes.

    ``programs`` begin with empty caches. With the names of ``gpus``, an op of each family is called
    there (``wheel_families.py``).
    """
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
        for program in programs:
            own = {**environment, "CKLANG_CACHE_DIR": str(Path(folder, program.stem))}
            start = time.perf_counter()
            command = [str(python), str(program)]
            subprocess.run(command, check=True, env=own, cwd=folder, stdout=subprocess.DEVNULL)
            yield program.name, time.perf_counter() - start
        for gpu in gpus:
            subprocess.run(
                [str(python), str(Path(here, "wheel_families.py")), gpu],
                check=True,
                env={**environment, "CKLANG_LOG": "error"},
                cwd=folder,
            )


def main(repeat: int, trees: Sequence[Path]) -> None:
    """Print for each checkout how long new processes take: median and range."""
    for (tree, name), taken in processes(repeat, trees).items():
        passed, used = ([row[column] for row in taken] for column in (0, 1))
        print(f"{tree}: {name}: {_spread(passed)} s, {_spread(used)} s of processors")


def _spread(values: Sequence[float]) -> str:
    return f"{median(values):.2f} ({min(values):.2f}-{max(values):.2f})"


if __name__ == "__main__":
    if sys.argv[1:2] == ["--wheel"]:
        more = sys.argv[3:]
        programs = [Path(word).resolve() for word in more if word.endswith(".py")]
        gpus = [word for word in more if not word.endswith(".py")]
        for what, seconds in measure_fresh(Path(sys.argv[2]).resolve(), gpus, programs):
            print(f"{what}: {seconds:.2f} s")
    else:
        others = [Path(each).resolve() for each in sys.argv[2:] if sys.argv[1] == "--beside"]
        main(7, [_HERE, *others])
