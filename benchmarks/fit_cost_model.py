# SPDX-License-Identifier: MIT
"""Fit the free constants of the cost model to published measurements; store them with their error.

The table knows only the winner of each shape, so two things are fitted together: the winner's
predicted time should be the measured one, and no candidate should be predicted quicker than the
winner (the likelihood of the winner under a soft minimum over all candidates). The equations are
those of `cklang.families.gemm.cost.terms`, differentiated by autograd. Needs scipy and autograd.

    python benchmarks/fit_cost_model.py            # all GPUs, with cross-validation, a few minutes

With ``--only`` the other constants stay as they are shipped, in the fit to all rows; errors are
those of fits of all constants.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

import autograd.numpy as tracing
import numpy as np
import numpy.typing as npt
from autograd import value_and_grad
from data.published import Table, folds, gpus, read
from scipy.optimize import minimize

from cklang.arch import ArchSpec
from cklang.families.cost_constants import PRODUCTS, SPREADS, Constants, FittedSet, fitted
from cklang.families.gemm.cost.terms import Geometry, costs, geometry, step_time, times
from cklang.families.gemm.cost.traits import Columns
from cklang.selection.regret import weights

Floats = npt.NDArray[np.float64]

# Where a fit starts, and (weakly) what it is drawn to: round figures of the right magnitude.
START = Constants(
    launch=2.5,
    matrix=1.0,
    lds=0.5,
    vector=1.0,
    load=0.5,
    issue=0.03,
    single_stage=1.1,
    spill=0.2,
    latency_single=0.5,
    latency_prefetch=0.5,
    serial_single=0.7,
    serial_prefetch=0.2,
    load_issue=0.02,
    chain=0.05,
    beyond_k=0.0,
    prologue=1.0,
    fill=0.3,
    epilogue=2.0,
    epilogue_latency=1.0,
    tail=0.1,
    last_level=60.0,
    memory_warm=5.0,
    memory_cold=4.0,
    l2=20.0,
    split=1.5,
    split_atomics=1.0,
)
NAMES = [f.name for f in fields(Constants) if getattr(START, f.name)]
"""Those that are fitted: K of the tables is a multiple of the tiles' but in few rows."""
# What the shipped constants of a GPU are fitted to. Its families disagree, for they come from
# other sessions and kernels: fitted to all four together, gfx950 chooses much worse.
SHIPPED = {
    ("gfx942", 80): ("a8w8_blockscale_bpreshuffle", "a8w8_bpreshuffle"),
    ("gfx942", 304): ("a8w8_blockscale",),
    ("gfx950", 256): ("a8w8_blockscale",),
}
FAMILIES = ("a8w8_blockscale", "a8w8_blockscale_bpreshuffle", "a8w8_bpreshuffle", "a8w8_rowwise")
CONSTANTS = Path(__file__).parents[1] / "cklang" / "families" / "fitted"

_TIME_SCALE = 0.04
"""Relative error from which on a time counts linearly, not quadratically."""
_CHOICE = 1.0
"""Weight of the choice beside the time."""
_TEMPERATURE = 0.04
"""Where the temperature of the soft minimum starts, in relative time."""
_RIDGE = 5e-4
_SMALL_M = 1024
_PER_KERNEL = 5
"""Rows above that M that are kept for each (N, K) and winner: they are all alike."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What a fit needs of one table: counted once, outside the optimiser."""

    spec: ArchSpec
    columns: Columns
    geometry: Geometry
    log_us: Floats
    won: Floats
    """One-hot winners, [rows, kernels]."""
    forbidden: Floats
    time_weight: Floats
    choice_weight: Floats


def sample(table: Table, seed: int = 0) -> Sample:
    """Thin out the large problems and count tiles and traffic of the rest."""
    rows = _thinned(table, seed)
    few = table.take(rows)
    columns = Columns.stack([kernel.traits(table.spec) for kernel in table.kernels])
    won = np.zeros((len(few), len(table.kernels)))
    won[np.arange(len(few)), few.winner] = 1.0
    # A row stands for those that were thinned out with it.
    time_weight = _counts(table, True)[rows] / _counts(few, True)
    choice_weight = _counts(few, False) ** -0.3 * _shape_counts(few) ** -0.3
    return Sample(
        spec=table.spec,
        columns=columns,
        geometry=geometry(columns, table.spec, *extents(few)),
        log_us=np.log(few.us),
        won=won,
        forbidden=np.where(few.legal() & table.searched()[rows], 0.0, -1e4),
        time_weight=time_weight / time_weight.sum(),
        choice_weight=choice_weight / choice_weight.sum(),
    )


def extents(table: Table) -> tuple[Floats, Floats, Floats]:
    """Return M, N, K as columns, [rows, 1]."""
    m, n, k = (x[:, None].astype(np.float64) for x in (table.m, table.n, table.k))
    return m, n, k


