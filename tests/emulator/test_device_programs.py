# SPDX-License-Identifier: MIT
"""HIP programs that check themselves: memory of kernels, ``hip_ext.h``, numbers of the library."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from cklang.hipcc import driver

_PROGRAMS = Path(__file__).parent / "programs"
_ARCHS = ("gfx942", "gfx1201")
_SAYS = {
    "device_memory": "0 failed, 0 wrong\n",
    "complex_numbers": "0 wrong\n",
    "half_classes": "0 wrong\n",
}


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("name", _SAYS)
def test_programs_check_themselves(name: str, tmp_path: Path) -> None:
    program, source = tmp_path / name, _PROGRAMS / f"{name}.hip"
    driver.build([f"--offload-arch={','.join(_ARCHS)}", str(source), "-o", str(program)], print)
    for arch in _ARCHS:
        environment = {**os.environ, "CKLANG_GPUS": arch}
        done = subprocess.run([program], capture_output=True, text=True, env=environment)
        assert done.stdout == _SAYS[name], done.stdout + done.stderr
