# SPDX-License-Identifier: MIT
"""The session in ``docs/debugger.md`` is what the debugger prints."""

import io
import re
import subprocess
from pathlib import Path

import pytest

from cklang.emulator.debugger.session import Session
from cklang.emulator.debugger.terminal import Terminal

_PAGE = Path(__file__).parents[3] / "docs" / "debugger.md"
_SESSION = re.compile(r"(<!-- session: transpose -->\n```text\n)(.*?)(```)", re.DOTALL)


def test_the_session_of_the_page(transpose_program: Path, request: pytest.FixtureRequest) -> None:
    page = _PAGE.read_text()
    (shown,) = [match[2] for match in _SESSION.finditer(page)]
    commands = [line.removeprefix("(cklang) ") for line in shown.splitlines() if line[:1] == "("]
    commands = [line for line in commands if not line.startswith("(")]
    screen, gpu = io.StringIO(), {"CKLANG_GPUS": "gfx942"}
    words = [str(transpose_program), "64"]
    with Session(words, settings=gpu, output=subprocess.DEVNULL) as session:
        assert Terminal(session, screen).execute(commands, echo=True)
    printed = "".join(f"{line.rstrip()}\n" for line in screen.getvalue().splitlines())
    if request.config.getoption("--update-golden"):
        _PAGE.write_text(_SESSION.sub(lambda match: match[1] + printed + match[3], page))
        return
    assert shown == printed
