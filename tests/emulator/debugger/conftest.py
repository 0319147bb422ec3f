# SPDX-License-Identifier: MIT
"""Programs that are debugged: the profiler's transposition, compiled once."""

from __future__ import annotations

from pathlib import Path

import pytest

from cklang.emulator.hipcc import driver

_SOURCE = Path(__file__).parents[1] / "profiler" / "transpose.hip"


@pytest.fixture(scope="session")
def transpose_program(tmp_path_factory: pytest.TempPathFactory, emulator: None) -> Path:
    program = tmp_path_factory.mktemp("transpose") / "transpose"
    # As the profiler's tests compile it: from the cache.
    words = ["--offload-arch=gfx942", "--offload-arch=gfx90a", str(_SOURCE)]
    driver.build([*words, "-o", str(program)], print)
    return program
