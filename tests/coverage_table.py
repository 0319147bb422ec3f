# SPDX-License-Identifier: MIT
"""The table of ``docs/coverage.md``, made of what tests recorded and of what cannot be.

``data/coverage.json`` holds a row for each (variant, dtype, GPU) that some test checked; the
``covered`` fixture of ``conftest.py`` refuses what is not in it, and
``python -m pytest --write-coverage tests`` writes it again. ``data/absent.json`` holds what has no
kernel, with the reason.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from cklang.arch import arch

__all__ = ["ABSENT", "DOCUMENT", "RECORDS", "Record", "read", "render", "write"]

_DATA = Path(__file__).parent / "data"
RECORDS = _DATA / "coverage.json"
ABSENT = _DATA / "absent.json"
DOCUMENT = Path(__file__).parent.parent / "docs" / "coverage.md"

CHECKED = "emulated and checked"
COMPILES = "compiles"
ABSENT_IN_HEADERS, ABSENT_IN_ISA = "not in headers", "not in ISA"
REFUSED = "refused by rule"
_STATUSES = (CHECKED, COMPILES, REFUSED, ABSENT_IN_HEADERS, ABSENT_IN_ISA)

_HEAD = """\
# What works where

Which kernel runs with which element types on which GPU. The table is made by
the tests: a row stands here because a test compiled that kernel, ran it on the emulated GPU and
compared every element with the reference (*emulated and checked*), or compiled it and read it back
(*compiles*). `python -m pytest --write-coverage` writes it again. An empty cell was not tried.

Element types are those of A and B, that of B left out where it is that of A; of attention those of
q, k, v and of o. `fp8` and `bf8` are those of the GPU's encoding, fnuz on gfx942 and OCP elsewhere;
the rule `fp8-encoding` refuses the other one. What products and convolutions store stands in the
rows *results*: a kernel's epilogue makes it, whatever the types of A and B.

Where a GPU multiplies none of the types, the cell says so after its rows of warp tiles in
`arch_specs`: *not in ISA* if it has no such matrix instruction, *not in headers* if CK Tile does
not use the one it has.
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
    results = (each for record in records for each in _result(record))
    for record in (*records, *results, *absent):
        cells = best.setdefault((record.variant, _multiplied(record.dtypes)), {})
        known = cells.get(record.arch, record.status)
        cells[record.arch] = min(known, record.status, key=_STATUSES.index)
    archs = sorted({arch for cells in best.values() for arch in cells}, key=_number)
    lines = [_HEAD, _line("variant", "types", *archs), _line(*["---"] * (len(archs) + 2))]
    for (variant, dtypes), cells in sorted(best.items()):
        said = (cells.get(arch) or _lacking(variant, dtypes, arch) for arch in archs)
        lines.append(_line(variant, dtypes, *said))
    lines += ["", "## What there is no kernel for", ""]
    reasons: dict[str, list[str]] = {}
    for record in sorted(absent):
        what = f"{record.variant} {record.dtypes}, {record.arch}"
        reasons.setdefault(record.note, []).append(what)
    lines += [f"- {'; '.join(what)}: {reason}." for reason, what in sorted(reasons.items())]
    return "\n".join(lines) + "\n"


def _multiplied(dtypes: str) -> str:
    """Return the types of A and B, or of A alone if they are one, of those of A, B and E."""
    types = dtypes.replace("_fnuz", "").split()
    return " ".join(types if len(types) < 3 else dict.fromkeys(types[:2]))


def _result(record: Record) -> Iterator[Record]:
    """Yield the row of what the kernel of ``record`` stores."""
    types = record.dtypes.split()
    if len(types) == 3 and record.status == CHECKED:
        yield record._replace(variant="results", dtypes=f"to {types[-1].removesuffix('_fnuz')}")


def _lacking(variant: str, dtypes: str, name: str) -> str:
    """Return what ``arch_specs`` say if a GPU has no matrix instruction for the types, else ""."""
    types = dtypes.split()
    made = variant.startswith(("prologue", "attention")) or types[-1] == "i4"
    a, b = types[0], types[0] if made else types[-1]
    if variant == "results":
        return ""
    wanted = (a, b, "sparse" in variant)
    rows = [row for row in arch(name).warp_tiles if (row.a, row.b, row.sparse) == wanted]
    if any(row.legal for row in rows):
        return ""
    return ABSENT_IN_HEADERS if any(row.isa for row in rows) else ABSENT_IN_ISA


def _number(arch: str) -> tuple[int, str]:
    return len(arch), arch


def _line(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"
