# SPDX-License-Identifier: MIT
"""What tests of attention ask for besides a tier."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cklang import emulator, knobs


@pytest.fixture
def sanitized() -> Iterator[None]:
    """Launches end where a wait or a barrier is missing, or LDS is read that nobody has written."""
    emulator.sanitize("waits", "races", "uninitialized")
    yield
    emulator.sanitize(*knobs.SANITIZE.get())
