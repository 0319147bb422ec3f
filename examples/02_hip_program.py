# SPDX-License-Identifier: MIT
"""A C++ HIP program, compiled and run without ROCm and without a GPU.

`cklang hipcc` is a compiler driver that takes the words of clang and of ROCm's hipcc. What it
makes is an ordinary program; here it is called from Python, as a build script would. The same in
a shell:

    cklang hipcc examples/hip/saxpy.cpp -o saxpy && ./saxpy
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).parent / "hip" / "saxpy.cpp"


def main() -> None:
    """Compile the program, run it, and pass its verdict on."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "saxpy"
        hipcc = [sys.executable, "-m", "cklang.cli.main", "hipcc"]
        subprocess.run([*hipcc, str(SOURCE), "-o", str(program)], check=True)
        done = subprocess.run([str(program)], check=True, capture_output=True, text=True)
    print(done.stdout, end="")


if __name__ == "__main__":
    main()
