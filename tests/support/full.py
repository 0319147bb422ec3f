# SPDX-License-Identifier: MIT
"""Every test there is, in pieces: ``pytest --full`` resumes, ``--shard i/n`` splits.

Each test that passes is written down at once in ``.full/<state>.<shard>.jsonl``, a line with the
rows of the coverage table that it checked. The state is the commit, with a digest of uncommitted
changes. A second run of the same state leaves out what passed. ``pytest --record=FILE`` does so
with a file of the caller's, for the tiers that are selected. Several machines take a shard each;
their files together make the table::

    python -m pytest --full --shard 2/3
    python -m tests.support.full .full/*.jsonl        # on one machine, with all files

The second command, and a run without shards that reaches its end, write
``tests/data/coverage.json`` and ``docs/coverage.md``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import coverage_table as table

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / ".full"


class Shard:
    """Share ``number`` of ``count``; a test's cases of one GPU are in one: they share stencils.

    >>> [Shard.parse("1/2").has(f"test_{name}[{case}]") for name in "abc" for case in (1, 2)]
    [True, True, True, True, False, False]
    """

    def __init__(self, number: int, count: int) -> None:
        self.number, self.count = number, count

    @staticmethod
    def parse(text: str) -> Shard:
        """Read ``i/n``; raise ValueError where it is not one of 1/n to n/n."""
        number, _, count = text.partition("/")
        shard = Shard(int(number), int(count))
        if not 1 <= shard.number <= shard.count:
            raise ValueError(f"{text} is not one of 1/n to n/n")
        return shard

    def has(self, test: str) -> bool:
        """Say whether a test, by its id, belongs to this share."""
        function, _, case = test.partition("[")
        name = "".join([function, *re.findall(r"gfx\w+", case)]).encode()
        return int(hashlib.sha256(name).hexdigest(), 16) % self.count == self.number - 1


def state_of(root: Path = ROOT) -> str:
    """Return the commit, and where files differ from it a digest of the differences."""

    commit = _git(root, "rev-parse", "--short=12", "HEAD").decode().strip()
    changes = _git(root, "diff", "HEAD") + _git(root, "ls-files", "--others", "--exclude-standard")
    return f"{commit}-{hashlib.sha256(changes).hexdigest()[:8]}" if changes else commit


def day_of(commit: str, root: Path = ROOT) -> str:
    """Return the day of a commit, as ``2026-11-23``."""
    return _git(root, "show", "--no-patch", "--format=%cs", commit).decode().strip()


def _git(root: Path, *words: str) -> bytes:
    return subprocess.run(["git", *words], cwd=root, capture_output=True, check=True).stdout


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="run the tests of all tiers, resuming")
    parser.addoption("--record", type=Path, metavar="FILE", help="run what FILE lacks; add passed")
    parser.addoption("--shard", type=Shard.parse, metavar="i/n", help="with --full: a share of it")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Select all tiers; leave out what passed before."""
    if config.getoption("--full"):
        config.option.markexpr = ""
        RESULTS.mkdir(exist_ok=True)
    # Workers see what was there when the session began: all must collect the same.
    inputs = getattr(config, "workerinput", None)
    if inputs is None:
        files = _results() if config.getoption("--full") else _record(config)
        config.stash[_PASSED] = {row["test"] for row in _rows(files)}
    else:
        config.stash[_PASSED] = set(inputs["passed"])


_PASSED = pytest.StashKey[set[str]]()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker what passed before."""
    node.workerinput["passed"] = sorted(node.config.stash[_PASSED])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out other shares, and what passed before."""
    shard: Shard = config.getoption("--shard") or Shard(1, 1)
    passed = config.stash[_PASSED]
    chosen = [item for item in items if shard.has(item.nodeid) and item.nodeid not in passed]
    if len(chosen) < len(items):
        config.hook.pytest_deselected(items=[item for item in items if item not in set(chosen)])
        items[:] = chosen


class Recorder:
    """Writes each test that passed, at once."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add a line for a test that passed."""
        if report.when == "call" and report.passed:
            rows = [value for key, value in report.user_properties if key == table.PROPERTY]
            with self.file.open("a") as file:
                file.write(json.dumps({"test": report.nodeid, "rows": rows}) + "\n")

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the coverage table where everything ran."""
        options = session.config.option
        whole = options.full and options.shard is None and not session.testsfailed
        if whole and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            publish(_results())


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Record, in the process that sees the reports of all workers."""
    config = session.config
    if hasattr(config, "workerinput"):
        return
    if config.getoption("--full"):
        shard: Shard = config.getoption("--shard") or Shard(1, 1)
        name = f"{state_of()}.{shard.number}-of-{shard.count}.jsonl"
        config.pluginmanager.register(Recorder(RESULTS / name))
    elif config.getoption("--record"):
        config.pluginmanager.register(Recorder(config.getoption("--record")))


def _record(config: pytest.Config) -> list[Path]:
    """Return the file of ``--record``, if there is one."""
    file: Path | None = config.getoption("--record")
    return [file] if file is not None and file.exists() else []


def _results() -> list[Path]:
    """Return the files of results of this state."""
    return sorted(RESULTS.glob(f"{state_of()}.*.jsonl"))


def _rows(files: Iterable[Path]) -> Iterator[dict[str, Any]]:
    for file in files:
        yield from map(json.loads, file.read_text().splitlines())


def publish(files: Iterable[Path]) -> None:
    """Write the coverage table from files of results: each row with the day of its file's commit.

    Raises:
        ValueError: The files are of several states.
    """
    files = list(files)
    states = {file.name.partition(".")[0] for file in files}
    if len(states) != 1:
        raise ValueError(f"results of several states: {', '.join(sorted(states)) or 'none'}")
    day = day_of(states.pop().partition("-")[0])
    cells = (table.Record(*cell) for row in _rows(files) for cell in row["rows"])
    table.publish([cell._replace(day=day) for cell in cells])


def main(words: list[str] | None = None) -> None:
    """Write the coverage table from the files of several shards."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("files", nargs="+", type=Path, help="results of all shards, of one state")
    publish(parser.parse_args(words).files)


if __name__ == "__main__":
    main()
