# SPDX-License-Identifier: MIT
"""Environment variables: typed, scoped, and read in one module only."""

import ast
from pathlib import Path

import pytest

from cklang import knobs
from cklang.errors import CkValueError
from tests.support.errors import expect_error

PACKAGE = Path(__file__).parents[2] / "cklang"


def test_environment_then_scope(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CKLANG_JOBS", raising=False)
    assert knobs.JOBS.get() is None
    monkeypatch.setenv("CKLANG_JOBS", "3")
    assert knobs.JOBS.get() == 3
    with knobs.scope(CKLANG_JOBS="5"):
        assert knobs.JOBS.get() == 5
    assert knobs.JOBS.get() == 3


@pytest.mark.parametrize("text", ["0", "-1", "many"])
def test_a_bad_value_names_the_knob(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("CKLANG_JOBS", text)
    with expect_error("Z001", match="CKLANG_JOBS", kind=CkValueError):
        knobs.JOBS.get()


def test_an_unknown_knob_is_refused() -> None:
    with pytest.raises(CkValueError, match="no such knob"), knobs.scope(CKLANG_JOB="1"):
        pass


def test_only_knobs_reads_the_environment() -> None:
    readers = []
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            named = isinstance(node, ast.Attribute) and node.attr in {"environ", "getenv"}
            if named and path.name != "knobs.py":
                readers.append(str(path.relative_to(PACKAGE)))
    assert readers == []


def test_all_lists_every_knob() -> None:
    declared = {v for v in vars(knobs).values() if isinstance(v, knobs.Knob)}
    assert declared == set(knobs.ALL)
