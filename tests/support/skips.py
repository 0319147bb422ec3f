# SPDX-License-Identifier: MIT
"""``pytest --known-skips`` fails where a test is skipped that ``tests/data/skips.json`` lacks.

The file has patterns of test ids, and why their tests may be skipped where all packages are.
"""

import json
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

KNOWN = Path(__file__).parents[1] / "data" / "skips.json"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--known-skips", action="store_true", help=f"fail where tests are not in {KNOWN.name}"
    )


def unknown(skipped: list[str], patterns: list[str]) -> list[str]:
    """Return the ids that no pattern fits.

    >>> unknown(["a.py::one", "b.py", "a.py::two[1]"], ["a.py::*"])
    ['b.py']
    """
    return [each for each in skipped if not any(fnmatchcase(each, one) for one in patterns)]


class _Skips:
    """What was skipped, seen by the process that gets the reports of all workers."""

    def __init__(self) -> None:
        self.skipped: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._note(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._note(report)

    def _note(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        # A test that fails as expected counts as skipped, too.
        if (
            report.skipped
            and not hasattr(report, "wasxfail")
            and isinstance(report.longrepr, tuple)
        ):
            self.skipped[report.nodeid] = report.longrepr[2].removeprefix("Skipped: ")

    def unknown(self) -> list[str]:
        """Return the tests that should have run."""
        return unknown(list(self.skipped), list(json.loads(KNOWN.read_text())))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail for one."""
        if self.unknown() and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name them."""
        for each in self.unknown():
            text = f"FAILED: {each} is skipped, which {KNOWN.name} lacks: {self.skipped[each]}"
            terminalreporter.write_line(text)


def pytest_configure(config: pytest.Config) -> None:
    """Watch, where that is asked for."""
    if config.getoption("--known-skips") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Skips())
