# SPDX-License-Identifier: MIT
"""What the campaign of :mod:`tests.support.campaign` came to so far."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

RECORD = Path(__file__).parents[1] / "data" / "campaign.json"


@dataclass(kw_only=True)
class Row:
    """What the calls of a family on a GPU came to, with the kernels of a commit."""

    commit: str
    family: str
    gpu: str
    right: int = 0
    refused: int = 0
    """Calls that rules left no algorithm for, or that the kernel refuses."""
    wrong: list[int] = field(default_factory=list)
    """Seeds of calls with a wrong result, or that fault."""
    uncompiled: list[int] = field(default_factory=list)
    """Seeds of calls with a kernel that does not compile."""
    slow: list[int] = field(default_factory=list)
    """Seeds of calls that were not judged, since a kernel takes minutes to compile."""

    @property
    def built(self) -> int:
        """How many kernels were compiled, or should have been."""
        return self.right + len(self.wrong) + len(self.uncompiled)


@dataclass(kw_only=True)
class Sums:
    """All runs together."""

    next: dict[str, int] = field(default_factory=dict)
    """The first seed of each family that was not drawn."""
    rows: list[Row] = field(default_factory=list)

    @staticmethod
    def read(path: Path = RECORD) -> Sums:
        """Read the file; nothing was drawn if there is none."""
        data = json.loads(path.read_text() or "{}") if path.exists() else {}
        rows = [Row(**row) for row in data.get("rows", [])]
        return Sums(next=data.get("next", {}), rows=rows)

    def text(self) -> str:
        """Return the file, a line for each row."""
        rows = sorted(self.rows, key=lambda row: (row.family, row.gpu, row.commit))
        lines = ",\n".join(f"    {json.dumps(asdict(row))}" for row in rows)
        ahead = json.dumps(self.next, sort_keys=True)
        return f'{{\n  "next": {ahead},\n  "rows": [\n{lines}\n  ]\n}}\n'

    def row(self, commit: str, family: str, gpu: str) -> Row:
        """Return a row, a new one if there is none."""
        for row in self.rows:
            if (row.commit, row.family, row.gpu) == (commit, family, gpu):
                return row
        self.rows.append(Row(commit=commit, family=family, gpu=gpu))
        return self.rows[-1]


def table_of(sums: Sums) -> str:
    """Return the sums as a table: for each family, built kernels and what was wrong, by GPU."""
    built: Counter[tuple[str, str]] = Counter()
    bad: dict[str, Counter[str]] = {kind: Counter() for kind in ("wrong", "uncompiled", "slow")}
    for row in sums.rows:
        built[row.family, row.gpu] += row.built
        for kind, counts in bad.items():
            counts[row.family] += len(getattr(row, kind))
    gpus = sorted({gpu for _, gpu in built}, key=lambda gpu: (len(gpu), gpu))
    lines = [
        f"| family | {' | '.join(gpus)} | built | wrong | not compiled | too slow to judge |",
        f"|---|{'---|' * len(gpus)}---|---|---|---|",
    ]
    families = sorted({family for family, _ in built})
    for family in [*families, "all"]:
        some = families if family == "all" else [family]
        cells = [sum(built[each, gpu] for each in some) for gpu in gpus]
        ends = [sum(counts[each] for each in some) for counts in bad.values()]
        lines.append(f"| {family} | {' | '.join(map(str, [*cells, sum(cells), *ends]))} |")
    return "\n".join(lines)
