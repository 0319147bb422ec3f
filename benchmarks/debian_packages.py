# SPDX-License-Identifier: MIT
"""Debian's packages without an installation: downloaded, unpacked, run with their own loader."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from cklang.emulator import library_path
from cklang.emulator.rocm import start

HIP_NAMES = ("libamdhip64.so.5", "libamdhip64.so.6", "libamdhip64.so.7")
"""The names under which programs look for the HIP library."""
MIRROR = "http://deb.debian.org/debian"


def download(packages: Iterable[str], suite: str, folder: Path) -> None:
    """Download packages and all that they depend on into ``folder``, with apt's state beside."""
    state = folder / "apt"
    for part in ("state/lists/partial", "cache/archives/partial"):
        (state / part).mkdir(parents=True, exist_ok=True)
    sources = state / "sources.list"
    sources.write_text(f"deb [trusted=yes] {MIRROR} {suite} main\n")
    settings = {
        "Dir::Etc::SourceList": sources,
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::State": state / "state",
        "Dir::Cache": state / "cache",
        "APT::Sandbox::User": "",
    }
    options = [f"-o{name}={value}" for name, value in settings.items()]

    def apt(program: str, *words: str, check: bool = True) -> str:
        command = [program, *options, *words]
        done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=check)
        return done.stdout

    apt("apt-get", "-q", "update")
    closure = apt("apt-cache", "depends", "--recurse", "--important", *packages)
    names = re.findall(r"^[a-z0-9][^ <:]*$", closure, re.M)
    # A name that no package of the suite has, such as an older HIP library, is left to the loader.
    known = re.findall(r"^Package: (.*)$", apt("apt-cache", "show", *names, check=False), re.M)
    apt("apt-get", "-q", "download", *sorted(set(known)))


def unpack(debs: Path, root: Path) -> None:
    """Unpack each package of a folder below ``root``, once."""
    for deb in sorted(debs.glob("*.deb")):
        stamp = root / "unpacked" / deb.name
        if not stamp.exists():
            subprocess.run(["dpkg-deb", "--extract", str(deb), str(root)], check=True)
            stamp.parent.mkdir(exist_ok=True)
            stamp.touch()


def loader(root: Path) -> tuple[str, ...]:
    """Return the command that runs a program with the emulator's library before AMD's."""
    ours, system = root / "emulator", root / start.SYSTEM
    ours.mkdir(parents=True, exist_ok=True)
    for name in HIP_NAMES:
        (ours / name).unlink(missing_ok=True)
        (ours / name).symlink_to(library_path())
    return start.loader(system, [ours, *start.folders(system)])


def amds_loader(root: Path) -> tuple[str, ...]:
    """Return the command that runs a program with AMD's libraries."""
    system = root / start.SYSTEM
    return start.loader(system, start.folders(system))
