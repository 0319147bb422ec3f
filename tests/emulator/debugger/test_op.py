# SPDX-License-Identifier: MIT
"""An op under control: lines of Python, its tensors, and the matrices in its registers."""

import io
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from cklang.cli.target import words_of
from cklang.emulator.debugger.expressions import Reader, Registers
from cklang.emulator.debugger.session import Session
from cklang.emulator.debugger.terminal import Terminal
from cklang.emulator.debugger.values import decoded, format_of
from cklang.emulator.debugger.views import matrix_at, tile_values

_OP = """\
import cklang as ck

M, N, K = ck.dims("M N K")


@ck.op
def linear(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
    y = x @ w.T
    return ck.relu(y * 2.0)
"""
SIZES = ("M=64", "N=64", "K=64", "--device", "emu:gfx942")


@pytest.fixture
def session(tmp_path: Path, stencils: None) -> Iterator[Session]:
    path = tmp_path / "linear.py"
    path.write_text(_OP)
    with Session(words_of([f"{path}:linear", *SIZES]), output=subprocess.DEVNULL) as session:
        yield session


def commands(session: Session, *lines: str) -> str:
    screen = io.StringIO()
    Terminal(session, screen).execute(lines)
    return screen.getvalue()


def test_a_line_without_a_file_is_the_users(session: Session) -> None:
    """Although the kernel begins in a header."""
    text = commands(session, "start", "break 9")
    assert "linear.py:9" in text.splitlines()[-1]


def test_lines_of_python_and_tensors(session: Session) -> None:
    text = commands(session, "break linear.py:9 wave 2", "run", "list", "info tensors")
    assert "linear.py:9    return ck.relu(y * 2.0)" in text
    assert "=>    9     return ck.relu(y * 2.0)" in text
    assert "out: f16[64, 64] at 0x" in text
    reader = Reader(session)
    x, w = (reader.tensor(name).astype(np.float32) for name in "xw")
    end = commands(session, "delete", "watch out[3, 5] 2", "continue", "finish")
    assert "write to" in end
    np.testing.assert_allclose(
        reader.tensor("out"), np.maximum(2 * x @ w.T, 0), rtol=2e-3, atol=2e-3
    )
    assert commands(session, "continue") == "the program has ended with status 0\n"


def test_the_kernels_start_and_the_calls_of_a_function(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stencil.hip").write_text("another file\n" * 500)
    monkeypatch.chdir(tmp_path)
    start = commands(session, "start", "list", "backtrace")
    assert re.search(r"^ +\d+ ck_gemm_\w+\(Kernel::Args args\)\n=> +\d+ \{$", start, re.M), start
    assert re.search(r"^#0 ck_gemm_f16_\w+ at kernel.hip.txt:\d+    \{$", start, re.M), start
    frames = commands(session, "break linear.py:9", "continue", "bt").partition("\n#0")[2]
    assert frames.startswith(" ck_epilogue at linear.py:9    return ck.relu(y * 2.0)\n#1 ")
    last = frames.splitlines()[-1]
    assert re.fullmatch(r"#\d+ ck_gemm_\w+ at kernel.hip.txt:\d+    Kernel::run<.*", last), last


def test_a_matrix_in_registers(session: Session) -> None:
    """A, B and D as matrices are a product: the layouts are those of the instruction."""
    commands(session, "break @v_mfma* workgroup 0 wave 0", "run")
    reader = Reader(session)
    x, w = (reader.tensor(name).astype(np.float32) for name in "xw")
    pc = commands(session, "print pc").strip()
    instruction = matrix_at(session, f"*{pc}")
    a, b = (tile_values(reader, instruction, name)[0].astype(np.float32) for name in "AB")
    before = tile_values(reader, instruction, "D")[0]
    commands(session, "stepi")
    after = tile_values(reader, instruction, "D")[0]
    np.testing.assert_allclose(after, before + a @ b, rtol=1e-4, atol=1e-4)
    # CK Tile may exchange A and B, and takes K in pieces of four.
    pieces = {tuple(piece) for matrix in (x, w) for piece in matrix.reshape(-1, 4)}
    assert {tuple(piece) for matrix in (a, b.T) for piece in matrix.reshape(-1, 4)} <= pieces
    text = commands(session, f"who 5 7 *{pc}", f"tile *{pc} D", f"dist *{pc} A", "dist C")
    assert "D[5, 7]: lane 23, v" in text
    assert "A is 16x16 f16 in v[" in text
    assert "D038" in text


def test_elements_of_tensors_in_lanes(session: Session) -> None:
    """What a wave loads from memory, and what the matrix instruction reads, by value."""
    commands(session, "break @v_mfma* workgroup 0 wave 0", "run")
    reader, pc = Reader(session), commands(session, "print pc").strip()
    operands = matrix_at(session, f"*{pc}").operands
    tensors = {name: reader.tensor(name) for name in "xw"}
    for name in "AB":
        each = operands[name]
        text = commands(session, f"dist v[{each.first}:{each.first + 1}] f16")
        rows = re.findall(r"lane (\d+): ([xw])\[(\d+), (\d+):(\d+)\]", text)
        assert len(rows) == 64
        values = decoded(reader.registers(Registers("v", each.first, 2)), format_of("f16"))
        for lane, tensor, row, begin, end in rows:
            part = tensors[tensor][int(row), int(begin) : int(end)]
            np.testing.assert_array_equal(values[int(lane)], part)
        # Lanes have rows of the tensor as the instruction has rows of A, or columns of B.
        places = each.places[:, 0, 1 if name == "A" else 2].tolist()
        by_place = {place: row for place, (_, _, row, _, _) in zip(places, rows, strict=True)}
        assert [by_place[place] for place in places] == [row for _, _, row, _, _ in rows]
        assert len(set(by_place.values())) == 16
