# SPDX-License-Identifier: MIT
"""The table of ``docs/coverage.md``, made of what tests recorded and of what cannot be.

``data/coverage.json`` holds a row for each (variant, dtype, GPU) that some test checked, with the
test, its tier and the day; the fixture ``covered`` refuses what is not in it. The rows are
written by ``python -m pytest --full``, and those of the tests that ran by ``--write-coverage``.
``data/absent.json`` holds what has no kernel, with the reason.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from cklang.arch import arch
from cklang.families.gemm.key import Pipeline
from tests.support import campaign_sums

PROPERTY = "covered"
"""The name under which a test's report has its records."""

_DATA = Path(__file__).parents[1] / "data"
RECORDS = _DATA / "coverage.json"
ABSENT = _DATA / "absent.json"
DOCUMENT = Path(__file__).parents[2] / "docs" / "coverage.md"

CHECKED = "emulated and checked"
COMPILES = "compiles"
ABSENT_IN_HEADERS, ABSENT_IN_ISA = "not in headers", "not in ISA"
REFUSED = "refused by rule"
FULL = "full"
CK_TILES_ROWS, MX_RESULTS = "CK Tile's own ", "result quantised by group: MX"
WAVE = 64
"""The lanes of a wave of CDNA, which CK Tile's kernels of rows are used with."""
_STATUSES = (CHECKED, COMPILES, REFUSED, ABSENT_IN_HEADERS, ABSENT_IN_ISA)

_HEAD = """\
# What works where

Which kernel runs with which element types on which GPU. The tests write this table:

- *checked*: a test compiled the kernel, ran it on the emulated GPU and compared every element with
  the reference, within its error bound.
- *compiles*: a test compiled the kernel and read it back.
- *not in ISA*: the GPU has no matrix instruction for these types. *not in headers*: it has one, and
  CK Tile does not use it.
- *refused by rule*: the rule refuses this variant on every problem.
- empty: not checked yet.

A cell has the date of the commit at which its test last ran. Every run of CI checks {ordinary} of
{all} cells again (tiers *fill* and *compile*). The other {full}, marked *full*, are checked by
`python -m pytest --full` alone, which writes this page.

Element types are those of A and B, or one type if they are equal; for attention those of q, k, v
and of o. `fp8` and `bf8` have the GPU's encoding: fnuz on gfx942, OCP elsewhere. The rows *results*
list the types that products and convolutions can store, whatever the types of A and B.
"""

_CAMPAIGN = """\
## Random kernels

The campaign draws calls of every family and one of their legal algorithms, and compares the result
with the reference. The table counts the kernels over all runs of `python -m tests.support.campaign`
and `pytest --full`. `tests/data/campaign.json` has the counts by commit, and the seeds of kernels
that were wrong or did not compile at that commit.
"""


class Record(NamedTuple):
    """One cell: a variant with element types on a GPU."""

    variant: str
    dtypes: str
    arch: str
    status: str
    note: str = ""
    """The test that saw it, or the reason why there is no kernel."""
    tier: str = ""
    """The tier of that test, see `tests.support.tiers`."""
    day: str = ""
    """That of the commit at which that test last ran: branches are rebased, days stay."""

    @property
    def cell(self) -> tuple[str, ...]:
        """What it says, without the day on which it was seen."""
        return self[:6]


def read(path: Path) -> list[Record]:
    """Return the records of a file."""
    return [Record(**row) for row in json.loads(path.read_text())]


def publish(records: Iterable[Record]) -> None:
    """Write the data and the document: ``records`` replace those of the same cells and tests."""
    rows = {record[:5]: record for record in (*read(RECORDS), *_cheapest(records))}
    lines = [json.dumps(record._asdict()) for record in sorted(rows.values())]
    RECORDS.write_text("[\n" + ",\n".join(lines) + "\n]\n")
    DOCUMENT.write_text(render(read(RECORDS), read(ABSENT)))


def _cheapest(records: Iterable[Record]) -> list[Record]:
    """Return the records with those of the most frequently run tier last, where they agree."""
    return sorted(records, key=lambda record: record.tier == FULL, reverse=True)


