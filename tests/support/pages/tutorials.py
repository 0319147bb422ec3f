# SPDX-License-Identifier: MIT
"""Tutorials: scripts in ``docs/tutorials``, and the page and the notebook of each.

A script has cells in the percent format, which editors know: ``# %% [markdown]`` begins prose in
comments, ``# %%`` code. The lines ``#: ...`` behind code are what it prints. If its last line is an
object that draws itself in a notebook, such as an op, the picture follows as a link. A script says
on its second line what it needs: ``# needs: torch``.

``python -m tests.support.pages NAME ...`` runs scripts, writes what they print into them, and
writes their pictures; ``tests/examples/test_tutorials.py`` compares.
"""

import ast
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = [
    "ORDER", "TUTORIALS", "Cell", "Output", "Tutorial", "generated", "index_page", "notebook",
    "page", "pictures", "read", "run", "shown", "with_outputs",
]  # fmt: skip

TUTORIALS = Path(__file__).parents[3] / "docs" / "tutorials"

ORDER = (
    *("norm", "attention_variants", "quantised_weights", "convolution_net", "llama_block"),
    *("gradients_and_torch", "choosing_kernels", "kernel_family", "hip_program"),
    *("debugging_a_race", "triton_kernels"),
)
"""The tutorials in the order in which the gallery shows them."""

_MARKER = re.compile(r"# %%( \[markdown\])?")
_OUTPUT = "#:"
_PICTURE = re.compile(r"!\[([^]]*)\]\((pictures/\w+\.svg)\)")
_TITLE = re.compile(r"<title>(.*?)</title>")


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What a cell shows: what it prints, and the SVG of the object on its last line."""

    text: str = ""
    picture: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A part of a script: prose, or code with what it prints and a link to its picture."""

    text: str
    first_line: int
    is_prose: bool = False
    output: str = ""
    picture: str = ""

    @property
    def svg(self) -> str:
        """The text of its picture, or nothing."""
        link = _PICTURE.fullmatch(self.picture)
        return (TUTORIALS / link[2]).read_text(encoding="utf-8").rstrip() if link else ""


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
    lines = (TUTORIALS / f"{name}.py").read_text(encoding="utf-8").splitlines()
    needs = re.fullmatch(r"# needs: (.*)", lines[1])
    return Tutorial(
        name=name, needs=tuple(needs[1].split(", ")) if needs else (), cells=tuple(_cells(lines))
    )


def _cells(lines: Sequence[str]) -> Iterator[Cell]:
    starts = [at for at, line in enumerate(lines) if _MARKER.fullmatch(line)]
    for start, stop in zip(starts, [*starts[1:], len(lines)], strict=True):
        body = lines[start + 1 : stop]
        if lines[start].endswith("[markdown]"):
            prose = (line.removeprefix("#").removeprefix(" ") for line in body)
            yield Cell(text="\n".join(prose).strip(), first_line=start + 2, is_prose=True)
            continue
        outputs = (line for line in body if line.startswith(_OUTPUT))
        printed = [line.removeprefix(_OUTPUT).removeprefix(" ") for line in outputs]
        picture = printed.pop() if printed and _PICTURE.fullmatch(printed[-1]) else ""
        yield Cell(
            text="\n".join(line for line in body if not line.startswith(_OUTPUT)).strip("\n"),
            first_line=start + 2,
            output="\n".join(printed),
            picture=picture,
        )


def shown(tutorial: Tutorial) -> list[Output]:
    """Return what a script says that each of its cells shows."""
    codes = (cell for cell in tutorial.cells if not cell.is_prose)
    return [Output(text=cell.output, picture=cell.svg) for cell in codes]


def run(tutorial: Tutorial) -> list[Output]:
    """Run the code of a tutorial in one namespace, and return what each of its cells shows."""
    module = ModuleType(f"tutorial_{tutorial.name}")
    sys.modules[module.__name__] = module  # dataclasses look for theirs
    try:
        codes = (cell for cell in tutorial.cells if not cell.is_prose)
        return [_output(cell, tutorial.path, vars(module)) for cell in codes]
    finally:
        del sys.modules[module.__name__]


def _output(cell: Cell, path: Path, names: dict[str, Any]) -> Output:
    # Ops read their text by file and line: the code keeps the lines that it has in the script.
    lines = path.read_text(encoding="utf-8").splitlines()
    begin = cell.first_line - 1
    body = [*[""] * begin, *lines[begin:]]
    stops = (at for at, line in enumerate(lines) if at >= begin and _MARKER.fullmatch(line))
    tree = ast.parse("\n".join(body[: next(stops, len(lines))]), str(path))
    printed = StringIO()
    with redirect_stdout(printed):
        last = _value_of_last_line(tree, str(path), names)
    text = "\n".join(line.rstrip() for line in printed.getvalue().rstrip().splitlines())
    return Output(text=text, picture=getattr(last, "_repr_svg_", str)() or "")


