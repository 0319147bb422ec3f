# SPDX-License-Identifier: MIT
"""Bundles of stencils, and programs that see no CK Tile headers and build kernels from one."""

import os
from pathlib import Path
from typing import Any

from cklang.build.stencil_files import StencilFiles
from tests.support.processes import run_python

_HIDDEN = """
from cklang.errors import CkBuildError
from cklang.toolchain.compilers import find_ck_tree

try:
    find_ck_tree()
except CkBuildError:
    pass
else:
    raise SystemExit("the headers are not hidden")
"""


def stand_in(folder: Path, key: Any) -> StencilFiles:
    """Return the files of a kernel's stencil, which nothing has compiled."""
    folder.mkdir(exist_ok=True)
    (folder / "stencil.bc").write_bytes(b"bitcode")
    (folder / "host.so").write_bytes(b"library")
    return StencilFiles(
        key=key.stencil,
        source="source",
        bitcode=folder / "stencil.bc",
        host_shim=folder / "host.so",
    )


def run_without_headers(program: str, bundle: Path, folder: Path) -> str:
    """Run a program that has only the stencils of a bundle; return what it prints."""
    empty = folder / "no_headers"
    empty.mkdir()
    environment = {
        **os.environ,
        "CKLANG_BUNDLE": str(bundle),
        "CKLANG_CK_DIR": str(empty),
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    file = folder / "program.py"
    file.write_text(_HIDDEN + program)
    return run_python(file, env=environment).stdout