def render(records: Sequence[Record], absent: Sequence[Record]) -> str:
    best: dict[tuple[str, str], dict[str, Record]] = {}
    results = (each for record in records for each in _result(record))
    for record in (*records, *results, *absent):
        cells = best.setdefault((record.variant, _multiplied(record.dtypes)), {})
        known = cells.get(record.arch, record)
        cells[record.arch] = min(known, record, key=_preference)
    checked = [record for cells in best.values() for record in cells.values() if record.day]
    full = sum(record.tier == FULL for record in checked)
    head = _HEAD.format(all=len(checked), full=full, ordinary=len(checked) - full)
    archs = sorted({arch for cells in best.values() for arch in cells}, key=_number)
    lines = [head, _line("variant", "types", *archs), _line(*["---"] * (len(archs) + 2))]
    for (variant, dtypes), cells in sorted(best.items()):
        texts = (
            _text(cells[arch]) if arch in cells else _lacking(variant, dtypes, arch)
            for arch in archs
        )
        lines.append(_line(variant, dtypes, *texts))
    lines += ["", _CAMPAIGN, campaign_sums.table_of(campaign_sums.Sums.read())]
    lines += ["", "## What there is no kernel for", ""]
    return "\n".join([*lines, *_reasons(absent)]) + "\n"


def _reasons(absent: Sequence[Record]) -> Iterator[str]:
    """Yield a row for each reason, with the variants and the GPUs that it applies to."""
    yield _line("variants", "types", "GPUs", "reason")
    yield _line(*["---"] * 4)
    by_reason: dict[str, list[Record]] = {}
    for record in sorted(absent):
        by_reason.setdefault(record.note, []).append(record)
    for reason, records in sorted(by_reason.items(), key=lambda item: item[1]):
        variants = dict.fromkeys(record.variant for record in records)
        if len(variants) > 4:  # of attention: the pipeline says enough
            variants = dict.fromkeys(variant.partition(", ")[0] for variant in variants)
        types = dict.fromkeys(_multiplied(record.dtypes) for record in records)
        archs = sorted({record.arch for record in records}, key=_number)
        yield _line("; ".join(variants), "; ".join(types), ", ".join(archs), reason)


def _preference(record: Record) -> tuple[int, bool]:
    return _STATUSES.index(record.status), record.tier == FULL


def _text(record: Record) -> str:
    """Return a cell: what was seen, on which day, and whether only the full run sees it."""
    parts = [record.status.removeprefix("emulated and "), record.day]
    return " ".join([*filter(None, parts), *(["*full*"] if record.tier == FULL else [])])


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
    converted = variant.startswith(("prologue", "attention")) or types[-1] == "i4"
    a, b = types[0], types[0] if converted else types[-1]
    if rule := refusing_rule(variant, dtypes, name):
        return f"{REFUSED} `{rule}`"
    if variant == "results":
        return ""
    wanted = (a, b, "sparse" in variant)
    rows = [row for row in arch(name).warp_tiles if (row.a, row.b, row.sparse) == wanted]
    if any(row.legal for row in rows):
        return ""
    return ABSENT_IN_HEADERS if any(row.isa for row in rows) else ABSENT_IN_ISA


def refusing_rule(variant: str, dtypes: str, name: str) -> str:
    """Return the rule that refuses a variant on a GPU by what ``arch_specs`` say, or "".

    >>> refusing_rule("conv, pipeline comp_async", "f16", "gfx942")
    'pipeline'
    >>> refusing_rule("results", "to fp8", "gfx90a")
    'fp8-encoding'
    >>> refusing_rule("CK Tile's own permute", "f16", "gfx1201")
    'ck-rows-wave'
    """
    spec = arch(name)
    own = {row.pipeline for row in spec.pipelines}
    if any(pipeline not in own for pipeline in pipelines_of(variant)):
        return "pipeline"
    if variant.startswith(CK_TILES_ROWS) and spec.wave_size != WAVE:
        return "ck-rows-wave"
    stores_8_bits = variant == MX_RESULTS or dtypes in ("to fp8", "to bf8")
    return "fp8-encoding" if stores_8_bits and spec.fp8 == "none" else ""


def pipelines_of(variant: str) -> list[str]:
    """Return the pipelines that a variant names; prepared weights have one of their own."""
    if variant.startswith("prepared weight"):
        return [Pipeline.PRESHUFFLE_V2.value]
    words = variant.replace(",", "").split()
    return [word for word in words if word in {pipeline.value for pipeline in Pipeline}]


def _number(arch: str) -> tuple[int, str]:
    return len(arch), arch


def _line(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"