def _thinned(table: Table, seed: int) -> npt.NDArray[np.intp]:
    kept: list[int] = []
    counts: dict[tuple[int, ...], int] = {}
    for row in np.random.RandomState(seed).permutation(len(table)):
        group = (int(table.n[row]), int(table.k[row]), int(table.winner[row]))
        if table.m[row] > _SMALL_M:
            counts[group] = counts.get(group, 0) + 1
            if counts[group] > _PER_KERNEL:
                continue
        kept.append(int(row))
    return np.sort(np.array(kept, dtype=np.intp))


def group_sizes(groups: Sequence[object]) -> Floats:
    """Return for each row how many rows its group has."""
    sizes: dict[object, int] = {}
    for group in groups:
        sizes[group] = sizes.get(group, 0) + 1
    return np.array([sizes[group] for group in groups], dtype=np.float64)


def _counts(table: Table, by_shape: bool) -> Floats:
    winners = table.winner.tolist()
    if not by_shape:
        return group_sizes(winners)
    return group_sizes(list(zip(table.shapes(), winners, strict=True)))


def _shape_counts(table: Table) -> Floats:
    return group_sizes(table.shapes())


def log_times(s: Sample, c: Constants) -> Floats:
    """Return the logarithm of the predicted times, [rows, kernels]; traceable."""
    cost = costs(s.columns, s.spec, c)
    full = step_time(cost, s.columns.occupancy)
    last = step_time(cost, s.geometry.last)
    predicted: Floats = tracing.log(times(s.columns, s.geometry, cost, c, full, last).total)
    return predicted


def loss(
    theta: Floats,
    samples: Sequence[Sample],
    start: Floats,
    names: Sequence[str] = NAMES,
    fixed: Constants = START,
) -> float:
    """Return what the fit makes small: time error, choice likelihood, distance from the start.

    ``theta`` are logarithms of the named constants, and of the temperature of the choice.
    """
    values = tracing.exp(theta)
    c = replace(fixed, **{name: values[i] for i, name in enumerate(names)})
    total = _RIDGE * tracing.sum((theta - start) ** 2)
    for s in samples:
        predicted = log_times(s, c)
        error = (tracing.sum(predicted * s.won, 1) - s.log_us) / _TIME_SCALE
        total = total + tracing.sum(s.time_weight * (tracing.sqrt(1.0 + error**2) - 1.0)) / len(
            samples
        )
        z = s.forbidden - predicted / values[-1]
        high = tracing.max(z, 1)
        surprise = tracing.log(tracing.sum(tracing.exp(z - high[:, None]), 1)) + high
        surprise = surprise - tracing.sum(z * s.won, 1)
        total = total + _CHOICE * tracing.sum(s.choice_weight * surprise) / len(samples)
    return total  # type: ignore[no-any-return]


def fit(
    tables: Sequence[Table],
    start: Constants | None = None,
    steps: int = 250,
    names: Sequence[str] = NAMES,
    fixed: Constants = START,
) -> Constants:
    """Return the constants that fit these tables of one GPU best.

    Those that are not named stay as they are in ``fixed``.
    """
    origin = np.log([getattr(START, name) for name in names] + [_TEMPERATURE])
    first = origin.copy()
    if start is not None:
        first[:-1] = np.log([max(getattr(start, name), 1e-6) for name in names])
    bounds = [(x - 4.0, x + 4.0) for x in origin]
    samples = [sample(table) for table in tables]
    gradient = value_and_grad(lambda theta: loss(theta, samples, origin, names, fixed))
    minimum = minimize(
        gradient, first, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": steps}
    )
    return replace(
        fixed, **{n: float(f"{v:.5g}") for n, v in zip(names, np.exp(minimum.x[:-1]), strict=True)}
    )


def predict(table: Table, c: Constants) -> Floats:
    """Return predicted times of all candidates, [rows, kernels]; infinite where refused."""
    columns = Columns.stack([kernel.traits(table.spec) for kernel in table.kernels])
    g = geometry(columns, table.spec, *extents(table))
    cost = costs(columns, table.spec, c)
    full = step_time(cost, columns.occupancy)
    last = step_time(cost, g.last)
    return np.where(table.legal(), times(columns, g, cost, c, full, last).total, np.inf)


def fold_constants(tables: Sequence[Table], full_fit: Constants, count: int = 5) -> list[Constants]:
    """Return the constants of each fold, fitted without the (N, K) of that fold."""
    assigned = [folds(table, count) for table in tables]
    # Half-way between the common start and the fit on everything: near, yet not the answer.
    start = replace(
        START,
        **{n: float(np.sqrt(getattr(START, n) * max(getattr(full_fit, n), 1e-6))) for n in NAMES},
    )
    constants = []
    for fold in range(count):
        rest = [t.take(a != fold) for t, a in zip(tables, assigned, strict=True)]
        constants.append(fit([t for t in rest if len(t)], start))
    return constants


