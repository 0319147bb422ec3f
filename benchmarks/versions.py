# SPDX-License-Identifier: MIT
"""The oldest and the newest versions of Python, torch and Triton, on the tests of their area.

``python benchmarks/versions.py FOLDER`` makes an environment in FOLDER for each row, or takes the
one that is there, runs the tests, and prints the table of ``docs/testing.md``. It needs the Pythons
on the path, and 6 GB for each torch of the registry, whose builds are for CUDA.

Tests that need kernels beyond the catalogue's are left out: what is compiled depends on no version.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cklang.versions import KNOWN

ROOT = Path(__file__).parents[1]

TORCH = ("tests/torch", "tests/runtime/test_torch.py", "tests/runtime/test_array_reader.py")
TRITON = (
    "tests/emulator/test_gluon.py",
    "tests/emulator/test_triton_driver.py",
    "tests/emulator/debugger/test_triton.py",
)
LANGUAGE = ("tests/frontend", "tests/ir", "tests/fusion", "tests/reference", "tests/testing")


@dataclass(frozen=True, slots=True)
class Row:
    """An environment, and the tests that run in it."""

    python: str
    packages: tuple[str, ...]
    tests: tuple[str, ...]


def _wanted(package: str, place: int) -> str:
    """Return the requirement of the first version of a package that is known, or the last."""
    major, minor = KNOWN[package][place]
    return f"{package}=={major}.{minor}.*"


ROWS = (
    # torch of the registry brings the Triton that it was made with.
    Row("3.12", (_wanted("torch", 0), _wanted("triton", 0)), (*TORCH, *TRITON, *LANGUAGE)),
    Row("3.11", (_wanted("torch", 1),), (*TORCH, *TRITON)),
    Row("3.11", ("torch==2.13.*", _wanted("triton", 1)), (*TORCH, *TRITON, *LANGUAGE)),
    Row("3.13", (), LANGUAGE),
)


def environment(row: Row, folder: Path) -> Path:
    """Return the interpreter of a row's environment, which is made if it is not there.

    Raises:
        SystemExit: No Python of this version is on the path.
    """
    interpreter = folder / "bin" / "python"
    if not interpreter.exists():
        program = shutil.which(f"python{row.python}")
        if program is None:
            raise SystemExit(f"python{row.python} is not on the path")
        subprocess.run([program, "-m", "venv", str(folder)], check=True)
        install = [str(interpreter), "-m", "pip", "install", "--quiet", "--editable"]
        subprocess.run([*install, f"{ROOT}[emu,dev]", *row.packages], check=True)
    return interpreter


def versions(interpreter: Path) -> list[str]:
    """Return the versions of torch and Triton in an environment, "none" where it has none."""
    program = (
        "from importlib import metadata\n"
        f"for name in {list(KNOWN)}:\n"
        "    print(next((d.version for d in metadata.distributions(name=name)), 'none'))"
    )
    command = [str(interpreter), "-c", program]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


def counts(interpreter: Path, tests: Sequence[str]) -> Mapping[str, int]:
    """Run tests, and return how many passed, failed and were skipped."""
    command = [str(interpreter), "-m", "pytest", "-q", "-m", "pure or isa or fill", *tests]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    print(done.stdout[-2000:] if done.returncode else "", end="", flush=True)
    closing = done.stdout.strip().splitlines()[-1]
    return {word: int(number) for number, word in re.findall(r"(\d+) ([a-z]+)", closing)}


def lines(folder: Path) -> Iterator[str]:
    """Yield the table."""
    yield "| Python | torch | Triton | passed | failed | skipped |"
    yield "|---|---|---|---|---|---|"
    for row in ROWS:
        name = "-".join([row.python, *(each.partition("=")[0] for each in row.packages)])
        interpreter = environment(row, folder / f"{ROWS.index(row)}-{name}")
        result = counts(interpreter, row.tests)
        numbers = [str(result.get(word, 0)) for word in ("passed", "failed", "skipped")]
        yield f"| {' | '.join([row.python, *versions(interpreter), *numbers])} |"


def main() -> None:
    """Print the table, a row as soon as it is known."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("folder", type=Path, help="where the environments are")
    for line in lines(parser.parse_args().folder):
        print(line, flush=True)


if __name__ == "__main__":
    main()
