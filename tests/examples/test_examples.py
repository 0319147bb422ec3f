# SPDX-License-Identifier: MIT
"""The examples by topic: each runs and checks itself, and the index page knows all of them.

Ten of them run in the tier *compile*, all in *full*. Those in `examples/` itself run in CI alone.
"""

import json
import re
import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "examples"
PAGE = (ROOT / "README.md").read_text()
UPSTREAM: dict[str, list[str]] = json.loads(
    Path(__file__).with_name("upstream_examples.json").read_text()
)
"""The names of AMD's examples, by folder of theirs."""

EXAMPLES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("*/*.py"))

CHOSEN = {
    "attention/biases.py": (),
    "attention/splits.py": (),
    "conv/forward.py": (),
    "conv/grad_weight.py": (),
    "gemm/basic.py": (),
    "gemm/stream_k.py": (),
    "registry/json_files.py": (),
    "registry/stress.py": ("--kernels", "8"),
    "registry/worker_pools.py": (),
    "tuning/strategies.py": (),
}
"""The ten of the tier *compile*, with their arguments."""

MOST_LINES = 80
LONGER = {"registry/stress.py"}
"""Files whose tables need more lines."""


LAYERS = sorted(path.name for path in ROOT.glob("2[2-589]_*.py"))
MOST_LINES_OF_LAYERS = 60


WHOLE = [
    pytest.param(name, (), marks=pytest.mark.full, id=f"{name} without arguments")
    for name in EXAMPLES
]


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(("name", "arguments"), [*CHOSEN.items(), *WHOLE])
def test_examples(
    name: str,
    arguments: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = str(ROOT / name)
    monkeypatch.setattr(sys, "argv", [path, *arguments])
    monkeypatch.setenv("CKLANG_DEVICE", "emu:gfx942")
    runpy.run_path(path, run_name="__main__")
    assert capsys.readouterr().out.count("\n") > 1, "it prints a table"


def test_the_page_lists_every_example_with_its_first_sentence() -> None:
    listed = dict(re.findall(r"^\| `(\w+/\w+\.py)` \| (.+) \|$", PAGE, re.M))
    assert sorted(listed) == EXAMPLES
    for name, words in listed.items():
        text = (ROOT / name).read_text()
        assert text.split('"""')[1].split("\n\n")[0].replace("\n", " ") == words, name


@pytest.mark.parametrize("folder", sorted(UPSTREAM))
def test_every_example_of_amd_has_an_answer_or_a_reason(folder: str) -> None:
    section = PAGE.split(f"### {folder}\n")[1].split("\n##")[0]
    rows = re.findall(r"^\| (\d\d_\w+) \| (?:`(\S+\.py)`|none: (.+)) \|$", section, re.M)
    assert [name for name, _, _ in rows] == UPSTREAM[folder]
    for name, answer, reason in rows:
        assert answer in EXAMPLES or len(reason.split()) > 4, name


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_short_and_says_how_to_run_it(name: str) -> None:
    text = (ROOT / name).read_text()
    assert f"python examples/{name}" in text
    assert name in LONGER or len(text.splitlines()) <= MOST_LINES
    assert "assert " in text or ".check()" in text, "it checks itself"


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_is_sixty_lines_at_most(name: str) -> None:
    text = (ROOT / name).read_text()
    assert f"python examples/{name}" in text
    assert len(text.splitlines()) <= MOST_LINES_OF_LAYERS
    assert "summary(" in text, "it prices the layer of a model"
    assert "assert " in text, "it checks itself"


def test_examples_are_numbered_without_a_gap() -> None:
    numbers = sorted(int(path.name[:2]) for path in ROOT.glob("[0-9][0-9]_*.py"))
    assert numbers == list(range(1, len(numbers) + 1))
