# SPDX-License-Identifier: MIT
"""What is compiled for the first results of a program, with an empty cache.

``python benchmarks/first_calls.py examples/15_llama_block.py ...`` runs each script in a fresh
cache, then again, and prints the processor seconds of each kind of step with how many there were.
``--strategy NAME`` runs them with a strategy (``docs/dispatch.md``), ``--emulator`` leaves out the
compilation of the emulator, and ``--beside TREE`` takes turns with another checkout of cklang.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

_HERE = Path(__file__).resolve().parents[1]
_RUN = """
import os, runpy, subprocess, sys
commands = {}
report, strategy, script = sys.argv[1:]
class Popen(subprocess.Popen):
    def __init__(self, args, *rest, **options):
        super().__init__(args, *rest, **options)
        commands[self.pid] = args
def waited(pid, options):
    done, status, usage = os.wait4(pid, options)
    if done:
        seconds = usage.ru_utime + usage.ru_stime
        with open(report, "a") as file:
            print(f"{seconds:.3f}", *commands.pop(done, ["?"]), file=file)
    return done, status
subprocess.Popen, os.waitpid = Popen, waited
sys.path.insert(0, os.path.dirname(script))
sys.argv = [script]
import cklang as ck
with ck.using(strategy=strategy or None):
    runpy.run_path(script, run_name="__main__")
"""
_STEPS: Mapping[str, str] = {
    "headers": r"headers\.pch",
    "main loops": r"mainloop\.hip",
    "epilogues": r"epilogue\.bc$|ONLY_EPILOGUE",
    "other stencils": r"stencil\.hip",
    "host shims": r"host\.(o|so|hip)",
    "functions": r"fill\.bc|kernel\.(o|ll)|hsaco|stencil\.bc",
    "emulator": r"common\.pch|engine/src|/emulator/",
}
"""Patterns of commands by the kind of step; the first that fits counts."""


def steps(report: Path) -> Iterator[tuple[str, list[float]]]:
    """Yield each kind of step with the processor seconds of its commands."""
    lines = report.read_text("utf-8").splitlines() if report.exists() else []
    split = [line.partition(" ") for line in lines]
    kinds = [*_STEPS, "others"]
    patterns = [re.compile(pattern) for pattern in _STEPS.values()]
    found: dict[str, list[float]] = {kind: [] for kind in kinds}
    for seconds, _, command in split:
        fits = (kind for kind, each in zip(kinds, patterns, strict=False) if each.search(command))
        found[next(fits, "others")].append(float(seconds))
    yield from ((kind, seconds) for kind, seconds in found.items() if seconds)


def run(tree: Path, script: Path, strategy: str, cache: Path, report: Path) -> tuple[float, float]:
    """Run a script; return the seconds that passed, and those of processors."""
    environment = {**os.environ, "CKLANG_CACHE_DIR": str(cache), "PYTHONPATH": str(tree)}
    before, start = os.times(), time.perf_counter()
    command = [sys.executable, "-c", _RUN, str(report), strategy, str(script)]
    subprocess.run(command, check=True, env=environment, cwd=tree, stdout=subprocess.DEVNULL)
    passed, after = time.perf_counter() - start, os.times()
    used = after.children_user + after.children_system
    return passed, used - before.children_user - before.children_system


def main() -> None:
    """Print a table for each script and checkout."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scripts", nargs="+", type=Path)
    parser.add_argument("--strategy", default="")
    parser.add_argument("--emulator", action="store_true", help="compile it before")
    parser.add_argument("--beside", type=Path, action="append", default=[])
    words = parser.parse_args()
    for script in words.scripts:
        for tree in (_HERE, *words.beside):
            with tempfile.TemporaryDirectory() as folder:
                cache, report = Path(folder, "cache"), Path(folder, "report")
                if words.emulator:
                    build = "from cklang.emulator.engine.build import library_path; library_path()"
                    own = {"CKLANG_CACHE_DIR": str(cache), "PYTHONPATH": str(tree)}
                    environment = {**os.environ, **own}
                    subprocess.run([sys.executable, "-c", build], check=True, env=environment)
                reports = report, Path(folder, "again")
                both = [
                    run(tree.resolve(), script.resolve(), words.strategy, cache, place)
                    for place in reports
                ]
                print(f"{script.name}, {tree.name}:", *(f"{a:.1f} s ({b:.1f})" for a, b in both))
                for kind, seconds in steps(report):
                    print(f"  {kind:16} {len(seconds):3} {sum(seconds):7.2f} s of processors")


if __name__ == "__main__":
    main()
