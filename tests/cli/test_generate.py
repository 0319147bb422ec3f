# SPDX-License-Identifier: MIT
"""``cklang generate``: the C++ of each kernel in a folder, and a manifest that names all of it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from cklang.build.builder import source_of
from cklang.cli.generate import MANIFEST
from cklang.cli.main import main
from cklang.families import key_from_json
from cklang.fusion.functions import Functions


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
