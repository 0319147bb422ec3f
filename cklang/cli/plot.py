# SPDX-License-Identifier: MIT
"""Pictures of a bench: what each kernel costs beside the best of its problem."""

from pathlib import Path

from cklang.errors import error
from cklang.tune.bench import Bench

_INCHES_A_PROBLEM = 0.45


def draw(results: Bench, path: Path) -> None:
    """Draw one line a problem: its kernels by cost over the least, the heuristic's marked.

    Raises:
        CkUnsupportedError: N010, matplotlib is not installed.
        CkValueError: K042, the suffix is neither.
    """
    if path.suffix not in (".png", ".svg"):
        raise error("K042", path=path, stem=path.stem)
    try:
        from matplotlib.figure import Figure
    except ImportError as problem:
        raise error("N010") from problem
    names = [verdict.problem for verdict in results.verdicts]
    figure = Figure(figsize=(9.0, 1.4 + _INCHES_A_PROBLEM * len(names)), layout="constrained")
    axes = figure.add_subplot()
    for place, verdict in enumerate(results.verdicts):
        least = verdict.best
        rows = [r for r in results.rows if r.problem == verdict.problem and r.cost is not None]
        if least is None or not rows:
            continue
        costs = [(row.cost or 0.0) / least for row in rows]
        axes.plot(costs, [place] * len(costs), "|", color="tab:blue", markersize=12)
        chosen = [cost for cost, row in zip(costs, rows, strict=True) if row.heuristic]
        axes.plot(chosen, [place] * len(chosen), "o", color="tab:orange", fillstyle="none")
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlabel("cost of each kernel over that of the best; circles: the heuristic's choice")
    axes.set_title(f"{len(results.rows)} measurements on {results.device}", fontsize=10)
    axes.grid(axis="x", linewidth=0.3)
    figure.savefig(path)
