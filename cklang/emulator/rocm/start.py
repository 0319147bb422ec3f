# SPDX-License-Identifier: MIT
"""How programs start on AMD's own runtime with emulated GPUs below it."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from cklang import knobs
from cklang.arch import ArchSpec, all_archs
from cklang.emulator.engine.build import DRIVER, library_path
from cklang.emulator.rocm import topology
from cklang.errors import error
from cklang.toolchain.paths import cache_root

SYSTEM = "usr/lib/x86_64-linux-gnu"
"""Where Debian's packages have their libraries."""
RUNTIME = "libhsa-runtime64.so.1"
_LOADER = "ld-linux-x86-64.so.2"


def gpus(text: str) -> tuple[ArchSpec, ...]:
    """Return the GPUs of a machine, spelled as in ``CKLANG_GPUS``.

    Raises:
        CkValueError: Z010, a GPU is not known, or a number is none.

    Example:
        >>> [spec.name for spec in gpus("gfx942*2,gfx90a")]
        ['gfx942', 'gfx942', 'gfx90a']
    """
    known = {spec.name: spec for spec in all_archs()}
    chosen: list[ArchSpec] = []
    for word in text.split(","):
        name, _, count = word.strip().partition("*")
        if name not in known or not (count or "1").isdigit():
            raise error("Z010", name=word, problem=f"it must be one of {', '.join(known)}")
        chosen += [known[name]] * int(count or 1)
    return tuple(chosen)


def settings(names: str | None) -> dict[str, str]:
    """Return the variables that a program gets besides its environment.

    Transfers are done by kernels, as the emulated GPUs have no engines of their own for them.
    """
    wanted = names or knobs.GPUS.get() or ",".join(spec.name for spec in all_archs())
    specs = gpus(wanted)
    before = knobs.tool_environment().get("LD_PRELOAD", "")
    return {
        knobs.GPUS.name: wanted,
        knobs.DRIVER_FOLDER.name: str(_folder(specs)),
        "LD_PRELOAD": f"{library_path().with_name(DRIVER)} {before}".strip(),
        "HSA_ENABLE_SDMA": "0",
    }


def command(program: Sequence[str], root: Path | None) -> list[str]:
    """Return the command line of a program: with the loader and the libraries below ``root``.

    Raises:
        CkValueError: Z010, AMD's runtime is not below it, or there is no such program.

    Example:
        >>> command(["rocminfo", "--help"], None)
        ['rocminfo', '--help']
    """
    if root is None:
        return list(program)
    system = root / SYSTEM
    if not (system / RUNTIME).exists():
        raise error("Z010", name=str(root), problem=f"it has no {SYSTEM}/{RUNTIME}")
    places = (str(root / "usr/bin"), knobs.tool_environment().get("PATH", os.defpath))
    path = shutil.which(program[0], path=os.pathsep.join(places))
    if path is None:
        raise error("Z010", name=program[0], problem="there is no such program")
    return [*loader(system, folders(system)), path, *program[1:]]


def folders(system: Path) -> list[Path]:
    """Return the folders with libraries: ``system`` and those in it."""
    return [system, *sorted({path.parent for path in system.glob("*/lib*.so.*")})]


def loader(system: Path, paths: Sequence[Path]) -> tuple[str, ...]:
    """Return the words before a program that starts with the C library in ``system``."""
    return (str(system / _LOADER), "--library-path", ":".join(map(str, paths)))


def _folder(specs: Sequence[ArchSpec]) -> Path:
    """Return the folder of the driver's files; it lies in the cache, by what is in it."""
    texts = topology.of_machine(specs)
    key = hashlib.sha256("\0".join(chain(*sorted(texts.items()))).encode()).hexdigest()[:32]
    folder = cache_root() / "kfd" / key
    if not folder.exists():
        fresh = folder.with_name(f"{key}.{os.getpid()}")
        topology.write(texts, fresh)
        try:
            fresh.replace(folder)
        except OSError:  # another process was first
            shutil.rmtree(fresh)
    return folder
