# SPDX-License-Identifier: MIT
"""How large the code is: ``python -m tests.support.code_size`` prints the table of architecture.md.

``--write`` puts it into the page. ``tests/base/test_limits.py`` compares the two.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import networkx as nx

from tests.base.test_limits import complex_functions
from tests.support.layers import FILES, LAYERS, MACHINE, UPWARDS, arrows, layer_of, module_of

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"
_CPP = (".cpp", ".h", ".hpp", ".hip", ".j2")
_NUMBER = re.compile(r"\d[\d,]*")
_TABLE = re.compile(r"\| part \| .*\n(?:\|.*\n)+")


def table() -> str:
    """Return the table: files and lines of each part, then counts of the package."""
    wings: dict[str, list[Path]] = {"compiler": [], "emulator": []}
    for path in FILES:
        wings["emulator" if layer_of(module_of(path)) in MACHINE else "compiler"].append(path)
    cpp = [path for path in (ROOT / "cklang").rglob("*") if path.suffix in _CPP]
    machine = [path for path in cpp if "emulator" in path.relative_to(ROOT).parts]
    parts = {
        "compiler wing, Python": wings["compiler"],
        "emulator wing, Python": wings["emulator"],
        "compiler wing, C++ and templates": [path for path in cpp if path not in machine],
        "emulator wing, C++": machine,
        "`tests`": list((ROOT / "tests").rglob("*.py")),
        "`benchmarks`": list((ROOT / "benchmarks").rglob("*.py")),
        "`docs`, written by hand": [
            path for path in (ROOT / "docs").glob("*.md") if _by_hand(path)
        ],
    }
    rows = [_row("part", "files", "lines"), _row("---", "---:", "---:")]
    rows += [_row(name, f"{len(files):,}", f"{_lines(files):,}") for name, files in parts.items()]
    rows.append(_row("layers; floors", str(len(LAYERS)), str(_floors())))
    rows.append(_row("functions above complexity 10", str(complex_functions()), ""))
    return "".join(f"{row}\n" for row in rows)


def shown() -> str:
    """Return the table that the page has."""
    (found,) = _TABLE.findall(PAGE.read_text("utf-8"))
    return str(found)


def numbers(text: str) -> Iterator[int]:
    """Yield the numbers of a table.

    >>> list(numbers("| `tests` | 1,020 | 7 |"))
    [1020, 7]
    """
    return (int(number.replace(",", "")) for number in _NUMBER.findall(text))


def _by_hand(path: Path) -> bool:
    return path.name not in ("reference.md", "errors.md", "cli.md", "coverage.md", "compilers.md")


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _lines(files: Sequence[Path]) -> int:
    return sum(path.read_text("utf-8").count("\n") for path in files)


def _floors() -> int:
    graph = nx.DiGraph((a, b) for a, b in arrows() - UPWARDS if a != b)
    return int(nx.dag_longest_path_length(graph)) + 1


if __name__ == "__main__":
    if "--write" in sys.argv:
        page = PAGE.read_text("utf-8")
        PAGE.write_text(page.replace(shown(), table()), "utf-8")
    print(table(), end="")
