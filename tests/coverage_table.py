# SPDX-License-Identifier: MIT
"""The table of ``docs/coverage.md``, made of what tests recorded and of what cannot be.

``data/coverage.json`` holds a row for each (variant, dtype, GPU) that some test checked; the
``covered`` fixture of ``conftest.py`` refuses what is not in it, and
``python -m pytest --write-coverage tests`` writes it again. ``data/absent.json`` holds what has no
kernel, with the reason.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

__all__ = ["ABSENT", "DOCUMENT", "RECORDS", "Record", "read", "render", "write"]

_DATA = Path(__file__).parent / "data"
RECORDS = _DATA / "coverage.json"
ABSENT = _DATA / "absent.json"
DOCUMENT = Path(__file__).parent.parent / "docs" / "coverage.md"

CHECKED = "emulated and checked"
COMPILES = "compiles"
_STATUSES = (CHECKED, COMPILES, "not in headers", "not in ISA")

_HEAD = """\
# What works where

Which kernel runs with which element types on which GPU. The table is made by
the tests: a row stands here because a test compiled that kernel, ran it on the emulated GPU and
compared every element with the reference (*emulated and checked*), or compiled it and read it back
(*compiles*). `python -m pytest --write-coverage` writes it again. An empty cell was not tried.

Element types are those of A, B and E, the last two left out where they are that of A.
"""


class Record(NamedTuple):
    """One cell: a variant with element types on a GPU."""

    variant: str
    dtypes: str
    arch: str
    status: str
    note: str = ""
    """The test that saw it, or the reason why there is no kernel."""


def read(path: Path) -> list[Record]:
    """Return the records of a file."""
    return [Record(**row) for row in json.loads(path.read_text())]


def write(path: Path, records: Iterable[Record]) -> None:
    """Write records, each on a line, sorted."""
    lines = [json.dumps(record._asdict()) for record in sorted(set(records))]
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n")


def render(records: Sequence[Record], absent: Sequence[Record]) -> str:
    """Return the document."""
    best: dict[tuple[str, str], dict[str, str]] = {}
    for record in (*records, *absent):
        cells = best.setdefault((record.variant, record.dtypes), {})
        known = cells.get(record.arch, record.status)
        cells[record.arch] = min(known, record.status, key=_STATUSES.index)
    archs = sorted({arch for cells in best.values() for arch in cells}, key=_number)
    lines = [_HEAD, _line("variant", "types", *archs), _line(*["---"] * (len(archs) + 2))]
    for (variant, dtypes), cells in sorted(best.items()):
        lines.append(_line(variant, dtypes, *(cells.get(arch, "") for arch in archs)))
    lines += ["", "## What there is no kernel for", ""]
    reasons: dict[str, list[str]] = {}
    for record in sorted(absent):
        what = f"{record.variant} {record.dtypes}, {record.arch}"
        reasons.setdefault(record.note, []).append(what)
    lines += [f"- {'; '.join(what)}: {reason}." for reason, what in sorted(reasons.items())]
    return "\n".join(lines) + "\n"


def _number(arch: str) -> tuple[int, str]:
    return len(arch), arch


def _line(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"
