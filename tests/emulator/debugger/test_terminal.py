# SPDX-License-Identifier: MIT
"""The terminal program: commands on a HIP program, and the command line."""

import io
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cklang.cli.main import main
from cklang.emulator.debugger.session import Session
from cklang.emulator.debugger.terminal import Terminal
from tests.support.assembly import assemble

GPU = {"CKLANG_GPUS": "gfx942"}


class Screen:
    """A terminal whose answers are taken one by one."""

    def __init__(self, session: Session) -> None:
        self._text = io.StringIO()
        self.terminal = Terminal(session, self._text)

    def __call__(self, command: str) -> str:
        before = len(self._text.getvalue())
        self.terminal.execute([command])
        return self._text.getvalue()[before:].rstrip("\n")


@pytest.fixture
def screen(transpose_program: Path) -> Iterator[Screen]:
    words = [str(transpose_program), "64"]
    with Session(words, settings=GPU, output=subprocess.DEVNULL) as session:
        yield Screen(session)


def counted(text: str) -> int:
    (count,) = re.findall(r"instruction (\d+) of the wave", text)
    return int(count)


def test_forward_and_back(screen: Screen) -> None:
    screen("break transpose.hip:18 workgroup 1 wave 2")
    first = screen("run")
    assert "launch 1: transpose on gfx942, 2x2 workgroups of 32x8 threads" in first
    assert "workgroup (1, 0, 0), wave 2" in first
    assert "tile[threadIdx.x][row];" in first
    assert counted(screen("si 3")) == counted(first) + 3
    assert counted(screen("reverse-stepi 5")) == counted(first) - 2
    again = screen("c")
    assert again == first.partition("\n")[2]
    line = screen("next")
    assert "transpose.hip:17" in line
    assert "transpose.hip:18" in screen("reverse-step")
    screen("goto 3")
    assert "the beginning of the launch" in screen("reverse-stepi 5")
    assert "all waves have ended" in screen("finish")
    assert "breakpoint 1" in screen("rc")
    screen("delete")
    assert screen("continue") == "the program has ended with status 0"
    assert "no launch is under control" in screen("info waves")


def test_what_is_shown(screen: Screen) -> None:
    screen("tbreak transpose.hip:17 wave 1")
    screen("run")
    assert "no breakpoints" in screen("info breakpoints")
    waves = screen("info waves").splitlines()
    assert len(waves) == 4
    assert waves[1].startswith("* workgroup 0 wave 1: ready")
    assert "vector registers" in screen("info registers")
    assert screen("info mem").count("16384 bytes, device 0") == 2
    assert "named no tensors" in screen("info tensors")
    assert screen("info").splitlines()[1:4] == ["info waves", "info registers", "info launch"]
    assert screen("bt").startswith("#0 transpose at transpose.hip:17    for (int row")
    assert "=>   17" in screen("list")
    assert "22 int main" in screen("list 22")
    assert "=> 0x" in screen("disassemble")
    everything = screen("disassemble all")
    assert everything.count("s_endpgm") == 1
    assert screen("disassemble *0x0").count("\n") < everything.count("\n")
    assert "wave 3" in screen("wave 3")
    assert screen("lane 5") == "lane 5"
    assert "workgroup (0, 0, 0), wave 3" in screen("where")
    assert "workgroup (0, 0, 0), wave 0" in screen("workgroup 0")


def test_where_breakpoints_are(screen: Screen) -> None:
    """At a kernel's start the file is the program's; those that nothing reaches are named."""
    source = "tests/emulator/profiler/transpose.hip"
    assert "transpose.hip:12" in screen("start")
    assert f"{source}:18" in screen("break 18 workgroup 99")
    assert screen("break other.hip:3").endswith("not in this launch")
    assert "pc 0x0, exec 0x" in screen("registers")
    assert screen("registers exec") == screen("print exec")
    nowhere, waiting, end = screen("continue").splitlines()
    assert nowhere.endswith(f"{source}:18, workgroup 99 is not reached")
    assert waiting.endswith("is in none of the kernels that were launched: transpose")
    assert end == "the program has ended with status 0"


