# SPDX-License-Identifier: MIT
"""Settings of all tests: hypothesis profiles, chosen with ``--hypothesis-profile=nightly``.

``dev`` draws the same examples in every run, so that a red run means a change; ``ci`` and
``nightly`` explore. Every kernel that a test builds and loads is read back by the assembler.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))

# Deadlines measure the machine, not the code: builds and emulated kernels share its cores.
_COMMON = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)

settings.register_profile("dev", _COMMON, max_examples=40, derandomize=True)
settings.register_profile("ci", _COMMON, max_examples=200)
settings.register_profile("nightly", _COMMON, max_examples=5000)
settings.load_profile("dev")


@pytest.fixture(autouse=True)
def kernels_read_back(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Hold the emulator's decoder against clang's assembler, on all kernels that the test loads."""
    from read_back import read_back

    from cklang.runtime.device import Device, Function

    loaded = []
    load = Device.load

    def recording(device: Device, code: bytes, symbol: str) -> Function:
        loaded.append((device, code))
        return load(device, code, symbol)

    monkeypatch.setattr(Device, "load", recording)
    yield
    for device, code in loaded:
        if device.emulated:
            read_back(code, device.spec.name)
