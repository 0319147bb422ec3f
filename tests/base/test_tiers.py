# SPDX-License-Identifier: MIT
"""The plugins behind the tiers: what a test needs, the full run in pieces, the coverage table."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import coverage_table as table
from tests.support.full import Shard, day_of, state_of

ROOT = Path(__file__).parents[2]

TESTS = """
import os
import pytest
from cklang import emulator

def test_nothing(): pass

@pytest.mark.full
def test_rare(covered): covered("variant", "f16", "gfx942")

@pytest.mark.usefixtures("emulator")
def test_library(): emulator.load()

def test_library_without_asking(): emulator.load()

@pytest.mark.usefixtures("compiler")
def test_later(covered):
    assert "LATER" in os.environ
    covered("variant", "bf16", "gfx942")
"""


@given(st.lists(st.text("abc[]1", min_size=1)), st.integers(1, 9))
def test_shards_are_a_partition(names: list[str], count: int) -> None:
    shards = [Shard.parse(f"{number}/{count}") for number in range(1, count + 1)]
    for name in names:
        (owner,) = [shard for shard in shards if shard.has(name)]
        assert owner.has(f"{name.partition('[')[0]}[another case]")


@pytest.mark.parametrize("text", ["0/3", "4/3", "1", "a/b", "-1/2"])
def test_shards_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"not one of 1/n to n/n|invalid literal"):
        Shard.parse(text)


Run = Callable[..., tuple[dict[str, int], str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run pytest in a repository of its own that has the plugins and ``TESTS``."""
    project = tmp_path / "project"
    shutil.copytree(ROOT / "tests" / "support", project / "tests" / "support")
    for name in ("pyproject.toml", "tests/conftest.py", ".gitignore"):
        shutil.copy(ROOT / name, project / name)
    for name in ("tests/data", "docs", "benchmarks"):
        (project / name).mkdir()
    for name in ("coverage.json", "absent.json"):
        (project / "tests" / "data" / name).write_text("[]")
    (project / "tests" / "test_some.py").write_text(TESTS)
    for words in ("init", "add .", "-c user.name=a -c user.email=a@b commit -m begin"):
        subprocess.run(["git", *words.split()], cwd=project, check=True, capture_output=True)

    alone = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}

    def start(*options: str, **environment: str) -> tuple[dict[str, int], str]:
        path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", ""), "."])
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "xdist", "-n", "0", *options],
            cwd=project,
            capture_output=True,
            text=True,
            env=os.environ | alone | {"PYTHONPATH": path} | environment,
        )
        last = done.stdout.splitlines()[-1].replace("=", "").split(" in ")[0]
        counts = {word: int(count) for count, word in (c.split() for c in last.split(", "))}
        return counts, done.stdout

    return start


@pytest.mark.usefixtures("emulator")
def test_tests_ask_for_what_they_use(run: Run) -> None:
    counts, output = run("-m", "pure or isa or fill")
    assert counts == {"passed": 2, "failed": 1, "deselected": 2}
    assert 'uses the emulator: ask for the fixture "emulator"' in output


@pytest.mark.usefixtures("emulator")
def test_the_full_run_goes_on_where_it_stopped(run: Run, tmp_path: Path) -> None:
    records = tmp_path / "project" / "tests" / "data" / "coverage.json"
    skip = ("--deselect", "tests/test_some.py::test_library_without_asking")
    counts, _ = run("--full", "-n", "1", *skip)  # workers are told what passed
    assert counts == {"passed": 3, "failed": 1}
    assert json.loads(records.read_text()) == []
    counts, _ = run("--full", *skip, LATER="1")
    assert counts["passed"] == 1
    rows = [table.Record(**row) for row in json.loads(records.read_text())]
    assert [(row.dtypes, row.tier) for row in rows] == [("bf16", "compile"), ("f16", "full")]
    assert {row.day for row in rows} == {day_of("HEAD", tmp_path / "project")}
    assert "checked" in (tmp_path / "project" / "docs" / "coverage.md").read_text()


WITHOUT_TORCH = {
    "absent.py": "import sys\n\nsys.modules['torch'] = None",
    "tests/test_module.py": """
import pytest
import torch

pytestmark = pytest.mark.usefixtures("torch")

def test_of_module(): pass
""",
    "tests/test_some.py": """
def test_that_asks(torch): pass

def test_that_does_not_ask(): import torch

def test_nothing(): pass
""",
    "tests/data/skips.json": '{"tests/test_some.py::*": "why"}',
}


def test_what_is_not_installed_is_asked_for(run: Run, tmp_path: Path) -> None:
    for name, text in WITHOUT_TORCH.items():
        (tmp_path / "project" / name).write_text(text)
    counts, output = run("-p", "absent", "--record=passed.jsonl")
    assert counts == {"passed": 1, "failed": 1, "skipped": 2}
    assert output.count("torch is not installed: pip install '.[emu,dev,torch]'") == 2
    asking = ("-p", "absent", "--record=passed.jsonl", "--known-skips", "-k", "not does")
    counts, output = run(*asking, "-n", "1")
    assert counts == {"skipped": 2}, "what passed is left out, also by workers"
    (line,) = (line for line in output.splitlines() if line.startswith("FAILED"))
    assert line.startswith("FAILED: tests/test_module.py is skipped, which skips.json lacks: torch")


def test_states_differ_by_commit_and_by_change(run: Run, tmp_path: Path) -> None:
    project = tmp_path / "project"
    clean = state_of(project)
    (project / "tests" / "test_some.py").write_text("")
    changed = state_of(project)
    assert changed.startswith(f"{clean}-")
    (project / "new.py").write_text("")
    assert state_of(project) not in (clean, changed)
