# SPDX-License-Identifier: MIT
"""What a test of the emulator asks of it ends with the test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cklang import emulator, knobs


@pytest.fixture(autouse=True)
def settings_as_before(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "emulator" in request.fixturenames:
        emulator.sanitize(*knobs.SANITIZE.get())
        emulator.translation(knobs.TRANSLATE.get())
        emulator.schedule(knobs.SCHEDULE.get())
        emulator.numerics(knobs.NUMERICS.get())
        emulator.deadlock_threshold()


@pytest.fixture(params=["off", "all"])
def both_ways(request: pytest.FixtureRequest, emulator: None) -> None:
    """Kernels are interpreted, and then translated."""
    from cklang.emulator import translation

    translation(request.param)
