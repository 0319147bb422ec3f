# SPDX-License-Identifier: MIT
"""``docs/coverage.md`` says what the tests recorded; tests that pages name exist."""

import ast
import re
from pathlib import Path

import pytest

import cklang as ck
from cklang.arch import arch
from cklang.families import FAMILIES
from cklang.families.ck_rows.key import CkTileRowsSignature, UpstreamKernel
from cklang.families.gemm.key import Pipeline
from tests.support import coverage_table as table
from tests.support.algorithms import WIDE, on_gpu, pipelined

ROOT = Path(__file__).parent.parent
UPSTREAM = ROOT.parent / "docs" / "upstream.md"


def test_the_document_is_what_the_records_say() -> None:
    want = table.render(table.read(table.RECORDS), table.read(table.ABSENT))
    assert table.DOCUMENT.read_text() == want, "run pytest --write-coverage"


def exists(test: str) -> bool:
    path, *names = test.split("::")
    tree = ast.parse((ROOT.parent / path).read_text())
    return names[-1] in {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}


def test_every_record_names_a_test_that_exists() -> None:
    for note in {record.note for record in table.read(table.RECORDS)}:
        assert exists(note), note


def test_each_row_beside_upstream_names_tests_that_exist() -> None:
    rows = re.findall(r"^\| (\d+) \|.*$", UPSTREAM.read_text(), re.M)
    assert rows == [str(number) for number in range(1, 39)]
    for line in re.findall(r"^\| \d.*$", UPSTREAM.read_text(), re.M):
        named = re.findall(r"`(tests/[^`]+)`", line)
        assert named, line
        for test in named:
            assert exists(test), test


def test_what_is_absent_is_not_recorded_as_working() -> None:
    works = {record[:3] for record in table.read(table.RECORDS)}
    for record in table.read(table.ABSENT):
        assert record[:3] not in works
        assert record.note


@pytest.mark.parametrize("gpu", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"])
@pytest.mark.parametrize("pipeline", Pipeline, ids=lambda pipeline: pipeline.value)
def test_cells_name_the_rule_that_refuses_a_pipeline(pipeline: Pipeline, gpu: str) -> None:
    algorithm = on_gpu(gpu, pipelined(WIDE, pipeline))
    rejections = FAMILIES["gemm"].rules.rejections(
        algorithm, ck.dispatch.problem(64, 64, 64).signature, arch(gpu)
    )
    named = table.refusing_rule(f"pipeline {pipeline.value}", "f16", gpu)
    assert (named == "pipeline") == ("pipeline" in {each.rule for each in rejections})


@pytest.mark.parametrize("gpu", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"])
def test_cells_name_the_rule_that_refuses_a_result(gpu: str) -> None:
    fnuz = arch(gpu).fp8 == "fnuz"
    problem = ck.dispatch.problem(64, 64, 64, e=ck.fp8_fnuz if fnuz else ck.fp8)
    rejections = FAMILIES["gemm"].rules.rejections(on_gpu(gpu, WIDE), problem.signature, arch(gpu))
    named = table.refusing_rule("results", "to fp8", gpu)
    assert (named == "fp8-encoding") == ("fp8-encoding" in {each.rule for each in rejections})


@pytest.mark.parametrize("gpu", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"])
def test_cells_name_the_rule_that_refuses_a_kernel_of_rows(gpu: str) -> None:
    signature = CkTileRowsSignature(kernel=UpstreamKernel.PERMUTE, dtype=ck.f16, result=ck.f16)
    rejections = FAMILIES["ck_rows"].rules.rejections(
        ck.dispatch.CkTileRows(), signature, arch(gpu)
    )
    named = table.refusing_rule("CK Tile's own permute", "f16", gpu)
    assert (named == "ck-rows-wave") == ("ck-rows-wave" in {each.rule for each in rejections})


def test_rows_of_one_cell_show_the_best() -> None:
    cell = ("split-K", "f16", "gfx942")
    test = ("tests/a.py::test_a", "full", "2026-11-23")
    records = [table.Record(*cell, status, *test) for status in (table.COMPILES, table.CHECKED)]
    gone = [table.Record("split-K", "f16", "gfx1100", "not in ISA", "no instruction")]
    text = table.render(records, gone)
    assert "0 of\n1 cells again" in text
    assert "| split-K | f16 | checked 2026-11-23 *full* | not in ISA |" in text
    assert "| split-K | f16 | gfx1100 | no instruction |" in text
