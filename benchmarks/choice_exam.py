# SPDX-License-Identifier: MIT
"""How far the first choice of the cost model is from the published best, by M.

The tables (``mi3xx_gemm_tuned.csv.gz`` below ``CKLANG_DATA_DIR``) name the winner of each shape
alone. What the chosen kernel takes is bounded by rows that it won itself, with the same weight: no
longer than with a larger M, no shorter than with a smaller one. So a choice is *the best*; *within*
5 % of it, by a row of a larger M; *beyond* 5 %, by one of a smaller M; or *open*. Constants are
those of the other folds, grouped by weight shape; a kernel that the session of a row seems not to
have searched is no candidate. *Stated* is the mean of the chances to be the best that the model
states (``cklang.selection.regret``), *expected* the part within 5 % if open ones are as it says,
*first 4* how often the best is among the first four kernels. Prints Markdown. Needs scipy and
autograd.

    python benchmarks/choice_exam.py [--folds 2] [--gpu gfx942/304]
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from data.published import Table, gpus, read
from fit_cost_model import FAMILIES, fold_constants_of, out_of_fold_times, spreads

from cklang.families.cost_constants import SPREADS
from cklang.selection.regret import weights

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

NEAR = 1.05
_FIRST = 4
_FEWEST = 300
"""Rows of a family that are enough to fit it by itself."""


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What the published times say of the choices, [rows]."""

    best: Bools
    within: Bools
    """The best ones among them."""
    beyond: Bools


def bounds(table: Table, chosen: npt.NDArray[np.intp]) -> tuple[Floats, Floats]:
    """Return the least and the most that a kernel can take for each row, [rows]."""
    won: dict[tuple[int, int, int], list[int]] = {}
    for row, (shape, kernel) in enumerate(zip(table.shapes(), table.winner, strict=True)):
        won.setdefault((*shape, int(kernel)), []).append(row)
    least, most = np.zeros(len(table)), np.full(len(table), np.inf)
    for row, (shape, kernel) in enumerate(zip(table.shapes(), chosen, strict=True)):
        known = np.array(won.get((*shape, int(kernel)), []), np.intp)
        larger = table.m[known] >= table.m[row]
        most[row] = table.us[known[larger]].min(initial=np.inf)
        least[row] = table.us[known[table.m[known] <= table.m[row]]].max(initial=0.0)
    return least, most


def verdicts(table: Table, us: Floats) -> Verdicts:
    """Judge the choices by predicted times, [rows, kernels]."""
    chosen = us.argmin(1)
    least, most = bounds(table, chosen)
    best = chosen == table.winner
    within = best | (most <= NEAR * table.us)
    return Verdicts(best=best, within=within, beyond=~within & (least > NEAR * table.us))


def expected(chance: Floats, spread: float) -> Floats:
    """Return how likely choices that are not the best are within 5 % of it.

    The best of exponential variables is known not to be the choice; that is then as much slower as
    if it began anew (:mod:`cklang.selection.regret`).
    """
    likely: Floats = 1.0 - 1.0 / (1.0 + (NEAR ** (1.0 / spread) - 1.0) * chance)
    return likely


def report(table: Table, predicted: Floats) -> list[str]:
    """Return the rows of a family."""
    us = np.where(table.searched(), predicted, np.inf)
    judged, spread = verdicts(table, us), spreads([table], [predicted])
    won = us[np.arange(len(us)), table.winner][:, None]
    among = (us < won).sum(1) < _FIRST
    lines = []
    for kind, low, high in SPREADS:
        rows = (table.m > low) & (table.m <= high)
        if not rows.any():
            continue
        chance = 1.0 / weights(us[rows], spread[kind]).sum(1)
        within, beyond = judged.within[rows], judged.beyond[rows]
        likely = np.where(within, 1.0, np.where(beyond, 0.0, expected(chance, spread[kind])))
        shares = (judged.best[rows], chance, within, ~beyond, likely, among[rows])
        numbers = " | ".join(f"{share.mean():.3f}" for share in shares)
        name = f"{table.spec.name}/{table.spec.compute_units} {table.family}"
        size = f"M ≤ {high}" if math.isfinite(high) else "above"
        lines.append(f"| {name} | {size} | {rows.sum()} | {numbers} |")
    return lines


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpu", help="one GPU, as gfx942/304; all of them if left out")
    parser.add_argument("--families", nargs="+", default=FAMILIES)
    parser.add_argument("--folds", type=int, default=2)
    parser.add_argument("--kept", type=Path, help="where constants of folds are kept")
    options = parser.parse_args()
    heads = ("the best", "stated", "within 5 %: at least", "at most", "expected", "first 4")
    print(f"| | M | rows | {' | '.join(heads)} |")
    print(f"| --- | --- | ---: {'| ---: ' * len(heads)}|", flush=True)
    for spec in gpus():
        if options.gpu not in (None, f"{spec.name}/{spec.compute_units}"):
            continue
        for table in (read(spec, family) for family in options.families):
            if len(table) < _FEWEST:
                continue
            _, by_fold = fold_constants_of([table], options.kept, options.folds)
            print("\n".join(report(table, out_of_fold_times(table, by_fold))), flush=True)


if __name__ == "__main__":
    main()
