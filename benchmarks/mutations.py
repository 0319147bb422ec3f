# SPDX-License-Identifier: MIT
"""Break the emulator on purpose, one line at a time, and see whether its tests notice.

    python benchmarks/mutations.py [--only NAME ...] [--list]

Each mutant of ``mutants.py`` is a copy of the package with one piece of one C++ file replaced. The
copy is compiled (only that file, thanks to the object cache) and the tests that the mutant names
run against it. A mutant whose tests all pass has survived: something is not tested.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mutants import MUTANTS, Mutant

ROOT = Path(__file__).parents[1]
TIMEOUT = 300
"""Seconds after which a mutant's tests count as hanging."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the tests said about one mutant."""

    mutant: Mutant
    caught: bool
    by: str
    """The first test that failed, or how the run ended."""
    seconds: float


def main() -> None:
    """Judge the mutants that the command line names, or all; fail if one survives."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", nargs="+", choices=[mutant.name for mutant in MUTANTS])
    parser.add_argument("--list", action="store_true", help="print the mutants and stop")
    options = parser.parse_args()
    chosen = [m for m in MUTANTS if not options.only or m.name in options.only]
    if options.list:
        sys.stdout.writelines(f"{m.name}: {m.file}: {', '.join(m.tests)}\n" for m in chosen)
        return
    survivors = 0
    with scratch_cache() as cache:
        sys.stdout.write("| mutant | file | verdict | by |\n|---|---|---|---|\n")
        for mutant in chosen:
            verdict = judge(mutant, cache)
            survivors += not verdict.caught
            word = "caught" if verdict.caught else "SURVIVED"
            sys.stdout.write(f"| {mutant.name} | {mutant.file} | {word} | {verdict.by} |\n")
            sys.stdout.flush()
    sys.stdout.write(f"\n{len(chosen) - survivors} of {len(chosen)} caught\n")
    sys.exit(1 if survivors else 0)


@contextmanager
def scratch_cache() -> Iterator[Path]:
    """Yield a cache folder of its own that begins with the objects of this tree's emulator."""
    from cklang.emulator.engine.build import library_path
    from cklang.toolchain.paths import cache_root

    library_path()
    with tempfile.TemporaryDirectory(prefix="cklang-mutants-") as folder:
        cache = Path(folder, "cache")
        shutil.copytree(cache_root() / "emulator" / "objects", cache / "emulator" / "objects")
        if (cache_root() / "zig").is_dir():
            (cache / "zig").symlink_to(cache_root() / "zig")
        yield cache


def judge(mutant: Mutant, cache: Path) -> Verdict:
    """Build a mutant and run its tests.

    Raises:
        ValueError: The mutant does not fit the sources, or does not compile.
    """
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="cklang-mutant-") as folder:
        tree = Path(folder)
        plant(mutant, tree)
        environment = os.environ | {"CKLANG_CACHE_DIR": str(cache), "PYTHONDONTWRITEBYTECODE": "1"}
        load = "from cklang.emulator.engine.build import library_path; print(library_path())"
        built = _python(tree, environment, "-c", load)
        if built is None or built.returncode != 0:
            raise ValueError(f"{mutant.name} does not compile:\n{built.stderr if built else ''}")
        flags = ("-q", "-x", "-n", "0", "-p", "no:cacheprovider", "--no-header", "-rfE")
        tested = _python(tree, environment, "-m", "pytest", *flags, *mutant.tests)
        shutil.rmtree(Path(built.stdout.strip()).parent)
    caught, by = _outcome(tested)
    return Verdict(mutant=mutant, caught=caught, by=by, seconds=time.perf_counter() - start)


def plant(mutant: Mutant, tree: Path) -> None:
    """Copy the package into ``tree`` with the mutant's line in place of the true one.

    Raises:
        ValueError: The line that it replaces is not there exactly once.
    """
    for name in ("cklang", "arch_specs"):
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("benchmarks", "tests", "pyproject.toml"):
        (tree / name).symlink_to(ROOT / name)
    target = tree / "cklang" / "emulator" / "engine" / "src" / mutant.file
    text = target.read_text("utf-8")
    if text.count(mutant.old) != 1:
        raise ValueError(f"{mutant.name}: {text.count(mutant.old)} places in {mutant.file}")
    target.write_text(text.replace(mutant.old, mutant.new), "utf-8")


def _python(
    tree: Path, environment: dict[str, str], *arguments: str
) -> subprocess.CompletedProcess[str] | None:
    """Run Python in a mutant's tree; None if it does not end."""
    try:
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=tree,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT,
        )
    except subprocess.TimeoutExpired:
        return None


def _outcome(tested: subprocess.CompletedProcess[str] | None) -> tuple[bool, str]:
    if tested is None:
        return True, "does not end"
    if tested.returncode < 0:
        return True, f"signal {-tested.returncode}"
    if tested.returncode == 0:
        return False, ""
    failed = [line for line in tested.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if tested.returncode != 1 or not failed:
        raise ValueError(f"the tests did not run:\n{tested.stdout}{tested.stderr}")
    return True, failed[0].split(" ")[1].split("/")[-1].split("[")[0]


if __name__ == "__main__":
    main()