def test_values(screen: Screen) -> None:
    screen("break transpose.hip:18 wave 0")
    screen("run")
    # The first row of the tile is that of the matrix.
    assert screen("lds 0 f32 2x4") == "[[0 1 2 3]\n [4 5 6 7]]"
    assert screen("print exec") == "0xffffffffffffffff"
    assert screen("p scc") in "01"
    kernarg = screen("print kernarg")
    assert screen(f"x {kernarg}+16 i32").splitlines()[1] == "[64]"
    assert screen("x kernarg address 2").splitlines()[0] == f"{kernarg}:"
    label, *lanes = screen("print v0 u32").splitlines()[0].split()
    assert (label, [int(lane) - int(lanes[0]) for lane in lanes]) == ("0:", list(range(8)))
    assert len(screen("print v[0:1] f16").splitlines()) == 64
    assert screen("x 0x40 f32 4").splitlines()[1:] == ["[]", "(0 of 4 values are there)"]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("bogus", "D031"),
        ("re", "reverse-continue, reverse-step"),
        ("break", "D032"),
        ("delete 7", "no breakpoint 7"),
        ("print v3", "D033"),
        ("step", "D033"),
        ("info nothing", "none of breakpoints, waves"),
        ("goto x", "no number"),
        ("lds", "an address is missing"),
        ("who 1", "a row and a column"),
    ],
)
def test_mistakes_before_a_launch(command: str, message: str) -> None:
    with Session(["true"]) as session:
        screen = Screen(session)
        assert message in screen(command)
        assert screen.terminal.failed


def test_mistakes_at_a_stop(screen: Screen) -> None:
    screen("break transpose")
    screen("run")
    assert "D034" in screen("print tile")
    assert "C++ variables are not" in screen("print tile")
    assert "D034" in screen("print v99999")
    assert "D035" in screen("wave 9")
    assert "lanes 0 to 63" in screen("lane 64")
    assert "D034" in screen("lds 0 half 3")
    assert "D038" in screen("dist")
    assert "no instruction" in screen("disassemble *0x2")
    assert "there is no file" in screen("list nowhere.cpp:3")


def test_help_names_every_command() -> None:
    with Session(["true"]) as session:
        screen = Screen(session)
        lines = screen("help").splitlines()
        assert len(lines) > 30
        assert all(re.match(r"[a-z-]+[^:]*: [A-Z].*\.?$", line) for line in lines)
        assert "@OPERATION" in screen("help break")
        assert screen.terminal.completenames("rev") == [
            "reverse-continue",
            "reverse-step",
            "reverse-stepi",
        ]
        assert "bf16" in screen.terminal.completedefault("bf", "print v0 bf")


_FAULT = """
import pathlib, sys
import numpy as np
from tests.support.assembly import Module
module = Module(pathlib.Path(sys.argv[1]).read_bytes())
sys.exit(module.launch("wrong", np.zeros(64, np.uint32), np.zeros(64, np.uint32)) != "hipSuccess")
"""


@pytest.mark.usefixtures("emulator")
def test_a_fault_in_a_launch_without_breakpoints(tmp_path: Path) -> None:
    body = """
  s_mov_b64 s[6:7], 64
  v_mov_b32 v1, 0
  global_store_dword v1, v0, s[6:7]
"""
    (tmp_path / "wrong.co").write_bytes(assemble({"wrong": body}))
    words = [sys.executable, "-c", _FAULT, str(tmp_path / "wrong.co")]
    root = Path(__file__).parents[3]
    with Session(words, folder=root, output=subprocess.DEVNULL) as session:
        screen = Screen(session)
        assert screen("run") == "the program has ended with status 1"
        screen("catch")
        text = screen("run")
        assert "the kernel has failed: memory access fault" in text
        assert "=> 0x8: global_store_dword" in text
        assert "=> 0x4: v_mov_b32_e32 v1, 0" in screen("reverse-stepi")
        assert "the kernel has failed" in screen("continue")
        assert screen("continue") == "the program has ended with status 1"


# The command line


@pytest.mark.usefixtures("emulator")
def test_a_batch(
    transpose_program: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CKLANG_GPUS", "gfx942")
    script = tmp_path / "commands"
    script.write_text("# where the kernel begins\nrun\n\nprint pc\ndelete\ncontinue\n")
    words = ["debug", "--batch", "-ex", "break transpose", "-x", str(script)]
    assert main([*words, str(transpose_program), "32"]) == 0
    out = capfd.readouterr().out
    assert "\n0x0\n" in out
    assert "correct\n" in out
    assert out.endswith("the program has ended with status 0\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "it needs a program"),
        (["-x", "/nowhere/commands", "true"], "/nowhere/commands"),
        (["--batch", "-ex", "run", "/nowhere/saxpy"], "/nowhere/saxpy"),
        (["--batch", "-ex", "bogus", "-ex", "quit", "true"], "D031"),
    ],
)
def test_a_batch_that_fails(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["debug", *words]) == 1
    said = capsys.readouterr()
    assert message in said.out + said.err


def test_commands_from_the_keyboard(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = iter(["info breakpoints", "run", "quit"])
    monkeypatch.setattr("builtins.input", lambda prompt: next(answers))
    assert main(["debug", "true"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "no breakpoints",
        "the program has ended with status 0",
    ]
