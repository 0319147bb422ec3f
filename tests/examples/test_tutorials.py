# SPDX-License-Identifier: MIT
"""Tutorials show what their pages and notebooks show, without kernels and with them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.by_reference import replace_kernels
from tests.support.optional import needed
from tests.support.pages.tutorials import (
    ORDER,
    TUTORIALS,
    Output,
    Tutorial,
    notebook,
    page,
    pictures,
    read,
    run,
    shown,
    with_outputs,
)

ALL = {name: read(name) for name in ORDER}
OF_OPS = [name for name, each in ALL.items() if not {"emulator", "triton"}.intersection(each.needs)]
OF_PROGRAMS = [name for name, each in ALL.items() if "emulator" in each.needs]


@pytest.fixture
def _own_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels are chosen as users have them chosen; how long one waits depends on the machine."""
    monkeypatch.delenv("CKLANG_PRESET")
    monkeypatch.setenv("CKLANG_LOG", "error")


def expect_packages(tutorial: Tutorial) -> None:
    for package in ("torch", "triton"):
        if package in tutorial.needs:
            needed(package)


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


@pytest.mark.usefixtures("_own_choice", "compiler")
@pytest.mark.parametrize("name", ORDER)
def test_a_notebook_shows_what_its_page_shows(nbclient: Any, name: str) -> None:
    expect_packages(ALL[name])
    import nbformat

    book = nbformat.reads(notebook(ALL[name]), as_version=4)
    nbformat.validate(book)
    folder = str(ALL[name].path.parent)
    nbclient.NotebookClient(book, timeout=600, resources={"metadata": {"path": folder}}).execute()
    codes = [cell for cell in book.cells if cell["cell_type"] == "code"]
    assert [of_notebook(cell["outputs"]) for cell in codes] == shown(ALL[name])


def of_notebook(outputs: Sequence[Mapping[str, Any]]) -> Output:
    """Return what a cell of a notebook printed, and its picture."""
    text = "".join(each["text"] for each in outputs if each.get("name") == "stdout")
    drawn = (each["data"].get("image/svg+xml", "") for each in outputs if "data" in each)
    return Output(
        text="\n".join(line.rstrip() for line in text.rstrip().splitlines()), picture="".join(drawn)
    )


@pytest.mark.parametrize("name", ORDER)
def test_a_script_is_written_back_as_it_is(name: str) -> None:
    outputs = shown(ALL[name])
    assert with_outputs(ALL[name], outputs) == ALL[name].path.read_text()
    for file, picture in pictures(ALL[name], outputs).items():
        assert (TUTORIALS / file).read_text() == picture


def test_no_other_file_is_among_the_pictures() -> None:
    linked = {file for each in ALL.values() for file in pictures(each, shown(each))}
    assert linked == {f"pictures/{path.name}" for path in (TUTORIALS / "pictures").iterdir()}


def test_cells_of_a_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawing = "class Drawing:\n    _repr_svg_ = lambda self: '<svg><title>A dot</title></svg>'"
    text = (
        "# SPDX\n# needs: torch\n\n# %% [markdown]\n# # Title\n#\n# One\n# line.\n\n"
        "# %%\nprint(1)\nprint()\nprint(2)\n#: 1\n#:\n#: 2\n\n# %%\nx = 3\n\n"
        f"# %%\n{drawing}\n\n\nprint(x)\nDrawing()\n#: 3\n#: ![A dot](pictures/t_1.svg)\n"
    )
    (tmp_path / "t.py").write_text(text)
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "t_1.svg").write_text("<svg><title>A dot</title></svg>\n")
    monkeypatch.setattr("tests.support.pages.tutorials.TUTORIALS", tmp_path)
    tutorial = read("t")
    assert (tutorial.title, tutorial.summary, tutorial.needs) == ("Title", "One line.", ("torch",))
    dot = Output(text="3", picture="<svg><title>A dot</title></svg>")
    assert run(tutorial) == [Output(text="1\n\n2"), Output(), dot] == shown(tutorial)
    assert with_outputs(tutorial, run(tutorial)) == text
    assert pictures(tutorial, [dot]) == {"pictures/t_1.svg": f"{dot.picture}\n"}
    assert "```text\n1\n\n2\n```" in page(tutorial)
    assert page(tutorial).endswith("```text\n3\n```\n\n![A dot](pictures/t_1.svg)\n")
    cells = json.loads(notebook(tutorial))["cells"]
    assert [cell["cell_type"] for cell in cells] == ["markdown", "code", "code", "code"]
    assert cells[1]["outputs"][0]["text"] == "1\n\n2\n"
    assert cells[3]["outputs"][1]["data"] == {"image/svg+xml": [dot.picture]}
