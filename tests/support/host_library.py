# SPDX-License-Identifier: MIT
"""C with cklang's device headers, compiled for this machine's CPU and loaded into the process."""

import ctypes
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from cklang.lowering import headers
from cklang.toolchain.compilers import find_toolchain, run_tool

Array = np.ndarray[Any, Any]


def host_library(lines: Iterable[str], *, optimise: str = "-O2") -> ctypes.CDLL:
    """Compile lines of C23 and load them; the C library's functions are there too.

    Raises:
        CkBuildError: The compiler refuses the text.
    """
    toolchain = find_toolchain()
    flags = ("-x", "c", "-std=c23", optimise, "-mfma", "-mf16c", "-fPIC", "-fno-math-errno")
    include = (*headers.include_flags(), *toolchain.host_headers())
    with TemporaryDirectory() as name:
        folder = Path(name)
        source, compiled, library = (folder / f"library.{end}" for end in ("c", "o", "so"))
        source.write_text("\n".join(lines))
        command = [*toolchain.clang, *flags, *include, "-c", str(source), "-o", str(compiled)]
        run_tool(command, log=folder / "log.txt")
        run_tool(toolchain.link_plain([compiled], library), log=folder / "log.txt")
        return ctypes.CDLL(str(library))


def loop(name: str, expression: str, c: str, operands: int = 1, result: str = "") -> str:
    """Return a C function over arrays of ``c``: of the elements x0, x1, ... the expression."""
    arrays = "".join(f"const {c} *a{n}, " for n in range(operands))
    elements = "".join(f"const {c} x{n} = a{n}[j]; " for n in range(operands))
    step = f"{elements}y[j] = {expression};"
    head = f"void loop_{name}({arrays}{result or c} *y, long n)"
    return f"{head} {{ for (long j = 0; j < n; ++j) {{ {step} }} }}"


def call_loop(library: ctypes.CDLL, name: str, *arrays: Array, result: Any = None) -> Array:
    """Call such a function; ``result`` is the dtype if it is not that of the arrays."""
    inputs = [np.ascontiguousarray(each) for each in arrays]
    out = np.empty(inputs[0].shape, result or inputs[0].dtype)
    pointers = [ctypes.c_void_p(each.ctypes.data) for each in (*inputs, out)]
    getattr(library, f"loop_{name}")(*pointers, ctypes.c_long(out.size))
    return out
