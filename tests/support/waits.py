# SPDX-License-Identifier: MIT
"""Waits that are announced at once, so that a test need not wait for seconds."""

import threading
import time

import pytest

from cklang.toolchain import progress


def announce_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Announce a wait after 20 ms, and again after 100 ms, by a thread of its own."""
    monkeypatch.setattr(progress, "asleep", True)
    monkeypatch.setattr(progress, "_WATCHER", f"cklang-test-{time.monotonic_ns()}")
    monkeypatch.setattr(progress, "_wake", threading.Event())
    monkeypatch.setattr(progress, "_last", ("", 0.0))
    monkeypatch.setattr(progress, "_FIRST_SECONDS", 0.02)
    monkeypatch.setattr(progress, "_AGAIN_SECONDS", 0.1)
    monkeypatch.setattr(progress, "_TICK_SECONDS", 0.005)
