# SPDX-License-Identifier: MIT
"""``cklang registry``: files of declared kernels, shown, written, joined, asked and built."""

import csv
import json
import re
from pathlib import Path

import pytest

from cklang.cli.main import main
from cklang.selection.registry import Registry

HAND_WRITTEN = {
    "kernels": [
        {
            "key": {
                "arch": "gfx942",
                "signature": {"dtype_a": "f16"},
                "algorithm": {
                    "tile": [64, 64, 32],
                    "warps": [2, 2, 1],
                    "warp_tile": [16, 16, 32],
                    "vector_a": 8,
                    "vector_b": 8,
                    "vector_e": 8,
                },
            }
        }
    ]
}


@pytest.fixture
def essential(tmp_path: Path) -> Path:
    """The essential f16 kernels, as ``export`` writes them."""
    file = tmp_path / "essential.json"
    assert main(["registry", "export", str(file), "--signature", "f16:rcr"]) == 0
    return file


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """One kernel, written by hand."""
    file = tmp_path / "written.json"
    file.write_text(json.dumps(HAND_WRITTEN))
    return file


def read(file: Path) -> Registry:
    return Registry.from_json(json.loads(file.read_text()))


def test_export_writes_presets_and_profiles(essential: Path, tmp_path: Path) -> None:
    registry = read(essential)
    assert (registry.name, len(registry)) == ("essential", 18)
    file = tmp_path / "flash.json"
    command = ["registry", "export", str(file), "--profile", "flash", "--arch", "gfx942"]
    assert main([*command, "--element", "f16", "--head", "64"]) == 0
    families = {kernel.key.family for kernel in read(file)}
    assert {"attention", "attention_backward", "combine", "append"} <= families


def test_show_prints_a_row_for_each_kernel(
    essential: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main(["registry", "show", str(essential)]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split()[:4] == ["label", "arch", "priority", "tile"]
    assert len(rows) == 18
    assert {row.split()[3] for row in rows} == {"128x128x32", "64x64x32"}


def test_a_table_has_every_field_of_kernels_of_all_families(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mixed.json"
    command = ["registry", "export", str(file), "--signature", "f16:rcr:row", "--profile", "fp8"]
    assert main([*command, "--arch", "gfx942"]) == 0
    capsys.readouterr()
    assert main(["registry", "show", str(file), "--csv"]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    kernels = list(read(file))
    assert [row["label"] for row in rows] == [kernel.key.label for kernel in kernels]
    for row, kernel in zip(rows, kernels, strict=True):
        fields = kernel.key.to_json()
        assert row["algorithm.tile"] == "x".join(map(str, fields["algorithm"]["tile"]))
        for part in ("signature", "algorithm"):
            names = {name.partition(".")[2] for name in row if row[name] and part in name}
            assert names <= set(fields[part])


def test_merge_joins_and_keeps_each_kernel_once(
    essential: Path, written: Path, tmp_path: Path
) -> None:
    file = tmp_path / "both.json"
    assert main(["registry", "merge", str(file), str(written), str(essential), str(written)]) == 0
    assert len(read(file)) == 18, "the kernel that was written by hand is one of them"
    assert next(iter(read(file))) == next(iter(read(written)))


def test_select_names_the_kernel_and_the_others(
    essential: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    command = ["registry", "select", str(essential), "--signature", "f16:rcr"]
    assert main([*command, "4096", "4096", "4095", "--arch", "gfx942"]) == 0
    first, _, *rows = capsys.readouterr().out.splitlines()
    (best,) = (row for row in rows if row.startswith("*"))
    assert first.split(":")[0] in best
    times = [float(row.split()[-1]) for row in rows if "not legal" not in row]
    assert float(best.split()[-1]) == min(times)
    assert 0 < len(times) < len(rows), "an odd K rules wide loads out"


@pytest.mark.parametrize("text", ["", "[]", '{"kernel": []}', '{"kernels": [{}]}'])
def test_a_file_that_is_no_registry_is_refused(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "broken.json"
    file.write_text(text)
    assert main(["registry", "show", str(file)]) == 1
    printed = capsys.readouterr().err
    assert any(code in printed for code in ("K049", "K001", "K002"))


@pytest.mark.parametrize("action", ["show", "merge", "build", "select"])
def test_a_kernel_that_a_rule_refuses(
    action: str, written: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = written.read_text().replace('"vector_a": 8', '"vector_a": 3')
    written.write_text(text)
    words = {
        "show": [str(written)],
        "build": [str(written)],
        "merge": [str(tmp_path / "all.json"), str(written)],
        "select": [str(written), "--signature", "f16:rcr", "64", "64", "64"],
    }
    assert main(["registry", action, *words[action]]) == 1
    assert re.search(r"K103 gemm_f16_\w+ in .*written.json is no legal", capsys.readouterr().err)
    assert not (tmp_path / "all.json").exists()


def test_an_empty_export_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["registry", "export", str(tmp_path / "none.json")]) == 1
    assert "K041" in capsys.readouterr().err
    assert not (tmp_path / "none.json").exists()


@pytest.mark.usefixtures("compiler")
def test_build_builds_what_was_written_by_hand(
    written: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["registry", "build", str(written)]) == 0
    assert "1 of 1 kernels" in capsys.readouterr().out
