# SPDX-License-Identifier: MIT
"""The commands as a user finds them: help, completion, a file to begin with, explaining an op."""

import hashlib
import json
import linecache
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cklang.build.builder import source_of
from cklang.cli.completion import SHELLS, script
from cklang.cli.generate import MANIFEST
from cklang.cli.main import GROUPS, main, words_of_commands
from cklang.families import key_from_json
from cklang.fusion.functions import Functions
from tests.support.by_reference import replace_kernels

DEVICE = ["--device", "emu:gfx942"]
Capture = pytest.CaptureFixture[str]

MODEL = """\
import cklang as ck
from beside import SCALE

M, N, K = ck.dims("M N K")


@ck.op
def linear(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
    y = x @ w.T
    return ck.tanh(y) * SCALE
"""
SIZES = ["M=64", "N=32", "K=128"]


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An op in a file that imports what stands beside it, in a folder that is not on the path."""
    (tmp_path / "beside.py").write_text("SCALE = 0.5\n")
    (tmp_path / "a_model.py").write_text(MODEL)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return f"{tmp_path / 'a_model.py'}:linear"


def printed(capsys: Capture, *words: str) -> str:
    assert main(words) == 0
    return capsys.readouterr().out


def test_help_lists_every_command_once(capsys: Capture) -> None:
    with pytest.raises(SystemExit) as done:
        main(["--help"])
    assert done.value.code == 0
    text = capsys.readouterr().out
    for title, group in GROUPS.items():
        assert f"{title}:" in text
        for name in group:
            assert text.count(f"\n  {name} ") == 1


def test_help_of_a_command_has_its_examples(capsys: Capture) -> None:
    with pytest.raises(SystemExit):
        main(["explain", "--help"])
    text = capsys.readouterr().out
    assert text.startswith("usage: cklang explain ")
    assert "Say which kernels a call would run, and why." in text
    assert "cklang explain model.py:linear --shapes M=4096" in text


def test_explain_finds_the_imports_of_the_file(model: str, capsys: Capture) -> None:
    plain = printed(capsys, "explain", model, *SIZES, *DEVICE)
    assert "@linear: 1 kernel" in plain
    assert printed(capsys, "explain", model, *DEVICE, "--shapes", *SIZES) == plain
    assert "on AMD Instinct MI300X" in printed(capsys, "explain", model, *SIZES, *DEVICE, "--short")


def test_inspect_shows_source_ir_and_c_of_each_line(model: str, capsys: Capture) -> None:
    rows = printed(capsys, "inspect", model, *SIZES, *DEVICE, "--lines").splitlines()
    assert rows[0].split() == ["source", "IR", "C"]
    text = "\n".join(rows)
    assert "a_model.py:9: y = x @ w.T" in text
    assert "gemm(%x, %0)" in text
    (row,) = (row for row in rows if "a_model.py:10: return ck.tanh" in row)
    assert "tanh(%1)" in row
    assert "ck_tanh(acc)" in row


def test_sizes_may_stand_anywhere(model: str, capsys: Capture) -> None:
    whole = printed(capsys, "explain", model, *SIZES, *DEVICE, "--short")
    assert printed(capsys, "explain", *DEVICE, model, SIZES[0], "--short", *SIZES[1:]) == whole
    with pytest.raises(SystemExit):
        main(["explain", model, *SIZES, "--short", "N=1", "beside"])
    assert "unrecognized arguments: beside" in capsys.readouterr().err


@pytest.mark.usefixtures("compiler")
def test_one_call_is_timed_profiled_and_checked(model: str, capfd: Capture) -> None:
    assert main(["bench", model, "--calls", *SIZES, *DEVICE]) == 0
    assert "linear" in capfd.readouterr().out
    assert main(["profile", "--workgroups", "1", model, *DEVICE, *SIZES]) == 0
    assert "gemm_f16_" in capfd.readouterr().err
    assert main(["check", "--only", "races", model, *SIZES, *DEVICE]) == 0
    assert main(["check", model, "M=64"]) == 1
    assert "CK-K019" in capfd.readouterr().err


@pytest.mark.usefixtures("compiler")
def test_inspect_shows_instructions_beside_their_lines(model: str, capsys: Capture) -> None:
    text = printed(capsys, "inspect", model, *SIZES, *DEVICE, "--isa")
    assert text.startswith("gemm_f16_")
    assert "s_endpgm" in text
    rows = text.splitlines()
    (place,) = {row.partition("a_model.py:10: ")[2] for row in rows if "a_model.py:" in row}
    assert place == "return ck.tanh(y) * SCALE"
    assert any("v_exp_f32" in row and "math.h:" in row for row in rows)
    assert any("v_mfma_f32_" in row and "warp_gemm_attribute_mfma_impl.hpp:" in row for row in rows)


@pytest.mark.usefixtures("compiler")
def test_inspect_writes_a_page(model: str, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "page.html"
    assert printed(capsys, "inspect", model, *SIZES, *DEVICE, "--html", str(path))
    panes = path.read_text().split('<section class="pane">')
    key = f'data-user="{tmp_path / "a_model.py"}:10"'
    assert [pane.count(key) > 0 for pane in panes] == [False, True, True, True]
    assert "%1: f32[M, N] = gemm(%x, %0)" in panes[1]
    assert "ck_tanh(acc)" in panes[2]
    assert "v_mfma_f32_" in panes[3]


@pytest.mark.parametrize(
    "words", [("judge", "task.py", "submission.py"), ("run", "--torch", "gfx942", "script.py")]
)
def test_what_needs_torch_says_so(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(f"cklang.cli.{words[0]}.find_spec", lambda _: None)
    assert main([*words]) == 1
    assert "CK-E012 torch is not installed" in capsys.readouterr().err


def test_a_new_op_is_a_test_that_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "test_scaled.py: run it" in printed(capsys, "new", "op", "scaled")
    path = tmp_path / "test_scaled.py"
    replace_kernels(monkeypatch)
    names: dict[str, Any] = {"__name__": "test_scaled"}
    linecache.checkcache(str(path))
    exec(compile(path.read_text(), str(path), "exec"), names)
    names["test_scaled"]()
    main(["new", "op", "scaled"])
    assert "CK-A145 test_scaled.py exists" in capsys.readouterr().err
    main(["new", "op", "for"])
    assert "CK-A144 'for' cannot be the name of an op" in capsys.readouterr().err


def completed(tmp_path: Path, *words: str) -> list[str]:
    """Return what bash proposes after words."""
    path = tmp_path / "completion.bash"
    path.write_text(script("bash", words_of_commands()))
    line = " ".join(f"'{word}'" for word in ("cklang", *words))
    asked = f"source {path}; COMP_WORDS=({line}); COMP_CWORD={len(words)}; _cklang"
    command = ["bash", "-c", f'{asked}; printf "%s\\n" "${{COMPREPLY[@]}}"']
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes_commands_and_options(tmp_path: Path) -> None:
    assert completed(tmp_path, "ex") == ["explain"]
    assert completed(tmp_path, "explain", "--sh") == ["--shapes", "--short"]
    assert completed(tmp_path, "cache", "v") == ["verify"]


@pytest.mark.parametrize("shell", sorted(SHELLS))
def test_every_shell_has_a_script(shell: str, capsys: Capture) -> None:
    text = printed(capsys, "completion", shell)
    assert all(name in text for group in GROUPS.values() for name in group)


def test_ctrl_c_ends_a_command_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("cklang.prebuilding.compile_essentials", interrupted)
    assert main(["warm", "--wait", "--gpu", "gfx942"]) == 130
    assert capsys.readouterr().err == "\ninterrupted; what was built stays in the kernel cache\n"


def test_an_op_that_is_not_there(model: str, capsys: Capture) -> None:
    assert main(["explain", model.replace(":linear", ":liner"), *SIZES]) == 1
    assert "CK-Z010" in capsys.readouterr().err


# --- cklang generate


def test_the_manifest_names_every_source(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = tmp_path / "all.json", tmp_path / "sources"
    command = ["--arch", "gfx942", "--signature", "f16:rcr:row"]
    assert main(["registry", "export", str(file), *command]) == 0
    capsys.readouterr()
    other = ["--arch", "gfx942", "--signature", "bf16:rcr"]
    assert main(["generate", "--out", str(out), "--registry", str(file), *other]) == 0
    rows = json.loads((out / MANIFEST).read_text())["kernels"]
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(rows) == 36
    assert lines[-1].startswith("36 of 36: ")
    assert {path.name for path in out.iterdir()} == {MANIFEST, *(row["file"] for row in rows)}
    for row in rows:
        text = (out / row["file"]).read_text()
        assert hashlib.sha256(text.encode()).hexdigest() == row["sha256"]
        key = key_from_json(row["key"])
        assert source_of(key, Functions.parse(row["functions"])).inline == text


def test_nothing_to_generate_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", "--out", str(tmp_path / "none")]) == 1
    assert "K041" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()
