# SPDX-License-Identifier: MIT
"""Prove the cost model on published measurements, beside what simple things reach.

Everything is out of fold: 5 folds grouped by weight shape (N, K), the same for all columns. Prints
Markdown; `--plots FOLDER` also draws the times. Needs scipy, autograd and scikit-learn; columns for
rocm-origami appear if origami can be imported.

    python benchmarks/cost_model.py --families a8w8_blockscale
"""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from data.published import Table, folds, gpus, read
from fit_cost_model import FAMILIES, fold_constants_of, out_of_fold_times, predict

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

_NEAR = 0.03
"""Relative time that the model cannot tell apart: its median error."""
SIZES = (("M ≤ 64", 0, 64), ("M ≤ 512", 64, 512), ("above", 512, 1 << 62))


@dataclass(frozen=True, slots=True)
class Column:
    """One method: out-of-fold times, order of the candidates, or both."""

    name: str
    us: Floats | None = None
    """Predicted time of the winner, [rows]."""
    rank: npt.NDArray[np.int64] | None = None
    """Place of the winner among the candidates, from 0, [rows]."""
    regret: Floats | None = None
    """Predicted time of the winner over that of the first choice, less 1."""


def features(table: Table) -> Floats:
    """Return logarithms of the extents and their products: what a learner without physics has."""
    m, n, k = (np.log(x.astype(np.float64)) for x in (table.m, table.n, table.k))
    return np.stack([m, n, k, m + n, m + k, n + k, m + n + k], 1)


def linear_times(train: Table, test: Table) -> Floats:
    """Least squares of relative error on five terms: constant, flops, and three operand sizes."""

    def terms(table: Table) -> Floats:
        m, n, k = (x.astype(np.float64) for x in (table.m, table.n, table.k))
        return np.stack([np.ones_like(m), m * n * k, m * k, n * k, m * n], 1)

    x = terms(train) / train.us[:, None]
    scale = np.abs(x).mean(0)
    weights = np.linalg.lstsq(x / scale, np.ones(len(train)), rcond=None)[0]
    predicted: Floats = terms(test) / scale @ weights
    return predicted


def boosted_times(train: Table, test: Table) -> Floats:
    """Gradient boosting on the logarithm of the time."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    model = HistGradientBoostingRegressor(max_iter=300, random_state=0)
    model.fit(features(train), np.log(train.us))
    predicted: Floats = np.exp(model.predict(features(test)))
    return predicted


def boosted_ranks(train: Table, test: Table) -> npt.NDArray[np.int64]:
    """Gradient boosting of the time on winners, with the kernel among the features."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    traits = np.array([[*k.tile, k.split_k, k.stages, k.threads] for k in train.kernels], float)
    model = HistGradientBoostingRegressor(max_iter=300, random_state=0)
    model.fit(np.hstack([features(train), traits[train.winner]]), np.log(train.us))
    times = np.stack(
        [
            model.predict(np.hstack([features(test), np.tile(row, (len(test), 1))]))
            for row in traits
        ],
        1,
    )
    return ranks(test, np.where(test.legal(), times, np.inf))


def frequent_ranks(train: Table, test: Table) -> npt.NDArray[np.int64]:
    """Order the kernels by how often they won."""
    often = np.bincount(train.winner, minlength=len(train.kernels)).astype(np.float64)
    return ranks(test, np.tile(-often, (len(test), 1)))


def nearest(train: Table, test: Table) -> Floats:
    """Return the distance, in log shape, to the nearest shape that each kernel won."""
    here, there = features(test)[:, :3], features(train)[:, :3]
    distances = np.full((len(test), len(train.kernels)), np.inf)
    for kernel in np.unique(train.winner):
        won = there[train.winner == kernel]
        for start in range(0, len(here), 256):
            block = here[start : start + 256, None] - won[None]
            distances[start : start + 256, kernel] = np.square(block).sum(2).min(1)
    return distances


def nearest_ranks(train: Table, test: Table) -> npt.NDArray[np.int64]:
    """Order the kernels by that distance."""
    return ranks(test, nearest(train, test))


def nearest_searched_ranks(train: Table, test: Table) -> npt.NDArray[np.int64]:
    """Do so without the kernels that the session of a row seems not to have searched."""
    return ranks(test, same_search(test, nearest(train, test)))


