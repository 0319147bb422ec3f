# SPDX-License-Identifier: MIT
"""Programs that are debugged: the profiler's transposition, as its tests compile it."""

from pathlib import Path

import pytest

from tests.support.hip_programs import built

_SOURCE = Path(__file__).parents[1] / "profiler" / "transpose.hip"


@pytest.fixture(scope="session")
def transpose_program(emulator: None) -> Path:
    return built(_SOURCE, "gfx942", "gfx90a")
