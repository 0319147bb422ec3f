# SPDX-License-Identifier: MIT
"""The plug-in for pytest: emulated GPUs and the emulator's checks for a run of tests.

    pytest --ck-emulate gfx950 --ck-sanitize all

``--ck-emulate`` lets everything that would run on a GPU run on an emulated one, in processes that
tests start too. ``--ck-sanitize`` checks every kernel; a test that launches one with a mistake
fails with the report, though it may not have looked at its results, and the device works again for
the next test. The fixture ``ck_device`` is the name of the device. ``--ck-profile FOLDER`` profiles
the launches of each test's process on emulated GPUs: the folder gets a report for each test that
launches a kernel, and a table of all kernels comes at the end.
"""

import ctypes
import re
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cklang import knobs
from cklang.arch import all_archs
from cklang.device.device import target_of

_EMULATE, _SANITIZE, _PROFILE = "--ck-emulate", "--ck-sanitize", "--ck-profile"
_KERNELS = "cklang kernels"
"""The property of a test's report that holds its kernels."""
_BEFORE = pytest.StashKey[dict[str, str | None]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("cklang", "kernels on emulated GPUs")
    group.addoption(
        _EMULATE, metavar="GPU", help="run kernels on an emulated GPU, such as gfx942 or gfx950"
    )
    group.addoption(
        _SANITIZE,
        metavar="CHECKS",
        help="check every kernel on emulated GPUs: all, or words of "
        f"{', '.join((*knobs.SANITIZERS, *knobs.SPECIAL_SANITIZERS))} separated by commas",
    )
    group.addoption(
        _PROFILE,
        metavar="FOLDER",
        type=Path,
        help="profile the kernels of each test on emulated GPUs: a report for each test, and a "
        "table at the end",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Set the knobs for this process and those that it starts."""
    gpu, words = config.getoption(_EMULATE), config.getoption(_SANITIZE)
    wanted: dict[str, str | None] = {}
    if gpu is not None:
        _check_gpu(gpu)
        wanted[knobs.DEVICE.name] = f"emu:{gpu}"
    if words is not None:
        try:
            checks = knobs.SANITIZE.parse(words)
        except ValueError as problem:
            raise pytest.UsageError(f"{_SANITIZE} {words}: {problem}") from problem
        wanted[knobs.SANITIZE.name] = words
        if _is_loaded():
            _sanitize(checks)
    config.stash[_BEFORE] = knobs.export(wanted)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Set the knobs back."""
    if _BEFORE in config.stash:
        knobs.export(config.stash[_BEFORE])
    if config.getoption(_SANITIZE) is not None and _is_loaded():
        _sanitize(knobs.SANITIZE.get())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a test that leaves a failed device behind, and let the device work again."""
    before = _faults(item.config)
    try:
        with _profiled(item):
            outcome = yield
    finally:
        after = _faults(item.config)
        _reset(after)
    new = [text for device, text in after.items() if before.get(device) != text]
    if new:
        pytest.fail("\n".join(["a kernel has failed:", *new]), pytrace=False)
    return outcome


@contextmanager
def _profiled(item: pytest.Item) -> Iterator[None]:
    """Profile what a test launches, if that was asked for."""
    folder: Path | None = item.config.getoption(_PROFILE)
    if folder is None:
        yield
        return
    from cklang.emulator.profiler.session import profile

    with profile() as profiled:
        yield
    if len(profiled):
        folder.mkdir(parents=True, exist_ok=True)
        name = re.sub(r"[^\w.-]+", "_", item.nodeid.rpartition("/")[2])
        profiled.save(folder / f"{name}.html")
        rows = [(row.kernel, row.gpu, row.launches, row.us) for row in profiled.kernels]
        item.user_properties.append((_KERNELS, rows))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the kernels of all tests, those that take longest first."""
    folder: Path | None = terminalreporter.config.getoption(_PROFILE)
    if folder is None:
        return
    from cklang.emulator.profiler.text import table

    sums: dict[tuple[str, str], tuple[int, float, str, float]] = {}
    for report in terminalreporter.getreports("passed"):
        for name, rows in report.user_properties:
            for kernel, gpu, launches, us in rows if name == _KERNELS else ():
                count, total, longest, most = sums.get((kernel, gpu), (0, 0.0, "", 0.0))
                if us > most:
                    longest, most = report.nodeid, us
                sums[kernel, gpu] = (count + launches, total + us, longest, most)
    ordered = sorted(sums.items(), key=lambda row: -row[1][1])
    every = sum(row[1] for row in sums.values()) or 1.0
    terminalreporter.section(f"kernels by the clock; reports in {folder}")
    head = ["kernel", "GPU", "launches", "µs", "share", "longest in"]
    rows = [
        [kernel, gpu, str(count), f"{us:.2f}", f"{us / every:.1%}", longest]
        for (kernel, gpu), (count, us, longest, _) in ordered
    ]
    for line in table(head, rows) if rows else ["no test launched a kernel on an emulated GPU"]:
        terminalreporter.write_line(line)


@pytest.fixture
def ck_device(request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of the device of ops: that of ``--ck-emulate``, else the usual one.

    With indirect parameters it is emulated GPUs of these names, whatever the option says::

        @pytest.mark.parametrize("ck_device", ["gfx942", "gfx950"], indirect=True)
        def test_product(ck_device): ...
    """
    gpu = getattr(request, "param", None)
    if gpu is None:
        yield target_of().name
        return
    _check_gpu(gpu)
    with knobs.scope(CKLANG_DEVICE=f"emu:{gpu}"):
        yield target_of().name


def _check_gpu(gpu: str) -> None:
    names = [spec.name for spec in all_archs()]
    if gpu not in names:
        raise pytest.UsageError(f"{_EMULATE} {gpu}: must be one of {', '.join(names)}")


def _is_loaded() -> bool:
    """Whether this process has the emulator's library."""
    library = sys.modules.get("cklang.emulator.engine.library")
    return library is not None and library.load.cache_info().currsize > 0


def _sanitize(checks: frozenset[str]) -> None:
    from cklang import emulator

    emulator.sanitize(*checks)


def _faults(config: pytest.Config) -> dict[int, str]:
    """The emulated devices that have failed, and why; none without the options."""
    chosen = config.getoption(_EMULATE) is not None or config.getoption(_SANITIZE) is not None
    if not chosen or not _is_loaded():
        return {}
    from cklang import emulator

    count = ctypes.c_int()
    emulator.load().hipGetDeviceCount(ctypes.byref(count))
    texts = {device: emulator.fault(device) for device in range(count.value)}
    return {device: text for device, text in texts.items() if text}


def _reset(faults: dict[int, str]) -> None:
    """Let failed devices work again; the thread's device stays what it is."""
    if not faults:
        return
    from cklang import emulator

    library, current = emulator.load(), ctypes.c_int()
    library.hipGetDevice(ctypes.byref(current))
    for device in faults:
        library.hipSetDevice(device)
        library.hipDeviceReset()
    library.hipSetDevice(current.value)