def origami_column(table: Table) -> Column:
    """AMD's analytic model; it does not tell kernels of one tile apart: ties count for it."""
    import origami

    spec = table.spec
    hardware = origami.get_hardware_for_arch(
        getattr(origami.architecture_t, spec.name),
        spec.compute_units,
        spec.lds_bytes,
        spec.l2_bytes,
        int(spec.clock_hz / 1e3),
    )
    types = origami.data_type_t
    problem = origami.problem_t()
    problem.batch = 1
    problem.a_transpose, problem.b_transpose = origami.transpose_t.T, origami.transpose_t.N
    eight = types.Float8 if spec.fp8 == "ocp" else types.Float8_fnuz
    problem.a_dtype = problem.b_dtype = problem.mi_dtype = eight
    problem.c_dtype = problem.d_dtype = types.BFloat16
    tiles = sorted({kernel.tile for kernel in table.kernels})
    configs = []
    for tile in tiles:
        config = origami.config_t()
        config.mt = origami.dim3_t(*tile)
        config.mi = origami.dim3_t(16, 16, 32)
        config.occupancy = 2
        configs.append(config)
    latency = np.zeros((len(table), len(table.kernels)))
    for row, shape in enumerate(zip(table.m, table.n, table.k, strict=True)):
        problem.size = origami.dim3_t(*map(int, shape))
        try:
            ranked = origami.rank_configs(problem, hardware, configs)
        except RuntimeError:
            # It knows no answer for some shapes: a miss.
            ranked = []
        latency_of = {(r.config.mt.m, r.config.mt.n, r.config.mt.k): r.latency for r in ranked}
        latency[row] = [latency_of.get(kernel.tile, np.inf) for kernel in table.kernels]
    own = latency[np.arange(len(table)), table.winner][:, None]
    place = np.where(np.isinf(own[:, 0]), len(table.kernels), (latency < own).sum(1))
    return Column("rocm-origami, its tile", rank=place)


def ranks(table: Table, score: Floats) -> npt.NDArray[np.int64]:
    """Return the place of the winner by score, smallest first; ties count against it."""
    rows = np.arange(len(table))
    own = score[rows, table.winner][:, None]
    place: npt.NDArray[np.int64] = (score <= own).sum(1) - 1
    return place


def tile_ranks(table: Table, score: Floats) -> npt.NDArray[np.int64]:
    """Return the place of the winner's tile, as rocm-origami is counted: ties count for it."""
    tiles = np.array([kernel.tile for kernel in table.kernels])
    same = (tiles[table.winner][:, None] == tiles[None]).all(2)
    own = np.where(same, score, np.inf).min(1, keepdims=True)
    place: npt.NDArray[np.int64] = ((score < own) & ~same).sum(1)
    return place


def out_of_fold(
    table: Table, method: Callable[[Table, Table], npt.NDArray[np.float64] | npt.NDArray[np.int64]]
) -> npt.NDArray[np.float64]:
    """Run a method on each fold with the others as its training data."""
    assigned = folds(table)
    predictions = np.zeros(len(table))
    for fold in np.unique(assigned):
        test = assigned == fold
        predictions[test] = method(table.take(~test), table.take(test))
    return predictions


def model_column(name: str, table: Table, us: Floats) -> Column:
    """Turn predicted times of all candidates, [rows, kernels], into a column."""
    won = us[np.arange(len(table)), table.winner]
    return Column(name, us=won, rank=ranks(table, us), regret=won / us.min(1) - 1.0)


def baselines(table: Table) -> list[Column]:
    """Return the columns of the simple methods."""
    columns = [
        Column("linear fit", us=out_of_fold(table, linear_times)),
        Column("boosted times", us=out_of_fold(table, boosted_times)),
    ]
    orders: Mapping[str, Callable[[Table, Table], npt.NDArray[np.int64]]] = {
        "boosted winners": boosted_ranks,
        "most frequent": frequent_ranks,
        "nearest shape": nearest_ranks,
    }
    for name, method in orders.items():
        columns.append(Column(name, rank=out_of_fold(table, method).astype(np.int64)))
    return columns


def same_search(table: Table, score: Floats) -> Floats:
    """Take out the kernels that the session of a row seems not to have searched."""
    return np.where(table.searched(), score, np.inf)


def macro(table: Table, hit: Bools) -> float:
    """Return the mean over winning kernels of the part of their rows that is hit."""
    return float(np.mean([hit[table.winner == w].mean() for w in np.unique(table.winner)]))


