# SPDX-License-Identifier: MIT
"""Files of IR on the command line: built, inspected and measured like an op of a module."""

import json
from pathlib import Path

import pytest

from cklang.cli.main import main
from cklang.cli.target import load_op
from cklang.runtime.ir_text import read_op
from tests.support.errors import expect_error

EXAMPLES = Path(__file__).parents[2] / "examples"
FILE = str(EXAMPLES / "linear_gelu.ckir")
PYTHON = f"{EXAMPLES / '01_linear_gelu.py'}:linear_gelu"
SIZES = ["M=384", "N=512", "K=256"]
DEVICE = ["--device", "emu:gfx942"]

SHAPES = """\
func @f(%x: f16[M, K], %w: f16[N, K]) -> f32[M, N] {
  %y: f32[M, N] = gemm(%x, %w)
  return %y
}
"""

Capture = pytest.CaptureFixture[str]


def printed(capsys: Capture, *words: str) -> str:
    assert main(list(words)) == 0
    return capsys.readouterr().out


def without_places(text: str) -> list[str]:
    """Return the lines of C++ without those that name the user's."""
    return [line for line in text.splitlines() if not line.startswith("#line ")]


@pytest.mark.parametrize("option", [[], ["--cpp"], ["--ir"]], ids=str)
def test_inspect_says_the_same_of_a_file_and_of_the_python(
    capsys: Capture, option: list[str]
) -> None:
    both = [printed(capsys, "inspect", op, *SIZES, *DEVICE, *option) for op in (PYTHON, FILE)]
    python, file = map(without_places, both)
    assert file == python
    assert ("linear_gelu.ckir" in both[1]) == (option == ["--cpp"])


def test_what_inspect_prints_is_a_file(capsys: Capture, tmp_path: Path) -> None:
    path = tmp_path / "printed.ckir"
    path.write_text(printed(capsys, "inspect", PYTHON, *SIZES, "--ir"))
    example, again = (read_op(each).program.specialise({}, {}) for each in (Path(FILE), path))
    assert again == example


@pytest.mark.usefixtures("compiler")
def test_build(capsys: Capture) -> None:
    text = printed(capsys, "build", FILE, *SIZES, *DEVICE)
    assert "gemm_f16_rcr" in text
    # It is the same kernel: the same epilogue of the same signature.
    assert "cached" in printed(capsys, "build", PYTHON, *SIZES, *DEVICE)


@pytest.mark.usefixtures("compiler")
def test_bench(capsys: Capture, tmp_path: Path) -> None:
    table = tmp_path / "table.json"
    words = ["M=70", "N=40", "K=33", *DEVICE, "--limit", "1", "--json", str(table)]
    words += ["--database", str(tmp_path / "t.sqlite")]
    assert "oracle against heuristic" in printed(capsys, "bench", FILE, *words)
    assert json.loads(table.read_text())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("func @f(%x: f16[M]) -> f16[M] {\n  return %y\n}\n", ["CK-I005", "broken.ckir:2:10"]),
        ("func @f(%x: f99[M]) -> f16[M] { return %x }", ["CK-I004", "broken.ckir:1:13", "^^^"]),
        (SHAPES, ["CK-I019", "broken.ckir:2:3", "^^^"]),
        ("", ["CK-I003", "holds 0 functions"]),
    ],
)
def test_mistakes_in_a_file_have_a_place(
    capsys: Capture, tmp_path: Path, text: str, words: list[str]
) -> None:
    path = tmp_path / "broken.ckir"
    path.write_text(text)
    assert main(["inspect", str(path), "M=4"]) == 1
    message = capsys.readouterr().err
    for word in words:
        assert word in message


def test_files_that_cannot_be_read(capsys: Capture, tmp_path: Path) -> None:
    assert main(["build", str(tmp_path / "none.ckir")]) == 1
    assert "CK-Z010" in capsys.readouterr().err
    (tmp_path / "bytes.ckir").write_bytes(b"\xff\xfe")
    with expect_error("Z010"):
        load_op(str(tmp_path / "bytes.ckir"))
    assert main(["bench", "no_file"]) == 1
    assert "file.ckir" in capsys.readouterr().err
