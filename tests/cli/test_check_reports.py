# SPDX-License-Identifier: MIT
"""``cklang check --format``: each cause once, as JSON and SARIF, without what is suppressed."""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from cklang import knobs
from cklang.cli.main import main
from cklang.emulator.engine.reports import RULES, CheckReport, read_reports, to_json, to_sarif

ROOT = Path(__file__).parents[2]

# Two kernels of four workgroups: one that reads a register too early in two places, each executed
# many times, and one that stores behind the end of what it is given.
_PROGRAM = """
import sys
from pathlib import Path
import numpy as np
from tests.support.assembly import assembled

START = "s_load_dwordx4 s[4:7], s[0:1], 0x0\\n v_lshlrev_b32 v1, 2, v0\\n s_waitcnt lgkmcnt(0)\\n"
EARLY = "global_load_dword v2, v1, s[4:5]\\n v_mov_b32 v3, v2\\n s_waitcnt vmcnt(0)\\n"
bodies = {
    "early": START + EARLY + EARLY + "global_store_dword v1, v2, s[6:7]\\n",
    "nobody": START + "ds_read_b32 v2, v1\\n s_waitcnt lgkmcnt(0)\\n",
}
module = assembled(bodies, lds=256)
source, output = np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)
for kernel in bodies:
    status = module.launch(kernel, source, output, grid=4)
    print(kernel, status, output.sum())
"""


def run(folder: Path, *options: str) -> int:
    """Check the program; its own arguments come last."""
    return main(["check", *options, sys.executable, "-c", _PROGRAM, str(folder)])


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


@pytest.mark.usefixtures("emulator")
def test_a_report_for_each_cause(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "reports.json"
    assert run(tmp_path, "--format", "json", "--output", str(path)) == 1
    # The program goes on behind its mistakes.
    assert capfd.readouterr().out == "early hipSuccess 2016\nnobody hipSuccess 2016\n"
    reports = json.loads(path.read_text())
    causes = [(each["check"], each["kernel"], each["pc"]) for each in reports]
    assert len(causes) == len(set(causes)) == 3
    assert [cause[:2] for cause in sorted(causes)] == [
        ("uninitialized", "nobody"),
        ("waits", "early"),
        ("waits", "early"),
    ]
    assert all(each["workgroup"] and each["wave"] == 0 for each in reports)
    assert all(each["message"].startswith(("missing wait", "uninit")) for each in reports)


@pytest.mark.usefixtures("emulator")
@pytest.mark.parametrize(
    ("lines", "left"),
    [
        ("# a comment\nwaits early\n", {"uninitialized"}),
        ("* no*\n", {"waits"}),
        ("races early\n", {"waits", "uninitialized"}),
        ("* *\n", set()),
    ],
)
def test_suppressions(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], lines: str, left: set[str]
) -> None:
    known = tmp_path / "known.txt"
    known.write_text(lines)
    status = run(tmp_path, "--format", "json", "--suppressions", str(known))
    text = capfd.readouterr().out
    reports = json.loads(text[text.index("\n[") :])
    assert {each["check"] for each in reports} == left
    assert status == bool(left)


@pytest.mark.usefixtures("emulator")
def test_text_ends_at_what_is_not_suppressed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    known = tmp_path / "known.txt"
    known.write_text("waits *\n")
    assert run(tmp_path, "--suppressions", str(known)) == 0
    output = capfd.readouterr().out
    assert output == "early hipSuccess 2016\nnobody hipErrorLaunchFailure 2016\n"
    known.write_text("waits\n")
    assert run(tmp_path, "--suppressions", str(known)) == 2
    assert "each line must be a check" in capfd.readouterr().err


REPORTS = [
    CheckReport(
        check="waits",
        kernel="k",
        message="missing wait",
        pc=16,
        file="a.hip",
        line=3,
        workgroup=(1, 2, 3),
        wave=4,
        lane=5,
    ),
    CheckReport(check="range", kernel="k", message="out", pc=20),
]


def test_json_holds_every_field() -> None:
    values = json.loads(to_json(REPORTS))
    assert [set(each) for each in values] == [set(asdict(report)) for report in REPORTS]
    assert values[0]["workgroup"] == [1, 2, 3]


#: What SARIF 2.1.0 demands of the objects that are written.
_SARIF: dict[str, Any] = {
    "type": "object",
    "required": ["version", "runs"],
    "properties": {
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["tool", "results"],
                "properties": {
                    "tool": {
                        "type": "object",
                        "required": ["driver"],
                        "properties": {"driver": {"type": "object", "required": ["name"]}},
                    },
                    "results": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["message"],
                            "properties": {
                                "level": {"enum": ["none", "note", "warning", "error"]},
                                "message": {"type": "object", "required": ["text"]},
                            },
                        },
                    },
                },
            },
        },
    },
}


def test_sarif() -> None:
    log = json.loads(to_sarif(REPORTS))
    jsonschema.validate(log, _SARIF)
    (run,) = log["runs"]
    assert {rule["id"] for rule in run["tool"]["driver"]["rules"]} == set(RULES)
    first, second = run["results"]
    place = first["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "a.hip"}, "region": {"startLine": 3}}
    assert (first["level"], second["level"]) == ("error", "note")
    assert "physicalLocation" not in second["locations"][0]
    assert first["properties"]["lane"] == 5


def test_several_processes_report_a_cause_once(tmp_path: Path) -> None:
    line = json.dumps(
        {"check": "waits", "kernel": "k", "pc": 8, "file": "", "line": 0, "address": 0}
        | {"message": "missing wait\n  kernel k, workgroup (0, 1, 2), wave 3, lane 9"}
    )
    path = tmp_path / "reports"
    assert read_reports(path) == []
    path.write_text(f"{line}\n{line}\n")
    (report,) = read_reports(path)
    assert (report.workgroup, report.wave, report.lane) == ((0, 1, 2), 3, 9)


# --- the command itself

_PRINT = "import os, sys; print(os.environ['CKLANG_SANITIZE']); sys.exit(int(sys.argv[1]))"


def test_all_checks(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["check", sys.executable, "-c", _PRINT, "3"]) == 3
    assert capfd.readouterr().out == ",".join(knobs.SANITIZERS) + "\n"


def test_some_checks(capfd: pytest.CaptureFixture[str]) -> None:
    only = ["--only", "races", "--only", "waits"]
    assert main(["check", *only, sys.executable, "-c", _PRINT, "0"]) == 0
    assert capfd.readouterr().out == "races,waits\n"


def test_a_program_that_a_signal_ends() -> None:
    assert main(["check", sys.executable, "-c", "import os; os.abort()"]) == 134


@pytest.mark.parametrize(
    ("words", "problem"), [([], "it needs a program"), (["/nowhere/saxpy"], "/nowhere/saxpy")]
)
def test_no_program(words: list[str], problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", *words]) == 1
    assert problem in capsys.readouterr().err


def test_unknown_check(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["check", "--only", "bugs", "true"])
    assert "bugs" in capsys.readouterr().err
