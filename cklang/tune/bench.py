# SPDX-License-Identifier: MIT
"""Problems times kernels as a table, and how far the heuristic's choice is from the best."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cklang.tune.session import TunedProblem, TuningReport, autotune
from cklang.tune.task import Call

if TYPE_CHECKING:
    from cklang.runtime.op import Op


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One kernel on one problem."""

    problem: str
    kernel: str
    """Its label."""
    status: str
    cost: float | None
    unit: str
    best: bool
    """Whether it costs least of the problem's right kernels."""
    heuristic: bool
    """Whether the heuristic chooses it."""
    instructions: float | None
    """Wave instructions of a launch, where the emulator counted them."""
    bytes_loaded: float | None
    matrix_flops: float | None
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The heuristic's choice beside the best kernel of one problem."""

    problem: str
    best: float | None
    chosen: float | None
    """None if the heuristic's kernel gave no right result."""
    unit: str
    kernels: int
    """Right ones that were measured."""

    @property
    def ratio(self) -> float | None:
        """Cost of the choice over that of the best: 1 if it is the best."""
        if self.best is None or self.chosen is None:
            return None
        return self.chosen / self.best


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """All measurements of some problems."""

    rows: tuple[Row, ...]
    verdicts: tuple[Verdict, ...]
    device: str

    def csv(self) -> str:
        """Return the table as comma-separated text with a line of names."""
        text = io.StringIO()
        table = csv.DictWriter(text, [f.name for f in fields(Row)], lineterminator="\n")
        table.writeheader()
        table.writerows(asdict(row) for row in self.rows)
        return text.getvalue()

    def json(self) -> str:
        """Return table and verdicts as JSON text."""
        verdicts = [asdict(v) | {"ratio": v.ratio} for v in self.verdicts]
        data = {"device": self.device, "rows": [asdict(r) for r in self.rows], "oracle": verdicts}
        return json.dumps(data, indent=1, ensure_ascii=False) + "\n"

    def oracle(self) -> str:
        """Return how far the heuristic is from the best kernel, problem by problem, as text."""
        lines = [f"oracle against heuristic on {self.device}"]
        for v in self.verdicts:
            ratio = "no right result" if v.ratio is None else f"{v.ratio:.3f} of the best"
            best = "-" if v.best is None else f"{v.best:.6g} {v.unit}"
            lines.append(f"  {v.problem}: best of {v.kernels} {best}; heuristic {ratio}")
        ratios = [v.ratio for v in self.verdicts if v.ratio is not None]
        if ratios:
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            first = sum(ratio == 1 for ratio in ratios)
            lines.append(
                f"  together: {mean:.3f} of the best (geometric mean), "
                f"{max(ratios):.3f} at worst, the best itself in {first} of {len(ratios)}"
            )
        return "\n".join(lines)


def bench(
    op: Op,
    problems: Sequence[Call],
    *,
    budget: str | float = "10m",
    database: Path | str | None = None,
    device: str | None = None,
    executor: Executor | None = None,
    limit: int = 64,
    gradient: bool = False,
    deterministic: bool = False,
    bias: bool = False,
) -> Bench:
    """Measure every legal kernel of each problem, up to ``limit``, the model's favourites first.

    Arguments, and what is raised, are those of :func:`cklang.autotune`; what its database knows is
    not measured again.
    """
    report = autotune(
        op,
        problems,
        budget=budget,
        database=database,
        device=device,
        executor=executor,
        limit=limit,
        patience=limit,
        gradient=gradient,
        deterministic=deterministic,
        bias=bias,
    )
    return table_of(report)


def table_of(report: TuningReport) -> Bench:
    """Return what a session knows as a table."""
    return Bench(
        rows=tuple(row for problem in report.problems for row in _rows(problem)),
        verdicts=tuple(_verdict(problem) for problem in report.problems),
        device=report.device,
    )


def _rows(tuned: TunedProblem) -> list[Row]:
    def counted(counters: Any, name: str) -> float | None:
        value = counters.get(name)
        return None if value is None else float(value)

    return [
        Row(
            problem=str(tuned.problem),
            kernel=m.key.label,
            status=m.status.value,
            cost=m.cost,
            unit=m.unit,
            best=m is tuned.best,
            heuristic=m.key == tuned.favourite,
            instructions=counted(m.counters, "instructions"),
            bytes_loaded=counted(m.counters, "bytes_loaded"),
            matrix_flops=counted(m.counters, "mfma_flops"),
            note=m.note,
        )
        for m in tuned.measurements
    ]


def _verdict(tuned: TunedProblem) -> Verdict:
    best = tuned.best
    return Verdict(
        problem=str(tuned.problem),
        best=None if best is None else best.cost,
        chosen=tuned.cost_of(tuned.favourite),
        unit="" if best is None else best.unit,
        kernels=sum(m.cost is not None for m in tuned.measurements),
    )
