# SPDX-License-Identifier: MIT
"""Every Python block of the documentation runs, as far as that takes no kernel.

The blocks of a page share one namespace. Calls of ops are evaluated by the NumPy reference, so that
their results have the dtypes and shapes that kernels give. HTML comments before a
block say more:

    <!-- setup                          lines of Python that the blocks below it rely on
    <!-- code: raises CK-F017 -->       the block is wrong on purpose
    <!-- code: not run -->              the block changes the process or measures: its calls are
                                        only checked against the signatures
"""

import ast
import linecache
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import cklang as ck
from tests.support.by_reference import bind_calls, replace_kernels
from tests.support.optional import imported_by, needed

ROOT = Path(__file__).parents[2]
PAGES = sorted(path for path in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")))

_FENCE = re.compile(r"( *)```(\w*)")
_MARK = re.compile(r" *<!-- code: (raises CK-(?P<code>\w+)|(?P<rest>not run)) -->")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Some Python of a page, at its own lines."""

    text: str
    code: str = ""
    is_run: bool = True


def blocks_of(page: str) -> Iterator[Block]:
    """Yield the Python of a page in order, setups among it."""
    lines = page.splitlines()
    first, language, indent, mark = 0, "", 0, None
    for number, line in enumerate(lines):
        fence = _FENCE.match(line)
        if not language and line.strip() == "<!-- setup":
            first, language, indent, mark = number + 1, "setup", line.index("<"), None
        elif not language and fence is not None:
            mark = _MARK.fullmatch(lines[number - 1])
            first, language, indent = number + 1, fence[2] or "text", len(fence[1])
        elif language and (line.strip() == ("-->" if language == "setup" else "```")):
            text = "\n" * first + "\n".join(each[indent:] for each in lines[first:number]) + "\n"
            if language in ("python", "setup"):
                code = mark["code"] or "" if mark else ""
                yield Block(text=text, code=code, is_run=mark is None or not mark["rest"])
            language = ""


@pytest.fixture
def _no_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    replace_kernels(monkeypatch)
    monkeypatch.delenv("CKLANG_PRESET")


def run(block: Block, file: str, names: dict[str, Any]) -> None:
    # Ops read their text by file and line.
    lines = block.text.splitlines(keepends=True)
    linecache.cache[file] = (len(block.text), None, lines, file)
    tree = ast.parse(block.text, file)
    if not block.is_run:
        bind_calls(tree, names)
        return
    exec(compile(tree, file, "exec"), names)
    for name in [name for name in names if name.startswith("test_")]:
        names.pop(name)()


@pytest.mark.usefixtures("_no_kernels")
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_the_code_of_a_page_runs(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {"__name__": f"page_{path.stem}"}
    blocks = list(blocks_of(path.read_text()))
    for package in sorted(frozenset().union(*(imported_by(block.text) for block in blocks))):
        needed(package)
    for number, block in enumerate(blocks):
        file = f"{path.name}[{number}]"
        if not block.code:
            run(block, file, names)
            continue
        with pytest.raises(ck.CkError) as caught:
            run(block, file, names)
        assert caught.value.code == block.code


def test_blocks_markers_and_results() -> None:
    page = (
        "<!-- setup\nx = 1\n-->\n\n```python\ny = x\n```\n\n- in a list\n\n"
        "  <!-- code: raises CK-F017 -->\n  ```python\n  z = y\n  ```\n"
        "```sh\nls\n```\n<!-- code: not run -->\n```python\nf()\n```\n"
    )
    blocks = list(blocks_of(page))
    assert [block.text.strip() for block in blocks] == ["x = 1", "y = x", "z = y", "f()"]
    assert [block.code for block in blocks] == ["", "", "F017", ""]
    assert [block.is_run for block in blocks] == [True, True, True, False]
    assert blocks[1].text.count("\n") == 6


@pytest.mark.usefixtures("_no_kernels")
def test_a_block_that_unpacks_too_few_results_fails() -> None:
    names: dict[str, Any] = {}
    block = Block(
        text="import cklang as ck, numpy as np\nM, N, K = ck.dims('M N K')\n\n@ck.op\n"
        "def f(x: ck.f16[M, K], w: ck.f16[N, K]) -> tuple[ck.f16[M, N], ck.f32[M, N]]:\n"
        "    return x @ w.T, x @ w.T\n\n"
        "one, = f(np.ones((2, 3), np.float16), np.ones((4, 3), np.float16))\n"
    )
    with pytest.raises(ValueError, match="too many values"):
        run(block, "two_results", names)


def test_every_page_with_code_is_here() -> None:
    counts = {path.name: len(list(blocks_of(path.read_text()))) for path in PAGES}
    assert {name for name, count in counts.items() if count} >= {"README.md", "language.md"}
    for path in PAGES:
        fences = path.read_text().count("```python")
        setups = path.read_text().count("<!-- setup\n")
        assert counts[path.name] == fences + setups
