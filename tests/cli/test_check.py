# SPDX-License-Identifier: MIT
"""``cklang check`` runs a program under checks."""

from __future__ import annotations

import sys

import pytest

from cklang import knobs
from cklang.cli.main import main

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
