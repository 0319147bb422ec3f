# SPDX-License-Identifier: MIT
"""HIP programs whose kernels allocate memory, and the extensions of ``hip_ext.h``."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from cklang.hipcc import driver

_SOURCE = Path(__file__).parent / "programs" / "device_memory.hip"
_ARCHS = ("gfx942", "gfx1201")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("memory") / "memory"
    driver.build([f"--offload-arch={','.join(_ARCHS)}", str(_SOURCE), "-o", str(path)], print)
    return path


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("arch", _ARCHS)
def test_kernels_allocate(program: Path, arch: str) -> None:
    environment = {**os.environ, "CKLANG_GPUS": arch}
    done = subprocess.run([program], capture_output=True, text=True, env=environment)
    assert done.stdout == "0 failed, 0 wrong\n", done.stdout + done.stderr
