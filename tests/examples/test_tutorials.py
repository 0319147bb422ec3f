# SPDX-License-Identifier: MIT
"""Tutorials print what their pages and notebooks show, without kernels and with them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.by_reference import replace_kernels
from tests.support.pages.tutorials import ORDER, Tutorial, notebook, page, read, run, with_outputs

ALL = {name: read(name) for name in ORDER}
OF_OPS = [name for name, each in ALL.items() if not {"emulator", "triton"}.intersection(each.needs)]
OF_PROGRAMS = [name for name, each in ALL.items() if "emulator" in each.needs]


@pytest.fixture
def _own_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels are chosen as users have them chosen."""
    monkeypatch.delenv("CKLANG_PRESET")


def shown(tutorial: Tutorial) -> list[str]:
    return [cell.output for cell in tutorial.cells if not cell.is_prose]


def expect_packages(tutorial: Tutorial) -> None:
    for package in ("torch", "triton"):
        if package in tutorial.needs:
            pytest.importorskip(package)


@pytest.mark.usefixtures("_own_choice")
@pytest.mark.parametrize("name", OF_OPS)
def test_a_tutorial_prints_what_it_shows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expect_packages(ALL[name])
    replace_kernels(monkeypatch)
    assert run(ALL[name]) == shown(ALL[name]), f"run python -m tests.support.pages {name}"


@pytest.mark.full
@pytest.mark.usefixtures("_own_choice", "compiler")
@pytest.mark.parametrize("name", OF_OPS)
def test_a_tutorial_prints_the_same_with_kernels(name: str) -> None:
    expect_packages(ALL[name])
    assert run(ALL[name]) == shown(ALL[name])


@pytest.mark.usefixtures("_own_choice", "compiler")
@pytest.mark.parametrize("name", OF_PROGRAMS)
def test_a_tutorial_of_programs_prints_what_it_shows(name: str) -> None:
    assert run(ALL[name]) == shown(ALL[name])


@pytest.mark.full
@pytest.mark.usefixtures("_own_choice", "compiler")
def test_the_tutorial_of_triton_prints_what_it_shows() -> None:
    expect_packages(ALL["triton_kernels"])
    assert run(ALL["triton_kernels"]) == shown(ALL["triton_kernels"])


@pytest.mark.full
@pytest.mark.usefixtures("_own_choice", "compiler")
@pytest.mark.parametrize("name", ORDER)
def test_a_notebook_prints_what_it_shows(name: str) -> None:
    expect_packages(ALL[name])
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    book = nbformat.reads(notebook(ALL[name]), as_version=4)
    nbformat.validate(book)
    folder = str(ALL[name].path.parent)
    nbclient.NotebookClient(book, timeout=600, resources={"metadata": {"path": folder}}).execute()
    texts = [
        "".join(out["text"] for out in cell["outputs"] if out.get("name") == "stdout")
        for cell in book.cells
        if cell["cell_type"] == "code"
    ]
    printed = ["\n".join(line.rstrip() for line in t.rstrip().splitlines()) for t in texts]
    assert printed == shown(ALL[name])


@pytest.mark.parametrize("name", ORDER)
def test_a_script_is_written_back_as_it_is(name: str) -> None:
    assert with_outputs(ALL[name], shown(ALL[name])) == ALL[name].path.read_text()


def test_cells_of_a_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        "# SPDX\n# needs: torch\n\n# %% [markdown]\n# # Title\n#\n# One\n# line.\n\n"
        "# %%\nprint(1)\nprint()\nprint(2)\n#: 1\n#:\n#: 2\n\n# %%\nx = 3\n"
    )
    (tmp_path / "t.py").write_text(text)
    monkeypatch.setattr("tests.support.pages.tutorials.TUTORIALS", tmp_path)
    tutorial = read("t")
    assert (tutorial.title, tutorial.summary, tutorial.needs) == ("Title", "One line.", ("torch",))
    assert run(tutorial) == ["1\n\n2", ""] == shown(tutorial)
    assert with_outputs(tutorial, run(tutorial)) == text
    assert "```text\n1\n\n2\n```" in page(tutorial)
    cells = json.loads(notebook(tutorial))["cells"]
    assert [cell["cell_type"] for cell in cells] == ["markdown", "code", "code"]
    assert cells[1]["outputs"][0]["text"] == "1\n\n2\n"
