# SPDX-License-Identifier: MIT
"""HIP programs, compiled once in a process, and run as users run them."""

import os
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from cklang.emulator.hipcc import driver

PROGRAMS = Path(__file__).parents[1] / "emulator" / "programs"
_SETTINGS = (
    *("CKLANG_SANITIZE", "CKLANG_FAULT", "CKLANG_GPUS", "CKLANG_REPORTS", "HIP_VISIBLE_DEVICES"),
    "HSA_XNACK",
)


@cache
def _folder() -> TemporaryDirectory[str]:
    return TemporaryDirectory()


@cache
def built(source: Path | str, *gpus: str, options: tuple[str, ...] = ()) -> Path:
    """Compile a program for some GPUs: a file, or the name of one in ``emulator/programs``."""
    path = PROGRAMS / f"{source}.hip" if isinstance(source, str) else source
    program = Path(_folder().name) / "-".join((path.stem, *gpus))
    words = [f"--offload-arch={','.join(gpus)}", *options, str(path), "-o", str(program)]
    driver.build(words, print)
    return program


def quiet(words: list[str]) -> str:
    """Run hipcc; return what it said."""
    said: list[str] = []
    driver.build(words, said.append)
    return "".join(said)


def plain_environment() -> dict[str, str]:
    """The environment without settings of the emulator."""
    return {name: text for name, text in os.environ.items() if name not in _SETTINGS}


def run_ranks(
    command: Sequence[Path | str], count: int, **settings: str
) -> list[tuple[int, str, str]]:
    """Run a program as each of several ranks: exit code, output, and errors of each."""
    common = {"CKLANG_GPUS": f"gfx942*{count}", "WORLD_SIZE": str(count), **settings}
    processes = [
        subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**plain_environment(), "RANK": str(rank), **common},
        )
        for rank in range(count)
    ]
    try:
        said = [process.communicate(timeout=60) for process in processes]
    finally:
        for process in processes:
            process.kill()
    return [
        (process.returncode, out, errors)
        for process, (out, errors) in zip(processes, said, strict=True)
    ]


def run(program: Path, *words: object, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run a program with these settings of the emulator and no others."""
    return subprocess.run(
        [program, *map(str, words)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**plain_environment(), **settings},
        check=False,
    )
