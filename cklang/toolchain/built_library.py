# SPDX-License-Identifier: MIT
"""Shared libraries that cklang builds for itself, in folders of the cache.

A library is compared with what was built before it is loaded: one that is cut short ends the
process.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cklang.toolchain import folders
from cklang.toolchain.integrity import RECORD, files_in, problem_of, read_record, sealed
from cklang.toolchain.log import logger
from cklang.toolchain.paths import cache_root, writing
from cklang.toolchain.progress import Wait


def intact(folder: Path, build: Callable[[Path], None]) -> Path:
    """Return ``folder`` with the library as it was built, by ``build`` if it is not there as such.

    ``build`` makes the folder, or one in its place, and seals it. A damaged one is logged.
    """
    if problem_of_library(folder) is None:
        return folder
    from filelock import FileLock

    with writing(cache_root()):
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(f"{folder}.lock")
        with Wait(f"waiting for another process, which compiles {folder.parent.name}"):
            lock.acquire()
        with lock:
            problem = problem_of_library(folder)
            if problem is not None:
                if folder.exists():
                    message = "%s: %s; it will be built again"
                    logger("toolchain").warning(message, folder, problem)
                build(folder)
    return folder


def compiled_library(source: Path, flags: Sequence[str]) -> Path:
    """Return the shared library of one C++ file, compiled now if this machine does not have it.

    The library is named after ``source``.
    """
    from cklang.toolchain.compilers import find_toolchain, run_tool

    toolchain, name = find_toolchain(), f"lib{source.stem}.so"
    facts = "\0".join((source.read_text(encoding="utf-8"), toolchain.identity, *flags))
    key = hashlib.sha256(facts.encode()).hexdigest()[:32]

    def build(folder: Path) -> None:
        with put_in_place(folder, name) as work:
            compiled, log = work / f"{source.stem}.o", work / "build.log"
            environment = toolchain.environment()
            with Wait(f"compiling {name} (once)"):
                command = toolchain.compile_cxx(source, compiled, flags=flags)
                run_tool(command, log=log, environment=environment)
                command = toolchain.link_plain([compiled], work / name)
                run_tool(command, log=log, environment=environment)

    return intact(cache_root() / source.stem / key, build) / name


@contextmanager
def put_in_place(folder: Path, library: str) -> Iterator[Path]:
    """Yield a new folder that takes the place of ``folder``, sealed, if the block succeeds."""
    import tempfile

    work = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", dir=folder.parent))
    try:
        yield work
        seal(work, library)
        folders.remove(folder)
        work.rename(folder)
    finally:
        folders.remove(work)


def seal(folder: Path, library: str) -> None:
    """Write down what the file ``library`` in ``folder`` contains."""
    record = sealed({"files": {library: files_in(folder)[library]}})
    (folder / RECORD).write_text(json.dumps(record, indent=1))


def problem_of_library(folder: Path) -> str | None:
    """Say why the library in ``folder`` must not be loaded, or return None."""
    try:
        return problem_of(folder, read_record(folder), every_byte=True)
    except OSError as problem:
        return f"{RECORD} cannot be read ({problem.strerror})"
