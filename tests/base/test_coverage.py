# SPDX-License-Identifier: MIT
"""``docs/coverage.md`` says what the tests recorded."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module", autouse=True)
def _importable() -> None:
    if str(ROOT) not in sys.path:
        sys.path.append(str(ROOT))


def test_the_document_is_what_the_records_say() -> None:
    import coverage_table as table

    want = table.render(table.read(table.RECORDS), table.read(table.ABSENT))
    assert table.DOCUMENT.read_text() == want, "run pytest --write-coverage"


def test_every_record_names_a_test_that_exists() -> None:
    import coverage_table as table

    for record in table.read(table.RECORDS):
        path, *names = record.note.split("::")
        tree = ast.parse((ROOT.parent / path).read_text())
        defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        assert names[-1] in defined, record


def test_what_is_absent_is_not_recorded_as_working() -> None:
    import coverage_table as table

    works = {record[:3] for record in table.read(table.RECORDS)}
    for record in table.read(table.ABSENT):
        assert record[:3] not in works
        assert record.note


def test_rows_of_one_cell_show_the_best() -> None:
    import coverage_table as table

    cell = ("split-K", "f16", "gfx942")
    seen = [table.Record(*cell, table.COMPILES), table.Record(*cell, table.CHECKED)]
    gone = [table.Record("split-K", "f16", "gfx1100", "not in ISA", "no instruction")]
    text = table.render(seen, gone)
    assert "| split-K | f16 | emulated and checked | not in ISA |" in text
    assert "- split-K f16, gfx1100: no instruction." in text
