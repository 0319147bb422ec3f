# SPDX-License-Identifier: MIT
"""The decoder held against clang's assembler, on kernels that tests have built."""

from __future__ import annotations

import subprocess
import tempfile
from functools import cache
from pathlib import Path

from cklang import emulator
from cklang.emulator.library import text_section
from cklang.runtime.toolchain import find_toolchain

__all__ = ["read_back"]


@cache
def read_back(code_object: Path, arch: str) -> None:
    """Check machine code → our text → clang's assembler → the same machine code, once a kernel."""
    toolchain, code = find_toolchain(), code_object.read_bytes()
    listing = emulator.disassemble(arch, code)
    lines = [line.split(": ", 1)[1] for line in listing.splitlines()]
    with tempfile.TemporaryDirectory() as folder:
        source, output = Path(folder, "kernel.s"), Path(folder, "kernel.o")
        source.write_text(".text\n" + "\n".join(lines) + "\n")
        target = ("--target=amdgcn-amd-amdhsa", f"-mcpu={arch}", "-nogpulib")
        run = subprocess.run(
            [*toolchain.clang, *target, "-x", "assembler", "-c", str(source), "-o", str(output)],
            capture_output=True,
            text=True,
            check=False,
            env=toolchain.environment(),
        )
        assert run.returncode == 0, run.stderr[:2000]
        assert text_section(output.read_bytes()) == text_section(code)
    assert any("v_mfma" in line for line in lines)
