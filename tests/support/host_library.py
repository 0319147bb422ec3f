# SPDX-License-Identifier: MIT
"""C with cklang's device headers, compiled for this machine's CPU and loaded into the process."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from pathlib import Path

from cklang.lowering import headers
from cklang.toolchain.compilers import find_toolchain, run_tool


def host_library(folder: Path, lines: Iterable[str], *, optimise: str = "-O2") -> ctypes.CDLL:
    """Compile lines of C23 in a folder and load them; the C library's functions are there too.

    Raises:
        CkBuildError: The compiler refuses the text.
    """
    source, compiled, library = (folder / f"library.{end}" for end in ("c", "o", "so"))
    source.write_text("\n".join(lines))
    toolchain, log = find_toolchain(), folder / "log.txt"
    flags = ("-x", "c", "-std=c23", optimise, "-mfma", "-mf16c", "-fPIC", "-fno-math-errno")
    include = (*headers.include_flags(), *toolchain.host_headers())
    command = [*toolchain.clang, *flags, *include, "-c", str(source), "-o", str(compiled)]
    run_tool(command, log=log)
    run_tool(toolchain.link_plain([compiled], library), log=log)
    return ctypes.CDLL(str(library))