def report(table: Table, columns: Sequence[Column]) -> str:
    """Return the tables of one family and GPU as Markdown."""
    title = f"{table.spec.name}/{table.spec.compute_units} {table.family}"
    counts = f"{len(table)} rows, {len(set(table.shapes()))} (N, K), {len(table.kernels)} kernels"
    lines = [f"## {title}", "", counts, ""]
    classes = [("all", np.ones(len(table), bool))]
    classes += [(name, (table.m > low) & (table.m <= high)) for name, low, high in SIZES]
    classes = [(name, rows) for name, rows in classes if rows.any()]
    heads = [f"{name} ({rows.sum()})" for name, rows in classes]
    lines += _section("time: median relative error", heads)
    for column in columns:
        if column.us is not None:
            error = np.abs(column.us / table.us - 1.0)
            lines.append(_row(column.name, [f"{np.median(error[r]):.1%}" for _, r in classes]))
    measures: Sequence[tuple[str, int, bool]] = (
        ("winner is first", 1, False),
        ("winner is among the first 5", 5, False),
        ("winner is first, mean over winning kernels", 1, True),
        ("winner is among the first 5, mean over winning kernels", 5, True),
    )
    for title, depth, macro_mean in measures:
        lines += _section(title, heads)
        for column in columns:
            if column.rank is None:
                continue
            hit = column.rank < depth
            cells = [
                macro(table.take(r), hit[r]) if macro_mean else float(hit[r].mean())
                for _, r in classes
            ]
            lines.append(_row(column.name, [f"{cell:.3f}" for cell in cells]))
    lines += _section("predicted regret of the first choice: mean", heads)
    for column in columns:
        if column.regret is not None:
            lines.append(_row(column.name, [f"{column.regret[r].mean():.2%}" for _, r in classes]))
    lines += _section(f"misses that are predicted within {_NEAR:.0%} of the winner", heads)
    for column in columns:
        if column.regret is not None:
            lines.append(_row(column.name, [_near_misses(column.regret[r]) for _, r in classes]))
    return "\n".join([*lines, ""])


def _near_misses(regret: Floats) -> str:
    missed = regret > 0
    return f"{(regret[missed] < _NEAR).mean():.0%} of {missed.sum()}" if missed.any() else "none"


def _section(title: str, heads: Sequence[str]) -> list[str]:
    return ["", _row(title, heads), _row("---", ["---:"] * len(heads))]


def _row(name: str, cells: Sequence[str]) -> str:
    return "| " + " | ".join([name, *cells]) + " |"


def prove(
    tables: Sequence[Table], joint: bool, kept: Path | None = None
) -> list[tuple[Table, list[Column]]]:
    """Return all columns of the families of one GPU."""
    groups = [list(tables)] if joint else [[table] for table in tables]
    results: list[tuple[Table, list[Column]]] = []
    for group in groups:
        full_fit, constants = fold_constants_of(group, kept)
        for table in group:
            us = out_of_fold_times(table, constants)
            columns = [model_column("cost model", table, us)]
            columns.append(model_column("cost model, in sample", table, predict(table, full_fit)))
            columns += baselines(table)
            if importlib.util.find_spec("origami"):
                columns.append(origami_column(table))
            narrow = model_column("cost model, own search", table, same_search(table, us))
            narrow = replace(narrow, us=None)  # the same times
            order = out_of_fold(table, nearest_searched_ranks).astype(np.int64)
            columns.append(Column("cost model, its tile", rank=tile_ranks(table, us)))
            columns += [narrow, Column("nearest shape, own search", rank=order)]
            results.append((table, columns))
    return results


def plot(table: Table, column: Column, folder: Path) -> None:
    """Draw predicted over measured times of one table."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 4))
    for name, low, high in SIZES:
        rows = (table.m > low) & (table.m <= high)
        if rows.any() and column.us is not None:
            ratio = column.us[rows] / table.us[rows]
            axes.plot(table.us[rows], ratio, ".", markersize=3, label=name)
    axes.set(xscale="log", ylim=(0.5, 1.6), xlabel="measured µs", ylabel="predicted / measured")
    axes.axhline(1.0, color="black", linewidth=0.7)
    name = f"{table.spec.name}/{table.spec.compute_units} {table.family}"
    axes.set_title(f"{name}: weight shapes not used in fitting")
    axes.legend()
    figure.tight_layout()
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / f"{name.replace('/', '_').replace(' ', '_')}.png", dpi=120)
    plt.close(figure)


def main() -> None:
    """Print the proof."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpu", help="one GPU, as gfx942/304; all of them if left out")
    parser.add_argument("--families", nargs="+", default=FAMILIES)
    parser.add_argument("--joint", action="store_true", help="one fit for all families of a GPU")
    parser.add_argument("--folds", type=Path, help="where constants of folds are kept")
    parser.add_argument("--plots", type=Path, help="folder for plots")
    options = parser.parse_args()
    for spec in gpus():
        if options.gpu not in (None, f"{spec.name}/{spec.compute_units}"):
            continue
        tables = [read(spec, family) for family in options.families]
        large = [table for table in tables if len(table) >= 100]
        for table, columns in prove(large, options.joint, options.folds):
            print(report(table, columns), flush=True)
            if options.plots:
                plot(table, columns[0], options.plots)


if __name__ == "__main__":
    main()
