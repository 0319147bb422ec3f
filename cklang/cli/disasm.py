# SPDX-License-Identifier: MIT
"""``cklang disasm``: print the instructions of a code object, a HIP program or a cached kernel."""

import argparse
import sys
from pathlib import Path

from cklang.arch import base_name
from cklang.build import code_object
from cklang.build.artifacts import artifacts_in
from cklang.build.store import Store
from cklang.emulator.hipcc import fat_binary
from cklang.errors import error


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "kernel", help="a code object, an executable or a bundle of --genco, or the start of a key"
    )
    parser.add_argument("--target", help="of several code objects those for this GPU: gfx942")


def run(options: argparse.Namespace) -> int:
    """Print the assembly text."""
    from cklang import emulator

    path = _find(options.kernel)
    images = fat_binary.all_entries(path.read_bytes())
    if not images:
        images = [(code_object.read(path).target, path.read_bytes())]
    wanted = options.target
    named = [(arch, image) for arch, image in images if wanted in (None, base_name(arch))]
    if not named:
        archs = ", ".join(arch for arch, _ in images)
        problem = f"{path} has code for {archs}, and none for {wanted}"
        raise error("Z010", name=wanted, problem=problem)
    for arch, image in named:
        if len(named) > 1:
            sys.stdout.write(f"{arch}:\n")
        sys.stdout.write(emulator.disassemble(arch, image))
    return 0


def _find(name: str) -> Path:
    path = Path(name)
    if path.is_file():
        return path
    code_objects = [a.code_object for a in artifacts_in(Store()) if a.key.digest.startswith(name)]
    if len(code_objects) != 1:
        problem = "several kernels" if code_objects else "neither a file nor a kernel of the cache"
        raise error("Z010", name=name, problem=f"{name!r} is {problem}")
    return code_objects[0]
