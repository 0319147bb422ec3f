# SPDX-License-Identifier: MIT
"""The command line: each subcommand's output and status."""

from pathlib import Path

import pytest

from cklang.build.store import Store
from cklang.cli.main import main

PROGRAM = """
import cklang as ck
M, N, K = ck.dims("M N K")
T = ck.dtype_var("T", ck.f16, ck.bf16)

@ck.op
def linear(x: T[M, K], w: T[N, K]) -> T[M, N]:
    return x @ w.T
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("CKLANG_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("CKLANG_DEVICE", "emu:gfx942")
    path = tmp_path / "program_for_cli.py"
    path.write_text(PROGRAM)
    return f"{path}:linear"


def test_inspect(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", program, "M=4", "N=8", "K=16", "--dtype", "T=bf16"]) == 0
    assert "gemm_bf16_rcr" in capsys.readouterr().out
    assert main(["inspect", program, "M=4", "N=8", "K=16", "--dtype", "T=f16", "--cpp"]) == 0
    assert "ck_tile" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["M=4", "N=8", "--dtype", "T=f16"], "no extent is given for K"),
        (["M=4", "N=8", "K=x", "--dtype", "T=f16"], "an integer of 0 or more"),
        (["M=4", "N=8", "K=4"], "no dtype is given for T"),
        (["M=4", "N=8", "K=4", "--dtype", "f16"], "NAME=VALUE"),
        (["M=4", "N=8", "K=4", "--dtype", "T=f17"], "f17"),
        (["M=4", "N=8", "K=4", "L=4", "--dtype", "T=f16"], "L"),
    ],
)
def test_wrong_words(
    program: str, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert main(["inspect", program, *words]) == 1
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "name", ["nothing", "no_such_module:op", "no_such_file.py:op", "json:dumps"]
)
def test_unknown_ops(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert main(["inspect", name]) == 1
    assert "CK-Z010" in capsys.readouterr().err


def test_cache(program: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def build(folder: Path) -> dict[str, object]:
        (folder / "file").write_text("content")
        return {}

    entry, _ = Store(tmp_path / "cache").get_or_build("kernel", {"arch": "gfx942"}, build)
    assert main(["cache", "path"]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "cache")
    assert main(["cache", "ls"]) == 0
    listed = capsys.readouterr().out
    assert entry.digest[:12] in listed
    assert "1 entries" in listed
    assert main(["cache", "verify"]) == 0
    entry.file("file").write_text("Content")
    assert main(["cache", "verify"]) == 1
    assert "other contents" in capsys.readouterr().out
    assert main(["cache", "trim"]) == 0
    assert "removed 0 entries" in capsys.readouterr().out
    assert main(["cache", "trim", "--most", "0"]) == 0
    assert "removed 1 entries" in capsys.readouterr().out
    assert main(["cache", "clear"]) == 0
    assert list(Store(tmp_path / "cache").entries()) == []


def test_doctor(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    text = capsys.readouterr().out
    for words in ("compiler", "CK Tile headers", "emulated gfx942", "CKLANG_CACHE_DIR"):
        assert words in text
