# SPDX-License-Identifier: MIT
"""Kernels that print: once, however often a debugger executes them again."""

import io
import subprocess
from pathlib import Path

import pytest

from cklang.emulator.debugger.program import DebuggedProgram
from cklang.emulator.debugger.session import Session
from cklang.emulator.debugger.terminal import Terminal
from tests.support.hip_programs import built

pytestmark = pytest.mark.usefixtures("emulator")

_PROGRAM = r"""
#include <hip/hip_runtime.h>
__global__ void say(int most) {
  for (int n = 0; n < most; ++n) {
    if (threadIdx.x == 0) printf("number %d\n", n);
  }
}
int main() {
  say<<<1, 64>>>(3);
  return hipDeviceSynchronize();
}
"""


def test_a_line_is_printed_once(tmp_path: Path) -> None:
    source = tmp_path / "say.hip"
    source.write_text(_PROGRAM)
    program = built(source, "gfx942")
    started: list[DebuggedProgram] = []
    screen = io.StringIO()
    with Session([str(program)], output=subprocess.PIPE, started=started.append) as session:
        terminal = Terminal(session, screen)
        commands = ["start", "finish", "goto 5", "finish", "reverse-continue", "continue"]
        assert terminal.execute(commands), screen.getvalue()
    assert "the program has ended with status 0" in screen.getvalue()
    stdout = started[0].process.stdout
    assert stdout is not None
    with stdout:
        assert stdout.read().decode().splitlines() == [f"number {n}" for n in range(3)]
    assert started[0].process.stderr is not None
    started[0].process.stderr.close()
