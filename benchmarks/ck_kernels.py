# SPDX-License-Identifier: MIT
"""Compile kernels of every template of CK Tile, and count which instructions are emulated.

``ck_plan.py`` says which: the device pass of every example folder's sources, and chosen instances
of each generator's kernels, for the five GPUs. Code objects go to a folder, so that a second run
compiles only what is missing; what does not compile is kept beside them as a ``.txt`` with the
compiler's words. Then prints the table of ``instruction_coverage.py`` over them, how many of each
family were compiled, and what was not.

    python benchmarks/ck_kernels.py folder [--arch gfx942 ...] [--family gemm ...] [--minutes 100]
        [--jobs 2]
"""

from __future__ import annotations

import argparse
import itertools
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ck_examples import COMMON
from ck_plan import ARCHS, EVERYTHING, Unit, units
from instruction_coverage import HEADER, measure

from cklang.emulator.hipcc import driver
from cklang.errors import CkError


def planned(archs: Iterable[str], families: Iterable[str], folder: Path) -> list[tuple[str, Unit]]:
    """All units with their GPUs: turn by turn, and in a turn one of each GPU after the other."""
    folder.mkdir(exist_ok=True, parents=True)
    names = tuple(families)
    columns = [[(arch, unit) for unit in units(arch, names, folder)] for arch in archs]
    for column in columns:
        column.sort(key=lambda item: item[1].turn)
    rows = itertools.zip_longest(*columns)
    together = [item for row in rows for item in row if item is not None]
    return sorted(together, key=lambda item: item[1].turn)


def output_path(unit: Unit, arch: str, folder: Path) -> Path:
    """Where the code object of a unit is put."""
    return folder / f"{arch}-{unit.name[:190]}.co"


def compile_unit(unit: Unit, arch: str, folder: Path) -> None:
    """Make ``<arch>-<name>.co``, or a ``.txt`` that says why there is none."""
    output = output_path(unit, arch, folder)
    refusal = output.with_suffix(".txt")
    if output.exists() or refusal.exists():
        return
    words = [*COMMON, *unit.flags, f"--offload-arch={arch}", "--offload-device-only"]
    said: list[str] = []
    start = time.perf_counter()
    try:
        driver.build([*words, "-c", str(unit.source), "-o", str(output)], said.append)
    except CkError:
        lines = "".join(said).splitlines()
        first = next((line for line in lines if "error" in line), "\n".join(lines[-3:]))
        refusal.write_text(f"{first}\n")
    done = "no" if refusal.exists() else "yes"
    print(
        f"{output.stem}: {done}, {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True
    )


def processor_minutes() -> float:
    """Processor time of all compilers so far."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (usage.ru_utime + usage.ru_stime) / 60


def state(output: Path) -> str:
    """Whether a unit was compiled, was refused by the compiler, or is left."""
    if output.exists():
        return "compiled"
    return "refused" if output.with_suffix(".txt").exists() else "left"


def report(plan: list[tuple[str, Unit]], folder: Path) -> None:
    """Print what was counted, what is missing, and what was not compiled."""
    print(HEADER)
    counted = measure(sorted(folder.glob("*.co")))
    for arch, coverage in sorted(counted.items()):
        print(coverage.row(arch))
    for arch, coverage in sorted(counted.items()):
        for name, count in coverage.missing.most_common():
            print(f"missing: {arch} {name} {count:,}")
    states: Counter[tuple[str, str]] = Counter()
    for arch, unit in plan:
        states[unit.name.split("-")[0], state(output_path(unit, arch, folder))] += 1
    for family in dict.fromkeys(name for name, _ in states):
        words = (f"{states[family, word]} {word}" for word in ("compiled", "refused", "left"))
        print(f"{family}: {', '.join(words)}")
    for refusal in sorted(folder.glob("*.txt")):
        print(f"not compiled: {refusal.stem}: {refusal.read_text().strip()}")


def main() -> None:
    """Compile what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--arch", nargs="+", default=ARCHS, choices=ARCHS)
    parser.add_argument("--family", nargs="+", default=EVERYTHING, choices=EVERYTHING)
    parser.add_argument("--minutes", type=float, default=100, help="of processor time, at most")
    parser.add_argument("--jobs", type=int, default=1, help="compilers at a time")
    options = parser.parse_args()
    plan = planned(options.arch, options.family, options.folder / "generated")

    def work(item: tuple[str, Unit]) -> None:
        if processor_minutes() < options.minutes:
            compile_unit(item[1], item[0], options.folder)

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(work, plan))
    report(plan, options.folder)


if __name__ == "__main__":
    main()