def fold_constants_of(
    tables: Sequence[Table], kept: Path | None = None, count: int = 5
) -> tuple[Constants, list[Constants]]:
    """Return the constants fitted to all rows, and those of each fold.

    With ``kept``, a file, what an earlier run has fitted to the same rows is taken from there.
    """
    spec = tables[0].spec
    rows = ", ".join(f"{t.family} {len(t)}" for t in tables)
    name = f"{spec.name}/{spec.compute_units}, {count} folds: {rows}"
    known = json.loads(kept.read_text()) if kept is not None and kept.exists() else {}
    if name not in known:
        full_fit = fit(tables)
        known[name] = [asdict(c) for c in (full_fit, *fold_constants(tables, full_fit, count))]
        if kept is not None:
            kept.write_text(json.dumps(known, indent=1) + "\n")
    full_fit, *each = (Constants(**values) for values in known[name])
    return full_fit, each


def out_of_fold_times(table: Table, constants: Sequence[Constants]) -> Floats:
    """Return predicted times, [rows, kernels], each row by the constants that never saw it."""
    assigned = folds(table, len(constants))
    predicted = np.zeros((len(table), len(table.kernels)))
    for fold, c in enumerate(constants):
        if (assigned == fold).any():
            predicted[assigned == fold] = predict(table.take(assigned == fold), c)
    return predicted


def winner_error(table: Table, us: Floats) -> Floats:
    """Return the relative error of the winner's time in each row."""
    predicted = us[np.arange(len(table)), table.winner]
    error: Floats = np.abs(predicted / table.us - 1.0)
    return error


def spread_of(tables: Sequence[tuple[Floats, npt.NDArray[np.int64]]]) -> float:
    """Return the spread with which predicted times explain the winners best.

    ``tables`` are times, [rows, kernels], and the winners.
    """

    def surprise(spread: float) -> float:
        total = 0.0
        for us, winner in tables:
            chances = weights(us, spread)
            total -= np.log(chances[np.arange(len(us)), winner] / chances.sum(1) + 1e-300).sum()
        return total

    return float(min(np.geomspace(0.003, 0.3, 100), key=surprise))


def spreads(tables: Sequence[Table], times: Sequence[Floats]) -> dict[str, float]:
    """Return the spread of predictions, out of fold, by M."""
    searched = [np.where(t.searched(), us, np.inf) for t, us in zip(tables, times, strict=True)]
    return {
        name: spread_of(
            [
                (us[rows], t.winner[rows])
                for t, us in zip(tables, searched, strict=True)
                for rows in [(t.m > low) & (t.m <= high)]
            ]
        )
        for name, low, high in SPREADS
    }


def fit_gpu(spec: ArchSpec, families: Sequence[str], only: Sequence[str] = ()) -> FittedSet:
    """Fit one GPU on all its families together and cross-validate.

    With ``only``, the others of the returned constants are those that are shipped.
    """
    tables = [t for t in (read(spec, family) for family in families) if len(t)]
    whole = fit(tables)
    held_out = fold_constants(tables, whole)
    c = fit(tables, names=only, fixed=fitted(spec).constants) if only else whole
    times_of = [out_of_fold_times(t, held_out) for t in tables]
    errors = [winner_error(t, us) for t, us in zip(tables, times_of, strict=True)]
    summary = {
        f"median {t.family}": float(np.median(e)) for t, e in zip(tables, errors, strict=True)
    }
    merged = np.concatenate(errors)
    summary |= {"median": float(np.median(merged)), "p90": float(np.quantile(merged, 0.9))}
    summary |= spreads(tables, times_of)
    return FittedSet(
        gpu=spec.name,
        compute_units=spec.compute_units,
        family=PRODUCTS,
        constants=c,
        provenance={
            "product": spec.product,
            "data": "AITER tuned tables (MIT licence), August 2026: benchmarks/make_gemm_table.py",
            "families": {t.family: len(t) for t in tables},
            "weight_shapes": len({s for t in tables for s in t.shapes()}),
            "element_types": "A and B 8 bits, E bf16",
            "script": "benchmarks/fit_cost_model.py",
            **({"fitted": list(only)} if only else {}),
            "validation": "5 folds grouped by (N, K); relative error of the winner's time",
        },
        error={name: round(value, 4) for name, value in summary.items()},
    )


def main() -> None:
    """Fit and store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpu", help="one GPU, as gfx942/304; all of them if left out")
    parser.add_argument("--families", nargs="+", help="those that are shipped if left out")
    parser.add_argument("--only", nargs="+", default=(), choices=NAMES)
    parser.add_argument("--out", type=Path, default=CONSTANTS)
    options = parser.parse_args()
    options.out.mkdir(exist_ok=True)
    for spec in gpus():
        name = f"{spec.name}/{spec.compute_units}"
        if options.gpu in (None, name):
            shipped = SHIPPED[spec.name, spec.compute_units]
            fitted_set = fit_gpu(spec, options.families or shipped, options.only)
            path = options.out / f"{name.replace('/', '_')}.json"
            path.write_text(json.dumps(fitted_set.to_json(), indent=2) + "\n")
            print(name, fitted_set.error)


if __name__ == "__main__":
    main()