def _value_of_last_line(tree: ast.Module, path: str, names: dict[str, Any]) -> Any:
    """Run a cell, and return what a notebook would show below it."""
    *statements, last = tree.body
    if not isinstance(last, ast.Expr):
        exec(compile(tree, path, "exec"), names)
        return None
    exec(compile(ast.Module(statements, []), path, "exec"), names)
    return eval(compile(ast.Expression(last.value), path, "eval"), names)


def _picture_name(tutorial: Tutorial, outputs: Sequence[Output], place: int) -> str:
    """Return the file of the picture of the cell at ``place``: pictures count from 1."""
    number = sum(bool(output.picture) for output in outputs[: place + 1])
    return f"pictures/{tutorial.name}_{number}.svg"


def pictures(tutorial: Tutorial, outputs: Sequence[Output]) -> Mapping[str, str]:
    """Return the files of the pictures in ``docs/tutorials``, and the text of each."""
    return {
        _picture_name(tutorial, outputs, place): f"{output.picture}\n"
        for place, output in enumerate(outputs)
        if output.picture
    }


def with_outputs(tutorial: Tutorial, outputs: Sequence[Output]) -> str:
    """Return the text of a script with what its cells show."""
    lines = tutorial.path.read_text(encoding="utf-8").splitlines()
    first = next(at for at, line in enumerate(lines) if _MARKER.fullmatch(line))
    parts, places = ["\n".join(lines[:first]).strip()], count()
    for cell in tutorial.cells:
        if cell.is_prose:
            prose = (f"# {line}".rstrip() for line in cell.text.splitlines())
            parts.append("\n".join(["# %% [markdown]", *prose]))
            continue
        place = next(places)
        printed = outputs[place].text.splitlines()
        if title := _TITLE.search(outputs[place].picture):
            printed.append(f"![{title[1]}]({_picture_name(tutorial, outputs, place)})")
        comments = (f"{_OUTPUT} {line}".rstrip() for line in printed)
        parts.append("\n".join(["# %%", cell.text, *comments]))
    return "\n\n".join(parts) + "\n"


def page(tutorial: Tutorial) -> str:
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
        if cell.picture:
            parts.append(cell.picture)
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
    outputs: list[Mapping[str, Any]] = [printed] if cell.output else []
    if cell.picture:
        data = {"image/svg+xml": cell.svg.splitlines(True)}
        outputs.append({"data": data, "metadata": {}, "output_type": "display_data"})
    return {"cell_type": "code", "execution_count": None, **common, "outputs": outputs}


_NEEDS = {"torch": "; needs torch", "triton": "; needs torch and triton"}
"""What a card says of packages that ``cklang[emu]`` does not install."""

_HEAD = """\
# Tutorials

Each tutorial is a script. The page, the notebook and the script have the same text, code, output
and pictures: tests run the script and the notebook and compare. They run on any x86-64 Linux
machine, without a GPU.

Begin with the [first tutorial](../tutorial.md), from NumPy to a block of a transformer. These go on
from there, each by itself.

<div class="grid cards" markdown>
"""


def _card(tutorial: Tutorial) -> str:
    """Return the place of a tutorial in the gallery, with its first picture."""
    name = tutorial.name
    lines = [f"**[{tutorial.title}]({name}.md)**", tutorial.summary]
    if picture := next((each.picture for each in tutorial.cells if each.picture), ""):
        _, title, file, _ = _PICTURE.split(picture)
        lines.append(f'[<img alt="{title}" src="{file}" height="180">]({name}.md)')
    packages = next((_NEEDS[need] for need in tutorial.needs if need in _NEEDS), "")
    files = f"[script]({name}.py), [notebook]({name}.ipynb)"
    lines.append(f"{files}{packages}")
    return "- " + "\n\n    ".join(lines) + "\n"


def index_page() -> str:
    """Return the gallery of all tutorials."""
    return "\n".join([_HEAD, *(_card(read(name)) for name in ORDER), "</div>\n"])


def generated() -> Mapping[str, Callable[[], str]]:
    """Return the files below ``docs/`` that are made from the scripts, and how."""
    pages = {f"tutorials/{name}.md": lambda name=name: page(read(name)) for name in ORDER}
    books = {f"tutorials/{name}.ipynb": lambda name=name: notebook(read(name)) for name in ORDER}
    return {"tutorials/index.md": index_page, **pages, **books}
