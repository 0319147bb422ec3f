# SPDX-License-Identifier: MIT
"""Settings and fixtures of all tests; what tests share is in ``tests/support``.

Hypothesis profiles, chosen with ``--hypothesis-profile=explore``: ``dev`` draws the same examples
in every run, so that a red run means a change; ``explore``, ``ci`` and ``nightly`` draw new ones,
and a failure prints how to repeat it.
"""

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = (
    "tests.support.tiers",
    "tests.support.stencils",
    "tests.support.full",
    "tests.support.coverage",
    "tests.support.browser",
    "tests.support.optional",
    "tests.support.skips",
)

# Every program that a test writes is printed, parsed and compared; processes it starts do so too.
os.environ.setdefault("CKLANG_VERIFY", "1")

# Tests share a few stencils; those of the default choice name the preset that users have.
os.environ.setdefault("CKLANG_PRESET", "essential")

# Each process plans anew: what a test changes in planning must not stay in the cache.
os.environ.setdefault("CKLANG_PLANS", "0")

# A kernel that never ends is reported with where its waves stand; the longest take some seconds.
os.environ.setdefault("CKLANG_TIMEOUT", "300")

# Deadlines measure the machine, not the code: builds and emulated kernels share its cores.
_COMMON = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)

settings.register_profile("dev", _COMMON, max_examples=40, derandomize=True)
settings.register_profile("explore", _COMMON, max_examples=40, print_blob=True)
settings.register_profile("ci", _COMMON, max_examples=200, print_blob=True)
settings.register_profile("nightly", _COMMON, max_examples=5000, print_blob=True)
settings.load_profile("dev")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that writes golden files."""
    parser.addoption(
        "--update-golden", action="store_true", help="write golden files instead of comparing"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the cases of each test by name: workers that disagree on an order cannot share them.

    A parameter that came out of a set has another order in every process.
    """
    places: dict[str, int] = {}
    for item in items:
        places.setdefault(item.nodeid.partition("[")[0], len(places))
    items.sort(key=lambda item: (places[item.nodeid.partition("[")[0]], item.nodeid))


@pytest.fixture
def sanitized() -> Iterator[None]:
    """Launches end where a wait or a barrier is missing, or LDS is read that nobody has written."""
    from cklang import emulator, knobs

    emulator.sanitize("waits", "races", "uninitialized")
    yield
    emulator.sanitize(*knobs.SANITIZE.get())


@pytest.fixture
def results_on_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Results lie where the arguments do, as torch has them: on gfx942."""
    from cklang.device import device_array
    from cklang.device.arrays import HOST
    from cklang.device.device import open_device
    from tests.support.streams import on_device

    new = device_array.maker

    def maker(shape: Any, dtype: Any, library: Any, place: str = HOST, order: Any = ()) -> Any:
        if place == HOST:
            return new(shape, dtype, library, place, order)
        return lambda: on_device(open_device("emu:gfx942"), np.empty(shape, dtype.numpy))

    monkeypatch.setattr(device_array, "maker", maker)


@pytest.fixture(params=["the default stream", "a stream of the caller's"])
def callers_stream(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, results_on_device: None
) -> Iterator[int | None]:
    """The stream that the library of the arguments says it is on, as torch does, of gfx942.

    Work of the default stream would wait for a blocking stream: this one blocks nobody.
    """
    from cklang.device import arrays
    from cklang.device.device import open_device

    if request.param == "the default stream":
        yield None
        return
    open_device("emu:gfx942").activate()
    from hip import hip

    status, stream = hip.hipStreamCreateWithFlags(hip.hipStreamNonBlocking)
    assert status == hip.hipError_t.hipSuccess
    monkeypatch.setattr(arrays, "current_stream", lambda *_: int(stream))
    yield int(stream)
    hip.hipStreamDestroy(stream)
