# SPDX-License-Identifier: MIT
"""Tutorials: scripts in ``docs/tutorials``, and the page and the notebook of each.

A script has cells in the percent format, which editors know: ``# %% [markdown]`` begins prose in
comments, ``# %%`` code. The lines ``#: ...`` behind code are what it prints. A script says on its
second line what it needs: ``# needs: torch``.

``python -m tests.support.pages NAME ...`` runs scripts and writes what they print into
them; ``tests/examples/test_tutorials.py`` compares.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = [
    "ORDER",
    "TUTORIALS",
    "Cell",
    "Tutorial",
    "generated",
    "index_page",
    "notebook",
    "page",
    "read",
    "run",
    "with_outputs",
]

TUTORIALS = Path(__file__).parents[3] / "docs" / "tutorials"

ORDER = (
    *("norm", "attention_variants", "quantised_weights", "convolution_net", "llama_block"),
    *("gradients_and_torch", "choosing_kernels", "kernel_family", "hip_program"),
    *("debugging_a_race", "triton_kernels"),
)
"""The tutorials in the order in which the gallery shows them."""

_MARKER = re.compile(r"# %%( \[markdown\])?")
_OUTPUT = "#:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A part of a script: prose, or code with what it prints."""

    text: str
    first_line: int
    is_prose: bool = False
    output: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tutorial:
    """A script."""

    name: str
    needs: tuple[str, ...]
    cells: tuple[Cell, ...]

    @property
    def path(self) -> Path:
        """The script's file."""
        return TUTORIALS / f"{self.name}.py"

    @property
    def title(self) -> str:
        """Its first heading."""
        return self.cells[0].text.partition("\n")[0].removeprefix("# ")

    @property
    def summary(self) -> str:
        """Its first paragraph, on one line."""
        return " ".join(self.cells[0].text.split("\n\n")[1].split())


def read(name: str) -> Tutorial:
    """Read the script ``name``."""
    lines = (TUTORIALS / f"{name}.py").read_text(encoding="utf-8").splitlines()
    needs = re.fullmatch(r"# needs: (.*)", lines[1])
    return Tutorial(
        name=name,
        needs=tuple(needs[1].split(", ")) if needs else (),
        cells=tuple(_cells(lines)),
    )


def _cells(lines: Sequence[str]) -> Iterator[Cell]:
    starts = [at for at, line in enumerate(lines) if _MARKER.fullmatch(line)]
    for start, stop in zip(starts, [*starts[1:], len(lines)], strict=True):
        body = lines[start + 1 : stop]
        if lines[start].endswith("[markdown]"):
            prose = (line.removeprefix("#").removeprefix(" ") for line in body)
            yield Cell(text="\n".join(prose).strip(), first_line=start + 2, is_prose=True)
            continue
        printed = [line for line in body if line.startswith(_OUTPUT)]
        yield Cell(
            text="\n".join(line for line in body if not line.startswith(_OUTPUT)).strip("\n"),
            first_line=start + 2,
            output="\n".join(line.removeprefix(_OUTPUT).removeprefix(" ") for line in printed),
        )


def run(tutorial: Tutorial) -> list[str]:
    """Run the code of a tutorial in one namespace, and return what each of its cells prints."""
    module = ModuleType(f"tutorial_{tutorial.name}")
    sys.modules[module.__name__] = module  # dataclasses look for theirs
    try:
        codes = (cell for cell in tutorial.cells if not cell.is_prose)
        return [_printed(cell, tutorial.path, vars(module)) for cell in codes]
    finally:
        del sys.modules[module.__name__]


def _printed(cell: Cell, path: Path, names: dict[str, Any]) -> str:
    # Ops read their text by file and line: the code keeps the lines that it has in the script.
    lines = path.read_text(encoding="utf-8").splitlines()
    begin = cell.first_line - 1
    body = [*[""] * begin, *lines[begin:]]
    stops = (at for at, line in enumerate(lines) if at >= begin and _MARKER.fullmatch(line))
    tree = ast.parse("\n".join(body[: next(stops, len(lines))]), str(path))
    printed = StringIO()
    with redirect_stdout(printed):
        exec(compile(tree, str(path), "exec"), names)
    return "\n".join(line.rstrip() for line in printed.getvalue().rstrip().splitlines())


