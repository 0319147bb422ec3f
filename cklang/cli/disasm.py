# SPDX-License-Identifier: MIT
"""``cklang disasm``: print the instructions of a code object or of a cached kernel."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from cklang.build import code_object
from cklang.build.builder import artifacts_in
from cklang.build.store import Store
from cklang.errors import error

__all__ = ["add", "run"]


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("kernel", help="a code object file, or the start of a cached kernel's key")


def run(options: argparse.Namespace) -> int:
    """Print the assembly text."""
    from cklang import emulator

    path = _find(options.kernel)
    target = code_object.read(path).target
    sys.stdout.write(emulator.disassemble(target, path.read_bytes()))
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
