# SPDX-License-Identifier: MIT
"""Settings of all tests: hypothesis profiles, chosen with ``--hypothesis-profile=nightly``.

``dev`` draws the same examples in every run, so that a red run means a change; ``ci`` and
``nightly`` explore. Every kernel that a test builds and loads is read back by the assembler. And
the record of what works where (``coverage_table.py``).
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
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
def kernels_read_back() -> Iterator[None]:
    """Hold the emulator's decoder against clang's assembler, on all kernels that the test loads.

    It patches with a ``MonkeyPatch`` of its own: with the test's, it would be torn down before that
    is undone, and would assemble under whatever the test has patched.
    """
    from read_back import read_back

    from cklang.runtime.device import Device, Function

    loaded = []
    load = Device.load

    def recording(device: Device, code: bytes, symbol: str) -> Function:
        loaded.append((device, code))
        return load(device, code, symbol)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Device, "load", recording)
        yield
    for device, code in loaded:
        if device.emulated:
            read_back(code, device.spec.name)


@pytest.fixture
def results_on_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Results lie where the arguments do, as torch has them: on gfx942."""
    from streams import on_device

    from cklang.runtime import arrays
    from cklang.runtime.device import open_device

    new = arrays.empty

    def empty(shape: Any, dtype: Any, library: Any, place: str = arrays.HOST) -> Any:
        if place == arrays.HOST:
            return new(shape, dtype, library)
        return on_device(open_device("emu:gfx942"), np.empty(shape, dtype.numpy))

    monkeypatch.setattr(arrays, "empty", empty)


@pytest.fixture(params=["the default stream", "a stream of the caller's"])
def callers_stream(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, results_on_device: None
) -> Iterator[int | None]:
    """The stream that the library of the arguments says it is on, as torch does, of gfx942.

    Work of the default stream would wait for a blocking stream: this one blocks nobody.
    """
    from cklang.runtime import arrays
    from cklang.runtime.device import open_device

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


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add options: for the table of what works where, and for what takes minutes."""
    parser.addoption(
        "--exhaustive",
        action="store_true",
        help="run the tests marked exhaustive too: further kernels of kinds that others cover",
    )
    parser.addoption(
        "--all-examples",
        action="store_true",
        help="also build and run those of CK Tile's examples that take minutes to compile",
    )
    parser.addoption(
        "--write-coverage",
        action="store_true",
        help="write tests/data/coverage.json and docs/coverage.md from what the tests that ran saw",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the tests marked exhaustive to who asks for them."""
    if config.getoption("--exhaustive"):
        return
    left = [item for item in items if item.get_closest_marker("exhaustive")]
    items[:] = [item for item in items if item not in left]
    if left:
        config.hook.pytest_deselected(items=left)


_KEY = "covered"


@pytest.fixture
def covered(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Record that this test checked a kernel: ``covered("split-K", "f16", "gfx942")``.

    A record that is not in the table fails, unless the table is being written.
    """
    table = _table()

    def record(variant: str, dtypes: str, arch: str, status: str = "emulated and checked") -> None:
        note = request.node.nodeid.partition("[")[0].partition("@")[0]
        made = table.Record(variant, dtypes, arch, status, note)
        request.node.user_properties.append((_KEY, tuple(made)))
        if not request.config.getoption("--write-coverage"):
            assert made in table.read(table.RECORDS), (
                "not in tests/data/coverage.json: run the test with --write-coverage"
            )

    return record


_seen: list[tuple[str, ...]] = []
_ran: set[str] = set()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Collect what tests that passed recorded."""
    if report.when == "call" and report.passed:
        _ran.add(report.nodeid.partition("[")[0].partition("@")[0])
        _seen.extend(tuple(value) for key, value in report.user_properties if key == _KEY)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the table: rows of tests that ran in full are replaced, others stay."""
    config = session.config
    if not config.getoption("--write-coverage") or hasattr(config, "workerinput"):
        return
    table = _table()
    # A run of some cases of a test says nothing about its others.
    some = bool(config.option.keyword) or any("::" in path for path in config.args)
    kept = [row for row in table.read(table.RECORDS) if some or row.note not in _ran]
    table.write(table.RECORDS, [*kept, *(table.Record(*row) for row in _seen)])
    text = table.render(table.read(table.RECORDS), table.read(table.ABSENT))
    table.DOCUMENT.write_text(text)


def _table() -> Any:
    path = Path(__file__).parent / "coverage_table.py"
    spec = importlib.util.spec_from_file_location("coverage_table", path)
    assert spec is not None
    assert spec.loader is not None
    if "coverage_table" not in sys.modules:
        sys.modules["coverage_table"] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules["coverage_table"]
