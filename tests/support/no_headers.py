# SPDX-License-Identifier: MIT
"""Programs in a process that sees no CK Tile headers and builds kernels from a bundle."""

from __future__ import annotations

import os
from pathlib import Path

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