def with_outputs(tutorial: Tutorial, outputs: Sequence[str]) -> str:
    """Return the text of a script with what its cells print."""
    lines = tutorial.path.read_text(encoding="utf-8").splitlines()
    first = next(at for at, line in enumerate(lines) if _MARKER.fullmatch(line))
    parts, rest = ["\n".join(lines[:first]).strip()], list(outputs)
    for cell in tutorial.cells:
        if cell.is_prose:
            prose = (f"# {line}".rstrip() for line in cell.text.splitlines())
            parts.append("\n".join(["# %% [markdown]", *prose]))
            continue
        printed = rest.pop(0).splitlines()
        shown = (f"{_OUTPUT} {line}".rstrip() for line in printed)
        parts.append("\n".join(["# %%", cell.text, *shown]))
    return "\n\n".join(parts) + "\n"


def page(tutorial: Tutorial) -> str:
    """Return the page of a tutorial."""
    name = tutorial.name
    files = f"[Script]({name}.py) · [Notebook]({name}.ipynb) · [All tutorials](index.md)"
    title, _, rest = tutorial.cells[0].text.partition("\n")
    parts = [f"{title}\n\n{files}\n{rest}"]
    for cell in tutorial.cells[1:]:
        if cell.is_prose:
            parts.append(cell.text)
            continue
        parts.append(f"```py\n{cell.text}\n```")
        if cell.output:
            parts.append(f"```text\n{cell.output}\n```")
    return "\n\n".join(parts) + "\n"


def notebook(tutorial: Tutorial) -> str:
    """Return the notebook of a tutorial, as JSON of nbformat 4.5."""
    cells = [_notebook_cell(cell, number) for number, cell in enumerate(tutorial.cells)]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return (
        json.dumps(
            {
                "cells": cells,
                "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
                "nbformat": 4,
                "nbformat_minor": 5,
            },
            indent=1,
            ensure_ascii=False,
        )
        + "\n"
    )


def _notebook_cell(cell: Cell, number: int) -> Mapping[str, Any]:
    common = {"id": f"cell-{number}", "metadata": {}, "source": cell.text.splitlines(True)}
    if cell.is_prose:
        return {"cell_type": "markdown", **common}
    printed = {"name": "stdout", "output_type": "stream", "text": f"{cell.output}\n"}
    outputs = [printed] if cell.output else []
    return {"cell_type": "code", "execution_count": None, **common, "outputs": outputs}


_NEEDS = {
    "": "nothing",
    "emulator": "the emulator",
    "torch": "torch",
    "triton": "torch and triton",
}

_HEAD = """\
# Tutorials

Each tutorial is a script. The page, the notebook and the script have the same text, code and
output: a test runs the script and compares. They run on any x86-64 Linux machine, without a GPU.

Begin with the [first tutorial](../tutorial.md), from NumPy to a block of a transformer. These go on
from there, each by itself.

| tutorial | | needs besides `cklang[emu]` | files |
|---|---|---|---|
"""


def index_page() -> str:
    """Return the page that lists all tutorials."""
    rows = []
    for each in (read(name) for name in ORDER):
        files = f"[script]({each.name}.py), [notebook]({each.name}.ipynb)"
        needs = next((_NEEDS[need] for need in each.needs if need in ("torch", "triton")), "")
        rows.append(f"| [{each.title}]({each.name}.md) | {each.summary} | {needs} | {files} |\n")
    return _HEAD + "".join(rows)


def generated() -> Mapping[str, Callable[[], str]]:
    """Return the files below ``docs/`` that are made from the scripts, and how."""
    pages = {f"tutorials/{name}.md": lambda name=name: page(read(name)) for name in ORDER}
    books = {f"tutorials/{name}.ipynb": lambda name=name: notebook(read(name)) for name in ORDER}
    return {"tutorials/index.md": index_page, **pages, **books}
