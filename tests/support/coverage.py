# SPDX-License-Identifier: MIT
"""The fixture with which tests record what works where, for ``docs/coverage.md``."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.support import coverage_table as table
from tests.support.full import day_of
from tests.support.tiers import tier_of

Covered = Callable[..., None]
"""What the fixture ``covered`` gives a test."""

_WRITE = "--write-coverage"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that writes the table."""
    parser.addoption(
        _WRITE,
        action="store_true",
        help="write tests/data/coverage.json and docs/coverage.md: the rows of the tests that ran",
    )


@pytest.fixture
def covered(request: pytest.FixtureRequest) -> Covered:
    """Record that this test checked a kernel: ``covered("split-K", "f16", "gfx942")``.

    A record that is not in the table fails, unless the table is being written.
    """
    writes = request.config.getoption(_WRITE) or request.config.getoption("--full")
    test = request.node.nodeid.partition("[")[0].partition("@")[0]
    known = {record.cell for record in table.read(table.RECORDS)}

    def record(variant: str, dtypes: str, arch: str, status: str = table.CHECKED) -> None:
        tier = tier_of(request.node)
        row = table.Record(variant, dtypes, arch, status, test, tier)
        request.node.user_properties.append((table.PROPERTY, tuple(row)))
        if not writes:
            assert row.cell in known, (
                "not in tests/data/coverage.json: run the test with --write-coverage"
            )

    return record


class _Writer:
    """Collects what tests that passed recorded, and writes it at the end."""

    def __init__(self) -> None:
        self.records: list[table.Record] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            properties: list[tuple[str, Any]] = report.user_properties
            rows = (value for key, value in properties if key == table.PROPERTY)
            self.records.extend(table.Record(*row) for row in rows)

    def pytest_sessionfinish(self) -> None:
        table.publish([record._replace(day=day_of("HEAD")) for record in self.records])


def pytest_configure(config: pytest.Config) -> None:
    """Collect in the process that sees the reports of all workers."""
    if config.getoption(_WRITE) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Writer())
